//! The panel of an open question. An answer counts only if the whole question was shown, and only if the keys were meant
//! for it: a key that a person was already typing goes to the message (I7).

use crate::theme::Theme;
use agentd_protocol::{ApprovalId, ApprovalKind, ApprovalQuestion, OpenApproval, Scope, Timestamp};
use agentd_text::{laid_out, one_line};
use agentd_viewer::choices_line;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};

/// Keys shortly after a question appears were typed before a person could read it.
pub(crate) const GUARD_MS: u64 = 700;

/// The shown question.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) open: OpenApproval,
    /// What the daemon says is shown; the error says why it cannot be shown.
    question: Option<Result<Box<ApprovalQuestion>, String>>,
    asked: bool,
    /// When it may be answered by a key.
    ready_at: Timestamp,
    /// Whether keys go to it.
    pub(crate) focused: bool,
    /// The first row shown, and the rows that were shown so far.
    pub(crate) top: usize,
    seen: usize,
    rows: usize,
    height: usize,
    /// The words of an answer or of a denial.
    pub(crate) words: Option<String>,
    /// Why a key was not accepted.
    pub(crate) told: Option<String>,
    lines: Vec<Line<'static>>,
    width: usize,
}

/// The effect of a key on the panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pressed {
    /// Nothing more.
    Done,
    /// The key is not for the panel.
    NotMine,
    /// This line answers the question, as if typed in line mode.
    Answer(String),
}

impl Panel {
    pub(crate) fn new(open: OpenApproval, focused: bool, now: Timestamp) -> Self {
        Self {
            open,
            question: None,
            asked: false,
            ready_at: now.plus_ms(GUARD_MS),
            focused,
            top: 0,
            seen: 0,
            rows: 0,
            height: 0,
            words: None,
            told: None,
            lines: Vec::new(),
            width: 0,
        }
    }

    pub(crate) const fn approval(&self) -> ApprovalId {
        self.open.approval
    }

    /// The question, if its lines are wanted: asks once.
    pub(crate) fn wants(&mut self) -> Option<ApprovalId> {
        let wants = self.question.is_none() && !std::mem::replace(&mut self.asked, true);
        wants.then_some(self.open.approval)
    }

    /// Asks again for lines that did not come, over a new connection.
    pub(crate) fn ask_again(&mut self) {
        self.asked = self.question.as_ref().is_some_and(Result::is_ok);
        self.question.take_if(|question| question.is_err());
    }

    /// Shows these lines. Keys typed before answer nothing.
    pub(crate) fn show(&mut self, question: Result<Box<ApprovalQuestion>, String>, now: Timestamp) {
        self.question = Some(question);
        self.ready_at = now.plus_ms(GUARD_MS);
        self.width = 0;
    }

    /// The hash of the question, once the whole of it was on the screen.
    pub(crate) fn shown(&self) -> Option<String> {
        let question = self.question.as_ref()?.as_ref().ok()?;
        self.read().then(|| question.shown.clone())
    }

    /// Whether a key may answer now.
    pub(crate) const fn ready(&self, now: Timestamp) -> bool {
        now.0 >= self.ready_at.0
    }

    pub(crate) const fn ready_at(&self) -> Timestamp {
        self.ready_at
    }

    /// Lays the question out for a width; the rows that it needs.
    pub(crate) fn lay_out(&mut self, width: usize, theme: Theme) -> usize {
        if self.width != width {
            self.width = width;
            self.lines = match &self.question {
                Some(Ok(question)) => styled(question, width, theme),
                Some(Err(why)) => vec![Line::from(one_line(
                    &format!("the question cannot be shown: {why}"),
                    width,
                ))],
                None => vec![Line::from("the question is being read …")],
            };
            // The rows have changed, so none of them was seen.
            (self.seen, self.top) = (0, 0);
            self.rows = self.lines.len();
        }
        self.rows
    }

    /// Sets the number of rows on the screen.
    pub(crate) fn shown_in(&mut self, height: usize) {
        self.height = height;
        self.top = self.top.min(self.rows.saturating_sub(height));
        if self.seen >= self.top {
            self.seen = self.seen.max(self.top + height);
        }
    }

    /// The rows on the screen.
    pub(crate) fn visible(&self) -> &[Line<'static>] {
        let end = self.lines.len().min(self.top + self.height);
        self.lines.get(self.top..end).unwrap_or_default()
    }

