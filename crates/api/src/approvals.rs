//! The inbox: `approval.list`, `approval.decide`. Open approvals are read from the list rows; the loop has the final say.

use crate::answers::Answers as _;
use crate::api::Api;
use crate::family::open_in_tree;
use crate::reads::chosen;
use crate::words::cut;
use agentd_protocol::{
    ApprovalId, ApprovalKind, ApprovalListParams, DecideParams, Decided, Decision, Fault, OpenApproval,
    Principal, Selector, SessionId,
};
use agentd_store::Filter;
use agentd_turn::Command;
use std::collections::{BTreeMap, VecDeque};
use std::sync::PoisonError;

/// States in which an approval may be open; a session at rest has none.
const AWAKE: [&str; 8] = [
    "queued",
    "starting",
    "running",
    "waiting",
    "backing_off",
    "compacting",
    "paused",
    "faulted",
];
/// Number of approvals whose session is remembered, so that a late decision gets `conflict`.
const KNOWN: usize = 10_000;
const PAGE: u32 = 500;
/// The maximum length of an answer or message.
const MAX_WORDS: usize = 65_536;

/// Approvals that were once open, with their sessions.
#[derive(Debug, Default)]
pub(crate) struct KnownApprovals {
    sessions: BTreeMap<ApprovalId, SessionId>,
    order: VecDeque<ApprovalId>,
}

impl KnownApprovals {
    fn remember(&mut self, open: &[OpenApproval]) {
        for approval in open {
            if self
                .sessions
                .insert(approval.approval, approval.session)
                .is_none()
            {
                self.order.push_back(approval.approval);
            }
            if self.order.len() > KNOWN
                && let Some(oldest) = self.order.pop_front()
            {
                self.sessions.remove(&oldest);
            }
        }
    }

    fn find(&self, word: &str) -> Option<(ApprovalId, SessionId)> {
        let mut found = self.sessions.iter().filter(|(id, _)| matches(**id, word));
        let first = found.next().map(|(id, session)| (*id, *session));
        if found.next().is_some() { None } else { first }
    }
}

impl Api {
    pub(crate) async fn approvals(&self, params: &ApprovalListParams) -> Result<Vec<OpenApproval>, Fault> {
        let Some(word) = &params.session else {
            return self.open(&params.labels).await;
        };
        let summary = self.row_of(word).await?.summary;
        let open = if params.labels.matches(&summary.labels) {
            open_in_tree(&self.parts.store, summary).await?
        } else {
            Vec::new()
        };
        self.remember(&open);
        Ok(open)
    }

    pub(crate) async fn decide(&self, who: &Principal, params: DecideParams) -> Result<Decided, Fault> {
        let decision = params.decision.ok_or_else(|| {
            Fault::invalid("decision_missing", "the decision is missing").hint("allow, deny or answer")
        })?;
        if matches!(decision, Decision::Expired | Decision::Withdrawn) {
            return Err(Fault::invalid(
                "bad_decision",
                "a person decides allow, deny or answer",
            ));
        }
        let words = params
            .answer
            .iter()
            .chain(&params.message)
            .map(String::len)
            .sum::<usize>();
        if words > MAX_WORDS {
            return Err(Fault::invalid(
                "too_many_words",
                format!("answer and message have at most {MAX_WORDS} bytes"),
            ));
        }
        let (approval, session) = self.approval(params.approval.trim()).await?;
        let (scope, answer, message) = (params.scope, params.answer, params.message);
        let command = Command::Decide {
            approval,
            decision,
            scope,
            answer,
            message,
        };
        let seq = self.route(who, session, command, None).await?.done().seq;
        Ok(Decided {
            approval,
            session,
            seq,
        })
    }

