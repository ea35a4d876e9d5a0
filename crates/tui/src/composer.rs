//! The field where a message is written: several lines, a history, and long pastes as one mark.

use crate::theme::Theme;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Style;
use ratatui_textarea::{CursorMove, DataCursor, TextArea, WrapMode};
use std::collections::VecDeque;

/// A longer paste becomes a mark in the text.
const LONG_PASTE: usize = 2_000;
const LONG_PASTE_LINES: usize = 20;
/// The most messages that the history keeps.
const MOST_HISTORY: usize = 500;
/// The most rows of the field.
const MOST_ROWS: usize = 10;

/// One proposal of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// What replaces the word.
    pub text: String,
    /// A short explanation.
    pub help: String,
}

/// The kind of word under the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completing {
    Command,
    File,
}

/// Open proposals.
#[derive(Debug, Clone)]
pub(crate) struct Popup {
    pub(crate) proposals: Vec<Proposal>,
    pub(crate) selected: usize,
    /// The word that they complete.
    word: String,
}

/// The field.
#[derive(Debug)]
pub(crate) struct Composer {
    area: TextArea<'static>,
    pastes: Vec<(String, String)>,
    history: VecDeque<String>,
    /// The shown message of the history, and what was being written.
    at: Option<(usize, String)>,
    pub(crate) popup: Option<Popup>,
    commands: Vec<Proposal>,
}

fn fresh(lines: Vec<String>) -> TextArea<'static> {
    let mut area = TextArea::new(lines);
    area.set_cursor_line_style(Style::new());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_max_histories(200);
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

impl Composer {
    pub(crate) fn new(history: Vec<String>, commands: Vec<Proposal>) -> Self {
        Self {
            area: fresh(Vec::new()),
            pastes: Vec::new(),
            history: history.into(),
            at: None,
            popup: None,
            commands,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub(crate) fn widget(&self) -> &TextArea<'static> {
        &self.area
    }

    pub(crate) fn style(&mut self, theme: Theme, placeholder: &str) {
        self.area.set_placeholder_style(theme.dim());
        self.area.set_placeholder_text(placeholder);
    }

    /// How many rows it needs at this width.
    pub(crate) fn rows(&self, width: usize) -> u16 {
        let width = width.max(1);
        let rows: usize = self
            .area
            .lines()
            .iter()
            .map(|line| (crate::wrap::columns(line) + 1).div_ceil(width).max(1))
            .sum();
        u16::try_from(rows.clamp(1, MOST_ROWS)).unwrap_or(1)
    }

    /// The text with its pastes as marks.
    pub(crate) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    pub(crate) fn set(&mut self, text: &str) {
        self.area = fresh(text.split('\n').map(str::to_owned).collect());
        self.popup = None;
    }

    pub(crate) fn clear(&mut self) {
        self.set("");
        self.pastes.clear();
        self.at = None;
    }

    /// Takes the whole message, pastes included, and remembers it.
    pub(crate) fn take(&mut self) -> String {
        let written = self.text();
        let mut text = written.clone();
        for (mark, paste) in &self.pastes {
            text = text.replacen(mark, paste, 1);
        }
        if self.pastes.is_empty() && !written.trim().is_empty() && self.history.back() != Some(&written) {
            self.history.push_back(written);
            if self.history.len() > MOST_HISTORY {
                self.history.pop_front();
            }
        }
        self.clear();
        text
    }

    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        if text.len() <= LONG_PASTE && text.lines().count() <= LONG_PASTE_LINES {
            let clean: String = text
                .chars()
                .filter(|c| *c == '\n' || *c == '\t' || !c.is_control())
                .collect();
            self.area.insert_str(clean);
        } else {
            let number = self.pastes.len() + 1;
            let lines = text.lines().count();
            let mark = format!("[paste {number}: {lines} lines, {} bytes]", text.len());
            self.area.insert_str(&mark);
            self.pastes.push((mark, text));
        }
        self.popup = None;
    }

