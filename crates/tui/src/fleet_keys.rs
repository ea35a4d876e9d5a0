//! What keys do in the view of all sessions.

use crate::fleet::{AHEAD, FleetView, Prompt};
use crate::fleet_action::FleetAction;
use crate::panel::{Panel, Pressed};
use agentd_protocol::{RunState, SessionId, SortBy, Timestamp};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

impl FleetView {
    /// The marked sessions, or else the selected one.
    fn chosen(&self) -> Vec<SessionId> {
        if self.marked.is_empty() {
            self.current().map(|row| row.session).into_iter().collect()
        } else {
            self.marked.iter().copied().collect()
        }
    }

    /// A key. The answer is what the caller does.
    pub fn key(&mut self, key: KeyEvent, now: Timestamp) -> Option<FleetAction> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        self.now = now;
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if ctrl => return Some(FleetAction::Quit),
            KeyCode::Char('z') if ctrl => return Some(FleetAction::Suspend),
            KeyCode::Char('l') if ctrl => return Some(FleetAction::Redraw),
            _ => {}
        }
        if self.help {
            self.help = false;
            return None;
        }
        if self.panel.is_some() {
            return self.in_panel(key, now);
        }
        if let Some(prompt) = self.prompt.take() {
            return self.in_prompt(&prompt, key);
        }
        self.in_table(key)
    }

    /// A pasted text goes where text is being typed.
    pub fn paste(&mut self, text: &str) -> Option<FleetAction> {
        let clean = text.chars().filter(|c| !c.is_control()).take(500);
        if let Some(words) = self.panel.as_mut().and_then(|panel| panel.words.as_mut()) {
            words.extend(clean);
            return None;
        }
        match &mut self.prompt {
            Some(Prompt::Filter(filter)) => {
                filter.extend(clean);
                self.filter.clone_from(filter);
                return Some(FleetAction::Refresh);
            }
            Some(Prompt::Command(line)) => line.extend(clean),
            Some(Prompt::Cancel) | None => {}
        }
        None
    }

    fn in_panel(&mut self, key: KeyEvent, now: Timestamp) -> Option<FleetAction> {
        let panel = self.panel.as_mut()?;
        let leaves = panel.words.is_none() && matches!(key.code, KeyCode::Esc | KeyCode::Tab);
        if leaves {
            self.panel = None;
            return None;
        }
        let Pressed::Answer(line) = panel.key(key, now) else {
            return None;
        };
        let (approval, shown) = (Box::new(panel.open.clone()), panel.shown());
        self.panel = None;
        Some(FleetAction::Answer {
            approval,
            line,
            shown,
        })
    }

    fn in_prompt(&mut self, prompt: &Prompt, key: KeyEvent) -> Option<FleetAction> {
        let mut text = match prompt.clone() {
            Prompt::Filter(text) | Prompt::Command(text) => text,
            Prompt::Cancel => {
                let sure = key.code == KeyCode::Char('y');
                return sure.then(|| FleetAction::Cancel(self.chosen()));
            }
        };
        match key.code {
            KeyCode::Esc => {
                if matches!(prompt, Prompt::Filter(_)) {
                    self.filter.clear();
                    return Some(FleetAction::Refresh);
                }
                return None;
            }
            KeyCode::Enter => {
                return match prompt {
                    Prompt::Command(_) if !text.trim().is_empty() => Some(FleetAction::Command(text)),
                    Prompt::Filter(_) | Prompt::Command(_) | Prompt::Cancel => None,
                };
            }
            KeyCode::Backspace => _ = text.pop(),
            KeyCode::Char(c) if !c.is_control() && text.len() < 500 => text.push(c),
            _ => {}
        }
        if matches!(prompt, Prompt::Filter(_)) {
            self.filter.clone_from(&text);
            self.prompt = Some(Prompt::Filter(text));
            return Some(FleetAction::Refresh);
        }
        self.prompt = Some(Prompt::Command(text));
        None
    }

    fn in_table(&mut self, key: KeyEvent) -> Option<FleetAction> {
        if let Some(done) = self.in_groups(key) {
            return done;
        }
        let page = isize::try_from(self.height).unwrap_or(1);
        match key.code {
            KeyCode::Esc | KeyCode::Backspace if self.leave_value() => return Some(FleetAction::Refresh),
            KeyCode::Char('l') => return self.next_label(),
            KeyCode::Char('q') | KeyCode::Esc => return Some(FleetAction::Quit),
            KeyCode::Up | KeyCode::Char('k') => return self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => return self.step(1),
            KeyCode::PageUp => return self.step(-page),
            KeyCode::PageDown => return self.step(page),
            KeyCode::Home | KeyCode::Char('g') => return self.step(isize::MIN + 1),
            KeyCode::End | KeyCode::Char('G') => return self.step(isize::MAX),
            KeyCode::Enter => return self.current().map(|row| FleetAction::Attach(row.session)),
            KeyCode::Char(' ') => {
                if let Some(session) = self.current().map(|row| row.session)
                    && !self.marked.remove(&session)
                {
                    self.marked.insert(session);
                }
                return self.step(1);
            }
            KeyCode::Char('u') => self.marked.clear(),
            KeyCode::Char('/') => self.prompt = Some(Prompt::Filter(self.filter.clone())),
            KeyCode::Char(':') => self.prompt = Some(Prompt::Command(String::new())),
            KeyCode::Char('s') => {
                self.sort = next(self.sort);
                return Some(FleetAction::Refresh);
            }
            KeyCode::Char('S') => {
                self.ascending = !self.ascending;
                return Some(FleetAction::Refresh);
            }
            KeyCode::Char('a') => self.ask(),
            KeyCode::Char('A') => return Some(FleetAction::Inbox),
            KeyCode::Char('d') => return self.about("diff"),
            KeyCode::Char('L') => return self.about("logs"),
            KeyCode::Char('x') if !self.chosen().is_empty() => self.prompt = Some(Prompt::Cancel),
            KeyCode::Char('p') => return self.pause(),
            KeyCode::Char('?') | KeyCode::F(1) => self.help = true,
            _ => {}
        }
        None
    }

    /// A verb about the selected session. A pager that ends by itself would leave its output for no time at all.
    fn about(&self, name: &str) -> Option<FleetAction> {
        let session = self.current()?.session.to_string();
        verb([name.to_owned(), session], true)
    }

    fn pause(&self) -> Option<FleetAction> {
        let paused = self.current()?;
        let resumes = paused.paused || matches!(paused.status.state, RunState::Paused | RunState::Faulted);
        let chosen = self.chosen();
        Some(if resumes {
            FleetAction::Resume(chosen)
        } else {
            FleetAction::Pause(chosen)
        })
    }

    /// Shows the question of the selected session.
    fn ask(&mut self) {
        let open = self.current().and_then(|row| row.open_approvals.first()).cloned();
        match open {
            Some(open) => self.panel = Some(Panel::new(open, true, self.now)),
            None => self.tell("this session asks nothing; A opens the inbox".to_owned()),
        }
    }

    pub(crate) fn step(&mut self, by: isize) -> Option<FleetAction> {
        let last = self.shot.rows.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
        self.follow_selection();
        // Near the end of what is loaded, more is wanted.
        let near = self.selected + AHEAD / 2 > last && self.shot.rows.len() >= AHEAD;
        near.then_some(FleetAction::Refresh)
    }
}

fn verb<const N: usize>(words: [String; N], waits: bool) -> Option<FleetAction> {
    Some(FleetAction::Verb(words.into(), waits))
}

fn next(sort: SortBy) -> SortBy {
    let at = SortBy::ALL.iter().position(|one| *one == sort).unwrap_or(0);
    SortBy::ALL.iter().cycle().nth(at + 1).copied().unwrap_or(sort)
}
