//! Background jobs and their effect on the session that started them.

use super::puppets::{ToolPuppet, bash};
use super::world::{World, assert_gap_free, input};
use agentd_actor_kit::{SessionMsg, SupervisorMsg};
use agentd_protocol::{EventBody, NoteKind, SessionId, ToolStatus};
use agentd_tools::{JobEnding, JobNews};
use agentd_turn::Command;
use std::time::Duration;

/// A session whose turn is over and whose job is still running.
async fn with_job(world: &mut World) -> (SessionId, ractor::ActorRef<SessionMsg>) {
    let session = world.create().await;
    world.model().await.call(&[bash("npm run dev")]);
    let tool: ToolPuppet = world.tool().await;
    let to = tool.job.to.clone();
    let command = "npm run dev".to_owned();
    to.cast(SessionMsg::Job(JobNews::Started { job: 1, command }))
        .unwrap();
    tool.end(ToolStatus::Ok, "job 1 runs");
    world.model().await.answer("it runs");
    world.until(session, "turn.finished").await;
    (session, to)
}

fn ended(exit_code: i32) -> SessionMsg {
    SessionMsg::Job(JobNews::Ended {
        job: 1,
        ending: JobEnding::Exited {
            exit_code: Some(exit_code),
            signal: None,
            stopped: None,
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_session_stays_hot_as_long_as_its_job_runs() {
    let mut world = World::new().await;
    let (session, to) = with_job(&mut world).await;
    world.pass(Duration::from_secs(3_600)).await;
    assert_eq!(world.stats().await.hot, 1);
    to.cast(ended(0)).unwrap();
    world.until(session, "job.finished").await;
    world.until_cold(session).await;
    assert_gap_free(&world.events(session).await);
}

#[tokio::test(start_paused = true)]
async fn the_model_is_told_of_a_jobs_end_with_the_next_input() {
    let mut world = World::new().await;
    let (session, to) = with_job(&mut world).await;
    to.cast(ended(3)).unwrap();
    world.until(session, "job.finished").await;
    world.ask(session, Command::Send(input("well?"))).await.unwrap();
    world.model().await.answer("it failed");
    world.until(session, "turn.finished").await;
    let notes: Vec<_> = world
        .events(session)
        .await
        .into_iter()
        .filter_map(|event| match event.body {
            EventBody::NoteInjected(note) => Some((note.kind, note.text)),
            _ => None,
        })
        .collect();
    let text = "Background job 1 (`npm run dev`) ended with exit code 3.".to_owned();
    assert_eq!(notes, [(NoteKind::JobNotice, text)]);
}

#[tokio::test(start_paused = true)]
async fn i5_the_job_of_a_session_that_was_stopped_is_lost() {
    let mut world = World::new().await;
    let (session, _) = with_job(&mut world).await;
    world.get(|done| SupervisorMsg::Evict { session, done }).await;
    world.until(session, "job.lost").await;
    world.until_cold(session).await;
    let kinds = world.kinds(session).await;
    assert_eq!(
        kinds.get(kinds.len() - 2..),
        Some(&["session.recovered", "job.lost"][..])
    );
}

#[tokio::test(start_paused = true)]
async fn i5_the_job_of_a_closed_session_is_ended() {
    let mut world = World::new().await;
    let (session, _) = with_job(&mut world).await;
    let close = Command::Close {
        reason: "done".into(),
        force: false,
    };
    world.ask(session, close).await.unwrap();
    world.until_cold(session).await;
    let kinds = world.kinds(session).await;
    assert_eq!(
        kinds.get(kinds.len() - 2..),
        Some(&["job.finished", "session.closed"][..])
    );
}

#[tokio::test(start_paused = true)]
async fn i5_a_drain_ends_jobs_and_does_not_wait_for_them() {
    let mut world = World::new().await;
    let (session, _) = with_job(&mut world).await;
    let left = world
        .get(|done| SupervisorMsg::Drain {
            deadline_ms: 60_000,
            done,
        })
        .await;
    assert_eq!(left, 0);
    assert_eq!(world.kinds(session).await.last(), Some(&"job.finished"));
}
