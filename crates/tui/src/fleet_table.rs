//! The table of sessions: which columns fit, and what they show.

use crate::fleet::FleetView;
use crate::wrap::{columns, cut};
use agentd_protocol::Summary;
use agentd_text::one_line;
use agentd_viewer::{age, clock, dollars, tokens};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) heading: &'static str,
    /// Fixed columns; 0 takes a share of the rest.
    pub(crate) width: u16,
    pub(crate) right: bool,
}

pub(crate) const fn cell(heading: &'static str, width: u16, right: bool) -> Cell {
    Cell {
        heading,
        width,
        right,
    }
}

/// The columns that fit, with the most important ones first to stay: the reason needs room.
fn cells(width: u16) -> Vec<Cell> {
    let (state, name) = match width {
        0..100 => (17, 14),
        100..140 => (20, 20),
        _ => (20, 22),
    };
    let mut cells = vec![
        cell("STATE", state, false),
        cell("NAME", name, false),
        cell("REASON", 0, false),
    ];
    if width >= 130 {
        cells.push(cell("LABELS", 16, false));
    }
    if width >= 150 {
        cells.push(cell("MODEL", 12, false));
    }
    cells.extend([
        cell("STEPS", 5, true),
        cell("AGE", 4, true),
        cell("TOKENS", 6, true),
        cell("COST", 7, true),
    ]);
    if width >= 110 {
        cells.push(cell("TOK/MIN", 7, true));
    }
    if width >= 120 {
        cells.push(cell("SESSION", 12, false));
    }
    cells
}

impl FleetView {
    pub(crate) fn draw_table(&self, frame: &mut Frame<'_>, heading: Rect, table: Rect) {
        let cells = cells(table.width);
        let taken: u16 = cells.iter().map(|cell| cell.width + 1).sum();
        let flexible = table.width.saturating_sub(taken + 2).max(6);
        let width = |cell: &Cell| usize::from(if cell.width == 0 { flexible } else { cell.width });
        let mut text = "  ".to_owned();
        for cell in &cells {
            text.push_str(&padded(cell.heading, width(cell), cell.right));
            text.push(' ');
        }
        frame.render_widget(Line::styled(text, self.theme.dim()), heading);
        if self.shot.rows.is_empty() {
            let text = match (self.asked, self.filter.is_empty()) {
                (false, _) => "  loading …",
                (true, true) => "  no open sessions; start one: agentctl run \"TASK\"",
                (true, false) => "  no session matches the filter",
            };
            frame.render_widget(Line::styled(text, self.theme.dim()), table);
        }
        let shown = self.shot.rows.iter().enumerate().skip(self.top);
        for ((index, row), y) in shown.zip(table.y..table.bottom()) {
            let place = Rect::new(table.x, y, table.width, 1);
            let mark = match (index == self.selected, self.marked.contains(&row.session)) {
                (true, true) => "▸*",
                (true, false) => "▸ ",
                (false, true) => " *",
                (false, false) => "  ",
            };
            let mut spans = vec![Span::raw(mark)];
            for cell in &cells {
                let text = padded(&self.value(row, cell.heading), width(cell), cell.right);
                let style = match cell.heading {
                    "STATE" => self.theme.state(row.status.state),
                    "NAME" => self.theme.bold(),
                    _ => self.theme.plain(),
                };
                spans.push(Span::styled(text, style));
                spans.push(Span::raw(" "));
            }
            frame.render_widget(Line::from(spans), place);
            if index == self.selected {
                frame.buffer_mut().set_style(place, self.theme.selected());
            }
        }
    }

    fn value(&self, row: &Summary, heading: &str) -> String {
        match heading {
            "STATE" => row.status.state.to_string(),
            "NAME" => one_line(&row.name, 60),
            "REASON" => self.reason(row),
            "LABELS" => {
                let labels = row.labels.iter().map(|(key, value)| format!("{key}={value}"));
                one_line(&labels.collect::<Vec<_>>().join(","), 60)
            }
            "MODEL" => one_line(&row.model, 40),
            "STEPS" => row.steps.to_string(),
            "AGE" => age(row.created_at, self.now),
            "TOKENS" => tokens(row.usage.total()),
            "COST" => dollars(row.cost_usd),
            "TOK/MIN" => {
                let rate = self.rate(row.session).filter(|rate| *rate > 0);
                rate.map(tokens).unwrap_or_default()
            }
            _ => row.session.short(),
        }
    }

    fn reason(&self, row: &Summary) -> String {
        let status = &row.status;
        match (status.until, status.attempt) {
            (Some(until), Some(attempt)) => {
                let left = clock(until.since_ms(self.now).saturating_add(999));
                format!("attempt {attempt} in {left}")
            }
            _ => one_line(&status.reason, 200),
        }
    }
}

pub(crate) fn padded(text: &str, width: usize, right: bool) -> String {
    let text = cut(text, width);
    let pad = " ".repeat(width.saturating_sub(columns(&text)));
    if right {
        format!("{pad}{text}")
    } else {
        format!("{text}{pad}")
    }
}
