//! The JSON shape and the table row of an open approval.

use crate::output::Row;
use crate::render::{Column, age, clean, one_line, word};
use agentd_protocol::{About, ApprovalId, ApprovalKind, Choice, OpenApproval, Scope, SessionId, Timestamp};
use agentd_text::{brief, digest};
use serde::Serialize;

/// Characters shown of a detail in a wide table.
const WIDE: usize = 400;

/// One open approval: the documented fields, and further facts that a person needs.
#[derive(Debug, Serialize)]
pub(crate) struct ApprovalRow {
    pub(crate) approval: ApprovalId,
    kind: ApprovalKind,
    pub(crate) session: SessionId,
    tool: Option<String>,
    pub(crate) title: String,
    detail: String,
    /// Bytes of the detail.
    bytes: usize,
    /// The SHA-256 of the detail, for `approve --sha256`.
    pub(crate) sha256: String,
    #[serde(flatten)]
    about: About,
    choices: Vec<Choice>,
    asked_at: Timestamp,
    expires_at: Option<Timestamp>,
    scopes: Vec<Scope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<SessionId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    path: Vec<String>,
    /// The approval itself.
    #[serde(skip)]
    pub(crate) open: OpenApproval,
}

impl From<OpenApproval> for ApprovalRow {
    fn from(open: OpenApproval) -> Self {
        Self {
            bytes: open.detail.len(),
            sha256: digest(&open.detail),
            about: open.about.clone(),
            open: open.clone(),
            approval: open.approval,
            kind: open.kind,
            session: open.session,
            tool: open.tool,
            title: open.title,
            detail: open.detail,
            choices: open.choices,
            asked_at: open.asked_at,
            expires_at: open.expires_at,
            scopes: open.scopes,
            root: open.root,
            path: open.path,
        }
    }
}

impl ApprovalRow {
    /// The hash of everything that an answer is bound to.
    pub(crate) const fn likeness(&self) -> Option<&String> {
        self.about.likeness.as_ref()
    }

    /// Whether the approval can be allowed with this scope.
    pub(crate) fn can_be_allowed(&self, scope: Scope) -> bool {
        self.kind != ApprovalKind::Question && self.open.offers(scope)
    }

    /// One line about the approval, and the command that answers it alone.
    pub(crate) fn left_open(&self) -> String {
        let id = self.approval.short();
        let how = match self.kind {
            ApprovalKind::Question => format!("agentctl answer {id} TEXT"),
            ApprovalKind::Tool | ApprovalKind::Plan | ApprovalKind::Limit => format!("agentctl approve {id}"),
        };
        let title = one_line(&self.title, 120);
        format!("left open: {} {id}: {title}\n  {how}", word(&self.kind))
    }

    /// The title, and the path of the asking agent in a tree of agents.
    fn asked_from(&self) -> String {
        let title = clean(&self.title).into_owned();
        if self.path.is_empty() {
            title
        } else {
            format!("{title} [{}]", one_line(&self.path.join(" > "), 80))
        }
    }
}

impl Row for ApprovalRow {
    fn columns(wide: bool) -> Vec<Column> {
        let mut columns = vec![
            Column::whole("approval", 0),
            Column::whole("session", 1),
            Column::whole("kind", 4),
            Column::text("tool", 5, 8),
            Column::whole("age", 2),
            Column::whole("expires", 6),
            Column::whole("risks", 3),
            Column::whole("bytes", 1),
            Column::text("title", 0, 24),
        ];
        if wide {
            columns.push(Column::text("detail", 7, 20));
        }
        columns
    }

    fn cells(&self, wide: bool, now: Timestamp) -> Vec<String> {
        let expires = self
            .expires_at
            .map_or_else(|| "never".to_owned(), |at| format!("in {}", age(now, at)));
        let mut cells = vec![
            self.approval.short(),
            self.session.short(),
            word(&self.kind),
            self.tool.clone().unwrap_or_default(),
            age(self.asked_at, now),
            expires,
            match self.about.risks.len() {
                0 => String::new(),
                risks => risks.to_string(),
            },
            self.bytes.to_string(),
            self.asked_from(),
        ];
        if wide {
            cells.push(brief(&self.detail, WIDE));
        }
        cells
    }

    fn name(&self) -> String {
        self.approval.to_string()
    }
}
