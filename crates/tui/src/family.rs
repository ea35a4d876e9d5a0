//! The sub-agents of a session: a tree to choose from, and a line in the card of the call that started each.

use crate::action::Action;
use crate::entry::Child;
use crate::session::SessionView;
use crate::wrap::cut;
use agentd_protocol::{SessionId, Summary, Timestamp};
use agentd_text::one_line;
use agentd_viewer::{age, count, dollars, tokens};
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Clear};

/// A session of the tree.
#[derive(Debug, Clone)]
pub struct Branch {
    /// Its distance from the first row.
    pub depth: usize,
    /// The session.
    pub row: Summary,
}

/// What is known of the sessions around this one.
#[derive(Debug, Default)]
pub(crate) struct Family {
    rows: Vec<Branch>,
    /// The selected row, while the tree is shown.
    selected: Option<usize>,
}

impl SessionView {
    /// Whether the caller should ask for the tree again and again.
    #[must_use]
    pub fn wants_family(&self) -> bool {
        self.family.selected.is_some() || self.facts.subagents > 0 || self.facts.wants_time()
    }

    /// Takes in the tree, each session followed by those that it started.
    pub fn family(&mut self, rows: Vec<Branch>) {
        for branch in &rows {
            if branch.row.session == self.facts.session {
                self.facts.time(&branch.row);
            }
            self.log
                .child(branch.row.session, |child| child.news(&branch.row));
        }
        if let Some(selected) = &mut self.family.selected {
            *selected = (*selected).min(rows.len().saturating_sub(1));
        }
        self.family.rows = rows;
    }

    pub(crate) const fn tree_is_open(&self) -> bool {
        self.family.selected.is_some()
    }

    /// Shows the tree.
    pub(crate) fn open_tree(&mut self) {
        let here = self.facts.session;
        let at = self
            .family
            .rows
            .iter()
            .position(|branch| branch.row.session == here);
        self.family.selected = Some(at.unwrap_or(0));
    }

    /// A key while the tree is shown.
    pub(crate) fn in_tree(&mut self, key: KeyEvent) -> Option<Action> {
        let last = self.family.rows.len().saturating_sub(1);
        let at = self.family.selected.unwrap_or(0);
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.family.selected = Some(at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.family.selected = Some((at + 1).min(last)),
            KeyCode::Enter => {
                self.family.selected = None;
                let chosen = self.family.rows.get(at).map(|branch| branch.row.session);
                return chosen.filter(|id| *id != self.facts.session).map(Action::Open);
            }
            KeyCode::Esc | KeyCode::Tab | KeyCode::F(2) | KeyCode::Char('q' | 't') => {
                self.family.selected = None;
            }
            _ => {}
        }
        None
    }

    /// The sub-agent that the selected call started.
    pub(crate) fn selected_child(&self) -> Option<SessionId> {
        let selected = self.selected?;
        let entry = self.log.entries.iter().find(|entry| entry.id == selected)?;
        entry.child().map(|child| child.session)
    }

    pub(crate) fn draw_tree(&self, frame: &mut Frame<'_>) {
        let Some(selected) = self.family.selected else {
            return;
        };
        let theme = self.setup.theme;
        let area = frame.area();
        let rows = &self.family.rows;
        let most = usize::from(area.height.saturating_sub(6)).max(1);
        let height = rows.len().clamp(1, most);
        let size = u16::try_from(height + 2).unwrap_or(area.height).min(area.height);
        let place = Rect::new(area.x, area.bottom().saturating_sub(size + 1), area.width, size);
        frame.render_widget(Clear, place);
        let block = Block::new()
            .borders(Borders::TOP | Borders::BOTTOM)
            .border_style(theme.accent())
            .title(" sub-agents: Enter opens one, Esc closes ");
        let inside = block.inner(place);
        frame.render_widget(block, place);
        if rows.is_empty() {
            frame.render_widget(Line::styled("  loading …", theme.dim()), inside);
        }
        let first = (selected + 1).saturating_sub(height);
        for ((at, branch), y) in rows.iter().enumerate().skip(first).zip(inside.y..inside.bottom()) {
            let here = if branch.row.session == self.facts.session {
                "▸"
            } else {
                " "
            };
            let corner = if branch.depth == 0 { "" } else { "└ " };
            let text = format!(
                " {here} {}{corner}{}  {}",
                "  ".repeat(branch.depth.min(12)),
                one_line(&branch.row.name, 40),
                told(&branch.row, self.now)
            );
            let line = Rect::new(inside.x, y, inside.width, 1);
            let style = theme.state(branch.row.status.state);
            frame.render_widget(Line::styled(cut(&text, usize::from(inside.width)), style), line);
            if at == selected {
                frame.buffer_mut().set_style(line, theme.selected());
            }
        }
    }
}

/// A session in a line: state, reason, numbers.
fn told(row: &Summary, now: Timestamp) -> String {
    let reason = one_line(&row.status.reason, 60);
    let reason = if reason.is_empty() {
        reason
    } else {
        format!(": {reason}")
    };
    format!(
        "{}{reason} · {} old · {}",
        row.status.state,
        age(row.created_at, now),
        numbers(row)
    )
}

fn numbers(row: &Summary) -> String {
    let steps = count(row.steps, "step");
    format!(
        "{steps} · {} tokens · {}",
        tokens(row.usage.total()),
        dollars(row.cost_usd)
    )
}

impl Child {
    /// Takes in its list row; whether anything visible changed.
    fn news(&mut self, row: &Summary) -> bool {
        if self.ended {
            return false;
        }
        let reason = one_line(&row.status.reason, 60);
        let line = format!("{} {reason} · {}", row.status.state, numbers(row));
        let changed = self.line != line;
        self.line = line;
        changed
    }
}
