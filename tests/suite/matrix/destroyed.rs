//! A command destroys files, and that is undone.

use super::scenarios::{has, on_script, tried};
use super::world::{World, over, text};
use agentd_client::ClientError;
use agentd_protocol::{Event, EventBody, ToolStatus, UndoParams};

/// Makes files, and destroys them.
pub(super) const SCRIPT: &str = r#"
[[turn]]
calls = [{ name = "Bash", input = { command = "echo one >> marks && mkdir -p d/e && echo 1 > d/a && echo 2 > d/e/b && echo 3 > c" } }]
[[turn]]
calls = [{ name = "Bash", input = { command = "echo two >> marks; rm -r d c; echo 4 > d" } }]
[[turn]]
text = "Destroyed."
"#;

/// Whether a command was interrupted, or files could not be recorded: the other sessions pass the same points.
fn was_hit(events: &[Event]) -> bool {
    events.iter().any(|event| match &event.body {
        EventBody::ToolFinished(finished) => finished.outcome.status == ToolStatus::Interrupted,
        EventBody::WarningRaised(raised) => raised.code == "checkpoint_failed",
        _ => false,
    })
}

pub(super) async fn play(world: &mut World) -> Vec<String> {
    // The marks of the commands are not part of what is undone.
    std::fs::write(world.workdir("main").join(".gitignore"), "marks\n").expect("a file can be written");
    let session = world.create("main", "go", on_script).await;
    world.turns(&session, 1).await;
    let hit = world
        .reach("what the command did is undone", async |client| {
            let events = over(client, &session, 1).await?;
            let hit = was_hit(&events);
            if has(&events, "undo.applied") {
                return Ok(hit);
            }
            let params = UndoParams {
                session: session.clone(),
                key: Some(tried("undo", &events)),
                ..UndoParams::default()
            };
            match client.undo(&params).await {
                // The command that destroys was interrupted before it did anything, or an earlier try put all files back and
                // could not record that.
                Err(ClientError::Refused(fault)) if fault.code == "nothing_to_undo" => Ok(hit),
                other => other.map(|_| hit).map_err(text),
            }
        })
        .await;
    let dir = world.workdir("main");
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    if !hit {
        let found = ["d/a", "d/e/b", "c"].map(read);
        assert_eq!(found, ["1\n", "2\n", "3\n"], "I4: all of it is undone");
    }
    let names = std::fs::read_dir(&dir).expect("the directory is there");
    let names = names.map(|entry| entry.expect("a name").file_name());
    let known = ["d", "c", "marks", ".gitignore"];
    let left: Vec<_> = names
        .filter(|name| known.iter().all(|known| name != known))
        .collect();
    assert!(left.is_empty(), "nothing is left over: {left:?}");
    vec![session]
}
