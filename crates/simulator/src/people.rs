//! People and injected faults: each action is chosen at random, and most have no effect at their moment.

use crate::messages::{Happening, Order};
use crate::options::Knob;
use crate::viewers::Watcher;
use crate::world::World;
use agentd_protocol::{
    Basis, Block, Budget, Decision, Delivery, EventBody, HistoryStarted, Labels, LoopLimits, OnDeny, OnLimit,
    OpenApproval, PermissionMode, Planning, Scope, Seq, SessionCreated, SessionId,
};
use agentd_turn::{Command, NewInput, Rework};

impl World {
    /// Performs a person's action and schedules the next; after the last one, calm begins.
    pub(crate) fn person(&mut self) {
        if self.actions == 0 {
            return self.post(1_000, Happening::Calm);
        }
        self.actions -= 1;
        let after = match self.dice.below(6) {
            0 => 0,
            1 => self.dice.between(10_000, 200_000),
            _ => self.dice.between(5, 3_000),
        };
        self.post(after, Happening::Person);
        if self.is_fleet() {
            self.fleet_faults();
        }
        let sessions: Vec<SessionId> = self.disk.sessions().collect();
        let most = self.options.get(Knob::Sessions) as usize;
        let session = self.dice.pick(&sessions).copied();
        match session {
            Some(session) if sessions.len() >= most || self.dice.percent(60) => self.act(session),
            Some(_) | None => self.create(),
        }
    }

    fn act(&mut self, session: SessionId) {
        if self.chance(Knob::Node, 100) {
            return self.die();
        }
        if self.chance(Knob::Drain, 100) {
            return self.drain_all();
        }
        if self.chance(Knob::Failover, 100) && !self.is_fleet() {
            return self.replace(session);
        }
        if self.viewers.len() < self.options.get(Knob::Viewers) as usize && self.dice.percent(40) {
            return self.view(session);
        }
        let open = self
            .disk
            .row(session)
            .map(|row| row.summary.open_approvals)
            .unwrap_or_default();
        if let Some(open) = self.dice.pick(&open).cloned()
            && self.dice.percent(70)
        {
            return self.settle_question(session, &open);
        }
        if let Some(command) = self.command_of(session) {
            let key = self.dice.percent(60).then(|| format!("k{}", self.last_ticket));
            self.order(session, command, key);
        }
    }

    fn command_of(&mut self, session: SessionId) -> Option<Command> {
        let reason = || "because".to_owned();
        if self.chance(Knob::Pause, 100) {
            return Some(match self.dice.percent(40) {
                true => Command::Pause { reason: reason() },
                false => Command::Resume {
                    reason: reason(),
                    moved: None,
                },
            });
        }
        if self.chance(Knob::Cancel, 100) {
            return Some(self.cancel(session));
        }
        if self.chance(Knob::Rewind, 100) {
            return self.rewind(session);
        }
        if self.chance(Knob::Compact, 100) {
            return Some(Command::Compact);
        }
        if self.chance(Knob::Update, 100) {
            return Some(self.update());
        }
        if self.chance(Knob::Fork, 100) {
            self.fork(session);
            return None;
        }
        // Runs without imports must consume the same random numbers as before imports existed.
        if self.options.get(Knob::Import) > 0 && self.chance(Knob::Import, 100) {
            self.import(session);
            return None;
        }
        if self.chance(Knob::Delete, 100) {
            if self.dice.percent(40) && !self.is_in_tree(session) && !self.is_elsewhere(session) {
                self.evict(session);
                if self.disk.delete(session) {
                    self.say(|| format!("session {} is deleted", session.short()));
                    return None;
                }
            }
            let force = self.dice.percent(60);
            return Some(Command::Close {
                reason: reason(),
                force,
            });
        }
        Some(Command::Send(self.input()))
    }

