//! Who calls, and which sessions the caller sees. Every method finds its sessions here: [`Caller`] is made only from a
//! principal that may call the method, and [`Seen`] only from a caller that sees the session. A session out of sight gives
//! the same fault as one that does not exist.

use crate::api::Api;
use crate::methods::{Reach, Scope, method};
use crate::rights::Rights;
use crate::tokens::{Held, bad_token};
use crate::words::{ambiguous, unknown};
use agentd_actor_kit::Read;
use agentd_protocol::{Fault, FaultClass, Labels, Principal, SessionId};
use agentd_store::{DAMAGED_ROW, Filter, Page, Range, Row};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Rows that one read returns.
const PAGE: u32 = 100;
/// The most sessions that one request names.
const NAMED: usize = 200;

/// The caller of a method that it may call.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    by: Principal,
    token: Option<Arc<Held>>,
}

impl Deref for Caller {
    type Target = Principal;

    fn deref(&self) -> &Principal {
        &self.by
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.by.fmt(f)
    }
}

impl Caller {
    /// The author of what the caller does.
    pub(crate) const fn principal(&self) -> &Principal {
        &self.by
    }

    /// Where and how its sessions may work.
    pub(crate) fn rights(&self) -> Rights<'_> {
        match &self.token {
            Some(held) => Rights::Token(&held.rights, held.scopes.contains(&Scope::Approve)),
            None => Rights::All,
        }
    }

    /// The labels that every session in its reach has; `None`: it sees all sessions.
    pub(crate) fn limits(&self) -> Option<&Labels> {
        let labels = &self.token.as_ref()?.labels;
        (!labels.is_empty()).then_some(labels)
    }

    /// Whether it sees a session with these labels.
    pub(crate) fn sees(&self, labels: &Labels) -> bool {
        self.limits()
            .is_none_or(|limits| limits.iter().all(|(key, value)| labels.get(key) == Some(value)))
    }

    /// Returns when the caller's token is revoked or expires.
    pub(crate) async fn ended(&self) {
        match &self.token {
            Some(held) => held.ended().await,
            None => std::future::pending().await,
        }
    }

    /// The labels of a session that the caller makes: the requested ones and those of its token.
    pub(crate) fn given(&self, mut labels: Labels) -> Result<Labels, Fault> {
        for (key, value) in self.limits().into_iter().flatten() {
            match labels.get(key) {
                Some(other) if other != value => return Err(fixed(key, value)),
                _ => drop(labels.insert(key.clone(), value.clone())),
            }
        }
        Ok(labels)
    }

    /// Refuses new labels of a session that would take it out of the caller's sight.
    pub(crate) fn keeps(&self, labels: &Labels) -> Result<(), Fault> {
        let lost = |(key, value): &(&String, &String)| labels.get(*key) != Some(*value);
        match self.limits().into_iter().flatten().find(lost) {
            Some((key, value)) => Err(fixed(key, value)),
            None => Ok(()),
        }
    }

    /// A new session, which has the labels of the caller's token.
    pub(crate) fn new_session(&self, session: SessionId, labels: &Labels) -> Result<Seen, Fault> {
        self.keeps(labels).map(|()| Seen(session))
    }
}

fn fixed(key: &str, value: &str) -> Fault {
    Fault::denied(
        "label_fixed",
        format!("the token allows only sessions with the label {key}={value}"),
    )
    .hint(format!("leave the label {key} as it is"))
}

/// A session that the caller sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen(SessionId);

impl Deref for Seen {
    type Target = SessionId;

    fn deref(&self) -> &SessionId {
        &self.0
    }
}

