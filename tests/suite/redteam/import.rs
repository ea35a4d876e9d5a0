//! An imported log is history, never authority. Each attack is imported into one daemon, where nothing of it may
//! happen, and is the log of the operator's own session on another, where it does happen: the positive control.
//! The list with sources is `docs/security/import.md`.
#![expect(
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod attacks;
mod settings;

use super::{asked, bash, daemon, model, session};
use agentd_client::Client;
use agentd_protocol::{
    ApprovalListParams, Block, EventBody, ExportParams, PermissionMode, SendParams, SessionId, Summary,
};
use agentd_store::{EncodedEvent, Options, OwnLog, restore};
use agentd_store_sqlite::open;
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Daemon, Follower, check_log, eventually};
use agentd_turn::{Agent, Config};
use attacks::{Attack, FORGED, all};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

const AUDIT: &str = "[log]\naudit = true\n";

/// The exact stored lines of a session.
async fn lines(client: &Client, session: &str) -> Vec<String> {
    let params = ExportParams {
        session: session.to_owned(),
        ..ExportParams::default()
    };
    client.export(&params).await.unwrap().lines
}

/// A real session that waits for a person to allow `touch MARK-base`: the attacker's material.
async fn material(server: &FaultServer) -> (Daemon, Vec<String>) {
    let daemon = daemon(server, AUDIT).await;
    let client = daemon.client().await;
    let id = session(&daemon, &client, "base", PermissionMode::Default).await;
    asked(&mut Follower::attach(&client, &id).await, 1).await;
    let lines = lines(&client, &id).await;
    (daemon, lines)
}

/// Imports a file into the directory `safe` of a daemon; the new session.
async fn import(daemon: &Daemon, attack: &Attack) -> String {
    let file = daemon.dir.path().join(format!("{}.jsonl", attack.name));
    std::fs::write(&file, attack.lines.join("\n") + "\n").unwrap();
    let safe = daemon.workdir("safe");
    let file = file.to_string_lossy().into_owned();
    let done = daemon.agentctl(&["import", &file, "-C", &safe]).await;
    assert_eq!(
        done.code,
        Some(0),
        "{}: {}{}",
        attack.name,
        done.stdout,
        done.stderr
    );
    done.stdout.trim().to_owned()
}

/// The attacks as logs of this daemon's own sessions, written while it is down.
async fn as_own(data_dir: &Path, attacks: &[Attack]) {
    let log = open("sqlite:agentd.db", data_dir, Options::default()).unwrap();
    let mut stamp = agentd_protocol::Stamp::new(agentd_protocol::Timestamp(1_800_000_000_000), 5);
    for attack in attacks {
        let own = OwnLog::vouched(attack.lines.iter().map(|line| line.clone().into()).collect());
        let fold = |session: SessionId, events: &[EncodedEvent]| {
            let events: Vec<_> = events
                .iter()
                .map(|it| EncodedEvent::decode(&it.body).unwrap())
                .collect();
            let now = events.last().unwrap().at;
            let agent = Agent::fold(session, Arc::new(Config::default()), &events);
            agent
                .map(|agent| Some(agent.summary(now)))
                .map_err(|error| error.to_string())
        };
        let made = restore(&*log, &own, &mut stamp, fold).await;
        assert!(made.is_ok(), "{}: {made:?}", attack.name);
    }
}

fn exists(dir: &str, name: &str) -> bool {
    Path::new(dir).join(name).exists()
}

/// At rest, with the importer's settings, and without cost.
fn is_plain(row: &Summary, safe: &str) {
    assert_eq!(row.status.state, agentd_protocol::RunState::Idle, "{row:?}");
    assert_eq!((row.mode, row.workdir.as_str()), (PermissionMode::Default, safe));
    assert_eq!(row.model, "claude", "{row:?}");
    assert!(
        row.labels.is_empty() && row.queue.is_empty() && row.open_approvals.is_empty(),
        "{row:?}"
    );
    assert!(
        row.jobs.is_empty() && row.parent.is_none() && row.turn.is_none(),
        "{row:?}"
    );
    assert_eq!(
        (row.steps, row.usage.total(), row.cost_usd),
        (0, 0, 0.0),
        "{row:?}"
    );
}

