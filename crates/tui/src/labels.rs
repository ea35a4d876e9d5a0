//! The fleet by the values of a label: one row for each value.

use crate::fleet::FleetView;
use crate::fleet_action::FleetAction;
use crate::fleet_rate::Rate;
use crate::fleet_table::{Cell, cell, padded};
use agentd_protocol::{FleetCounts, Summary};
use agentd_text::one_line;
use agentd_viewer::{dollars, tokens};
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use std::collections::{BTreeMap, BTreeSet};

/// The group of sessions without the label.
const NONE: &str = "(none)";

/// The sessions with one value of a label; without a value: those that do not have the label.
#[derive(Debug, Default)]
pub(crate) struct Group {
    sessions: u64,
    counts: FleetCounts,
    steps: u64,
    tokens: u64,
    cost_usd: f64,
    rate: Rate,
}

/// The view by a label.
#[derive(Debug)]
pub(crate) struct Groups {
    /// The label's name.
    pub(crate) key: String,
    /// By value.
    rows: BTreeMap<Option<String>, Group>,
    selected: usize,
}

/// The names of the labels that sessions have.
fn keys(rows: &[Summary]) -> BTreeSet<&str> {
    rows.iter()
        .flat_map(|row| row.labels.keys())
        .map(String::as_str)
        .collect()
}

impl Groups {
    fn new(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            rows: BTreeMap::new(),
            selected: 0,
        }
    }

    fn refresh(&mut self, rows: &[Summary], now: agentd_protocol::Timestamp) {
        let mut before = std::mem::take(&mut self.rows);
        for row in rows {
            let value = row.labels.get(&self.key).cloned();
            let group = self.rows.entry(value).or_default();
            group.sessions += 1;
            group.counts.add(row.status.state, 1);
            group.steps += row.steps;
            group.tokens += row.usage.total();
            group.cost_usd += row.cost_usd;
        }
        for (value, group) in &mut self.rows {
            group.rate = before.remove(value).map(|group| group.rate).unwrap_or_default();
            group.rate.push(now, group.tokens);
        }
        self.selected = self.selected.min(self.rows.len().saturating_sub(1));
    }
}

impl FleetView {
    /// Shows the next label's groups; after the last label, the sessions again.
    pub(crate) fn next_label(&mut self) -> Option<FleetAction> {
        let shown = self.groups.as_ref().map(|groups| groups.key.clone());
        let known = keys(&self.shot.rows);
        let next = match &shown {
            None => known.first().copied(),
            Some(shown) => known.iter().copied().find(|key| key > &shown.as_str()),
        };
        self.groups = next.map(Groups::new);
        if shown.is_none() && self.groups.is_none() {
            self.tell("no session here has a label; set one: agentctl set ID --label team=infra".to_owned());
        }
        self.regroup();
        // All sessions are needed for the groups, and only those on the screen without them.
        Some(FleetAction::Refresh)
    }

    pub(crate) fn regroup(&mut self) {
        if let Some(groups) = &mut self.groups {
            groups.refresh(&self.shot.rows, self.now);
        }
    }

    /// Leaves the sessions of one value, for the groups; false if all are shown.
    pub(crate) fn leave_value(&mut self) -> bool {
        let Some((key, _)) = self.value.take() else {
            return false;
        };
        self.groups = Some(Groups::new(&key));
        true
    }

