//! The shipped rules over a simulated session: the real transcript, its plans, and the decision whether they help.

use super::{FRAME, MAX_OUTPUT, PRICE, SUMMARY, TASK, Window, Work, cost, summary_cost};
use agentd_protocol::{
    Block, CallId, Delivery, EVENT_VERSION, Event, EventBody, InputAccepted, InputId, Latency, Message,
    ModelFinished, ModelStarted, Principal, SessionId, StopReason, Timestamp, ToolCallId, ToolFinished,
    ToolOutcome, ToolProposed, ToolStatus, Usage,
};
use agentd_transcript::{Transcript, pruning_helps};
use serde_json::json;
use std::sync::Arc;

/// The cost of a session, and the changes of its conversation.
#[derive(Debug, Default)]
pub(super) struct Ours {
    pub(super) usd: f64,
    pub(super) cleared: u32,
    pub(super) summaries: u32,
    /// The largest request, with its answer.
    pub(super) largest: u64,
}

struct Session {
    transcript: Transcript,
    seq: u64,
    window: Window,
    prune_from: u64,
    /// The messages of the last request.
    sent: Vec<Arc<Message>>,
    bill: Ours,
}

pub(super) fn run(work: &Work, window: Window) -> Ours {
    let mut session = Session {
        transcript: Transcript::new(),
        seq: 0,
        window,
        prune_from: 0,
        sent: Vec::new(),
        bill: Ours::default(),
    };
    let first = InputAccepted {
        input: InputId::NIL,
        key: None,
        delivery: Delivery::Start,
        content: vec![Block::text(text(TASK))],
        model: None,
        agent: None,
    };
    session.fold(first);
    for (step, (answer, result)) in work.answers.iter().zip(&work.results).enumerate() {
        session.step(step, *answer, *result, work.steps());
    }
    session.bill
}

impl Session {
    fn fold(&mut self, body: impl Into<EventBody>) {
        self.seq += 1;
        self.transcript.apply(&Event {
            v: EVENT_VERSION,
            session: SessionId::NIL,
            seq: self.seq,
            at: Timestamp(self.seq),
            by: Principal::agentd(),
            turn: None,
            body: body.into(),
        });
    }

    fn step(&mut self, step: usize, answer: u64, result: u64, steps: usize) {
        self.shorten(step as u64);
        self.fold(started(step, steps));
        let messages = self.transcript.messages().to_vec();
        let same = messages
            .iter()
            .zip(&self.sent)
            .take_while(|(new, old)| Arc::ptr_eq(new, old));
        let read = same.count();
        let read = messages.iter().take(read).map(size).sum::<u64>() + if step > 0 { FRAME } else { 0 };
        let all = FRAME + messages.iter().map(size).sum::<u64>();
        self.bill.usd += cost(read, all - read, answer);
        self.bill.largest = self.bill.largest.max(all + MAX_OUTPUT);
        self.sent = messages;
        self.act(step, (all, answer), result);
    }

    /// The answer, which calls a tool, and the result of the call.
    fn act(&mut self, step: usize, (sent, answer): (u64, u64), result: u64) {
        let mut bytes = [0; 10];
        for (to, from) in bytes.iter_mut().zip((step as u64).to_be_bytes()) {
            *to = from;
        }
        let tool_call = ToolCallId::from_parts(1, bytes);
        let input = json!({ "command": text(answer.saturating_sub(40)) });
        let call = Block::ToolUse {
            id: tool_call.to_string(),
            name: "Bash".to_owned(),
            input: input.clone(),
        };
        self.fold(ModelFinished {
            call: CallId::NIL,
            attempt: 1,
            content: vec![Block::text(text(20)), call],
            stop_reason: StopReason::ToolUse,
            usage: Usage {
                input: sent,
                output: answer,
                ..Usage::default()
            },
            cost_usd: None,
            latency: Latency::default(),
            credential: None,
            reading: agentd_protocol::Reading::default(),
        });
        self.fold(ToolProposed {
            tool_call,
            name: "Bash".to_owned(),
            input,
            index: 0,
        });
        self.fold(ToolFinished {
            tool_call,
            outcome: ToolOutcome::text(ToolStatus::Ok, text(result)),
        });
    }

    /// The daemon's steps before a model call, in order.
    fn shorten(&mut self, steps: u64) {
        let Window { tokens, line, rules } = self.window;
        let now = self.transcript.estimate_tokens();
        if rules.may_prune(now, line, self.prune_from) {
            let plan = self
                .transcript
                .plan_pruning(rules.prune_protect_tokens, rules.prune_min_tokens)
                .filter(|plan| pruning_helps(plan, line, steps, Some(PRICE)));
            if let Some(plan) = plan {
                self.bill.cleared += 1;
                self.fold(plan);
            }
            self.prune_from = rules.prune_again_from(self.transcript.estimate_tokens());
        }
        if self.transcript.estimate_tokens() <= line {
            return;
        }
        let target = rules.after_compaction(tokens, line);
        let plan = self.transcript.plan_compaction(rules.keep_recent_tokens, target);
        let told = plan.and_then(|plan| self.transcript.with_summary(&plan, &text(SUMMARY)));
        if let Some(told) = told {
            let read = FRAME + self.sent.iter().map(size).sum::<u64>();
            let all = self.transcript.estimate_tokens();
            self.bill.usd += summary_cost(read, all.saturating_sub(read));
            self.bill.summaries += 1;
            self.fold(told);
        }
    }
}

fn started(step: usize, steps: usize) -> ModelStarted {
    ModelStarted {
        call: CallId::NIL,
        attempt: 1,
        step: u32::try_from(step).unwrap_or(u32::MAX),
        max_steps: u32::try_from(steps).unwrap_or(u32::MAX),
        inputs: if step == 0 { vec![InputId::NIL] } else { Vec::new() },
        provider: "simulated".to_owned(),
        model: "simulated".to_owned(),
        credential: None,
        input_tokens_estimate: 0,
        tools_off: false,
        configured: None,
        thinking: None,
        cache_hour: false,
    }
}

/// A text of this many tokens.
fn text(tokens: u64) -> String {
    "word".repeat(usize::try_from(tokens).unwrap_or_default())
}

/// Tokens of a message.
fn size(message: &Arc<Message>) -> u64 {
    let block = |block: &Block| match block {
        Block::Text { text } => text.len() as u64 / 4,
        Block::ToolResult { content, .. } => content.len() as u64 / 4,
        Block::ToolUse { input, .. } => input.to_string().len() as u64 / 4 + 15,
        Block::Image { .. } | Block::Thinking { .. } | Block::Unknown => 0,
    };
    message.content.iter().map(block).sum()
}