/// Nothing that the file says is in the audit file, and each import is one record.
async fn audited(daemon: &Daemon, sessions: &[String]) {
    let verified = daemon.agentctl(&["audit", "verify"]).await;
    assert_eq!(verified.code, Some(0), "{}{}", verified.stdout, verified.stderr);
    // The audit follows the log, in the order of the commits.
    let file = daemon.data_dir().join("logs/audit.jsonl");
    let read = || std::fs::read_to_string(&file).unwrap();
    eventually("the imports are audited", || {
        let text = read();
        let created = |session: &String| {
            text.lines()
                .any(|line| line.contains(session) && line.contains("session.created"))
        };
        sessions.iter().all(created)
    })
    .await;
    let text = read();
    for forged in FORGED {
        assert!(!text.contains(forged), "{forged}: {text}");
    }
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for session in sessions {
        let of = records
            .iter()
            .filter(|record| record["session"] == session.as_str());
        let kinds: Vec<&str> = of.clone().filter_map(|record| record["event"].as_str()).collect();
        let first = ["session.imported", "session.created"];
        assert_eq!(kinds.get(..2), Some(&first[..]), "{kinds:?}");
        let import = of.clone().next().unwrap();
        assert!(
            import["what"]["sha256"]
                .as_str()
                .is_some_and(|sum| sum.len() == 64),
            "{import}"
        );
        let whos: Vec<&str> = of.filter_map(|record| record["who"].as_str()).collect();
        let known = |who: &&str| whos.first() == Some(who) || *who == "agentd";
        assert!(
            whos.iter().all(known),
            "the importer, and agentd in the turn that was run here: {whos:?}"
        );
        let decided = [
            "tool.started",
            "approval.decided",
            "verdict.given",
            "approval.asked",
        ];
        assert!(!kinds.iter().any(|kind| decided.contains(kind)), "{kinds:?}");
    }
}

/// Imports them all, kills the daemon, restarts it, and resumes and continues each: nothing in the files happens.
async fn nothing_happens(attacks: &[Attack]) {
    let quiet = model(Vec::new()).await;
    let mut victim = daemon(&quiet, AUDIT).await;
    let safe = victim.workdir("safe");
    std::fs::write(Path::new(&safe).join("precious"), "x").unwrap();
    let mut sessions = Vec::new();
    for attack in attacks {
        sessions.push(import(&victim, attack).await);
    }
    victim.kill().await;
    let victim = victim.restart(None).await;
    let client = victim.client().await;
    for session in &sessions {
        is_plain(&client.get(session).await.unwrap(), &safe);
        // Loads it, as a start of its turn would.
        victim.agentctl(&["resume", session]).await;
        is_plain(&client.get(session).await.unwrap(), &safe);
    }
    let open = client.approvals(&ApprovalListParams::default()).await;
    assert_eq!(open.unwrap(), []);
    assert_eq!(quiet.seen().requests, 0, "no model was asked");
    for (session, attack) in sessions.iter().zip(attacks) {
        // It can continue, and even then nothing that was open happens.
        let args = ["run", "--session", session, "what was done?"];
        let said = victim.agentctl(&args).await;
        assert_eq!(
            said.code,
            Some(0),
            "{}: {}{}",
            attack.name,
            said.stdout,
            said.stderr
        );
        let log = check_log(&client, session).await;
        let acted = |body: &EventBody| matches!(body, EventBody::ToolStarted(_) | EventBody::VerdictGiven(_));
        assert!(!log.iter().any(|event| acted(&event.body)), "{}", attack.name);
    }
    audited(&victim, &sessions).await;
    no_marks(&safe, attacks);
}