    /// Whether the whole question was shown.
    pub(crate) const fn read(&self) -> bool {
        // Without a width, its rows are not laid out yet.
        matches!(self.question, Some(Ok(_))) && self.width > 0 && self.seen >= self.rows
    }

    /// The keys that work now.
    pub(crate) fn hint(&self, now: Timestamp) -> String {
        if let Some(told) = &self.told {
            return told.clone();
        }
        if !self.focused {
            return "Tab answers".to_owned();
        }
        if !self.ready(now) {
            return "…".to_owned();
        }
        if !matches!(self.question, Some(Ok(_))) {
            return "n denies".to_owned();
        }
        if !self.read() {
            let left = self.rows.saturating_sub(self.top + self.height);
            return format!("{left} more rows: Space shows them, n denies");
        }
        if self.open.kind == ApprovalKind::Question && self.open.choices.is_empty() {
            return "type your answer, Enter sends it".to_owned();
        }
        format!("{}, Tab back to the message", choices_line(&self.open))
    }

    /// A key.
    pub(crate) fn key(&mut self, key: KeyEvent, now: Timestamp) -> Pressed {
        let plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if !self.focused || !plain {
            return Pressed::NotMine;
        }
        self.told = None;
        if let Some(words) = &mut self.words {
            return match key.code {
                KeyCode::Enter => {
                    let words = self.words.take().unwrap_or_default();
                    self.answer(&words)
                }
                KeyCode::Esc => {
                    self.words = None;
                    Pressed::Done
                }
                KeyCode::Backspace => {
                    words.pop();
                    Pressed::Done
                }
                KeyCode::Char(c) if !c.is_control() => {
                    words.push(c);
                    Pressed::Done
                }
                _ => Pressed::Done,
            };
        }
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.top += 1,
            KeyCode::PageUp => self.top = self.top.saturating_sub(self.height.max(1)),
            KeyCode::PageDown | KeyCode::Char(' ') => self.top += self.height.max(1),
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.top = self.rows,
            KeyCode::Tab => self.focused = false,
            KeyCode::Char(_) if !self.ready(now) => return Pressed::NotMine,
            KeyCode::Char(c) => return self.letter(c),
            _ => return Pressed::NotMine,
        }
        Pressed::Done
    }

    fn letter(&mut self, c: char) -> Pressed {
        let question = self.open.kind == ApprovalKind::Question;
        if c.is_ascii_digit() && !self.open.choices.is_empty() {
            return self.answer(&c.to_string());
        }
        if question {
            self.words = Some(c.to_string());
            return Pressed::Done;
        }
        if !self.open.choices.is_empty() {
            self.told = Some(format!("{} (Tab: back)", choices_line(&self.open)));
            return Pressed::Done;
        }
        match c {
            'n' => {
                self.words = Some("n ".to_owned());
                Pressed::Done
            }
            'y' => self.answer("y"),
            's' if self.open.offers(Scope::Session) => self.answer("s"),
            'a' if self.open.offers(Scope::Always) => self.answer("a"),
            'e' if self.open.offers(Scope::Everywhere) => self.answer("e"),
            's' | 'a' | 'e' => {
                self.told = Some(format!(
                    "this call can be allowed only once; {}",
                    choices_line(&self.open)
                ));
                Pressed::Done
            }
            _ => {
                self.told = Some(format!("{}, Tab back to the message", choices_line(&self.open)));
                Pressed::Done
            }
        }
    }

    /// A denial counts at any time, anything else only when all was shown.
    fn answer(&mut self, words: &str) -> Pressed {
        let denies = words == "n" || words.starts_with("n ");
        let denies = denies && self.open.kind != ApprovalKind::Question;
        if !self.read() && !denies {
            self.told = Some("not accepted: Space shows the rest of the question first".to_owned());
            return Pressed::Done;
        }
        if words.trim().is_empty() {
            return Pressed::Done;
        }
        Pressed::Answer(words.to_owned())
    }
}

