//! The database fails over to its synchronous standby while nodes work.

use super::fleet::Fleet;
use super::{plan, started};
use agentd_tests::{Follower, Logs};

#[tokio::test(flavor = "multi_thread")]
async fn i1_i2_i4_a_promoted_standby_has_all_that_was_acknowledged() {
    let Some((mut fleet, standby)) = Fleet::with_standby("a promoted standby", 2).await else {
        return;
    };
    let mut sessions = Vec::new();
    for number in 0..6 {
        let name = format!("s{number}");
        sessions.push(fleet.session(number % 2, &name, &plan(&name)).await);
    }
    let client = fleet.client(1).await;
    for id in &sessions {
        started(&mut Follower::attach(&client, id).await).await;
    }
    let before = Logs::told(&client).await.unwrap();
    // The server ends at once, in the middle of their work.
    drop(std::mem::replace(&mut fleet.server, standby));
    fleet.server.promote();
    for (number, id) in sessions.iter().enumerate() {
        Follower::attach(&client, id).await.turn_finished(1).await;
        fleet.check_marks(&client, id, &format!("s{number}")).await;
    }
    Logs::told(&client).await.unwrap().continue_from(&before);
}
