//! Inputs that wait to join the conversation: listed above the message, edited and withdrawn there.

use crate::action::{Action, Focus};
use crate::entry::{Kind, Place};
use crate::session::SessionView;
use crate::wrap::cut;
use agentd_protocol::{Delivery, InputId};
use agentd_text::one_line;
use agentd_viewer::word;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// The most rows of the list.
const MOST_ROWS: usize = 4;

/// An input that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) input: InputId,
    delivery: Delivery,
    text: String,
}

impl SessionView {
    /// The inputs that wait, the newest last.
    pub(crate) fn queued(&self) -> Vec<Queued> {
        let entries = self.log.entries.iter();
        let queued = entries.filter_map(|entry| match &entry.kind {
            Kind::User {
                input,
                text,
                place: Place::Queued(delivery),
            } => Some(Queued {
                input: *input,
                delivery: *delivery,
                text: text.clone(),
            }),
            _ => None,
        });
        queued.collect()
    }

    /// Rows of the list. An input that starts a turn at rest is not worth one.
    pub(crate) fn queue_rows(&self) -> u16 {
        if self.facts.turn.is_none() || !self.setup.writes {
            return 0;
        }
        u16::try_from(self.queued().len().min(MOST_ROWS)).unwrap_or(0)
    }

    /// Selects the newest input that waits.
    pub(crate) fn enter_queue(&mut self) {
        match self.queued().pop() {
            Some(newest) => self.focus = Focus::Queue(newest.input),
            None => self.tell("no input is queued".to_owned()),
        }
    }

    /// A key while an input of the list is selected.
    pub(crate) fn in_queue(&mut self, key: KeyEvent, input: InputId) -> Option<Action> {
        let queued = self.queued();
        let Some(at) = queued.iter().position(|one| one.input == input) else {
            self.focus = Focus::Message;
            self.tell("this input has joined the conversation".to_owned());
            return None;
        };
        let go = |view: &mut Self, to: Option<&Queued>| {
            view.focus = to.map_or(Focus::Message, |one| Focus::Queue(one.input));
        };
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => go(self, queued.get(at.saturating_sub(1))),
            KeyCode::Down | KeyCode::Char('j') => go(self, queued.get(at + 1)),
            KeyCode::Enter | KeyCode::Char('e') => {
                if !self.composer.is_empty() {
                    self.tell("send or clear your message before you edit this input".to_owned());
                    return None;
                }
                if let Some(one) = queued.get(at) {
                    self.composer.set(&one.text);
                }
                self.focus = Focus::Message;
                return Some(Action::Withdraw(input));
            }
            KeyCode::Delete | KeyCode::Backspace | KeyCode::Char('d' | 'x') => {
                go(self, queued.get(at + 1));
                return Some(Action::Withdraw(input));
            }
            KeyCode::Esc | KeyCode::Tab | KeyCode::Char('q') => self.focus = Focus::Message,
            _ => {}
        }
        None
    }

    /// The list; the selected input is in sight.
    pub(crate) fn draw_queue(&self, frame: &mut Frame<'_>, area: Rect) {
        let queued = self.queued();
        let rows = usize::from(area.height);
        let selected = if let Focus::Queue(input) = self.focus {
            queued.iter().position(|one| one.input == input)
        } else {
            None
        };
        let newest = queued.len().saturating_sub(rows);
        let first = selected.map_or(newest, |at| newest.min(at));
        let shown = queued.iter().enumerate().skip(first).take(rows);
        for ((at, one), y) in shown.zip(area.y..area.bottom()) {
            let place = Rect::new(area.x, y, area.width, 1);
            let hint = if selected == Some(at) {
                "  Enter edits, Del withdraws, Esc back"
            } else if selected.is_none() && at + 1 == queued.len() {
                "  Alt-Up edits"
            } else {
                ""
            };
            let what = format!("  {}: ", word(&one.delivery));
            let room = usize::from(area.width).saturating_sub(what.len() + hint.len());
            let text = cut(&one_line(&one.text, 300), room);
            let line = Line::from(vec![
                Span::styled(what, self.setup.theme.warn()),
                Span::raw(text),
                Span::styled(hint, self.setup.theme.dim()),
            ]);
            frame.render_widget(line, place);
            if selected == Some(at) {
                frame.buffer_mut().set_style(place, self.setup.theme.selected());
            }
        }
    }
}
