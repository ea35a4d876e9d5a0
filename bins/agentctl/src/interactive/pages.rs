//! Paging through a question. An answer that accepts it counts only after the last page was shown.

use crate::render::{Paint, painted};
use agentd_protocol::{ApprovalId, ApprovalQuestion};
use agentd_text::laid_out;

/// Lines reserved for the prompt.
const PROMPT: usize = 4;
/// The minimum page height, even on a lower terminal.
const LEAST: usize = 5;

/// The lines of a question, and how many of them have been shown.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) approval: ApprovalId,
    hash: String,
    lines: Vec<String>,
    shown: usize,
    height: usize,
}

impl Pages {
    /// The pages of a question on a terminal of this size.
    pub(crate) fn new(question: &ApprovalQuestion, (columns, rows): (usize, usize), paint: Paint) -> Self {
        // Some terminals wrap when the last column is written, so it stays free.
        let lines = laid_out(&question.lines, columns.saturating_sub(1));
        Self {
            approval: question.approval,
            hash: question.shown.clone(),
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

    /// Whether the whole question has been shown.
    pub(crate) const fn ended(&self) -> bool {
        self.shown >= self.lines.len()
    }

    /// The hash of the question, once the whole of it has been shown.
    pub(crate) fn seen(&self) -> Option<&str> {
        self.ended().then_some(&*self.hash)
    }

    /// The current page: `page 1 of 3`.
    pub(crate) fn place(&self) -> String {
        let pages = self.lines.len().div_ceil(self.height);
        format!("page {} of {pages}", self.shown.div_ceil(self.height))
    }
}
