//! Draws the view of all sessions.

use crate::fleet::{FleetView, Prompt};
use crate::wrap::{columns, cut};
use agentd_protocol::{CircuitState, ModelStatus, Timestamp};
use agentd_text::one_line;
use agentd_viewer::{clock, count, dollars, word};
use ratatui::backend::TestBackend;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};
use ratatui::{Frame, Terminal};
use std::collections::BTreeMap;

const HELP: &str = "\
move     j, k, Up, Down, PgUp, PgDn, g, G; Space marks, u unmarks all
table    / filters by words; s: next order, S: other direction
         l: by the values of a label; Enter shows those of a value
session  Enter attaches; a answers its question; d: diff; L: log
         x cancels its turn (asks first); p pauses or resumes it
         with marked sessions, x and p act on all of them
fleet    A: inbox of all questions; : runs another agentctl command
leave    q or Ctrl-C; Ctrl-Z suspends";

impl FleetView {
    /// Fits the view to the screen, at a moment. Call it before `draw`.
    pub fn arrange(&mut self, area: Rect, now: Timestamp) {
        self.arrange_now(now);
        let panel = self.panel_rows(area);
        self.height = usize::from(area.height.saturating_sub(4 + panel)).max(1);
        self.follow_selection();
        let theme = self.theme;
        if let Some(panel) = &mut self.panel {
            panel.lay_out(usize::from(area.width.saturating_sub(3)), theme);
        }
        let rows = self.panel_rows(area);
        if let Some(panel) = &mut self.panel {
            panel.shown_in(usize::from(rows.saturating_sub(2)));
        }
    }

    fn panel_rows(&mut self, area: Rect) -> u16 {
        let theme = self.theme;
        self.panel.as_mut().map_or(0, |panel| {
            let rows = panel.lay_out(usize::from(area.width.saturating_sub(3)), theme);
            let most = area.height.saturating_sub(8).max(5);
            u16::try_from(rows + 2).unwrap_or(most).min(most)
        })
    }

    /// Draws the view. It must have been arranged for this size.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let rows = self.panel_rows(frame.area());
        let view: &Self = self;
        let [title, figures, heading, table, panel, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(rows),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        view.draw_title(frame, title);
        frame.render_widget(
            Line::raw(cut(&view.figures(), usize::from(figures.width))),
            figures,
        );
        if view.groups.is_some() {
            view.draw_groups(frame, heading, table);
        } else {
            view.draw_table(frame, heading, table);
        }
        view.draw_panel(frame, panel);
        view.draw_foot(frame, foot);
        if view.help {
            view.draw_help(frame);
        }
    }

    fn draw_title(&self, frame: &mut Frame<'_>, area: Rect) {
        let counts = &self.shot.counts;
        let theme = self.theme;
        let groups = [
            (counts.running, "running", theme.good()),
            (
                counts.waiting_person,
                "wait for a person",
                theme.warn().add_modifier(Modifier::BOLD),
            ),
            (counts.rate_limited, "wait for a provider", theme.warn()),
            (counts.failed, "failed", theme.bad()),
            (counts.paused, "paused", theme.warn()),
            (counts.idle, "idle", theme.dim()),
        ];
        let total: u64 = groups.iter().map(|(number, _, _)| number).sum();
        let mut spans = vec![
            Span::styled(format!(" {} ", one_line(&self.shot.node, 30)), theme.bold()),
            Span::raw(count(total, "session")),
        ];
        for (number, name, style) in groups.into_iter().filter(|(number, _, _)| *number > 0) {
            spans.push(Span::raw(" · "));
            spans.push(Span::styled(format!("{number} {name}"), style));
        }
        frame.render_widget(Line::from(spans), area);
    }

    fn figures(&self) -> String {
        let (steps, spend) = self.rates();
        let mut parts = vec![
            format!(" {steps:.1} steps/s"),
            format!("{}/min", dollars(spend)),
            format!("{} so far", dollars(self.cost_usd)),
        ];
        parts.extend(health(&self.shot.models, self.now));
        if self.shot.approvals > 0 {
            let open = count(u64::try_from(self.shot.approvals).unwrap_or(0), "open approval");
            parts.push(format!("{open} (A)"));
        }
        parts.join(" · ")
    }

    fn draw_panel(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(panel) = &self.panel else { return };
        let style = self.theme.warn().add_modifier(Modifier::BOLD);
        let hint = match &panel.words {
            Some(words) => format!(
                " {}▏ Enter sends, Esc back ",
                one_line(words, usize::from(area.width) / 2)
            ),
            None => format!(
                " {} · Esc closes ",
                panel.hint(self.now).replace(", Tab back to the message", "")
            ),
        };
        let block = Block::new()
            .borders(Borders::TOP | Borders::BOTTOM)
            .border_style(style)
            .title(Line::styled(" your decision ", style))
            .title_bottom(Line::styled(cut(&hint, usize::from(area.width)), style));
        let inside = block.inner(area);
        frame.render_widget(Clear, area);
        frame.render_widget(block, area);
        frame.render_widget(Paragraph::new(Text::from(panel.visible().to_vec())), inside);
    }

