//! Paging through a question. An answer that accepts it counts only after the last page was shown.

use crate::render::{Paint, painted, question_lines};
use agentd_protocol::{ApprovalId, OpenApproval};

/// Lines that a prompt takes besides.
const PROMPT: usize = 4;
/// A lower terminal still shows this much.
const LEAST: usize = 5;

/// The lines of a question, and how many of them were shown.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) approval: ApprovalId,
    lines: Vec<String>,
    shown: usize,
    height: usize,
}

impl Pages {
    /// A question on a terminal of so many columns and lines.
    pub(crate) fn new(open: &OpenApproval, (columns, rows): (usize, usize), paint: Paint) -> Self {
        // The last column stays free: some terminals wrap when it is written.
        let lines = question_lines(open, columns.saturating_sub(1));
        Self {
            approval: open.approval,
            lines: lines.iter().map(|line| painted(line, paint)).collect(),
            shown: 0,
            height: rows.saturating_sub(PROMPT).max(LEAST),
        }
    }

    /// The next page.
    pub(crate) fn turn(&mut self) -> String {
        let page = self.lines.iter().skip(self.shown).take(self.height);
        let text = page.map(String::as_str).collect::<Vec<_>>().join("\n");
        self.shown = self.lines.len().min(self.shown + self.height);
        text
    }

    /// Whether all of it was shown.
    pub(crate) const fn ended(&self) -> bool {
        self.shown >= self.lines.len()
    }

    /// How much of it was.
    pub(crate) fn place(&self) -> String {
        let pages = self.lines.len().div_ceil(self.height);
        format!("page {} of {pages}", self.shown.div_ceil(self.height))
    }
}
