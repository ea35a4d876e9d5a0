//! The facts of the status line: model, mode, state, steps, tokens, cost, budget and context.

use agentd_protocol::{
    Budget, Event, EventBody, PermissionMode, RunState, Seq, SessionId, Spent, Status, Summary, Timestamp,
    TodoItem, TodoStatus, TurnId,
};
use agentd_text::one_line;
use agentd_viewer::{clock, count, dollars, tokens, word};
use std::collections::BTreeMap;

/// The facts.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) session: SessionId,
    pub(crate) name: String,
    pub(crate) workdir: String,
    pub(crate) model: String,
    pub(crate) mode: PermissionMode,
    pub(crate) status: Status,
    pub(crate) turn: Option<TurnId>,
    /// The step of the running turn and the most it may have.
    step: Option<(u32, u32)>,
    steps: u64,
    tokens: u64,
    cost_usd: f64,
    time_ms: u64,
    /// What the ended sub-agents spent; the budget covers it.
    below: Spent,
    budget: Budget,
    /// The size of the last request, and the context windows of the models.
    context: u64,
    windows: BTreeMap<String, u64>,
    pub(crate) todo: Vec<TodoItem>,
    pub(crate) subagents: usize,
    /// This one included.
    pub(crate) viewers: u32,
    /// Events up to here are in the numbers already.
    counted: Seq,
    failed: String,
}

impl Facts {
    pub(crate) fn new(row: &Summary, windows: BTreeMap<String, u64>) -> Self {
        Self {
            session: row.session,
            name: row.name.clone(),
            workdir: row.workdir.clone(),
            model: row.model.clone(),
            mode: row.mode,
            status: row.status.clone(),
            turn: row.turn,
            step: None,
            steps: row.steps,
            tokens: row.usage.total(),
            cost_usd: row.cost_usd,
            time_ms: row.time_ms,
            below: row.below,
            budget: row.budget,
            context: 0,
            windows,
            todo: row.todo.clone(),
            subagents: row.children.len(),
            viewers: 1,
            counted: row.seq,
            failed: String::new(),
        }
    }