    /// Only whole trees can be deleted, and the simulation does not do that.
    fn is_in_tree(&self, session: SessionId) -> bool {
        let row = self.disk.row(session);
        row.is_some_and(|row| row.summary.parent.is_some() || row.summary.subagents > 0)
    }

    /// Deletions are routed to the node that has the session.
    fn is_elsewhere(&self, session: SessionId) -> bool {
        let mut others = self.others.values();
        others.any(|node| node.supervisor.awake().contains(&session))
    }

    fn input(&mut self) -> NewInput {
        let words = match self.chance(Knob::Long, 100) {
            true => self.dice.between(100, 2_000),
            false => self.dice.between(1, 10),
        };
        let deliveries = [
            None,
            None,
            Some(Delivery::Steer),
            Some(Delivery::Queue),
            Some(Delivery::Interrupt),
        ];
        let model = self.dice.percent(8).then(|| "haiku".to_owned());
        NewInput {
            content: vec![Block::text("please ".repeat(usize::try_from(words).unwrap_or(1)))],
            delivery: self.dice.pick(&deliveries).copied().flatten(),
            key: None,
            model,
        }
    }

    fn cancel(&mut self, session: SessionId) -> Command {
        let queue = self
            .disk
            .row(session)
            .map(|row| row.summary.queue)
            .unwrap_or_default();
        match self.dice.pick(&queue) {
            Some(waiting) if self.dice.percent(50) => Command::CancelInput(waiting.input),
            _ => Command::CancelTurn {
                expect: None,
                reason: None,
                jobs: self.dice.percent(30),
            },
        }
    }

    fn update(&mut self) -> Command {
        let modes = [
            PermissionMode::Default,
            PermissionMode::AcceptEdits,
            PermissionMode::Plan,
            PermissionMode::Yolo,
        ];
        Command::Update {
            expect: None,
            title: None,
            model: self.dice.percent(40).then(|| "haiku".to_owned()),
            mode: self.dice.pick(&modes).copied(),
            labels: None,
            budget: self.dice.percent(30).then(Budget::default),
        }
    }

    /// A point to rewind to: no model call or tool was pending there.
    fn rewind(&mut self, session: SessionId) -> Option<Command> {
        let head = self.disk.head(session);
        let events = self.disk.events(session, 0, head).ok()?;
        let (mut points, mut asking, mut open): (Vec<Seq>, bool, usize) = (Vec::new(), false, 0);
        for event in &events {
            match &event.body {
                EventBody::ModelStarted(_) | EventBody::HistoryStarted(_) => asking = true,
                EventBody::ModelFinished(finished) => {
                    asking = false;
                    let calls = finished.content.iter();
                    open = calls
                        .filter(|block| matches!(block, Block::ToolUse { .. }))
                        .count();
                }
                EventBody::ToolFinished(_) => open = open.saturating_sub(1),
                EventBody::TurnFinished(_) => (asking, open) = (false, 0),
                EventBody::HistoryFailed(_) | EventBody::UndoApplied(_) | EventBody::SessionRewound(_) => {
                    asking = false;
                }
                _ => {}
            }
            if !asking && open == 0 {
                points.push(event.seq);
            }
        }
        let rewind_to = self.dice.pick(&points).copied();
        let work = HistoryStarted {
            rewind_to,
            ..HistoryStarted::default()
        };
        Some(Command::Rework(Box::new(Rework { head, work })))
    }

    pub(crate) fn settle_question(&mut self, session: SessionId, open: &OpenApproval) {
        let decisions = [Decision::Allow, Decision::Allow, Decision::Deny, Decision::Answer];
        let decision = match self.calm {
            true => Decision::Deny,
            false => self.dice.pick(&decisions).copied().unwrap_or(Decision::Deny),
        };
        let scopes = [Scope::Once, Scope::Once, Scope::Session, Scope::Always];
        let answers = ["continue", "stop", "red"];
        let command = Command::Decide {
            approval: open.approval,
            decision,
            scope: self.dice.pick(&scopes).copied().unwrap_or(Scope::Once),
            answer: self.dice.pick(&answers).map(|answer| (*answer).to_owned()),
            message: None,
            basis: Some(Basis::Policy),
        };
        if self.dice.percent(20) {
            // Two people at once: the first valid answer wins.
            self.order(session, command.clone(), None);
        }
        self.order(session, command, None);
    }

