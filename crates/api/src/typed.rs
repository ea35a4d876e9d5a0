//! Inputs that a person typed (`commands: true`): carries out commands and attaches mentioned files.

use crate::api::Api;
use crate::commands::{Typed, todo_text};
use crate::idempotency::beside;
use crate::mentioned::Speaker;
use crate::sight::{Caller, Seen};
use crate::validate;
use agentd_protocol::{
    Block, CreateParams, Event, EventBody, Fault, InputId, PermissionMode, Sent, Seq, SessionCreated,
    SessionId, Timestamp, UndoParams,
};
use agentd_store::{IdempotencyKey, Range};
use agentd_turn::{Command, ShownSettings};

/// The outcome of a typed text.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// An input with this content, and notices for its author.
    Input(Vec<Block>, Vec<String>),
    /// A command, and its answer.
    Said(Sent),
}

impl Api {
    /// Carries out a typed text if it is a command; anything else becomes an input.
    pub(crate) async fn obeyed(
        &self,
        who: &Caller,
        session: Seen,
        content: Vec<Block>,
        key: Option<IdempotencyKey>,
    ) -> Result<Outcome, Fault> {
        let mut speaker = self.speaker(session).await?;
        let content = match self.typed(&speaker.workdir, content).await? {
            Typed::Text(content) => content,
            Typed::File(content) => {
                speaker.person = false;
                content
            }
            Typed::Mode(mode, Some(rest)) => {
                let judged = self.may_have(who, session, Some(mode), None).await?;
                self.route(who, session, update(judged, Some(mode), None), None)
                    .await?;
                self.followed(*session).await?;
                speaker.mode = mode;
                rest
            }
            Typed::Mode(mode, None) => {
                let mut words = format!("the mode is now {mode}");
                if mode == PermissionMode::Yolo {
                    words = format!("{words}; {}", agentd_policy::YOLO_LIMITS);
                }
                let judged = self.may_have(who, session, Some(mode), None).await?;
                let said = self
                    .said(who, session, Some(update(judged, Some(mode), None)), words, key)
                    .await?;
                self.followed(*session).await?;
                return Ok(said);
            }
            Typed::Model(name) => {
                let model = self.model(Some(&name)).await?;
                let words = format!("the model is now {model}");
                return self
                    .said(who, session, Some(update(None, None, Some(model))), words, key)
                    .await;
            }
            Typed::Compact => {
                let words = "agentd will compact the conversation before its next model call".to_owned();
                return self.said(who, session, Some(Command::Compact), words, key).await;
            }
            Typed::Todo => {
                let words = todo_text(&self.row(session).await?.summary.todo);
                return self.said(who, session, None, words, key).await;
            }
            Typed::Help => {
                let words = self.help(&speaker.workdir).await?;
                return self.said(who, session, None, words, key).await;
            }
            Typed::Undo => return self.undone(who, session, key).await,
        };
        let (content, notices) = self.with_mentions(&speaker, content).await?;
        Ok(Outcome::Input(content, notices))
    }

    /// `/undo`: undoes the last change of files, under a key derived from the key of the text.
    async fn undone(
        &self,
        who: &Caller,
        session: Seen,
        key: Option<IdempotencyKey>,
    ) -> Result<Outcome, Fault> {
        let params = UndoParams {
            session: session.to_string(),
            key: key.map(|key| beside("/undo", &key.key)),
            ..UndoParams::default()
        };
        let done = self.undo(who, params).await?;
        let mut words = format!("undone: {} (undo id {})", done.files.join(", "), done.undo_id);
        for what in &done.stays {
            words.push_str("\nnot undone: ");
            words.push_str(what);
        }
        self.said(who, session, None, words, None).await
    }

    /// The answer to a command that is not an input. It is stored with the key of the command's change.
    async fn said(
        &self,
        who: &Caller,
        session: Seen,
        command: Option<Command>,
        words: String,
        key: Option<IdempotencyKey>,
    ) -> Result<Outcome, Fault> {
        let answer = |seq: Seq| Sent {
            input: InputId::NIL,
            seq,
            said: Some(words.clone()),
            notices: Vec::new(),
        };
        let seq = match command {
            None => self.row(session).await?.head,
            Some(command) => {
                let key = key.map(|key| IdempotencyKey {
                    answer: serde_json::to_string(&answer(0)).unwrap_or_default(),
                    ..key
                });
                let reply = self.route(who, session, command, key).await?;
                crate::answers::Answers::done(reply).seq
            }
        };
        Ok(Outcome::Said(answer(seq)))
    }

    /// Does the same for the prompt of a new session.
    pub(crate) async fn typed_prompt(
        &self,
        who: &Caller,
        mut params: CreateParams,
    ) -> Result<(CreateParams, Vec<String>), Fault> {
        if !params.commands {
            return Ok((params, Vec::new()));
        }
        let Some(content) = params.prompt.take() else {
            return Ok((params, Vec::new()));
        };
        // A real path: `create` looked at it.
        let workdir = params.workdir.clone();
        params.title = params.title.or_else(|| validate::title_from(&content));
        let mut person = true;
        let content = match self.typed(&workdir, content).await? {
            Typed::Text(content) => content,
            Typed::File(content) => {
                person = false;
                content
            }
            Typed::Mode(mode, Some(rest)) => {
                who.rights().mode(mode)?;
                params.mode = Some(mode);
                rest
            }
            Typed::Mode(_, None)
            | Typed::Model(_)
            | Typed::Compact
            | Typed::Todo
            | Typed::Undo
            | Typed::Help => {
                let message = "this command needs an existing session";
                return Err(Fault::invalid("bad_command", message)
                    .hint("say what the agent should do, or use /plan TEXT or a command file"));
            }
        };
        let speaker = Speaker {
            session: SessionId::NIL,
            workdir,
            mode: params.mode.unwrap_or(self.loaded().settings.permission.mode),
            rules: params.rules.clone(),
            person,
        };
        let (content, notices) = self.with_mentions(&speaker, content).await?;
        params.prompt = Some(content);
        Ok((params, notices))
    }

    async fn speaker(&self, session: Seen) -> Result<Speaker, Fault> {
        self.files_here(*session).await?;
        let (created, _) = self.first(session).await?;
        let summary = self.row(session).await?.summary;
        Ok(Speaker {
            session: *session,
            workdir: summary.workdir,
            mode: summary.mode,
            rules: created.rules,
            person: true,
        })
    }

    /// A session's creation event and its time. In an imported session it is the second event.
    pub(crate) async fn first(&self, session: Seen) -> Result<(SessionCreated, Timestamp), Fault> {
        let range = Range {
            limit: 2,
            ..Range::after(0)
        };
        let page = self.load(session, range).await?;
        let events = page.events.iter();
        let mut events = events.filter_map(|(_, line)| serde_json::from_slice::<Event>(line).ok());
        let found = events.find_map(|event| match event.body {
            EventBody::SessionCreated(created) => Some((created, event.at)),
            _ => None,
        });
        found.ok_or_else(|| Fault::internal("no_first_event", "the log does not begin with session.created"))
    }
}

const fn update(
    expect: Option<Box<ShownSettings>>,
    mode: Option<PermissionMode>,
    model: Option<String>,
) -> Command {
    Command::Update {
        expect,
        title: None,
        model,
        mode,
        labels: None,
        budget: None,
    }
}