fn styled(question: &ApprovalQuestion, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let lines = laid_out(&question.lines, width);
    let line = |line: &agentd_text::Line| {
        let spans = line.spans.iter();
        let spans = spans.map(|span| Span::styled(span.text.clone(), theme.mark(span.mark)));
        Line::from(spans.collect::<Vec<_>>())
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Depth, Ground};
    use agentd_protocol::{SessionId, Stamp};

    const NOW: Timestamp = Timestamp(1_763_629_200_123);
    const LATER: Timestamp = NOW.plus_ms(GUARD_MS);

    fn panel(detail: &str, height: usize) -> Panel {
        let mut open = OpenApproval::new(
            Stamp::new(NOW, 1).approval(),
            ApprovalKind::Tool,
            SessionId::NIL,
            NOW,
        );
        open.tool = Some("Bash".into());
        detail.clone_into(&mut open.detail);
        open.scopes = vec![Scope::Once, Scope::Session];
        open.grant = Some("Bash(x)".into());
        open.about.reach = Some(agentd_protocol::Reach::default());
        let mut panel = Panel::new(open, true, NOW);
        assert_eq!(panel.wants(), Some(panel.approval()));
        panel.show(Ok(Box::new(question(&panel.open))), NOW);
        panel.lay_out(60, Theme::new(Depth::None, Ground::Dark));
        panel.shown_in(height);
        panel
    }

    fn question(open: &OpenApproval) -> ApprovalQuestion {
        let lines = agentd_text::question_lines(open);
        ApprovalQuestion {
            approval: open.approval,
            session: open.session,
            shown: agentd_text::shown(&lines),
            lines,
        }
    }

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn i7_a_key_typed_before_the_question_could_be_read_answers_nothing() {
        let mut panel = panel("make", 20);
        assert_eq!(panel.key(key(KeyCode::Char('y')), NOW), Pressed::NotMine);
        assert_eq!(
            panel.key(key(KeyCode::Char('y')), LATER),
            Pressed::Answer("y".into())
        );
        panel.focused = false;
        assert_eq!(panel.key(key(KeyCode::Char('y')), LATER), Pressed::NotMine);
    }

    #[test]
    fn redteam_58_i7_without_the_daemons_lines_only_a_denial_counts_and_an_answer_names_them() {
        let mut panel = panel("make", 20);
        let seen = panel.shown();
        assert_eq!(seen, Some(question(&panel.open).shown), "positive control");
        for missing in [None, Some("it is too large".to_owned())] {
            panel = Panel::new(panel.open.clone(), true, NOW);
            if let Some(why) = missing {
                panel.show(Err(why), NOW);
            }
            panel.lay_out(60, Theme::new(Depth::None, Ground::Dark));
            panel.shown_in(20);
            assert_eq!(panel.key(key(KeyCode::Char('y')), LATER), Pressed::Done);
            assert_eq!(panel.shown(), None);
            panel.key(key(KeyCode::Char('n')), LATER);
            let denied = panel.key(key(KeyCode::Enter), LATER);
            assert_eq!(denied, Pressed::Answer("n ".into()));
        }
    }

    #[test]
    fn i7_yes_does_not_count_before_the_end_was_shown() {
        let long = (0..50).map(|n| format!("echo {n}\n")).collect::<String>();
        let mut panel = panel(&long, 10);
        for c in ['y', 's'] {
            assert_eq!(panel.key(key(KeyCode::Char(c)), LATER), Pressed::Done, "{c}");
            assert!(panel.hint(LATER).starts_with("not accepted"));
        }
        // Jumping to the end does not show what lies between.
        panel.key(key(KeyCode::End), LATER);
        panel.shown_in(10);
        assert!(!panel.read());
        panel.key(key(KeyCode::Home), LATER);
        while !panel.read() {
            assert_eq!(panel.key(key(KeyCode::Char(' ')), LATER), Pressed::Done);
            panel.shown_in(10);
        }
        assert_eq!(
            panel.key(key(KeyCode::Char('s')), LATER),
            Pressed::Answer("s".into())
        );
        // After a change of width, it must be read again.
        panel.lay_out(40, Theme::new(Depth::None, Ground::Dark));
        panel.shown_in(10);
        assert!(!panel.read());
    }

    #[test]
    fn a_denial_may_have_words_and_counts_at_any_time() {
        let long = (0..50).map(|n| format!("echo {n}\n")).collect::<String>();
        let mut panel = panel(&long, 10);
        for c in "nnot now".chars() {
            panel.key(key(KeyCode::Char(c)), LATER);
        }
        assert_eq!(
            panel.key(key(KeyCode::Enter), LATER),
            Pressed::Answer("n not now".into())
        );
        panel.key(key(KeyCode::Char('n')), LATER);
        assert_eq!(panel.key(key(KeyCode::Esc), LATER), Pressed::Done);
        assert_eq!(panel.words, None);
        assert_eq!(panel.key(key(KeyCode::Char('a')), LATER), Pressed::Done);
        assert!(panel.hint(LATER).contains("only once"));
    }
}
