//! The faults of references to a session by people: a full id, a prefix of either end, a name, `@last`.

use crate::api::Api;
use crate::sight::Seen;
use agentd_actor_kit::SupervisorMsg;
use agentd_protocol::{Fault, SessionId};

impl Api {
    /// Loads sessions whose list rows are damaged, which rewrites the rows.
    pub(crate) fn mend(&self, sessions: Vec<SessionId>) {
        if !sessions.is_empty() {
            let now = self.parts.clock.now();
            let rows = sessions.into_iter().map(|session| (session, now)).collect();
            self.parts.supervisor.cast(SupervisorMsg::Found { rows });
        }
    }
}

/// The fault of a name that no session in sight has.
pub(crate) fn unknown(word: &str) -> Fault {
    Fault::not_found("unknown_session", format!("there is no session {:?}", cut(word)))
        .hint("`agentctl ps -a` lists them")
}

/// The fault of a name that several sessions in sight have.
pub(crate) fn ambiguous(word: &str, several: &[(Seen, String)]) -> Fault {
    let list: Vec<String> = several
        .iter()
        .map(|(id, name)| format!("{} ({name})", id.short()))
        .collect();
    Fault::conflict(
        "ambiguous_session",
        format!("{:?} matches several sessions: {}", cut(word), list.join(", ")),
    )
    .hint("give more characters of the id")
}

/// A reference, shortened for a message.
pub(crate) fn cut(word: &str) -> String {
    word.chars().take(80).collect()
}