impl Seen {
    /// A sub-agent of a session that the caller sees. A command for the whole tree reaches it, whatever its own labels are.
    pub(crate) const fn sub_agent(_parent: Self, child: SessionId) -> Self {
        Self(child)
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Api {
    /// Refuses a method that the principal may not call, as [`Api::call`] does.
    ///
    /// # Errors
    /// The fault that the client gets.
    pub fn may_call(&self, who: &Principal, name: &str) -> Result<(), Fault> {
        self.allow(who, name).map(drop)
    }

    /// Refuses a method that the principal lacks the scope for, or that reaches further than its token's labels.
    pub(crate) fn allow(&self, who: &Principal, name: &str) -> Result<Caller, Fault> {
        let (scope, reach) = method(name)?;
        let token = match who.as_token() {
            Some(_) => Some(self.tokens.of(who).ok_or_else(bad_token)?),
            None => None,
        };
        let caller = Caller {
            by: who.clone(),
            token,
        };
        if !self.scopes(who).contains(&scope) {
            return Err(Fault::denied(
                "missing_scope",
                format!("{who} may not call {name}: it needs the scope {scope}"),
            ));
        }
        match (reach, caller.limits()) {
            (Reach::Sessions, _) | (Reach::Node, None) => Ok(caller),
            (Reach::Node, Some(_)) => Err(Fault::denied(
                "beyond_labels",
                format!("{who} may not call {name}: it is about the whole daemon, and the token is limited to labels"),
            )
            .hint("use a token without labels")),
        }
    }

    /// Resolves a reference to exactly one session.
    pub(crate) async fn session(&self, who: &Caller, word: &str) -> Result<Seen, Fault> {
        let word = word.trim();
        if word.is_empty() {
            return Err(Fault::invalid("session_missing", "the session is missing")
                .hint("give its id, the beginning or end of it, its name, or @last"));
        }
        if word == "@last" {
            return self.last(who).await;
        }
        let found = self.candidates(who, word).await?;
        match found.as_slice() {
            [(session, _)] => Ok(*session),
            [] => Err(unknown(word)),
            several => Err(ambiguous(word, several)),
        }
    }

    /// Sessions that a reference may name; at most ten.
    pub(crate) async fn candidates(&self, who: &Caller, word: &str) -> Result<Vec<(Seen, String)>, Fault> {
        let (word, labels) = (word.to_owned(), who.limits().cloned().unwrap_or_default());
        let found = self.read(|done| Read::Resolve { word, labels, done }).await?;
        Ok(found
            .into_iter()
            .map(|(session, name)| (Seen(session), name))
            .collect())
    }

    /// The newest session that was not started by another one.
    async fn last(&self, who: &Caller) -> Result<Seen, Fault> {
        let mut filter = Filter {
            all: true,
            limit: PAGE,
            ..Filter::default()
        };
        loop {
            let rows = self.rows(who, filter.clone()).await?;
            let own = |row: &&Row| row.summary.parent.is_none() && who.sees(&row.summary.labels);
            if let Some(row) = rows.iter().find(own) {
                return Ok(Seen(row.summary.session));
            }
            let Some(oldest) = rows.last() else {
                return Err(Fault::not_found("no_session", "there is no session yet"));
            };
            filter.after = Some(oldest.summary.session.into());
        }
    }

    /// The session with this id, if the caller sees it.
    pub(crate) async fn seen(&self, who: &Caller, session: SessionId) -> Result<Option<Seen>, Fault> {
        if who.limits().is_none() {
            return Ok(Some(Seen(session)));
        }
        self.existing(who, session).await
    }

    /// The session with this id, if it exists and the caller sees it.
    pub(crate) async fn existing(&self, who: &Caller, session: SessionId) -> Result<Option<Seen>, Fault> {
        let row = self.read(|done| Read::Row { session, done }).await?;
        let row = row.filter(|row| who.sees(&row.summary.labels));
        Ok(row.map(|_| Seen(session)))
    }

    /// The session that a reference names, with its list row.
    pub(crate) async fn row_of(&self, who: &Caller, word: &str) -> Result<(Seen, Row), Fault> {
        let session = self.session(who, word).await?;
        let row = self.row(session).await?;
        // Its labels may have changed meanwhile.
        if who.sees(&row.summary.labels) {
            Ok((session, row))
        } else {
            Err(unknown(word))
        }
    }

    /// The list row of a session.
    pub(crate) async fn row(&self, Seen(session): Seen) -> Result<Row, Fault> {
        let row = self.read(|done| Read::Row { session, done }).await;
        if row.as_ref().is_err_and(|fault| fault.code == DAMAGED_ROW) {
            self.mend(vec![session]);
        }
        row?.ok_or_else(|| unknown(&session.to_string()))
    }

    /// The list rows of these sessions, newest first. Those that do not exist are left out, and for now those whose row is
    /// damaged.
    pub(crate) async fn named_rows(&self, sessions: &[SessionId]) -> Result<Vec<Row>, Fault> {
        if sessions.len() > NAMED {
            let message = format!(
                "params: sessions: expected at most {NAMED} ids, not {}",
                sessions.len()
            );
            return Err(Fault::invalid("bad_params", message).hint("send several requests"));
        }
        let sessions: BTreeSet<&SessionId> = sessions.iter().collect();
        let mut rows = Vec::with_capacity(sessions.len());
        for session in sessions.into_iter().rev() {
            match self.row(Seen(*session)).await {
                Ok(row) => rows.push(row),
                Err(fault) if fault.class == FaultClass::NotFound || fault.code == DAMAGED_ROW => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(rows)
    }

    /// A page of list rows.
    pub(crate) async fn rows(&self, who: &Caller, mut filter: Filter) -> Result<Vec<Row>, Fault> {
        filter.labels.extend(who.limits().cloned().unwrap_or_default());
        let rows = self.read(|done| Read::List { filter, done }).await?;
        let damaged = rows.iter().filter(|row| row.damaged);
        self.mend(damaged.map(|row| row.summary.session).collect());
        Ok(rows)
    }

    /// A page of a session's log.
    pub(crate) async fn load(&self, Seen(session): Seen, range: Range) -> Result<Page, Fault> {
        self.read(|done| Read::Load { session, range, done }).await
    }
}