    /// The command or file that is being written.
    pub(crate) fn word(&self) -> Option<(Completing, String)> {
        let DataCursor(row, column) = self.area.cursor();
        let line = self.area.lines().get(row)?;
        let before: String = line.chars().take(column).collect();
        if row == 0 && before.starts_with('/') && !before.contains(char::is_whitespace) {
            return Some((Completing::Command, before));
        }
        let word = before.rsplit(char::is_whitespace).next()?;
        word.starts_with('@').then(|| (Completing::File, word.to_owned()))
    }

    /// Updates the proposals after a key. Returns the beginning of a file whose proposals the caller must find.
    pub(crate) fn propose(&mut self) -> Option<String> {
        match self.word() {
            Some((Completing::Command, word)) => {
                let all = self.commands.iter().filter(|one| one.text.starts_with(&word));
                self.show(word.clone(), all.cloned().collect());
                None
            }
            Some((Completing::File, word)) => word.get(1..).map(str::to_owned),
            None => {
                self.popup = None;
                None
            }
        }
    }

    /// The proposals for a file that is being written.
    pub(crate) fn files(&mut self, of: &str, found: Vec<Proposal>) {
        if let Some((Completing::File, word)) = self.word()
            && word.get(1..) == Some(of)
        {
            self.show(word, found);
        }
    }

    fn show(&mut self, word: String, proposals: Vec<Proposal>) {
        let same = matches!(proposals.as_slice(), [one] if one.text == word);
        let popup = Popup {
            proposals,
            selected: 0,
            word,
        };
        self.popup = Some(popup).filter(|popup| !popup.proposals.is_empty() && !same);
    }

    /// Replaces the word by the selected proposal.
    pub(crate) fn accept(&mut self) {
        let Some(popup) = self.popup.take() else { return };
        let Some(chosen) = popup.proposals.get(popup.selected) else {
            return;
        };
        for _ in popup.word.chars() {
            self.area.delete_char();
        }
        let end = if chosen.text.ends_with('/') { "" } else { " " };
        self.area.insert_str(format!("{}{end}", chosen.text));
    }

    pub(crate) fn select(&mut self, down: bool) {
        if let Some(popup) = &mut self.popup {
            let count = popup.proposals.len().max(1);
            let step = if down { 1 } else { count - 1 };
            popup.selected = (popup.selected + step) % count;
        }
    }

    /// Shows an earlier or later message; false at the newest.
    fn recall(&mut self, older: bool) {
        let written = self.text();
        let (at, draft) = match (self.at.take(), older) {
            (None, true) => (self.history.len(), written),
            (None, false) => return,
            (Some(at), _) => at,
        };
        let next = if older { at.saturating_sub(1) } else { at + 1 };
        match self.history.get(next) {
            Some(message) => {
                let message = message.clone();
                self.set(&message);
                self.at = Some((next, draft));
            }
            None => {
                self.set(&draft);
            }
        }
    }

    /// A key that edits. Enter and Escape are handled before.
    pub(crate) fn key(&mut self, key: KeyEvent) {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let DataCursor(row, _) = self.area.cursor();
        let last = self.area.lines().len().saturating_sub(1);
        match (key.code, ctrl, alt) {
            (KeyCode::Up, false, false) if row == 0 => self.recall(true),
            (KeyCode::Down, false, false) if row == last => self.recall(false),
            (KeyCode::Char('j'), true, _) => self.area.insert_newline(),
            (KeyCode::Char('a'), true, _) => self.area.move_cursor(CursorMove::Head),
            (KeyCode::Char('e'), true, _) => self.area.move_cursor(CursorMove::End),
            (KeyCode::Char('u'), true, _) => _ = self.area.delete_line_by_head(),
            (KeyCode::Char('k'), true, _) => _ = self.area.delete_line_by_end(),
            (KeyCode::Char('w'), true, _) => _ = self.area.delete_word(),
            (KeyCode::Char('y'), true, _) => _ = self.area.paste(),
            // Ctrl-_ and Ctrl-/ arrive as Ctrl-7 from most terminals.
            (KeyCode::Char('_' | '7' | '/'), true, _) => _ = self.area.undo(),
            (KeyCode::Char('z'), false, true) => _ = self.area.redo(),
            (KeyCode::Char('b'), false, true) | (KeyCode::Left, true, _) => {
                self.area.move_cursor(CursorMove::WordBack);
            }
            (KeyCode::Char('f'), false, true) | (KeyCode::Right, true, _) => {
                self.area.move_cursor(CursorMove::WordForward);
            }
            (KeyCode::Up, _, _) => self.area.move_cursor(CursorMove::Up),
            (KeyCode::Down, _, _) => self.area.move_cursor(CursorMove::Down),
            (KeyCode::Left, _, _) => self.area.move_cursor(CursorMove::Back),
            (KeyCode::Right, _, _) => self.area.move_cursor(CursorMove::Forward),
            (KeyCode::Home, _, _) => self.area.move_cursor(CursorMove::Head),
            (KeyCode::End, _, _) => self.area.move_cursor(CursorMove::End),
            (KeyCode::Backspace, _, true) => _ = self.area.delete_word(),
            (KeyCode::Backspace, _, _) | (KeyCode::Char('h'), true, _) => _ = self.area.delete_char(),
            (KeyCode::Delete, _, _) => _ = self.area.delete_next_char(),
            (KeyCode::Char(c), false, false) if !c.is_control() => self.area.insert_char(c),
            _ => {}
        }
    }

