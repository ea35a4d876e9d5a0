//! References to a session by people: a full id, a prefix of either end, a name, `@last`.

use crate::api::Api;
use agentd_actor_kit::{Read, SupervisorMsg};
use agentd_protocol::{Fault, SessionId};
use agentd_store::{DAMAGED_ROW, Filter, Row};

/// Rows that one read returns.
const PAGE: u32 = 100;

impl Api {
    /// Resolves a reference to exactly one session.
    pub(crate) async fn session(&self, word: &str) -> Result<SessionId, Fault> {
        let word = word.trim();
        if word.is_empty() {
            return Err(Fault::invalid("session_missing", "the session is missing")
                .hint("give its id, the beginning or end of it, its name, or @last"));
        }
        if word == "@last" {
            return self.last().await;
        }
        let found = self.candidates(word).await?;
        match found.as_slice() {
            [(session, _)] => Ok(*session),
            [] => Err(unknown(word)),
            several => Err(ambiguous(word, several)),
        }
    }

    /// Sessions that a reference may name; at most ten.
    pub(crate) async fn candidates(&self, word: &str) -> Result<Vec<(SessionId, String)>, Fault> {
        let word = word.to_owned();
        self.read(|done| Read::Resolve { word, done }).await
    }

    /// The newest session that was not started by another one.
    async fn last(&self) -> Result<SessionId, Fault> {
        let mut filter = Filter {
            all: true,
            limit: PAGE,
            ..Filter::default()
        };
        loop {
            let rows = self.rows(filter.clone()).await?;
            let own = rows.iter().find(|row| row.summary.parent.is_none());
            if let Some(row) = own {
                return Ok(row.summary.session);
            }
            let Some(oldest) = rows.last() else {
                return Err(Fault::not_found("no_session", "there is no session yet"));
            };
            filter.after = Some(oldest.summary.session);
        }
    }

    /// The list row of the session that a reference names.
    pub(crate) async fn row_of(&self, word: &str) -> Result<Row, Fault> {
        let session = self.session(word).await?;
        self.row(session).await
    }

    /// The list row of a session.
    pub(crate) async fn row(&self, session: SessionId) -> Result<Row, Fault> {
        let row = self.read(|done| Read::Row { session, done }).await;
        if row.as_ref().is_err_and(|fault| fault.code == DAMAGED_ROW) {
            self.mend(vec![session]);
        }
        row?.ok_or_else(|| unknown(&session.to_string()))
    }

    /// Loads sessions whose list rows are damaged, which rewrites the rows.
    pub(crate) fn mend(&self, sessions: Vec<SessionId>) {
        if !sessions.is_empty() {
            let now = self.parts.clock.now();
            let rows = sessions.into_iter().map(|session| (session, now)).collect();
            self.parts.supervisor.cast(SupervisorMsg::Found { rows });
        }
    }
}

/// The fault of a name that no session has.
pub(crate) fn unknown(word: &str) -> Fault {
    Fault::not_found("unknown_session", format!("there is no session {:?}", cut(word)))
        .hint("`agentctl ps -a` lists them")
}

fn ambiguous(word: &str, several: &[(SessionId, String)]) -> Fault {
    let list: Vec<String> = several
        .iter()
        .map(|(id, name)| format!("{} ({name})", id.short()))
        .collect();
    Fault::conflict(
        "ambiguous_session",
        format!("{:?} is not one session: {}", cut(word), list.join(", ")),
    )
    .hint("give more of the id")
}

/// A reference, shortened for a message.
pub(crate) fn cut(word: &str) -> String {
    word.chars().take(80).collect()
}