    fn view(&mut self, session: SessionId) {
        let number = self.viewers.len() as u64 + 1;
        let head = self.disk.head(session);
        let after = match self.dice.percent(50) {
            true => 0,
            false => self.dice.between(0, head),
        };
        self.viewers.insert(number, Watcher::new(session, after));
        let at = self.any_node();
        self.post_at(at, 1, Happening::Viewer(number));
    }

    fn create(&mut self) {
        let session = self.dice.stamp(self.now).session();
        let first = self.dice.percent(80).then(|| NewInput {
            delivery: None,
            ..self.input()
        });
        let created = Box::new(self.created());
        self.order(session, Command::Create { created, first }, None);
    }

    pub(crate) fn created(&mut self) -> SessionCreated {
        let modes = [
            PermissionMode::Default,
            PermissionMode::AcceptEdits,
            PermissionMode::Plan,
            PermissionMode::Yolo,
        ];
        let mode = modes.get(self.options.get(Knob::Mode) as usize).copied();
        SessionCreated {
            title: "a title".into(),
            derived_title: self.options.get(Knob::Sides) > 0,
            workspace: None,
            lineage: None,
            project: "p".into(),
            workdir: "/w".into(),
            model: "sonnet".into(),
            mode: mode.unwrap_or(PermissionMode::Default),
            agent: None,
            labels: Labels::new(),
            requires: [].into(),
            parent: None,
            limits: self.limits(),
            budget: self.budget(),
            tools: ["Plan", "ExitPlanMode"].map(str::to_owned).into(),
            system_prompt: None,
            append_system_prompt: None,
            rules: Vec::new(),
            prompt: None,
        }
    }

    fn limits(&mut self) -> LoopLimits {
        let ends = [OnLimit::Ask, OnLimit::Stop, OnLimit::Summarize];
        let cap = self.options.get(Knob::Cap);
        let alone = self.options.get(Knob::Alone);
        LoopLimits {
            max_turns: if cap > 0 {
                i32::try_from(cap).unwrap_or(-1)
            } else {
                -1
            },
            turn_cap: 30,
            on_limit: self.dice.pick(&ends).copied().unwrap_or(OnLimit::Ask),
            on_deny: if self.dice.percent(30) {
                OnDeny::Stop
            } else {
                OnDeny::Continue
            },
            headless: alone == 1,
            unattended_ms: (alone == 2).then_some(0),
            ask_timeout_ms: (alone == 3).then_some(60_000),
            max_messages: if self.dice.percent(15) { 8 } else { 0 },
            planning: Planning {
                enabled: self.dice.percent(20),
                intent_gate: self.dice.percent(50),
                ..Planning::default()
            },
            ..LoopLimits::default()
        }
    }

    fn budget(&mut self) -> Budget {
        let none = Budget::default();
        match self.options.get(Knob::Budget) {
            1 => Budget { steps: 4, ..none },
            2 => Budget {
                tokens: 20_000,
                ..none
            },
            3 => Budget { usd: 1.0, ..none },
            4 => Budget {
                time_ms: 20_000,
                ..none
            },
            _ => none,
        }
    }

    /// Sends a command, which may be in transit for a while.
    pub(crate) fn order(&mut self, session: SessionId, mut command: Command, key: Option<String>) {
        self.last_ticket += 1;
        if let Command::Send(new) = &mut command {
            new.key.clone_from(&key);
        }
        let order = Order {
            ticket: self.last_ticket,
            session,
            command,
            key,
            message: None,
            home: self.here.number,
        };
        self.again(Box::new(order));
    }
}
