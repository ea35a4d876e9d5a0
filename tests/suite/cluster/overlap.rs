//! The commands of a node that lost its lease end before the next owner of their session starts its own.

use super::fleet::Fleet;
use agentd_tests::{Daemon, Follower, Line, eventually};
use rustix::process::Signal;
use std::fs::read_to_string;
use std::path::Path;

/// The first run holds a lock and writes until it is killed; the second one notes whether the first is still there.
const SCRIPT: &str = "exec 9>>lock
if ! flock -n 9; then echo beside the first >> overlaps; fi
if mkdir first 2>/dev/null; then trap '' TERM HUP; while :; do echo tick >> ticks; sleep 0.05; done; fi
echo done >> seconds
";

const PLAN: &str = "plan:s steps=2 command=sh_script.sh;";

async fn writes(dir: &Path) {
    eventually("the first command writes", || dir.join("ticks").exists()).await;
}

/// Waits for the end of the turn at a node, and checks that the two commands never ran at once.
async fn one_after_the_other(node: &Daemon, id: &str, dir: &Path) {
    let client = node.client().await;
    Follower::attach(&client, id).await.turn_finished(1).await;
    assert_eq!(read_to_string(dir.join("seconds")).unwrap_or_default(), "done\n");
    let overlaps = read_to_string(dir.join("overlaps")).unwrap_or_default();
    assert_eq!(overlaps, "", "I4, I5: both owners ran a command at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_i5_the_commands_of_a_stopped_node_end_before_the_next_owner_runs_one() {
    let Some(fleet) = Fleet::start("commands of a stopped node", 2).await else {
        return;
    };
    let dir = fleet.workdir("s");
    std::fs::write(dir.join("script.sh"), SCRIPT).unwrap();
    let id = fleet.session(0, "s", PLAN).await;
    writes(&dir).await;
    fleet.nodes[0].signal(Signal::STOP);
    one_after_the_other(&fleet.nodes[1], &id, &dir).await;
    fleet.nodes[0].signal(Signal::CONT);
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_i5_the_commands_of_a_node_without_its_database_end_before_the_next_owner_runs_one() {
    let Some(fleet) = Fleet::disturbed("commands of a node that is cut off", 2).await else {
        return;
    };
    for (away, name, line) in [(0, "silent", Line::Silent), (1, "cut", Line::Cut)] {
        let dir = fleet.workdir(name);
        std::fs::write(dir.join("script.sh"), SCRIPT).unwrap();
        let id = fleet
            .session(away, name, &PLAN.replace(":s ", &format!(":{name} ")))
            .await;
        writes(&dir).await;
        fleet.links[away].database.set(line);
        one_after_the_other(&fleet.nodes[1 - away], &id, &dir).await;
        fleet.links[away].heal();
    }
}