    /// Resolves an approval from its id, a prefix of either end, or a session with exactly one open approval.
    async fn approval(&self, word: &str) -> Result<(ApprovalId, SessionId), Fault> {
        if word.is_empty() {
            return Err(Fault::invalid("approval_missing", "the approval is missing")
                .hint("`agentctl approvals` lists what is open"));
        }
        let open = self.open(&Selector::default()).await?;
        let named: Vec<&OpenApproval> = open.iter().filter(|open| matches(open.approval, word)).collect();
        match named.as_slice() {
            [one] => return Ok((one.approval, one.session)),
            [] => {}
            several => return Err(ambiguous(word, several)),
        }
        // Decided meanwhile, or long ago: the loop knows and reports it.
        if let Some(known) = self.known().find(word) {
            return Ok(known);
        }
        let unknown = || {
            let message = format!("{:?} is neither an open approval nor a session", cut(word));
            Fault::not_found("unknown_approval", message)
                .hint("it may have been answered already; `agentctl approvals` lists what is open")
        };
        let sessions = if word == "@last" {
            vec![self.session(word).await?]
        } else {
            self.candidates(word)
                .await?
                .into_iter()
                .map(|(session, _)| session)
                .collect()
        };
        if sessions.is_empty() {
            return Err(unknown());
        }
        let theirs: Vec<&OpenApproval> = open
            .iter()
            .filter(|open| {
                let below = open.root.is_some_and(|root| sessions.contains(&root));
                below || sessions.contains(&open.session)
            })
            .collect();
        match theirs.as_slice() {
            [one] => Ok((one.approval, one.session)),
            [] => Err(Fault::conflict(
                "nothing_open",
                format!("{:?} has no open approval", cut(word)),
            )),
            several => Err(ambiguous(word, several)),
        }
    }

    /// All open approvals of the fleet, the oldest first.
    async fn open(&self, labels: &Selector) -> Result<Vec<OpenApproval>, Fault> {
        let states = AWAKE.map(str::to_owned).to_vec();
        let mut filter = Filter {
            states,
            labels: labels.carried(),
            limit: PAGE,
            ..Filter::default()
        };
        let mut open = Vec::new();
        loop {
            let rows = self.rows(filter.clone()).await?;
            let Some(last) = rows.last().map(|row| row.summary.session) else {
                break;
            };
            let rows = rows.into_iter().filter(|row| chosen(row, labels));
            open.extend(rows.flat_map(|row| row.summary.open_approvals));
            filter.after = Some(last);
        }
        open.sort_by_key(|approval| (approval.asked_at, approval.approval));
        self.remember(&open);
        Ok(open)
    }

    fn remember(&self, open: &[OpenApproval]) {
        self.known().remember(open);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, KnownApprovals> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the text is this id or one end of it, with or without dashes.
fn matches(id: ApprovalId, word: &str) -> bool {
    let word: String = word.chars().filter(|c| *c != '-').collect();
    let hex: String = id.to_string().chars().filter(|c| *c != '-').collect();
    let plain = word.len() >= 4 && word.chars().all(|c| c.is_ascii_hexdigit());
    let word = word.to_ascii_lowercase();
    // People are shown the last 12 digits.
    let shown = hex.get(20..).unwrap_or_default();
    plain && (hex.starts_with(&word) || hex.ends_with(&word) || shown.starts_with(&word))
}

fn ambiguous(word: &str, several: &[&OpenApproval]) -> Fault {
    const SHOWN: usize = 10;
    let list: Vec<String> = several
        .iter()
        .take(SHOWN)
        .map(|open| {
            format!(
                "{} ({}: {})",
                open.approval.short(),
                kind(open.kind),
                cut(&open.title)
            )
        })
        .collect();
    let message = format!(
        "{:?} is not one open approval but {}: {}",
        cut(word),
        several.len(),
        list.join(", ")
    );
    Fault::conflict("ambiguous_approval", message).hint("give more of the approval's id")
}

const fn kind(kind: ApprovalKind) -> &'static str {
    match kind {
        ApprovalKind::Tool => "tool",
        ApprovalKind::Plan => "plan",
        ApprovalKind::Question => "question",
        ApprovalKind::Limit => "limit",
    }
}
