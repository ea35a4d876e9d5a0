//! A loop's messages, its appends to the store, and how it comes to rest.

use crate::hot::Hot;
use crate::messages::{Happening, Message, News};
use crate::options::{Flaw, Knob};
use crate::world::World;
use agentd_actor_kit::Down;
use agentd_protocol::{CallId, ToolCallId, ToolOutcome};
use agentd_session_loop::{Committed, Lost};
use agentd_store::Append;
use agentd_turn::{Input, Violation};

/// The longest time that an append may take.
const APPEND_MS: u64 = 30_000;
/// The delay before retrying on a full disk.
const RETRY_MS: u64 = 2_000;

impl World {
    /// Delivers a message to a loop, if the loop is still running.
    pub(crate) fn deliver(&mut self, number: u64, message: Message) {
        let Some(mut hot) = self.here.loops.remove(&number) else {
            // Callers learn that there will be no answer.
            drop(message);
            return self.take_answers();
        };
        if matches!(message, Message::Idle(Some(idle)) if idle != hot.idle) {
            // The alarm has been set again in the meantime.
            self.here.loops.insert(number, hot);
            return;
        }
        self.say(|| format!("loop {number} <- {}", message.line()));
        if self.permille(Knob::Crash) {
            drop(message);
            return self.ended(hot, Down::Failed("it panics".to_owned()));
        }
        self.take(&mut hot, message);
        self.take_answers();
        if self.broken.is_some() {
            return;
        }
        self.flush(&mut hot);
        self.settle_down(&mut hot);
        if let Err(violation) = self.looks(&hot) {
            return self.fail(violation);
        }
        match hot.core.stop() {
            Some(reason) => self.ended(hot, Down::Killed(reason.to_owned())),
            None => drop(self.here.loops.insert(number, hot)),
        }
    }

    fn take(&mut self, hot: &mut Hot, message: Message) {
        match message {
            Message::Start => self.start(hot),
            Message::Command(routed) => {
                hot.core.command(*routed);
                self.run_followers(hot);
            }
            Message::Model { call, attempt, news } => self.model_news(hot, (call, attempt), news),
            Message::Tool {
                tool_call,
                worker,
                outcome,
            } => self.tool_news(hot, (tool_call, worker), *outcome),
            Message::JobStarted { job } => {
                let command = "job".to_owned();
                self.advance(hot, Input::JobStarted { job, command });
            }
            Message::JobEnded { job, end } => {
                hot.jobs.remove(&job);
                self.advance(hot, Input::JobEnded { job, end });
            }
            Message::Judged { tool_call, judgement } => self.gate_spoke(hot, tool_call, judgement),
            Message::Detailed { tool_call, known } => self.detailed(hot, tool_call, known),
            Message::Stored(outcome) => {
                let committed = hot.core.stored(outcome);
                self.follow_up(hot, committed);
            }
            Message::Retry(number) => {
                if let Some(append) = hot.core.retry(number) {
                    self.send(hot, number, append);
                }
            }
            Message::Overdue(number) => {
                let committed = hot.core.overdue(number);
                self.follow_up(hot, committed);
            }
            Message::Timer { key, generation } => {
                hot.core.fired(key, generation);
                self.run_followers(hot);
            }
            Message::Hooked { tool_call, worker } => self.hooked(hot, tool_call, worker),
            Message::Answered { id, answer } => {
                hot.core.answer(id, *answer);
                self.run_followers(hot);
            }
            Message::SideOverdue { call } => self.side_overdue(hot, call),
            Message::Reworked {
                id,
                reworked,
                earlier,
            } => {
                hot.core.reworked(id, *reworked, Vec::new(), earlier);
                self.run_followers(hot);
            }
            Message::SummaryOverdue { id } => self.hurry_summary(hot, Some(id)),
            Message::Idle(_) => self.idle_asked(hot),
            Message::Drain => self.drain(hot),
        }
    }

    fn start(&mut self, hot: &mut Hot) {
        if hot.core.agent().durable().head == 0 {
            return;
        }
        self.here
            .feed
            .loaded(hot.session, hot.core.agent().durable().head);
        if self.disk.flaw == Flaw::RunAgain {
            let open: Vec<_> = hot
                .core
                .agent()
                .durable()
                .open_calls()
                .filter(|call| call.is_running())
                .cloned()
                .collect();
            for call in open {
                self.run_tool(hot, call.id, &call.name, &call.input);
            }
        }
        self.advance(hot, Input::Recover);
    }

