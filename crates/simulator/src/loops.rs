//! A loop's messages, its appends to the store, and how it comes to rest.

use crate::hot::{Hot, Task};
use crate::messages::{Happening, Message, News, Order};
use crate::options::{Flaw, Knob};
use crate::world::World;
use agentd_protocol::{CallId, FailureClass, Fault, Principal, Seq, ToolCallId, ToolOutcome};
use agentd_session_loop::{LOST, Lost, MAX_UNACKNOWLEDGED, Settled, taken};
use agentd_store::{Append, Outcome};
use agentd_transcript::Transcript;
use agentd_turn::{Command, Input, ModelFailure, Phase, Reworked, TimerKey, Violation};

/// The longest time that an append may take.
const APPEND_MS: u64 = 30_000;
/// The delay before retrying on a full disk.
const RETRY_MS: u64 = 2_000;

impl World {
    /// Delivers a message to a loop, if the loop is still running.
    pub(crate) fn deliver(&mut self, number: u64, message: Message) {
        let Some(mut hot) = self.loops.remove(&number) else {
            return self.undelivered(message);
        };
        if matches!(message, Message::Idle(idle) if idle != hot.idle) {
            // The alarm has been set again in the meantime.
            self.loops.insert(number, hot);
            return;
        }
        self.say(|| format!("loop {number} <- {}", message.line()));
        let asked = matches!(message, Message::Idle(_));
        if self.permille(Knob::Crash) {
            self.undelivered(message);
            return self.crash(hot);
        }
        self.take(&mut hot, message);
        if self.broken.is_some() {
            return;
        }
        self.flush(&mut hot);
        self.settle_down(&mut hot, asked);
        if let Err(violation) = self.looks(&hot) {
            return self.fail(violation);
        }
        match hot.stop {
            Some(reason) => self.stopped(hot, reason),
            None => drop(self.loops.insert(number, hot)),
        }
    }

    /// A mailbox was dropped: its callers learn that there will be no answer.
    fn undelivered(&mut self, message: Message) {
        if let Message::Command(order) = message {
            drop(self.asker(&order));
            self.take_answers();
        }
    }

    fn take(&mut self, hot: &mut Hot, message: Message) {
        match message {
            Message::Start => self.start(hot),
            Message::Command(order) => self.command(hot, order),
            Message::Model { call, attempt, news } => self.model_news(hot, (call, attempt), news),
            Message::Tool {
                tool_call,
                kid,
                outcome,
            } => self.tool_news(hot, (tool_call, kid), *outcome),
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
            Message::Stored(outcome) => self.stored(hot, outcome),
            Message::Retry(number) => self.retry(hot, number),
            Message::Overdue(number) => {
                if number == hot.appends && hot.outbox.again().is_some() {
                    self.lose(hot, &Lost::Unknown);
                }
            }
            Message::Timer { key, generation } => self.timer(hot, key, generation),
            Message::Deciders { approval, count } => self.advance(hot, Input::Deciders { approval, count }),
            Message::Hooked { tool_call, kid } => self.hooked(hot, tool_call, kid),
            Message::Told { heard } => self.advance(hot, Input::Told { heard }),
            Message::TreeSpent { number, spent } => self.advance(hot, Input::TreeSpent { number, spent }),
            Message::SideOverdue { call } => self.side_overdue(hot, call),
            Message::Heard { number, records } => self.advance(hot, Input::Heard { number, records }),
            Message::Reworked {
                seq,
                reworked,
                earlier,
            } => self.reworked(hot, seq, *reworked, earlier),
            Message::SummaryOverdue { call, attempt } => self.hurry_summary(hot, Some((call, attempt))),
            Message::Idle(number) => {
                if number == hot.idle && self.rests(hot) {
                    hot.stop = Some("cold");
                }
            }
            Message::Drain => self.drain(hot),
        }
    }

