//! Who calls, and which sessions the caller sees. Every method finds its sessions here: [`Caller`] is made only from a
//! principal that may call the method, and [`Seen`] only from a caller that sees the session. A session out of sight gives
//! the same fault as one that does not exist.

use crate::api::Api;
use crate::methods::{Reach, Scope, method};
use crate::rights::Rights;
use crate::tokens::{Held, bad_token};
use crate::words::{ambiguous, unknown};
use agentd_actor_kit::Read;
use agentd_protocol::{Fault, FaultClass, Labels, Principal, SessionId, TokenRights};
use agentd_store::{DAMAGED_ROW, Filter, Page, Range, Row, SET_ASIDE};
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
    kind: Kind,
}

/// The kinds of callers. Each has its own rights, so that none is taken for another one.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// A local user of this node.
    User,
    /// A token.
    Token(Arc<Held>),
    /// A local user of another node.
    UserOfNode(Arc<Visitor>),
}

/// A local user of another node, with what this node lets such users do.
#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) name: String,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) rights: TokenRights,
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
    /// A caller that may call this method: it has the scope, and its labels and its node do not limit it.
    pub(crate) fn new(by: Principal, kind: Kind, name: &str) -> Result<Self, Fault> {
        let caller = Self { by, kind };
        caller.may(name).map(|()| caller)
    }

    /// Refuses a method that the caller lacks the scope for, or that reaches further than it does.
    pub(crate) fn may(&self, name: &str) -> Result<(), Fault> {
        let (scope, reach) = method(name)?;
        if !self.scopes().contains(&scope) {
            let message = format!("{self} may not call {name}: it needs the scope {scope}");
            return Err(Fault::denied("missing_scope", message));
        }
        if reach == Reach::Sessions {
            return Ok(());
        }
        if matches!(self.kind, Kind::UserOfNode(_)) {
            let message = format!("{self} may not call {name} here: it is about the whole daemon");
            return Err(Fault::denied("beyond_node", message).hint("call it at this node itself"));
        }
        if self.limits().is_some() {
            let message = format!(
                "{self} may not call {name}: it is about the whole daemon, and the token is limited to labels"
            );
            return Err(Fault::denied("beyond_labels", message).hint("use a token without labels"));
        }
        Ok(())
    }

    /// The author of what the caller does.
    pub(crate) const fn principal(&self) -> &Principal {
        &self.by
    }

    pub(crate) const fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Where and how its sessions may work.
    pub(crate) fn rights(&self) -> Rights<'_> {
        let approves = self.scopes().contains(&Scope::Approve);
        match &self.kind {
            Kind::User => Rights::All,
            Kind::Token(held) => Rights::Token(&held.rights, approves),
            Kind::UserOfNode(visitor) => Rights::Token(&visitor.rights, approves),
        }
    }

    /// The scopes of its methods.
    pub(crate) fn scopes(&self) -> &[Scope] {
        match &self.kind {
            Kind::User => &Scope::ALL,
            Kind::Token(held) => &held.scopes,
            Kind::UserOfNode(visitor) => &visitor.scopes,
        }
    }

    /// Whether its decisions may become rules for every session.
    pub(crate) fn rules_all(&self) -> bool {
        self.limits().is_none() && !matches!(self.kind, Kind::UserOfNode(_))
    }

    /// Whose idempotency keys it uses. A local user is the same one at whichever node it repeats a request.
    pub(crate) fn key_owner(&self) -> Principal {
        match &self.kind {
            Kind::UserOfNode(visitor) => Principal::user(&visitor.name),
            Kind::User | Kind::Token(_) => self.by.clone(),
        }
    }

    /// The labels that every session in its reach has; `None`: it sees all sessions.
    pub(crate) fn limits(&self) -> Option<&Labels> {
        match &self.kind {
            Kind::Token(held) => Some(&held.labels).filter(|labels| !labels.is_empty()),
            Kind::User | Kind::UserOfNode(_) => None,
        }
    }

    /// Whether it sees a session with these labels.
    pub(crate) fn sees(&self, labels: &Labels) -> bool {
        self.limits()
            .is_none_or(|limits| limits.iter().all(|(key, value)| labels.get(key) == Some(value)))
    }

    /// Returns when the caller's token is revoked or expires.
    pub(crate) async fn ended(&self) {
        match &self.kind {
            Kind::Token(held) => held.ended().await,
            Kind::User | Kind::UserOfNode(_) => std::future::pending().await,
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
        method(name)?;
        let kind = match (who.as_token(), who.as_user()) {
            (Some(_), _) => Kind::Token(self.tokens.of(who).ok_or_else(bad_token)?),
            (None, Some(_)) => Kind::User,
            (None, None) => {
                let message = format!("{who} may not call {name}: it is neither a local user nor a token");
                return Err(Fault::denied("missing_scope", message));
            }
        };
        Caller::new(who.clone(), kind, name)
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
        if row.as_ref().is_err_and(is_damaged) {
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
                Err(fault) if fault.class == FaultClass::NotFound || is_damaged(&fault) => {}
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

/// Whether the row of a session is damaged; loading the session mends it, or tells why not.
fn is_damaged(fault: &Fault) -> bool {
    [DAMAGED_ROW, SET_ASIDE].contains(&fault.code.as_str())
}
