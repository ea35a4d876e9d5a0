use super::*;
use agentd_protocol::Labels;

#[test]
fn a_fault_names_the_session_that_is_elsewhere() {
    let session = SessionId::from_parts(77, [1; 10]);
    let elsewhere = StoreError::Elsewhere {
        session,
        node: "b".to_owned(),
    };
    let fault = Fault::from(elsewhere);
    assert_eq!(fault.message, format!("session {session} runs on node b"));
    assert_eq!(StoreError::session_elsewhere(&fault), Some(session));
    let away = Away {
        here: "a".to_owned(),
        home: "b".to_owned(),
        workdir: "/w".to_owned(),
        lacking: Labels::new(),
    };
    let away = Fault::from(StoreError::Away { session, away });
    assert_eq!(
        away.message,
        format!("session {session} works in /w on node b, and not on node a")
    );
    assert_eq!(StoreError::session_elsewhere(&away), Some(session));
    let other = Fault::from(StoreError::NotFound(session));
    assert_eq!(StoreError::session_elsewhere(&other), None);
}