    pub(crate) fn status(&mut self, status: &Status) {
        self.status = status.clone();
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events change no fact")]
    pub(crate) fn event(&mut self, event: &Event) {
        let fresh = event.seq > self.counted;
        match &event.body {
            EventBody::ModelStarted(started) => {
                self.step = Some((started.step, started.max_steps));
                self.context = started.input_tokens_estimate;
                if let Some(name) = &started.configured {
                    self.model.clone_from(name);
                }
                self.failed.clear();
                if fresh && started.attempt == 1 {
                    self.steps += 1;
                }
            }
            EventBody::ModelFinished(answer) => {
                let usage = &answer.usage;
                let input = usage.input + usage.cache_read + usage.cache_write;
                if input > 0 {
                    self.context = input + usage.output;
                }
                if fresh {
                    self.tokens += usage.total();
                    self.cost_usd += answer.cost_usd.unwrap_or(0.0);
                }
            }
            EventBody::ModelFailed(failed) => self.failed = word(&failed.class).replace('_', " "),
            EventBody::ModeChanged(changed) => self.mode = changed.to,
            EventBody::TurnStarted(_) => {
                self.turn = event.turn;
                self.step = None;
            }
            EventBody::TurnFinished(_) => {
                self.turn = None;
                self.step = None;
            }
            EventBody::TodoUpdated(update) => self.todo.clone_from(&update.items),
            EventBody::SubagentStarted(_) if fresh => self.subagents += 1,
            EventBody::SubagentFinished(finished) if fresh => {
                self.subagents = self.subagents.saturating_sub(1);
                self.below = self.below.and(finished.spent);
            }
            EventBody::SessionUpdated(update) => {
                if let Some(title) = &update.title {
                    self.name.clone_from(title);
                }
                if let Some(model) = &update.model {
                    self.model.clone_from(model);
                }
                self.mode = update.mode.unwrap_or(self.mode);
                self.budget = update.budget.unwrap_or(self.budget);
            }
            _ => {}
        }
    }

    /// Whether the budget limits something that no event tells: the time.
    pub(crate) const fn wants_time(&self) -> bool {
        self.budget.time_ms > 0 && self.busy()
    }

    /// The time, from the session's list row.
    pub(crate) const fn time(&mut self, row: &Summary) {
        self.time_ms = row.time_ms;
    }

    /// Whether a turn is at work or waits for something.
    pub(crate) const fn busy(&self) -> bool {
        !matches!(
            self.status.state,
            RunState::Idle | RunState::Failed | RunState::Closed | RunState::Faulted | RunState::Paused
        )
    }

    /// The state, its reason and its time, for people.
    pub(crate) fn state(&self, now: Timestamp) -> String {
        let status = &self.status;
        if let (Some(until), Some(attempt)) = (status.until, status.attempt) {
            let left = clock(until.since_ms(now).saturating_add(999));
            let failed = one_line(&self.failed, 30);
            return format!("{} attempt {attempt} in {left}: {failed}", status.state);
        }
        let mut text = status.state.to_string();
        if self.busy() {
            text.push_str(&format!(" {}", clock(now.since_ms(status.since))));
        }
        if let Some(place) = status.position {
            text.push_str(&format!(", place {place} in line"));
        }
        let told = !matches!(status.state, RunState::Idle | RunState::Closed);
        if told && !status.reason.is_empty() {
            text.push_str(&format!(": {}", one_line(&status.reason, 60)));
        }
        text
    }

    /// The numbers, the most important first.
    pub(crate) fn numbers(&self) -> Vec<String> {
        let mut parts = Vec::new();
        parts.push(match self.step {
            Some((step, most)) if most > 0 => format!("step {step}/{most}"),
            Some((step, _)) => format!("step {step}"),
            None => count(self.steps, "step"),
        });
        parts.push(format!("{} tokens", tokens(self.tokens)));
        parts.push(dollars(self.cost_usd));
        let window = self
            .windows
            .get(&self.model)
            .copied()
            .filter(|window| *window > 0);
        if let Some(window) = window
            && self.context > 0
        {
            let percent = self.context.saturating_mul(100) / window;
            if percent > 0 {
                parts.push(format!("context {} {percent} %", bar(percent)));
            }
        }
        parts.extend(self.spent());
        if !self.todo.is_empty() {
            let done = self
                .todo
                .iter()
                .filter(|item| item.status == TodoStatus::Completed);
            parts.push(format!("to do {}/{}", done.count(), self.todo.len()));
        }
        if self.subagents > 0 {
            parts.push(count(u64::try_from(self.subagents).unwrap_or(0), "sub-agent"));
        }
        if self.viewers > 1 {
            parts.push(format!("{} viewers", self.viewers));
        }
        parts
    }

    /// The most used part of the budget.
    fn spent(&self) -> Option<String> {
        let below = &self.below;
        let share = |used: u64, most: u64| used.saturating_mul(100).checked_div(most);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole percents of a positive amount"
        )]
        let money =
            (self.budget.usd > 0.0).then(|| ((self.cost_usd + below.usd) * 100.0 / self.budget.usd) as u64);
        let shares = [
            share(self.tokens + below.tokens, self.budget.tokens),
            share(self.steps + below.steps, self.budget.steps),
            share(self.time_ms + below.time_ms, self.budget.time_ms),
            money,
        ];
        let most = shares.into_iter().flatten().max()?;
        Some(format!("budget {} {most} %", bar(most)))
    }
}

/// Five cells.
fn bar(percent: u64) -> String {
    let full = usize::try_from((percent.min(100) + 10) / 20).unwrap_or(5).min(5);
    format!("{}{}", "▰".repeat(full), "▱".repeat(5 - full))
}
