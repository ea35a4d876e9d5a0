//! The inbox: `approval.list`, `approval.question`, `approval.decide`. Open approvals are read from the list rows; the loop has the final say.

use crate::answers::Answers as _;
use crate::api::Api;
use crate::family::open_in_tree;
use crate::reads::{chosen, json_len};
use crate::sight::{Caller, Seen};
use crate::words::cut;
use agentd_protocol::{
    ApprovalId, ApprovalKind, ApprovalListParams, ApprovalQuestion, ApprovalQuestionParams, Basis,
    DecideParams, Decided, Decision, Fault, OpenApproval, Scope, Selector, SessionId,
};
use agentd_store::Filter;
use agentd_text::{question_lines, shown};
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
/// What a frame has besides the question.
const FRAME: u64 = 4_096;
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

    fn find(&self, word: &str) -> Vec<(ApprovalId, SessionId)> {
        let found = self.sessions.iter().filter(|(id, _)| matches(**id, word));
        found.map(|(id, session)| (*id, *session)).collect()
    }
}

impl Api {
    pub(crate) async fn approvals(
        &self,
        who: &Caller,
        params: &ApprovalListParams,
    ) -> Result<Vec<OpenApproval>, Fault> {
        let Some(word) = &params.session else {
            return self.open(who, &params.labels).await;
        };
        let summary = self.row_of(who, word).await?.1.summary;
        let open = if params.labels.matches(&summary.labels) {
            open_in_tree(&self.parts.store, who, summary).await?
        } else {
            Vec::new()
        };
        self.remember(&open);
        Ok(open)
    }

    pub(crate) async fn decide(&self, who: &Caller, params: DecideParams) -> Result<Decided, Fault> {
        let decision = params.decision.ok_or_else(|| {
            Fault::invalid("decision_missing", "the decision is missing").hint("allow, deny or answer")
        })?;
        if matches!(decision, Decision::Expired | Decision::Withdrawn) {
            return Err(Fault::invalid(
                "bad_decision",
                "the decision must be allow, deny or answer",
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
                format!("answer and message can have at most {MAX_WORDS} bytes"),
            ));
        }
        let fleet_wide = matches!(params.scope, Scope::Always | Scope::Everywhere);
        if fleet_wide && !who.rules_all() {
            let message = format!("{who} may not decide for good: such a rule holds in every session");
            let code = who.limits().map_or("beyond_node", |_| "beyond_labels");
            return Err(Fault::denied(code, message).hint("use the scope once or session"));
        }
        let basis = basis(&params)?;
        let (approval, session) = self.approval(who, params.approval.trim()).await?;
        let (scope, answer, message) = (params.scope, params.answer, params.message);
        let command = Command::Decide {
            approval,
            decision,
            scope,
            answer,
            message,
            basis,
        };
        let seq = self.route(who, session, command, None).await?.done().seq;
        Ok(Decided {
            approval,
            session: *session,
            seq,
        })
    }

    /// The open question in the lines that a person must see; its hash belongs to an answer.
    pub(crate) async fn question(
        &self,
        who: &Caller,
        params: &ApprovalQuestionParams,
    ) -> Result<ApprovalQuestion, Fault> {
        let (approval, session) = self.approval(who, params.approval.trim()).await?;
        let row = self.row(session).await?;
        let mut open = row.summary.open_approvals.iter();
        let open = open
            .find(|open| open.approval == approval)
            .ok_or_else(|| closed(approval))?;
        let lines = question_lines(open);
        let question = ApprovalQuestion {
            approval,
            session: *session,
            shown: shown(&lines),
            lines,
        };
        let most = self.loaded().settings.limits.max_frame_bytes;
        fits(&question, most)?;
        Ok(question)
    }

