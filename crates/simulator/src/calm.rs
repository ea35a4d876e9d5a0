//! The end of a run: no more faults are injected, people answer what they are asked, and everything must come to rest
//! in bounded time (I6). Then all logs are checked once more, on their own.

use crate::here::Node;
use crate::hot::Hot;
use crate::loading::conversation;
use crate::messages::Happening;
use crate::world::World;
use agentd_actor_kit::LoopId;
use agentd_protocol::{EventBody, RunState, SessionId};
use agentd_turn::{Agent, Command, Held, Violation, Witness};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The interval between checks for calm,
const EVERY_MS: u64 = 60_000;
/// and the most checks: more than a day, to allow for a parked call.
const ROUNDS: u32 = 2_500;

impl World {
    pub(crate) fn calm(&mut self) {
        self.calm = true;
        self.calm_rounds += 1;
        self.heal();
        let unrest = self.fleet_unrest().or_else(|| self.unrest());
        let Some(unrest) = unrest else {
            if let Err(violation) = self.proof() {
                self.fail(violation);
            }
            self.done = true;
            return;
        };
        if self.calm_rounds > ROUNDS {
            return self.fail(Violation::of("I6", format!("it does not come to rest: {unrest}")));
        }
        self.say(|| format!("not calm: {unrest}"));
        self.soothe();
        self.post(EVERY_MS, Happening::Calm);
    }

    /// Describes what is not at rest.
    fn unrest(&self) -> Option<String> {
        if !self.tickets.is_empty() {
            return Some(format!("{} commands have no answer", self.tickets.len()));
        }
        for session in self.disk.sessions() {
            let Some(row) = self.disk.row(session) else {
                continue;
            };
            let summary = &row.summary;
            let open =
                summary.turn.is_some() || !summary.open_approvals.is_empty() || !summary.jobs.is_empty();
            if open || summary.resumable || summary.status.state == RunState::Paused {
                return Some(format!("session {}: {:?}", session.short(), summary.status.state));
            }
        }
        if let Some(unrest) = self.nodes().find_map(unrest_of) {
            return Some(unrest);
        }
        let behind = |session: &SessionId, seen: u64| {
            let told = !self.disk.deleted.contains(session);
            told && seen < self.disk.head(*session)
        };
        let late = self
            .viewers
            .iter()
            .find(|(_, viewer)| behind(&viewer.session, viewer.seen()));
        late.map(|(number, viewer)| format!("viewer {number} has seen {} only", viewer.seen()))
    }

    /// People answer open questions and end their pauses.
    fn soothe(&mut self) {
        let resume = || Command::Resume {
            moved: None,
            reason: "calm".to_owned(),
        };
        let faulted: Vec<SessionId> = self.nodes().flat_map(faulted).collect();
        for session in faulted {
            self.order(session, resume(), None);
        }
        let sessions: Vec<SessionId> = self.disk.sessions().collect();
        for session in sessions {
            let Some(row) = self.disk.row(session) else {
                continue;
            };
            let summary = row.summary;
            for open in &summary.open_approvals {
                self.settle_question(session, open);
            }
            if summary.open_approvals.is_empty() && self.calm_rounds % 5 == 1 && self.is_held(session) {
                self.order(session, resume(), None);
            }
        }
    }

    /// Whether the session waits until a person resumes it: it is paused. A parked one continues by itself. The row of a cold
    /// session may differ: it shows the state at the last event.
    fn is_held(&self, session: SessionId) -> bool {
        let events = self.disk.events(session, 0, self.disk.head(session));
        let agent = events
            .ok()
            .and_then(|events| Agent::fold(session, Arc::clone(&self.config), &events).ok());
        agent.is_some_and(|agent| agent.durable().paused.is_some())
    }

    /// The row of a cold session matches its log.
    fn row_is_true(&self, session: SessionId, agent: &Agent) -> Held {
        let said = self.disk.row(session).map(|row| row.summary.status.state);
        let is = agent.status(self.now).state;
        match said {
            Some(said) if said != is => {
                let what = format!("the list says {said:?} of a cold session that is {is:?}");
                Err(Violation::of("row", what))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Checks everything once more, from the logs alone.
    fn proof(&self) -> Held {
        for session in self.disk.sessions() {
            self.disk.has(session, self.disk.head(session))?;
            self.proof_of(session)?;
        }
        self.proof_of_trees()
    }

    fn proof_of(&self, session: SessionId) -> Held {
        let head = self.disk.head(session);
        let events = self
            .disk
            .events(session, 0, head)
            .map_err(|error| Violation::of("I1", error.to_string()))?;
        let (mut witness, mut keys) = (Witness::default(), BTreeSet::new());
        for event in &events {
            witness.see(event)?;
            if let EventBody::InputAccepted(accepted) = &event.body
                && let Some(key) = &accepted.key
                && !keys.insert(key)
            {
                return Err(Violation::of("I1", format!("key {key} made two inputs")));
            }
        }
        witness.settled()?;
        let agent = Agent::fold(session, Arc::clone(&self.config), &events)
            .map_err(|error| Violation::of("fold", error.to_string()))?;
        let hot_at = |node| {
            let node: &Node = node;
            let who = node.supervisor.hot(session)?;
            node.loops.get(&who.0)
        };
        let mut all = self.nodes().filter_map(hot_at);
        let Some(hot) = all.next() else {
            return self.row_is_true(session, &agent);
        };
        if all.next().is_some() {
            return Err(Violation::of("I9", "two nodes have the same session at rest"));
        }
        if agent.durable() != hot.core.agent().durable() {
            return Err(Violation::of("fold", "the folded log is not the living state"));
        }
        let told = conversation(&self.disk, session, head)
            .map_err(|error| Violation::of("I1", error.to_string()))?;
        match told.messages() == hot.core.transcript().messages() {
            true => Ok(()),
            false => Err(Violation::of(
                "fold",
                "the folded conversation is not the living one",
            )),
        }
    }
}

/// Describes what is not at rest in a node.
fn unrest_of(node: &Node) -> Option<String> {
    if let Some(hot) = node.loops.values().find(|hot| !hot.core.quiet()) {
        return Some(format!("loop {} is busy", hot.number));
    }
    let stray = |hot: &&Hot| node.supervisor.hot(hot.session) != Some(LoopId(hot.number));
    if let Some(hot) = node.loops.values().find(stray) {
        return Some(format!(
            "loop {} runs, and the supervisor does not know it",
            hot.number
        ));
    }
    if let Some(session) = faulted(node).first() {
        return Some(format!("session {} is faulted", session.short()));
    }
    if !node.tree_messages.is_empty() {
        return Some(format!(
            "{} words are on their way between sessions",
            node.tree_messages.len()
        ));
    }
    if let Some(worker) = node.workers.values().next() {
        return Some(format!("something runs for loop {}", worker.owner));
    }
    let running = node
        .models
        .providers
        .values()
        .map(|provider| provider.admission.running());
    if running.sum::<u32>() > 0 {
        return Some("a permit is out, but no call has it".to_owned());
    }
    None
}

fn faulted(node: &Node) -> Vec<SessionId> {
    let states = node.supervisor.overlay().into_iter();
    let faulted = states.filter(|(_, live)| live.status.state == RunState::Faulted);
    faulted.map(|(session, _)| session).collect()
}
