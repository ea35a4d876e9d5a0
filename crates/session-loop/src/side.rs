//! Model calls outside the turn: a question with its own system prompt, no tools, few tokens and a deadline. They do not
//! touch the conversation or its prefix.

use crate::error::LoopError;
use crate::shell::Shell;
use crate::workers::ModelJob;
use agentd_actor_kit::{Alarm, CallEvent, Lane, SessionMsg, Work};
use agentd_prompt::{SideQuestion, intent_question, summary_question, title_question};
use agentd_protocol::{Block, CallId, Intent, Message, RequestPart, Role, SidePurpose, Usage};
use agentd_provider::{
    Adjust, Dialect, EncodedHistory, ModelSpec, Params, Prompt, RequestBody, encode_prefix, encode_suffix,
};
use agentd_text::redact_known;
use agentd_transcript::estimate_tokens;
use agentd_turn::{Answer, ModelAnswer, QuestionId, SideCall, SideEnded};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the conversation from which a title is made.
const TITLE_BYTES: usize = 3_000;
/// Bytes of the conversation from which a summary is made.
const SUMMARY_BYTES: usize = 16_000;

/// An open question.
#[derive(Debug)]
pub(crate) struct Side {
    id: QuestionId,
    purpose: SidePurpose,
    model: String,
    _deadline: Alarm,
}

/// A question to a model outside the conversation.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) call: CallId,
    pub(crate) spec: Arc<ModelSpec>,
    /// The configured name of the model.
    pub(crate) model: &'a str,
    pub(crate) credential: Option<String>,
    pub(crate) system: &'a str,
    pub(crate) text: String,
    /// The required form of the answer, for models that can enforce it: a name and a JSON Schema.
    pub(crate) schema: Option<(&'static str, Value)>,
    pub(crate) max_output: u32,
    /// Whether the answer is not urgent.
    pub(crate) in_background: bool,
}

/// The fields that are read from an answer about the intent. Limits of numbers and texts are left out: not every server
/// accepts them, and the reader of the answer checks them.
fn intent_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "label": { "type": "string", "enum": [
                Intent::CodingTask,
                Intent::RepoAnalysis,
                Intent::CapabilityQuery,
                Intent::GeneralChat,
                Intent::Uncertain,
            ] },
            "confidence": { "type": "number" },
            "reason": { "type": "string" },
        },
        "required": ["label", "confidence", "reason"],
        "additionalProperties": false,
    })
}

impl Shell {
    /// Asks the question.
    pub(crate) async fn start_side(&mut self, id: QuestionId, side: SideCall) {
        let (call, purpose, model) = (side.call, side.purpose, side.model.clone());
        let within = Duration::from_millis(side.within_ms);
        match self.ask_beside(side).await {
            Ok(()) => {
                let deadline = Alarm::set(&self.me, within, SessionMsg::SideOverdue { call });
                self.sides.insert(
                    call,
                    Side {
                        id,
                        purpose,
                        model,
                        _deadline: deadline,
                    },
                );
            }
            Err(why) => {
                let ended = SideEnded {
                    call,
                    purpose,
                    model,
                    text: Err(why),
                    usage: Usage::default(),
                    cost_usd: None,
                };
                self.core.answer(id, Answer::Side(ended));
            }
        }
    }

    async fn ask_beside(&mut self, side: SideCall) -> Result<(), String> {
        let (of, _) = self
            .services
            .models
            .get(&side.model)
            .map_err(|error| error.message)?;
        if of.dialect == Dialect::Scripted {
            return Err("a scripted model knows only its own conversation".to_owned());
        }
        let SideQuestion { system, text } = self.question(&side)?;
        let question = Question {
            call: side.call,
            spec: Arc::new(of.adjusted(&Adjust {
                without: once(side.without),
                ..Adjust::default()
            })),
            model: &side.model,
            credential: side.credential,
            system,
            text,
            schema: (side.purpose == SidePurpose::Intent).then(|| ("intent", intent_schema())),
            max_output: side.max_output,
            in_background: side.purpose != SidePurpose::Intent,
        };
        let job = self
            .side_job(question)
            .ok_or("the model's provider is not running")?;
        let worker = self.services.workers.model(job).await;
        let worker = worker.map_err(|error| format!("the call could not be started: {error}"))?;
        let (call, attempt) = (side.call, 1);
        self.running.add(worker, Work::Model { call, attempt });
        Ok(())
    }

