use super::world::{World, ok};
use crate::{Command, Input, JobEnd};
use agentd_protocol::{EventBody, JobFinished, JobLost, LoopLimits, NoteKind, RunningJob, Timestamp};

fn start(world: &mut World, job: u32) {
    let command = format!("make part{job}");
    world.input(Input::JobStarted { job, command });
}

fn exited(exit_code: i32) -> JobEnd {
    JobEnd::Exited {
        exit_code: Some(exit_code),
        signal: None,
        stopped: None,
    }
}

fn close() -> Command {
    Command::Close {
        reason: "done".into(),
        force: false,
    }
}

fn lost(world: &World) -> Vec<JobLost> {
    let bodies = world.log.iter().map(|event| &event.body);
    bodies
        .filter_map(|body| match body {
            EventBody::JobLost(lost) => Some(lost.clone()),
            _ => None,
        })
        .collect()
}

fn finished(world: &World) -> Vec<JobFinished> {
    let bodies = world.log.iter().map(|event| &event.body);
    bodies
        .filter_map(|body| match body {
            EventBody::JobFinished(finished) => Some(finished.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_session_with_a_running_job_is_not_at_rest_and_lists_it() {
    let mut world = World::running(LoopLimits::default());
    start(&mut world, 1);
    world.say("it builds");
    assert!(!world.agent.at_rest());
    let jobs = world.summary().jobs;
    let expected = RunningJob {
        job: 1,
        command: "make part1".into(),
        started_at: jobs.first().map_or(Timestamp::default(), |job| job.started_at),
    };
    assert_eq!(jobs, [expected]);
    assert_eq!(
        world.summary().status.reason,
        "waits for input; 1 background job runs"
    );
    world.input(Input::JobEnded {
        job: 1,
        end: exited(0),
    });
    assert!(world.agent.at_rest());
    assert_eq!(world.summary().jobs, []);
    world.check_log();
}

#[test]
fn a_jobs_end_is_told_to_the_model_once_with_the_next_request() {
    let mut world = World::running(LoopLimits::default());
    start(&mut world, 1);
    start(&mut world, 2);
    world.say("both run");
    for (job, code) in [(2, 0), (1, 3)] {
        world.input(Input::JobEnded {
            job,
            end: exited(code),
        });
    }
    assert_eq!(world.notes(), []);
    world.send("and now?");
    let text = "Background job 2 (`make part2`) ended with exit code 0.\nBackground job 1 (`make part1`) ended with exit code 3.";
    assert_eq!(world.notes(), [(NoteKind::JobNotice, text.to_owned())]);
    world.tool_step("Bash", serde_json::json!({}), ok());
    assert_eq!(world.notes().len(), 1);
    world.check_log();
}

#[test]
fn i5_jobs_are_lost_with_their_incarnation_and_that_is_written_once() {
    let mut world = World::running(LoopLimits::default());
    start(&mut world, 1);
    world.say("it runs");
    assert!(world.summary().resumable);
    world.crash();
    world.restart();
    let reason = crate::words::JOB_LOST.to_owned();
    assert_eq!(lost(&world), [JobLost { job: 1, reason }]);
    assert!(!world.summary().resumable);
    world.crash();
    world.restart();
    assert_eq!(lost(&world).len(), 1);
    world.send("go on");
    assert!(
        world.notes()[0]
            .1
            .starts_with("Background job 1 (`make part1`) is lost")
    );
    world.check_log();
}

#[test]
fn i5_closing_a_session_kills_its_jobs() {
    let mut world = World::running(LoopLimits::default());
    start(&mut world, 1);
    world.say("it runs");
    world.command(close()).unwrap();
    let stopped = JobFinished {
        job: 1,
        exit_code: None,
        signal: None,
        stopped: Some("the session was closed".into()),
    };
    assert_eq!((finished(&world), world.jobs_killed), (vec![stopped], 1));
    assert_eq!(world.kinds().last(), Some(&"session.closed"));
    // Its real end comes too late to be recorded, and a job that starts now must be killed.
    world.input(Input::JobEnded {
        job: 1,
        end: exited(0),
    });
    start(&mut world, 2);
    assert_eq!(
        world.log.last().map(|event| event.body.kind()),
        Some("session.closed")
    );
    assert_eq!(world.jobs_killed, 2);
}

#[test]
fn i5_a_kill_ends_jobs_with_the_turn_and_without_one() {
    let mut world = World::running(LoopLimits::default());
    start(&mut world, 1);
    let kill = |expect| Command::CancelTurn {
        expect,
        reason: None,
        jobs: true,
    };
    world.command(kill(None)).unwrap();
    start(&mut world, 2);
    // The command names the turn that it means, and that one is over.
    let late = world
        .command(kill(Some(agentd_protocol::TurnId::NIL)))
        .unwrap_err();
    assert_eq!((late.code.as_str(), finished(&world).len()), ("no_turn", 1));
    let gentle = world.cancel().unwrap_err();
    assert_eq!(gentle.code, "no_turn");
    assert!(gentle.hint.unwrap().contains("agentctl kill"));
    world.command(kill(None)).unwrap();
    let ends: Vec<_> = finished(&world)
        .into_iter()
        .map(|end| (end.job, end.stopped))
        .collect();
    let why = || Some(crate::words::JOBS_KILLED.to_owned());
    assert_eq!((ends, world.jobs_killed), (vec![(1, why()), (2, why())], 2));
    assert_eq!(world.command(kill(None)).unwrap_err().code, "no_turn");
    world.check_log();
}

#[test]
fn i5_a_drain_kills_jobs_and_those_that_start_during_it() {
    let mut world = World::running(LoopLimits::default());
    start(&mut world, 1);
    world.say("it runs");
    world.input(Input::Drain);
    start(&mut world, 2);
    let ends: Vec<_> = finished(&world)
        .into_iter()
        .map(|end| (end.job, end.stopped))
        .collect();
    let why = || Some(crate::calls::jobs::DRAINING.to_owned());
    assert_eq!((ends, world.jobs_killed), (vec![(1, why()), (2, why())], 2));
    assert!(world.agent.at_rest());
}

#[test]
fn a_cancelled_turn_leaves_its_jobs_running() {
    let mut world = World::running(LoopLimits::default());
    start(&mut world, 1);
    world.cancel().unwrap();
    assert_eq!((world.summary().jobs.len(), world.jobs_killed), (1, 0));
    world.check_log();
}