    /// A line break inside the message.
    pub(crate) fn newline(&mut self) {
        self.area.insert_newline();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composer() -> Composer {
        let commands = ["/cancel", "/compact"].map(|text| Proposal {
            text: text.into(),
            help: String::new(),
        });
        Composer::new(vec!["first".into(), "second".into()], commands.into())
    }

    fn typed(composer: &mut Composer, text: &str) {
        for c in text.chars() {
            composer.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        }
    }

    fn press(composer: &mut Composer, code: KeyCode, modifiers: KeyModifiers) {
        composer.key(KeyEvent::new(code, modifiers));
    }

    #[test]
    fn the_history_keeps_what_was_being_written() {
        let mut composer = composer();
        typed(&mut composer, "draft");
        for wanted in ["second", "first", "first"] {
            press(&mut composer, KeyCode::Up, KeyModifiers::NONE);
            assert_eq!(composer.text(), wanted);
        }
        for wanted in ["second", "draft", "draft"] {
            press(&mut composer, KeyCode::Down, KeyModifiers::NONE);
            assert_eq!(composer.text(), wanted);
        }
    }

    #[test]
    fn a_long_paste_is_a_mark_until_it_is_sent() {
        let mut composer = composer();
        let long = "x".repeat(1 << 20);
        composer.paste("short\r\npaste ");
        composer.paste(&long);
        assert_eq!(composer.text(), "short\npaste [paste 1: 1 lines, 1048576 bytes]");
        assert_eq!(composer.take(), format!("short\npaste {long}"));
        assert!(composer.is_empty());
        composer.paste("no \u{1b}[31mcolour");
        assert_eq!(composer.text(), "no [31mcolour");
    }

    #[test]
    fn commands_and_files_are_completed() {
        let mut composer = composer();
        typed(&mut composer, "/c");
        assert_eq!(composer.propose(), None);
        composer.select(true);
        composer.accept();
        assert_eq!(composer.text(), "/compact ");
        composer.clear();
        typed(&mut composer, "look at @src/ma");
        assert_eq!(composer.propose().as_deref(), Some("src/ma"));
        let main = Proposal {
            text: "@src/main.rs".into(),
            help: String::new(),
        };
        composer.files("src/m", vec![main.clone()]);
        assert!(composer.popup.is_none(), "for an earlier word");
        composer.files("src/ma", vec![main]);
        composer.accept();
        assert_eq!(composer.text(), "look at @src/main.rs ");
    }

    #[test]
    fn keys_edit_and_undo() {
        let mut composer = composer();
        typed(&mut composer, "one two");
        press(&mut composer, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(composer.text(), "one ");
        press(&mut composer, KeyCode::Char('7'), KeyModifiers::CONTROL);
        assert_eq!(composer.text(), "one two");
        press(&mut composer, KeyCode::Char('j'), KeyModifiers::CONTROL);
        typed(&mut composer, "three");
        assert_eq!(composer.take(), "one two\nthree");
    }
}