    fn draw_foot(&self, frame: &mut Frame<'_>, area: Rect) {
        let marked = self.marked.len();
        let chosen = if marked > 0 {
            count(u64::try_from(marked).unwrap_or(0), "marked session")
        } else {
            self.current()
                .map(|row| one_line(&row.name, 40))
                .unwrap_or_default()
        };
        let (text, style) = match (&self.prompt, &self.notice) {
            (Some(Prompt::Filter(text)), _) => (
                format!("/{text}▏ Enter keeps the filter, Esc clears it"),
                self.theme.accent(),
            ),
            (Some(Prompt::Command(text)), _) => (format!(":agentctl {text}▏"), self.theme.accent()),
            (Some(Prompt::Cancel), _) => (
                format!("cancel the turn of {chosen}? y cancels it"),
                self.theme.warn(),
            ),
            (None, Some((text, _))) if self.lost => (one_line(text, 300), self.theme.bad()),
            (None, Some((text, _))) => (one_line(text, 300), self.theme.warn()),
            (None, None) => {
                let direction = if self.ascending { "ascending" } else { "descending" };
                let mut text = format!(
                    "by {}, {direction} · Enter attach · ? help · q quit · / filter · s sort · a answer",
                    word(&self.sort)
                );
                if let Some(groups) = &self.groups {
                    text = "Enter sessions · l next label · Esc back · ? help · q quit".to_owned();
                    text = format!("by label {} · {text}", one_line(&groups.key, 40));
                }
                if let Some((key, value)) = &self.value {
                    let value = value.as_deref().unwrap_or("(none)");
                    let only = one_line(&format!("{key}={value}"), 60);
                    text = format!("only {only} (Esc: back) · {text}");
                }
                if !self.filter.is_empty() {
                    text = format!("filter: {} · {text}", one_line(&self.filter, 40));
                }
                if marked > 0 {
                    text = format!("{chosen} · {text}");
                }
                (text, self.theme.dim())
            }
        };
        let text = cut(&format!(" {text}"), usize::from(area.width));
        frame.render_widget(Line::styled(text, style), area);
    }

    fn draw_help(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let rows = u16::try_from(HELP.lines().count() + 2)
            .unwrap_or(u16::MAX)
            .min(area.height);
        let place = Rect::new(area.x, area.bottom().saturating_sub(rows + 1), area.width, rows);
        frame.render_widget(Clear, place);
        let block = Block::new()
            .borders(Borders::TOP | Borders::BOTTOM)
            .border_style(self.theme.accent())
            .title(" keys (any key closes this) ");
        frame.render_widget(Paragraph::new(HELP).block(block), place);
    }
}

/// The providers that are not well, or that all are.
fn health(models: &[ModelStatus], now: Timestamp) -> Option<String> {
    let mut bad = BTreeMap::new();
    for model in models.iter().filter(|model| model.usable) {
        let paused = model.paused_until.filter(|until| *until > now);
        let what = match (model.circuit, paused) {
            (CircuitState::Open, _) => "suspended".to_owned(),
            (_, Some(until)) => format!("paused {}", clock(until.since_ms(now))),
            (CircuitState::HalfOpen | CircuitState::Recovering, None) => "recovering".to_owned(),
            (CircuitState::Closed, None) => continue,
        };
        bad.insert(model.provider.as_str(), what);
    }
    if bad.is_empty() {
        return models
            .iter()
            .any(|model| model.usable)
            .then(|| "providers ok".to_owned());
    }
    let each: Vec<String> = bad
        .iter()
        .map(|(name, what)| format!("{} {what}", one_line(name, 20)))
        .collect();
    Some(each.join(", "))
}

/// One frame as lines of plain text, without the line for keys.
#[must_use]
pub fn printed(view: &mut FleetView, width: usize, rows: usize, now: Timestamp) -> Vec<String> {
    let size = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let (width, height) = (size(width.clamp(40, 500)), size(rows.clamp(5, 20_000)));
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let drawn = terminal.draw(|frame| {
        view.arrange(frame.area(), now);
        view.draw(frame);
    });
    if drawn.is_err() {
        return Vec::new();
    }
    let buffer = terminal.backend().buffer();
    let lines = buffer
        .content()
        .chunks(usize::from(width))
        .take(usize::from(height - 1));
    lines
        .map(|cells| {
            let mut text = String::new();
            let mut hidden = 0;
            for cell in cells {
                if hidden == 0 {
                    text.push_str(cell.symbol());
                    // The cell after a wide character is not shown.
                    hidden = columns(cell.symbol()).max(1);
                }
                hidden -= 1;
            }
            text.trim_end().to_owned()
        })
        .collect()
}