    fn question(&self, side: &SideCall) -> Result<SideQuestion, String> {
        Ok(match side.purpose {
            SidePurpose::Title => title_question(&self.core.transcript.digest(TITLE_BYTES)),
            SidePurpose::Summary => summary_question(&self.core.transcript.digest(SUMMARY_BYTES)),
            SidePurpose::Intent => intent_question(&side.words),
            SidePurpose::Compaction => return Err("a compaction uses another request".to_owned()),
        })
    }

    /// The worker's job for a question of one message.
    pub(crate) fn side_job(&self, question: Question<'_>) -> Option<ModelJob> {
        let (_, client) = self.services.models.get(question.model).ok()?;
        let spec = question.spec;
        let tokens = estimate_tokens(&question.text).saturating_add(estimate_tokens(question.system));
        let messages = vec![Arc::new(Message {
            role: Role::User,
            content: vec![Block::text(question.text)],
        })];
        let mut history = EncodedHistory::new();
        history.extend(&spec, 0, &messages);
        let params = Params {
            max_output: Some(question.max_output),
            schema: question.schema.as_ref().map(|(name, schema)| (*name, schema)),
            ..Params::default()
        };
        let created = self.core.agent.durable().settings.as_ref();
        let credential = (question.credential, false);
        let mut ask = self
            .services
            .sharing
            .ask(self.session, created, &spec, credential, tokens);
        ask.output_tokens = ask.output_tokens.min(question.max_output.into());
        if question.in_background {
            ask.lane = Lane::Background;
        }
        let system = Prompt::of(question.system);
        Some(ModelJob {
            to: self.me.clone(),
            call: question.call,
            attempt: 1,
            client,
            ask,
            tools: Vec::new(),
            body: RequestBody::new(
                encode_prefix(&spec, &system, &[], &params),
                &history,
                encode_suffix(&spec, &[], &params),
            ),
            messages: if spec.record.is_some() {
                messages
            } else {
                Vec::new()
            },
            spec,
        })
    }

    /// Whether the call is such a question.
    pub(crate) fn is_beside(&self, call: CallId) -> bool {
        self.sides.contains_key(&call)
    }

    /// Handles an event of a question. Its deltas are not shown to viewers.
    pub(crate) async fn side_news(&mut self, call: CallId, event: CallEvent) -> Result<(), LoopError> {
        match event {
            CallEvent::Waiting(_) | CallEvent::Granted { .. } | CallEvent::Delta(..) => Ok(()),
            CallEvent::Answered(answer) => {
                // The model may have read a key in the conversation before it was registered as a credential (I8).
                let text = redact_known(&words_of(&answer)).into_owned();
                self.side_ended(call, Ok(text), answer.usage, answer.cost_usd)
                    .await
            }
            CallEvent::Failed(failure) => {
                self.side_ended(call, Err(failure.message), Usage::default(), None)
                    .await
            }
        }
    }

    /// The deadline of a question has passed.
    pub(crate) async fn side_overdue(&mut self, call: CallId) -> Result<(), LoopError> {
        self.running.kill(&Work::Model { call, attempt: 1 });
        let why = Err("the model took too long".to_owned());
        self.side_ended(call, why, Usage::default(), None).await
    }

    async fn side_ended(
        &mut self,
        call: CallId,
        text: Result<String, String>,
        usage: Usage,
        cost_usd: Option<f64>,
    ) -> Result<(), LoopError> {
        let Some(side) = self.sides.remove(&call) else {
            return Ok(());
        };
        let ended = SideEnded {
            call,
            purpose: side.purpose,
            model: side.model,
            text,
            usage,
            cost_usd,
        };
        self.core.answer(side.id, Answer::Side(ended));
        self.run_followers().await
    }

    /// Drops a question whose answer is no longer wanted.
    pub(crate) fn drop_side(&mut self, id: QuestionId) {
        let call = self
            .sides
            .iter()
            .find(|(_, side)| side.id == id)
            .map(|(call, _)| *call);
        if let Some(call) = call {
            self.sides.remove(&call);
            self.running.kill(&Work::Model { call, attempt: 1 });
        }
    }
}

/// The text of an answer.
pub(crate) fn words_of(answer: &ModelAnswer) -> String {
    let texts = answer.content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::Image { .. }
        | Block::Thinking { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Unknown => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The request parts to leave out of a one-time question: no later request reads them, so they are not written to the cache.
pub(crate) fn once(mut without: Vec<RequestPart>) -> Vec<RequestPart> {
    without.push(RequestPart::CacheMarks);
    without
}
