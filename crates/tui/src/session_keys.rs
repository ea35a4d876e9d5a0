//! What keys do in the view of one session.

use crate::action::{Action, Focus};
use crate::composer::Completing;
use crate::panel::Pressed;
use crate::scroll::Position;
use crate::session::{CANCELLING, SessionView};
use crate::session_moves::is_turn;
use agentd_protocol::{Delivery, PermissionMode, RunState, Timestamp};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A second Escape cancels within this time.
const AGAIN_MS: u64 = 3_000;

impl SessionView {
    /// A key. The answer is what the caller does.
    pub fn key(&mut self, key: KeyEvent, now: Timestamp) -> Option<Action> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        self.now = now;
        if let Some(done) = self.anywhere(key) {
            return done;
        }
        if self.help {
            self.help = false;
            return None;
        }
        if self.tree_is_open() {
            return self.in_tree(key);
        }
        if !matches!(self.focus, Focus::Search(_) | Focus::Queue(_)) {
            let line = match self.panel.as_mut().map(|panel| panel.key(key, now)) {
                Some(Pressed::Done) => return None,
                Some(Pressed::Answer(line)) => Some(line),
                Some(Pressed::NotMine) | None => None,
            };
            if let (Some(line), Some(panel)) = (line, &self.panel) {
                let (approval, shown) = (Box::new(panel.open.clone()), panel.shown());
                // The event of the answer may come before the answer to the request.
                self.asks.answered(approval.approval);
                self.show_question();
                return Some(Action::Answer {
                    approval,
                    line,
                    shown,
                });
            }
        }
        match self.focus.clone() {
            Focus::Message => self.in_message(key),
            Focus::Queue(input) => self.in_queue(key, input),
            Focus::Transcript => self.in_transcript(key),
            Focus::Search(words) => self.in_search(key, words),
        }
    }

    /// Keys that do the same everywhere. `Some(None)`: handled.
    #[expect(
        clippy::option_option,
        reason = "handled or not, and then with or without an action"
    )]
    fn anywhere(&mut self, key: KeyEvent) -> Option<Option<Action>> {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        let (first, second) = self.setup.detach;
        if std::mem::take(&mut self.prefix) && ctrl && key.code == KeyCode::Char(second) {
            return Some(Some(Action::Detach));
        }
        if ctrl && key.code == KeyCode::Char(first) {
            self.prefix = true;
            return Some(None);
        }
        if key.code != KeyCode::Esc {
            self.cancelling = None;
        }
        let action = match key.code {
            KeyCode::Char('c') if ctrl => Some(Action::Detach),
            KeyCode::Char('z') if ctrl => Some(Action::Suspend),
            KeyCode::Char('l') if ctrl => Some(Action::Redraw),
            KeyCode::Char('o') if ctrl => {
                self.open = !self.open;
                // Everything means everything, also what was unfolded or folded by itself.
                self.log.entries.iter_mut().for_each(|entry| entry.open = None);
                None
            }
            KeyCode::BackTab if self.setup.writes => Some(Action::Mode(next_mode(self.facts.mode))),
            KeyCode::F(1) => {
                self.help = !self.help;
                None
            }
            KeyCode::F(2) if !self.tree_is_open() => {
                self.open_tree();
                None
            }
            KeyCode::PageUp if !self.panel_takes_pages() => self.scroll(-self.page_rows()),
            KeyCode::PageDown if !self.panel_takes_pages() => self.scroll(self.page_rows()),
            KeyCode::Up if shift => self.scroll(-1),
            KeyCode::Down if shift => self.scroll(1),
            _ => return None,
        };
        Some(action)
    }

    fn panel_takes_pages(&self) -> bool {
        self.panel.as_ref().is_some_and(|panel| panel.focused)
    }

    fn page_rows(&self) -> isize {
        isize::try_from(self.area.height.saturating_sub(2).max(1)).unwrap_or(1)
    }

    fn in_message(&mut self, key: KeyEvent) -> Option<Action> {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        // A key that the panel did not take: the person is writing a message.
        if let Some(panel) = &mut self.panel
            && matches!(key.code, KeyCode::Char(_))
        {
            panel.focused = false;
        }
        if self.composer.popup.is_some() {
            match key.code {
                KeyCode::Tab => {
                    self.composer.accept();
                    return self.propose();
                }
                KeyCode::Up | KeyCode::Down => {
                    self.composer.select(key.code == KeyCode::Down);
                    return None;
                }
                KeyCode::Esc => {
                    self.composer.popup = None;
                    return None;
                }
                KeyCode::Enter if !alt && self.completes_first() => {
                    self.composer.accept();
                    return self.propose();
                }
                _ => {}
            }
        }
        match key.code {
            KeyCode::Enter if alt || shift => self.composer.newline(),
            KeyCode::Enter => return self.enter(),
            KeyCode::Esc => return self.escape(),
            KeyCode::Tab => {
                if let Some(panel) = &mut self.panel {
                    panel.focused = true;
                } else {
                    self.focus = Focus::Transcript;
                    self.selected = self
                        .visible
                        .iter()
                        .rev()
                        .find(|row| row.entry != 0)
                        .map(|row| row.entry);
                }
            }
            KeyCode::Up if alt => self.enter_queue(),
            KeyCode::Char('g') if ctrl => return Some(Action::Editor(self.composer.text())),
            KeyCode::Char('d') if ctrl && self.composer.is_empty() => return Some(Action::Detach),
            KeyCode::Char('t') if ctrl => self.delivery = next_delivery(self.delivery),
            KeyCode::Char('?') if self.composer.is_empty() => self.help = true,
            KeyCode::End if self.composer.is_empty() => return self.go_to_end(),
            _ => {
                self.composer.key(key);
                return self.propose();
            }
        }
        None
    }

    /// Whether Enter completes instead of sending: a file, or a command that is not written out.
    fn completes_first(&self) -> bool {
        matches!(
            self.composer.word(),
            Some((Completing::Command | Completing::File, _))
        )
    }

    fn propose(&mut self) -> Option<Action> {
        self.composer.propose().map(Action::Files)
    }

    fn enter(&mut self) -> Option<Action> {
        // A backslash at the end continues the message, for terminals that send no other Enter.
        if self.composer.text().ends_with('\\') {
            self.composer
                .key(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE));
            self.composer.newline();
            return None;
        }
        if self.composer.text().trim().is_empty() {
            return None;
        }
        let delivery =
            (self.facts.turn.is_some() && self.delivery != Delivery::Steer).then_some(self.delivery);
        let text = self.composer.take();
        self.position = Position::Follow;
        if text.trim() == "/help" {
            self.help = true;
            return None;
        }
        Some(Action::Send { text, delivery })
    }

    /// Escape cancels the turn. Where work would be lost, it must be pressed twice.
    fn escape(&mut self) -> Option<Action> {
        self.facts.turn?;
        let loses = self.facts.status.state == RunState::RunningTool;
        let sure = self
            .cancelling
            .take()
            .is_some_and(|pressed| self.now.since_ms(pressed) < AGAIN_MS);
        if loses && !sure {
            self.cancelling = Some(self.now);
            return None;
        }
        self.tell(CANCELLING.to_owned());
        Some(Action::Cancel)
    }

    fn in_transcript(&mut self, key: KeyEvent) -> Option<Action> {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc | KeyCode::Tab | KeyCode::Char('i' | 'q') if self.setup.writes => {
                self.focus = Focus::Message;
                self.selected = None;
            }
            KeyCode::Char('q') => return Some(Action::Detach),
            KeyCode::Char('d') if ctrl => return self.scroll(self.page_rows() / 2),
            KeyCode::Char('u') if ctrl => return self.scroll(-self.page_rows() / 2),
            KeyCode::Up | KeyCode::Char('k') => return self.select(-1),
            KeyCode::Down | KeyCode::Char('j') => return self.select(1),
            KeyCode::Char('g') | KeyCode::Home => return self.scroll(isize::MIN + 1),
            KeyCode::Char('G') | KeyCode::End => return self.go_to_end(),
            KeyCode::Char(' ') if self.selected.is_none() => return self.scroll(self.page_rows()),
            KeyCode::Enter | KeyCode::Char(' ') => self.fold(),
            KeyCode::Char('/') => self.focus = Focus::Search(String::new()),
            KeyCode::Char('n') => return self.search(true),
            KeyCode::Char('N') => return self.search(false),
            KeyCode::Char('[') => return self.jump(false, is_turn),
            KeyCode::Char(']') => return self.jump(true, is_turn),
            KeyCode::Char('{') => return self.jump(false, |entry| entry.failed()),
            KeyCode::Char('}') => return self.jump(true, |entry| entry.failed()),
            KeyCode::Char('<') => return self.jump(false, |entry| entry.asks()),
            KeyCode::Char('>') => return self.jump(true, |entry| entry.asks()),
            KeyCode::Char('y') => return self.copy(),
            KeyCode::Char('e') => return Some(Action::Pager),
            KeyCode::Char('v') => return self.show_images(),
            KeyCode::Char('t') => self.open_tree(),
            KeyCode::Char('o') => match self.selected_child() {
                Some(child) => return Some(Action::Open(child)),
                None => self.tell("this is no sub-agent's call; t shows all of them".to_owned()),
            },
            KeyCode::Char('?') => self.help = true,
            _ => {}
        }
        None
    }

    fn in_search(&mut self, key: KeyEvent, mut words: String) -> Option<Action> {
        match key.code {
            KeyCode::Esc => self.focus = Focus::Transcript,
            KeyCode::Enter => {
                self.focus = Focus::Transcript;
                self.found = Some(words).filter(|words| !words.is_empty());
                return self.search(false);
            }
            KeyCode::Backspace => {
                words.pop();
                self.focus = Focus::Search(words);
            }
            KeyCode::Char(c) if !c.is_control() => {
                words.push(c);
                self.focus = Focus::Search(words);
            }
            _ => {}
        }
        None
    }

    /// Scrolls by rows; at an edge of the window, asks for the next page of the log.
    pub fn scroll(&mut self, by: isize) -> Option<Action> {
        let height = usize::from(self.area.height);
        let (position, hit) = self.rows(|rows| rows.moved(self.position, height, by));
        self.position = position;
        if hit && self.log.has_older() {
            return self.load(Action::Older(self.log.first));
        }
        if position == Position::Follow && by > 0 && !self.log.at_end() {
            // Stay here: the next page follows below.
            if let Some(first) = self.visible.iter().find(|row| row.entry != 0) {
                self.position = Position::At {
                    entry: first.entry,
                    row: 0,
                };
            }
            return self.load(Action::Newer(self.log.last));
        }
        None
    }

    pub(crate) fn load(&mut self, page: Action) -> Option<Action> {
        if std::mem::replace(&mut self.loading, true) {
            return None;
        }
        Some(page)
    }

    fn go_to_end(&mut self) -> Option<Action> {
        self.position = Position::Follow;
        self.selected = None;
        if self.log.at_end() {
            return None;
        }
        self.load(Action::Tail)
    }
}

/// The modes in the order in which shift-tab goes through them. `yolo` must be asked for by its name.
const fn next_mode(mode: PermissionMode) -> PermissionMode {
    match mode {
        PermissionMode::Default => PermissionMode::AcceptEdits,
        PermissionMode::AcceptEdits => PermissionMode::Plan,
        PermissionMode::Plan | PermissionMode::Yolo => PermissionMode::Default,
    }
}

const fn next_delivery(delivery: Delivery) -> Delivery {
    match delivery {
        Delivery::Start | Delivery::Steer => Delivery::Queue,
        Delivery::Queue => Delivery::Collect,
        Delivery::Collect => Delivery::Interrupt,
        Delivery::Interrupt => Delivery::Steer,
    }
}
