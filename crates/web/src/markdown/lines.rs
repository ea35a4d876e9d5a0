//! Assembles lines from words: breaks, spaces, marks and prefixes.

use super::elements::Role;
use super::open::Open;
use super::writer::Writer;

/// The most quotations and list items that the prefix of a line shows.
const MAX_PREFIX: usize = 12;

impl Writer {
    /// Writes preformatted text between fences that do not occur in it.
    pub(super) fn fenced(&mut self) {
        let text = self.pre.take().unwrap_or_default();
        let text = text.trim_start_matches('\n').trim_end();
        if text.is_empty() {
            return;
        }
        if self.cells > 0 {
            self.text(text);
            return;
        }
        let mut run = 0_usize;
        let mut longest = 0;
        for c in text.chars() {
            run = if c == '`' { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        let fence = "`".repeat(longest.saturating_add(1).max(3));
        self.lines(2);
        self.flush();
        self.put(&fence);
        for line in text.lines().chain([fence.as_str()]) {
            self.put("\n");
            self.prefix();
            self.put(line);
        }
        self.lines(2);
    }

    /// Ends the line.
    pub(super) fn line(&mut self) {
        match &mut self.pre {
            Some(pre) => pre.push('\n'),
            None => self.lines(1),
        }
    }

    /// Requests line breaks before the next word; in a cell, a space.
    pub(super) fn lines(&mut self, count: usize) {
        if let Some(pre) = &mut self.pre {
            if count > 0 && !pre.is_empty() && !pre.ends_with('\n') {
                pre.push('\n');
            }
        } else if self.cells > 0 {
            self.space = true;
        } else {
            self.newlines = self.newlines.max(count);
        }
    }

    /// Writes the pending breaks, spaces and marks before the next word.
    pub(super) fn flush(&mut self) {
        if self.newlines > 0 {
            if !self.out.is_empty() {
                self.put(if self.newlines > 1 { "\n\n" } else { "\n" });
            }
            self.prefix();
            let lead = std::mem::take(&mut self.lead);
            self.put(lead);
        } else if self.bar {
            self.put(" | ");
        } else if self.space && !self.out.ends_with([' ', '\n', '[']) {
            self.put(" ");
        }
        (self.newlines, self.space, self.bar) = (0, false, false);
        if self.waiting == 0 {
            return;
        }
        let mut marks = String::new();
        for open in self.stack.iter_mut().filter(|open| !open.begun) {
            match open.role {
                Role::Marked(mark) => marks.push_str(mark),
                Role::Link => marks.push('['),
                _ => continue,
            }
            open.begun = true;
        }
        self.waiting = 0;
        self.put(&marks);
    }

    /// Writes the prefix of a line: quotations, and items with their markers or an equal indent.
    fn prefix(&mut self) {
        let mut prefix = String::new();
        let shown = |open: &&mut Open| matches!(open.role, Role::Quote | Role::Item);
        for open in self.stack.iter_mut().filter(shown).take(MAX_PREFIX) {
            if open.role == Role::Quote {
                prefix.push_str("> ");
            } else if open.begun {
                prefix.extend(open.closer.chars().map(|_| ' '));
            } else {
                prefix.push_str(&open.closer);
                open.begun = true;
            }
        }
        self.put(&prefix);
    }

    pub(super) fn put(&mut self, text: &str) {
        self.full |= self.out.len() + text.len() > self.room;
        if !self.full {
            self.out.push_str(text);
        }
    }
}