    fn start(&mut self, hot: &mut Hot) {
        if hot.agent.durable().head == 0 {
            return;
        }
        self.feed.loaded(hot.session, hot.agent.durable().head);
        if self.disk.flaw == Flaw::RunAgain {
            let open: Vec<_> = hot
                .agent
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

    fn command(&mut self, hot: &mut Hot, order: Box<Order>) {
        hot.handled += 1;
        if let Some(fault) = refusal(hot, &order.command) {
            self.asker(&order).done.answer(Err(fault));
            return self.take_answers();
        }
        let input = Input::Command {
            command: order.command.clone(),
            by: match order.errand {
                Some(_) => Principal::agentd(),
                None => crate::hot::ana(),
            },
        };
        let order = Some(order);
        self.run(hot, Task { input, order });
    }

    fn model_news(&mut self, hot: &mut Hot, (call, attempt): (CallId, u32), news: News) {
        if hot.compacting.as_ref().is_some_and(|run| run.call == call) {
            return self.summary_news(hot, news);
        }
        if hot.sides.contains_key(&call) {
            return self.side_news(hot, call, news);
        }
        if hot.model.is_none_or(|run| (run.0, run.1) != (call, attempt)) {
            return;
        }
        match news {
            News::Waiting => {}
            News::Granted(window) => {
                let turn = hot.agent.durable().turn.as_ref();
                if let Some(window) = window
                    && let Some(Phase::Streaming(attempt)) = turn.map(|turn| &turn.phase)
                {
                    hot.windows.insert(attempt.model.clone(), window);
                }
            }
            News::Text(text) => self.advance(hot, Input::ModelText { call, attempt, text }),
            News::Answered(answer) => {
                hot.model = None;
                let answer = *answer;
                self.advance(
                    hot,
                    Input::ModelAnswered {
                        call,
                        attempt,
                        answer,
                    },
                );
            }
            News::Failed(failure) => {
                hot.model = None;
                let failure = *failure;
                self.advance(
                    hot,
                    Input::ModelFailed {
                        call,
                        attempt,
                        failure,
                    },
                );
            }
        }
    }

    fn tool_news(&mut self, hot: &mut Hot, (tool_call, kid): (ToolCallId, u64), outcome: ToolOutcome) {
        if hot.tools.get(&tool_call) == Some(&kid) {
            self.tell_after(hot, tool_call, outcome);
        }
    }

    fn timer(&mut self, hot: &mut Hot, key: TimerKey, generation: u64) {
        if hot.timers.get(&key) == Some(&generation) {
            hot.timers.remove(&key);
            self.advance(hot, Input::Timer { key, generation });
        }
    }

    fn reworked(&mut self, hot: &mut Hot, seq: Seq, reworked: Reworked, earlier: Option<Box<Transcript>>) {
        let open = hot.agent.durable().history.as_ref();
        if open.is_some_and(|open| open.seq == seq) {
            hot.earlier = earlier;
            self.advance(hot, Input::Reworked(reworked));
            hot.earlier = None;
        }
    }

    /// Appends what is staged, if no append is in flight.
    fn flush(&mut self, hot: &mut Hot) {
        if hot.stop.is_some() {
            return;
        }
        let id = self.dice.stamp(self.now).append();
        if let Some(append) = hot.outbox.next(id) {
            hot.appends += 1;
            self.send(hot, append);
        }
    }

    fn send(&mut self, hot: &Hot, append: Append) {
        let (from, era) = (hot.number, self.era);
        self.post(APPEND_MS, Happening::Loop(from, Message::Overdue(hot.appends)));
        if self.permille(Knob::Overdue) {
            // The disk stalls; whatever comes in the meantime queues behind it.
            let until = self.now.0 + self.dice.between(APPEND_MS - 2, APPEND_MS * 2);
            self.disk.free_at = self.disk.free_at.max(until);
        }
        let after = self.queued(8);
        let append = Box::new(append);
        self.post(after, Happening::Disk { era, from, append });
    }

    /// When the disk's only writer will reach a request queued now.
    pub(crate) fn queued(&mut self, within_ms: u64) -> u64 {
        let soon = self.now.0 + self.dice.between(1, within_ms);
        self.disk.free_at = self.disk.free_at.max(soon);
        self.disk.free_at - self.now.0
    }

    fn stored(&mut self, hot: &mut Hot, outcome: Option<Outcome>) {
        match hot.outbox.settle(outcome) {
            Settled::Durable(ready) => {
                self.go_on(hot, ready);
                self.run_followers(hot);
            }
            Settled::Again => {
                let number = hot.appends;
                self.post(RETRY_MS, Happening::Loop(hot.number, Message::Retry(number)));
            }
            Settled::Lost(lost) => self.lose(hot, &lost),
            Settled::Stale => {}
        }
    }

    fn retry(&mut self, hot: &Hot, number: u64) {
        if number == hot.appends
            && let Some(append) = hot.outbox.again()
        {
            self.send(hot, append);
        }
    }

    /// The loop's state and the durable log differ: the loop stops, and the log is folded again.
    fn lose(&mut self, hot: &mut Hot, lost: &Lost) {
        self.say(|| format!("loop {} lost its log: {lost:?}", hot.number));
        if *lost == Lost::Unknown {
            self.feed.unsure(hot.session);
        }
        let again = || Fault::unavailable("retry", "the session is being loaded again");
        let reason = match lost {
            Lost::Unknown | Lost::Refused(_) => LOST,
            Lost::Full => "reload",
            Lost::Fenced => "fenced",
            Lost::KeyTaken { .. } => "reload",
        };
        let mut taken_answer = match lost {
            Lost::KeyTaken { answer, same_body } => Some(taken(answer, *same_body)),
            Lost::Fenced | Lost::Unknown | Lost::Full | Lost::Refused(_) => None,
        };
        for asker in hot.outbox.give_up() {
            match taken_answer.take_if(|_| asker.keyed) {
                Some(answer) => asker.done.answer(answer),
                None => asker.done.answer(Err(again())),
            }
        }
        self.take_answers();
        self.halt(hot);
        hot.stop = Some(reason);
    }

    /// Kills all workers of the loop.
    pub(crate) fn halt(&mut self, hot: &mut Hot) {
        let number = hot.number;
        self.kill_where(|kid| kid.owner == number);
        hot.model = None;
        hot.compacting = None;
        hot.sides.clear();
        hot.told.clear();
        hot.tools.clear();
        hot.jobs.clear();
        hot.planned.clear();
        hot.follow.clear();
        hot.timers.clear();
    }

    fn drain(&mut self, hot: &mut Hot) {
        hot.draining = true;
        self.advance(hot, Input::Drain);
        self.hurry_summary(hot, None);
        // A call that was not admitted has sent nothing, so it does not delay the drain.
        let waiting = hot
            .model
            .filter(|(_, _, kid)| self.kids.get(kid).is_some_and(crate::kids::Kid::waits));
        if let Some((call, attempt, kid)) = waiting {
            self.kill(kid);
            hot.model = None;
            let failure = ModelFailure {
                retry_after_ms: Some(1),
                refused: true,
                ..ModelFailure::new(FailureClass::Transient, "not sent: the daemon stopped")
            };
            self.advance(
                hot,
                Input::ModelFailed {
                    call,
                    attempt,
                    failure,
                },
            );
        }
    }

    /// I5 and related checks: whatever runs for the loop is running according to its log.
    fn looks(&self, hot: &Hot) -> Result<(), Violation> {
        let durable = hot.agent.durable();
        for kid in self.kids.values().filter(|kid| kid.owner == hot.number) {
            let summary = hot.compacting.as_ref().map(|run| run.call);
            kid.may_run(durable, |call| {
                summary == Some(call) || hot.sides.contains_key(&call)
            })?;
        }
        if durable.closed.is_some() {
            hot.witness.settled()?;
        }
        Ok(())
    }
}

fn refusal(hot: &Hot, command: &Command) -> Option<Fault> {
    if hot.stop.is_some() {
        return Some(Fault::unavailable("retry", "the session is being loaded again"));
    }
    if hot.outbox.is_full() {
        return Some(Fault::storage("disk_full", "the store has no space"));
    }
    if hot.outbox.unacknowledged() >= MAX_UNACKNOWLEDGED {
        return Some(Fault::busy(
            "store_behind",
            "too much of this session waits for the store",
        ));
    }
    let create = matches!(command, Command::Create { .. });
    match (create, hot.agent.durable().head) {
        (false, 0) => Some(Fault::not_found("unknown_session", "no such session")),
        (true, 1..) => Some(Fault::conflict("session_exists", "the session exists already")),
        (true, 0) | (false, 1..) => None,
    }
}