    /// Resolves an approval from its id, a prefix of either end, or a session with exactly one open approval.
    pub(crate) async fn approval(&self, who: &Caller, word: &str) -> Result<(ApprovalId, Seen), Fault> {
        if word.is_empty() {
            return Err(Fault::invalid("approval_missing", "the approval is missing")
                .hint("`agentctl approvals` lists the open approvals"));
        }
        let open = self.open(who, &Selector::default()).await?;
        let named: Vec<&OpenApproval> = open.iter().filter(|open| matches(open.approval, word)).collect();
        match named.as_slice() {
            [one] => return self.of(who, one, word).await,
            [] => {}
            several => return Err(ambiguous(word, several)),
        }
        // Decided meanwhile, or long ago: the loop knows and reports it.
        let known = self.known().find(word);
        let mut named = Vec::new();
        for (approval, session) in known {
            named.extend(self.seen(who, session).await?.map(|session| (approval, session)));
        }
        if let [one] = named.as_slice() {
            return Ok(*one);
        }
        let sessions = if word == "@last" {
            vec![*self.session(who, word).await?]
        } else {
            self.candidates(who, word)
                .await?
                .into_iter()
                .map(|(session, _)| *session)
                .collect()
        };
        if sessions.is_empty() {
            return Err(unknown_approval(word));
        }
        let theirs: Vec<&OpenApproval> = open
            .iter()
            .filter(|open| {
                let below = open.root.is_some_and(|root| sessions.contains(&root));
                below || sessions.contains(&open.session)
            })
            .collect();
        match theirs.as_slice() {
            [one] => self.of(who, one, word).await,
            [] => Err(Fault::conflict(
                "nothing_open",
                format!("{:?} has no open approval", cut(word)),
            )),
            several => Err(ambiguous(word, several)),
        }
    }

    /// An open approval with its session.
    async fn of(&self, who: &Caller, open: &OpenApproval, word: &str) -> Result<(ApprovalId, Seen), Fault> {
        let seen = self.seen(who, open.session).await?;
        Ok((open.approval, seen.ok_or_else(|| unknown_approval(word))?))
    }

    /// All open approvals in the caller's sight, the oldest first.
    async fn open(&self, who: &Caller, labels: &Selector) -> Result<Vec<OpenApproval>, Fault> {
        let states = AWAKE.map(str::to_owned).to_vec();
        let mut filter = Filter {
            states,
            labels: labels.carried(),
            limit: PAGE,
            ..Filter::default()
        };
        let mut open = Vec::new();
        loop {
            let rows = self.rows(who, filter.clone()).await?;
            let Some(last) = rows.last().map(|row| row.summary.session) else {
                break;
            };
            let rows = rows.into_iter().filter(|row| chosen(who, row, labels));
            open.extend(rows.flat_map(|row| row.summary.open_approvals));
            filter.after = Some(last.into());
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

fn basis(params: &DecideParams) -> Result<Option<Basis>, Fault> {
    match (&params.shown, params.policy) {
        (Some(_), true) => Err(Fault::invalid(
            "shown_and_policy",
            "an answer rests on what was shown or on a policy, not on both",
        )),
        (Some(hash), false) => Ok(Some(Basis::Shown(hash.clone()))),
        (None, true) => Ok(Some(Basis::Policy)),
        (None, false) => Ok(None),
    }
}

/// A question that does not fit into an answer cannot be shown, so nobody can allow it.
fn fits(question: &ApprovalQuestion, most: u64) -> Result<(), Fault> {
    let bytes = json_len(question) as u64;
    if bytes.saturating_add(FRAME) <= most {
        return Ok(());
    }
    let message = format!(
        "the question {} needs {bytes} bytes, so it cannot be shown in full",
        question.approval.short()
    );
    Err(Fault::invalid("question_too_large", message)
        .hint("deny it with the reason that the model must split it, or raise `limits.max_frame_bytes`"))
}

fn closed(approval: ApprovalId) -> Fault {
    Fault::conflict(
        "approval_decided",
        format!("approval {} was decided before", approval.short()),
    )
}

fn unknown_approval(word: &str) -> Fault {
    let message = format!("{:?} is neither an open approval nor a session", cut(word));
    Fault::not_found("unknown_approval", message)
        .hint("it may have been answered already; `agentctl approvals` lists what is open")
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
        "{:?} matches {} open approvals: {}",
        cut(word),
        several.len(),
        list.join(", ")
    );
    Fault::conflict("ambiguous_approval", message).hint("give more characters of the approval's id")
}

const fn kind(kind: ApprovalKind) -> &'static str {
    match kind {
        ApprovalKind::Tool => "tool",
        ApprovalKind::Plan => "plan",
        ApprovalKind::Question => "question",
        ApprovalKind::Limit => "limit",
    }
}