    /// A key that means something else among groups. `None`: as in the table.
    #[expect(
        clippy::option_option,
        reason = "handled or not, and then with or without an action"
    )]
    pub(crate) fn in_groups(&mut self, key: KeyEvent) -> Option<Option<FleetAction>> {
        let page = self.height;
        let groups = self.groups.as_mut()?;
        let last = groups.rows.len().saturating_sub(1);
        let at = groups.selected;
        groups.selected = match key.code {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (at + 1).min(last),
            KeyCode::PageUp => at.saturating_sub(page),
            KeyCode::PageDown => (at + page).min(last),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            KeyCode::Esc => {
                self.groups = None;
                return Some(Some(FleetAction::Refresh));
            }
            KeyCode::Enter => {
                let Some(value) = groups.rows.keys().nth(at).cloned() else {
                    return Some(None);
                };
                self.value = Some((groups.key.clone(), value));
                self.groups = None;
                (self.selected, self.top) = (0, 0);
                return Some(Some(FleetAction::Refresh));
            }
            // What is about one session does nothing here.
            KeyCode::Char(' ' | 'u' | 'a' | 'd' | 'L' | 'x' | 'p' | 's' | 'S') => {
                self.tell("Enter shows the sessions of this value".to_owned());
                return Some(None);
            }
            _ => return None,
        };
        Some(None)
    }

    pub(crate) fn draw_groups(&self, frame: &mut Frame<'_>, heading: Rect, table: Rect) {
        let Some(groups) = &self.groups else { return };
        let wide = table.width >= 100;
        let cells = cells(wide);
        let taken: u16 = cells.iter().map(|cell| cell.width + 1).sum();
        let flexible = usize::from(table.width.saturating_sub(taken + 2)).clamp(8, 40);
        let width = |cell: &Cell| {
            if cell.width == 0 {
                flexible
            } else {
                usize::from(cell.width)
            }
        };
        let mut text = "  ".to_owned();
        let name = one_line(&groups.key, 40).to_uppercase();
        for cell in &cells {
            let head = if cell.width == 0 {
                name.as_str()
            } else {
                cell.heading
            };
            text.push_str(&padded(head, width(cell), cell.right));
            text.push(' ');
        }
        frame.render_widget(Line::styled(text, self.theme.dim()), heading);
        let rows = usize::from(table.height);
        let first = (groups.selected + 1).saturating_sub(rows);
        let shown = groups.rows.iter().enumerate().skip(first);
        for ((index, (value, group)), y) in shown.zip(table.y..table.bottom()) {
            let here = index == groups.selected;
            let mut spans = vec![Span::raw(if here { "▸ " } else { "  " })];
            let value = value.as_deref().unwrap_or(NONE);
            for (at, (cell, text)) in cells.iter().zip(group.values(value, wide)).enumerate() {
                let style = match cell.heading {
                    _ if at == 0 => self.theme.bold(),
                    "PERSON" if group.counts.waiting_person > 0 => self.theme.warn(),
                    "FAILED" if group.counts.failed > 0 => self.theme.bad(),
                    "RUNNING" if group.counts.running > 0 => self.theme.good(),
                    _ => self.theme.plain(),
                };
                spans.push(Span::styled(padded(&text, width(cell), cell.right), style));
                spans.push(Span::raw(" "));
            }
            let place = Rect::new(table.x, y, table.width, 1);
            frame.render_widget(Line::from(spans), place);
            if here {
                frame.buffer_mut().set_style(place, self.theme.selected());
            }
        }
    }
}

fn cells(wide: bool) -> Vec<Cell> {
    let mut cells = vec![
        cell("", 0, false),
        cell("SESSIONS", 8, true),
        cell("RUNNING", 7, true),
        cell("PERSON", 6, true),
        cell("FAILED", 6, true),
    ];
    if wide {
        cells.extend([
            cell("PROVIDER", 8, true),
            cell("PAUSED", 6, true),
            cell("IDLE", 6, true),
        ]);
    }
    cells.extend([
        cell("STEPS", 6, true),
        cell("TOKENS", 6, true),
        cell("COST", 8, true),
    ]);
    if wide {
        cells.push(cell("TOK/MIN", 7, true));
    }
    cells
}

impl Group {
    fn values(&self, value: &str, wide: bool) -> Vec<String> {
        let counts = &self.counts;
        let number = |number: u64| {
            if number == 0 {
                String::new()
            } else {
                number.to_string()
            }
        };
        let mut values = vec![
            one_line(value, 60),
            self.sessions.to_string(),
            number(counts.running),
            number(counts.waiting_person),
            number(counts.failed),
        ];
        if wide {
            values.extend([
                number(counts.rate_limited),
                number(counts.paused),
                number(counts.idle),
            ]);
        }
        values.extend([
            self.steps.to_string(),
            tokens(self.tokens),
            dollars(self.cost_usd),
        ]);
        if wide {
            let rate = self.rate.a_minute().filter(|rate| *rate > 0);
            values.push(rate.map(tokens).unwrap_or_default());
        }
        values
    }
}