    fn model_news(&mut self, hot: &mut Hot, (call, attempt): (CallId, u32), news: News) {
        if hot.compacting.as_ref().is_some_and(|run| run.call == call) {
            return self.summary_news(hot, news);
        }
        if hot.sides.contains_key(&call) {
            return self.side_news(hot, call, news);
        }
        let id = (call, attempt);
        match news {
            News::Waiting => hot.core.model_waits(id, None),
            News::Granted(window) => hot.core.model_granted(id, window),
            News::Text(text) => hot.core.model_text(id, text),
            News::Answered(answer) => hot.core.model_answered(id, *answer),
            News::Failed(failure) => hot.core.model_failed(id, *failure),
        }
        self.run_followers(hot);
    }

    fn tool_news(&mut self, hot: &mut Hot, (tool_call, worker): (ToolCallId, u64), outcome: ToolOutcome) {
        if hot.tools.get(&tool_call) == Some(&worker) {
            self.tell_after(hot, tool_call, outcome);
        }
    }

    /// Appends what is staged, if no append is in flight.
    fn flush(&mut self, hot: &mut Hot) {
        let id = self.dice.stamp(self.now).append();
        if let Some((number, append)) = hot.core.flush(id) {
            self.send(hot, number, append);
        }
    }

    fn send(&mut self, hot: &Hot, number: u64, append: Append) {
        let (from, era) = (hot.number, self.here.era);
        self.post(APPEND_MS, Happening::Loop(from, Message::Overdue(number)));
        if self.permille(Knob::Overdue) {
            // The disk stalls; whatever comes in the meantime queues behind it.
            let until = self.clock + self.dice.between(APPEND_MS - 2, APPEND_MS * 2);
            self.disk.free_at = self.disk.free_at.max(until);
        }
        let after = self.queued(8);
        let append = Box::new(append);
        let until = self.clock + APPEND_MS;
        let arrives = Happening::Disk {
            era,
            from,
            append,
            until,
        };
        self.post(after, arrives);
    }

    /// When the disk's only writer will reach a request queued now.
    pub(crate) fn queued(&mut self, within_ms: u64) -> u64 {
        let soon = self.clock + self.dice.between(1, within_ms);
        self.disk.free_at = self.disk.free_at.max(soon);
        self.disk.free_at - self.clock
    }

    /// Carries out what follows the store's answer.
    fn follow_up(&mut self, hot: &mut Hot, committed: Committed) {
        match committed {
            Committed::Ready(effects) => {
                if !effects.is_empty() && !self.may_start(hot.session, hot.epoch) {
                    let lapsed = hot.core.lapse();
                    return self.follow_up(hot, lapsed);
                }
                for effect in effects {
                    self.carry_out(hot, effect);
                }
                self.run_followers(hot);
            }
            Committed::Later => {
                let number = hot.core.appends();
                self.post(RETRY_MS, Happening::Loop(hot.number, Message::Retry(number)));
            }
            Committed::Lost(lost) => {
                self.say(|| format!("loop {} lost its log: {lost:?}", hot.number));
                if lost == Lost::Unknown {
                    self.here.feed.unsure(hot.session);
                }
                self.halt(hot);
            }
            Committed::Nothing => {}
        }
    }

    /// Kills all workers of the loop.
    pub(crate) fn halt(&mut self, hot: &mut Hot) {
        let number = hot.number;
        self.kill_where(|worker| worker.owner == number);
        hot.compacting = None;
        hot.sides.clear();
        hot.told.clear();
        hot.tools.clear();
        hot.jobs.clear();
        hot.planned.clear();
    }

    fn drain(&mut self, hot: &mut Hot) {
        hot.core.drain();
        self.run_followers(hot);
        self.hurry_summary(hot, None);
        if let Some(id) = hot.core.leave_line() {
            self.kill_call(hot, id);
        }
        self.run_followers(hot);
    }

    /// I5 and related checks: whatever runs for the loop is running according to its log.
    fn looks(&self, hot: &Hot) -> Result<(), Violation> {
        let durable = hot.core.agent().durable();
        for worker in self
            .here
            .workers
            .values()
            .filter(|worker| worker.owner == hot.number)
        {
            let summary = hot.compacting.as_ref().map(|run| run.call);
            worker.may_run(durable, |call| {
                summary == Some(call) || hot.sides.contains_key(&call)
            })?;
        }
        if durable.closed.is_some() {
            hot.witness.settled()?;
        }
        Ok(())
    }
}