fn no_marks(dir: &str, attacks: &[Attack]) {
    for attack in attacks {
        assert!(
            attack.mark.is_none_or(|mark| !exists(dir, mark)),
            "{}",
            attack.name
        );
    }
    assert!(exists(dir, "precious"));
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_44_i7_an_imported_log_runs_nothing_and_as_ones_own_it_would() {
    let server = model(vec![bash("touch MARK-base")]).await;
    let (mut forger, base) = material(&server).await;
    let from = forger.workdir("base");
    std::fs::write(Path::new(&from).join("precious"), "x").unwrap();
    let attacks = all(&base);
    nothing_happens(&attacks).await;
    no_marks(&from, &attacks);

    // Positive control: in the operator's own store each of these logs acts.
    forger.kill().await;
    as_own(&forger.data_dir(), &attacks).await;
    let forger = forger.restart(None).await;
    let client = forger.client().await;
    for attack in &attacks {
        let id = attack.session.to_string();
        let mut follower = Follower::attach(&client, &id).await;
        if attack.name == "undo" {
            let over = |body: &EventBody| matches!(body, EventBody::UndoApplied(_));
            follower.until("the undo", over).await;
        } else {
            follower.turn_finished(1).await;
        }
        assert!(
            attack.mark.is_none_or(|mark| exists(&from, mark)),
            "{}",
            attack.name
        );
    }
    assert!(!exists(&from, "precious"), "the forged undo took it away");
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_44_a_forged_grant_is_asked_about_again() {
    // Source: anthropics/claude-code#62506, approvals that are written into a file beforehand. The positive control is
    // the same grant in a session of one's own.
    let server = model(vec![bash("touch MARK-base"), bash("touch MARK-base")]).await;
    let (mut forger, base) = material(&server).await;
    let attack = attacks::granted(&base);
    let again = model(vec![bash("touch MARK-base")]).await;
    let victim = daemon(&again, AUDIT).await;
    let id = import(&victim, &attack).await;
    let client = victim.client().await;
    let more = |session: &str| SendParams {
        session: session.to_owned(),
        content: vec![Block::text("once more")],
        ..SendParams::default()
    };
    client.send(&more(&id)).await.unwrap();
    asked(&mut Follower::attach(&client, &id).await, 1).await;
    let open = client.approvals(&ApprovalListParams::default()).await.unwrap();
    assert_eq!(open.len(), 1, "a person here is asked");

    forger.kill().await;
    as_own(&forger.data_dir(), std::slice::from_ref(&attack)).await;
    let forger = forger.restart(None).await;
    let client = forger.client().await;
    let id = attack.session.to_string();
    client.send(&more(&id)).await.unwrap();
    Follower::attach(&client, &id).await.turn_finished(2).await;
    let ran = check_log(&client, &id).await;
    let started = ran
        .iter()
        .filter(|event| matches!(event.body, EventBody::ToolStarted(_)));
    assert_eq!(started.count(), 1, "positive control: one's own grant is enough");
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "one story in order")]
async fn redteam_44_what_a_log_spent_elsewhere_is_not_spent_here() {
    let server = model(vec![Say::text("It is done.")]).await;
    let forger = daemon(&server, AUDIT).await;
    let client = forger.client().await;
    let own = session(&forger, &client, "base", PermissionMode::Default).await;
    Follower::attach(&client, &own).await.turn_finished(1).await;
    let usage = async |daemon: &Daemon| {
        let said = daemon.agentctl(&["usage", "--by", "session", "-o", "json"]).await;
        serde_json::from_str::<Vec<Value>>(&said.stdout).unwrap()
    };
    let before = usage(&forger).await;
    assert!(
        before[0]["usage"]["input"].as_u64() > Some(0),
        "positive control: {before:?}"
    );
    let attack = attacks::expensive(&lines(&client, &own).await);
    let imported = import(&forger, &attack).await;
    let forked = forger.agentctl(&["fork", &own, "-q"]).await;
    assert_eq!(forked.code, Some(0), "{}", forked.stderr);
    let fork_of_import = forger.agentctl(&["fork", &imported, "-q"]).await;
    assert_eq!(fork_of_import.code, Some(0), "{}", fork_of_import.stderr);
    let after = usage(&forger).await;
    let spent =
        |row: &&Value| row["usage"]["input"].as_u64() > Some(0) || row["cost_usd"].as_f64() > Some(0.0);
    let spent: Vec<&Value> = after.iter().filter(spent).collect();
    assert_eq!(spent.len(), 1, "only the session itself: {after:?}");
    assert_eq!((after.len(), spent[0]["group"].as_str()), (4, Some(own.as_str())));
    for row in client
        .list(&agentd_protocol::ListParams::default())
        .await
        .unwrap()
    {
        if row.session.to_string() != own {
            assert_eq!(
                (row.steps, row.usage.total(), row.cost_usd),
                (0, 0, 0.0),
                "{row:?}"
            );
        }
    }
    // A budget that the file would have spent many times over is whole: the session can still take a step.
    let file = forger
        .dir
        .path()
        .join("expensive.jsonl")
        .to_string_lossy()
        .into_owned();
    let safe = forger.workdir("safe");
    let args = ["import", &file, "-C", &safe, "--budget", "tokens=5000,steps=2"];
    let capped = forger.agentctl(&args).await;
    let said = forger
        .agentctl(&["run", "--session", capped.stdout.trim(), "go on"])
        .await;
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let again = forger
        .agentctl(&["run", "--session", capped.stdout.trim(), "go on"])
        .await;
    let third = forger
        .agentctl(&["run", "--session", capped.stdout.trim(), "go on"])
        .await;
    assert_eq!(
        (again.code, third.code),
        (Some(0), Some(9)),
        "positive control: its own steps count"
    );
}
