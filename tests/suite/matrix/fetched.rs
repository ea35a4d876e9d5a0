//! The work of a session is applied and becomes a branch; then its workspace is lost and made again from the store.

use super::scenarios::has;
use super::world::{World, over, text};
use agentd_protocol::{
    ApplyParams, Block, BranchParams, CreateParams, SendParams, WorkspaceChoice, WorkspaceRequest,
};
use agentd_tests::git;
use std::fs;
use std::path::Path;

pub(super) const CONFIG: &str = "[workspace]\ncheckpoint = \"step\"\nkeep = \"store\"\n";

/// Changes one file, makes one, and removes one.
const PLAN: &str =
    "plan:main steps=2 command=echo_{n}_>>_marks_&&_echo_two_>_a.txt_&&_echo_new_>_b.txt_&&_rm_-f_c.txt;";

/// Three files, before and after the work.
const BEFORE: [&str; 3] = ["one\n", "", "old\n"];
const AFTER: [&str; 3] = ["two\n", "new\n", ""];

fn files(dir: &Path) -> [String; 3] {
    ["a.txt", "b.txt", "c.txt"].map(|name| fs::read_to_string(dir.join(name)).unwrap_or_default())
}

fn fill(dir: &Path) {
    for (name, text) in ["a.txt", "c.txt"].into_iter().zip(["one\n", "old\n"]) {
        fs::write(dir.join(name), text).expect("a file can be written");
    }
}

pub(super) async fn play(world: &mut World) -> Vec<String> {
    let (app, to) = (world.workdir("main"), world.workdir("to"));
    fill(&app);
    fill(&to);
    git(&app, &["init", "-q"]);
    git(&app, &["add", "."]);
    git(&app, &["commit", "-q", "-m", "one"]);
    let own = |params: &mut CreateParams| {
        params.workspace = Some(WorkspaceRequest {
            kind: Some(WorkspaceChoice::Clone),
            ..WorkspaceRequest::default()
        });
    };
    let session = world.create("main", PLAN, own).await;
    world.turns(&session, 1).await;
    world
        .reach("the work is applied", async |client| {
            // The next daemon reverts what is half applied.
            let now = files(&to);
            if now != BEFORE && now != AFTER {
                return Err(format!("half applied: {now:?}"));
            }
            let params = ApplyParams {
                session: session.clone(),
                to: to.display().to_string(),
                ..ApplyParams::default()
            };
            client.apply(&params).await.map_err(text)
        })
        .await;
    assert_eq!(files(&to), AFTER, "I4");
    let made = world
        .reach("the work is a branch", async |client| {
            let params = BranchParams {
                session: session.clone(),
                name: "result".to_owned(),
                ..BranchParams::default()
            };
            client.branch(&params).await.map_err(text)
        })
        .await;
    assert_eq!(git(&app, &["rev-parse", "result"]), made.commit);
    assert_eq!(git(&app, &["show", "result:a.txt"]), "two");
    assert_eq!(
        git(&app, &["rev-list", "--count", "result"]),
        "2",
        "I4: one commit"
    );
    assert_eq!(files(&app), BEFORE);
    lose(world, &session).await;
    vec![session]
}

/// Deletes the workspace, and sends inputs until it was made again.
async fn lose(world: &mut World, session: &str) {
    let place = world
        .reach("no session is in memory", async |client| {
            let hot = client.status().await.map_err(text)?.hot;
            if hot > 0 {
                return Err(format!("{hot} are"));
            }
            client.get(session).await.map(|row| row.workdir).map_err(text)
        })
        .await;
    fs::remove_dir_all(&place).expect("the workspace was there");
    world
        .reach("the workspace is made again", async |client| {
            let events = over(client, session, 1).await?;
            if has(&events, "workspace.restored") {
                return Ok(());
            }
            let params = SendParams {
                session: session.to_owned(),
                content: vec![Block::text("plan:more text=again;")],
                key: Some(format!("again {}", events.len())),
                ..SendParams::default()
            };
            client.send(&params).await.map_err(text)?;
            Err("an input was sent".to_owned())
        })
        .await;
    assert_eq!(
        files(Path::new(&place)),
        AFTER,
        "I4: it has the files that were kept"
    );
}
