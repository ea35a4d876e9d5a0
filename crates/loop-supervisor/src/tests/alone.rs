//! The machine alone, without actors.

use crate::{Action, Bounds, Supervisor};
use agentd_actor_kit::{Done, Down, LoopId, Routed};
use agentd_protocol::{Fault, Principal, SessionId, Spent, Timestamp};
use agentd_turn::{Command, Ended, Reply};
use tokio::sync::oneshot::Receiver;

type Answer = Receiver<Result<Reply, Fault>>;

fn session(n: u8) -> SessionId {
    SessionId::from_parts(u64::from(n), [n; 10])
}

fn routed(session: SessionId, command: Command) -> (Routed, Answer) {
    let (done, answer) = Done::channel();
    let routed = Routed {
        session,
        command: Box::new(command),
        by: Principal::agentd(),
        key: None,
        done,
    };
    (routed, answer)
}

fn report(child: SessionId) -> Command {
    let ended = Ended {
        reason: None,
        text: String::new(),
        error: None,
        spent: Spent::default(),
    };
    Command::ChildEnded {
        child,
        ended: Box::new(ended),
    }
}

/// A supervisor with room for this many sessions, which has started.
fn supervisor(hot: usize) -> Supervisor {
    let mut supervisor = Supervisor::new(Bounds {
        hot,
        ..Bounds::default()
    });
    supervisor.at(Timestamp(1_000_000));
    drop(actions(&mut supervisor));
    supervisor
}

fn actions(supervisor: &mut Supervisor) -> Vec<Action> {
    std::iter::from_fn(|| supervisor.next_action()).collect()
}

/// The sessions that are to be loaded, with the numbers of the loads.
fn loads(supervisor: &mut Supervisor) -> Vec<(SessionId, u64)> {
    let load = |action| match action {
        Action::Load { session, ticket, .. } => Some((session, ticket)),
        _ => None,
    };
    actions(supervisor).into_iter().filter_map(load).collect()
}

/// Makes a session hot.
fn heat(supervisor: &mut Supervisor, session: SessionId, who: u64) {
    let (tell, _) = routed(session, Command::Tell);
    supervisor.route(tell);
    for (session, ticket) in loads(supervisor) {
        supervisor.loaded(session, ticket, Ok(LoopId(who)));
    }
    drop(actions(supervisor));
}

#[test]
fn i6_a_parent_is_loaded_for_a_report_when_sub_agents_have_all_the_room() {
    let (child, parent, other) = (session(1), session(2), session(3));
    let mut supervisor = supervisor(1);
    heat(&mut supervisor, child, 1);
    let (waits, _other) = routed(other, Command::Compact);
    supervisor.route(waits);
    assert_eq!(loads(&mut supervisor), []);
    let (tells, _parent) = routed(parent, report(child));
    supervisor.route(tells);
    assert_eq!(loads(&mut supervisor)[0].0, parent);
    // Twice the room is the limit.
    let (second, _second) = routed(session(4), report(child));
    supervisor.route(second);
    assert_eq!(loads(&mut supervisor), []);
    supervisor.idle(child, LoopId(1), 1, None);
    assert_eq!(loads(&mut supervisor)[0].0, session(4));
}

#[test]
fn i5_a_loop_that_is_dead_before_its_exit_is_known_is_reported_as_gone() {
    let mut supervisor = supervisor(8);
    heat(&mut supervisor, session(1), 1);
    let (done, mut evicted) = Done::channel();
    supervisor.evict(session(1), done);
    let (command, _answer) = routed(session(1), Command::Compact);
    supervisor.route(command);
    let mut cold = 0;
    while let Some(action) = supervisor.next_action() {
        match action {
            Action::Send(who, routed) => supervisor.undelivered(who, routed),
            Action::Cold(_) => cold += 1,
            _ => {}
        }
    }
    assert_eq!((cold, evicted.try_recv()), (1, Ok(())));
    supervisor.down(LoopId(1), Down::Killed("killed".to_owned()));
    let later = actions(&mut supervisor);
    assert!(
        !later.iter().any(|action| matches!(action, Action::Cold(_))),
        "{later:?}"
    );
}
