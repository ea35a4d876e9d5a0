//! Draws the view of one session.

use crate::action::Focus;
use crate::panel::Panel;
use crate::session::SessionView;
use crate::wrap::{columns, cut};
use agentd_protocol::{Delivery, TodoStatus};
use agentd_text::{for_terminal, one_line};
use agentd_viewer::word;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

/// How long a message of this program stays.
const NOTICE_MS: u64 = 8_000;
/// The most questions that are named behind the open one.
const MOST_NEXT: usize = 5;
/// The most rows of proposals.
const PROPOSALS: usize = 8;

const HELP: &str = "\
message     Enter sends; Alt-Enter, Ctrl-J or \\ Enter: new line; Up, Down: history
            Tab completes /command and @file; Ctrl-G: your editor; Ctrl-_: undo
            Ctrl-T: steer, queue, collect or interrupt; Alt-Up: the queued inputs, to edit
turn        Esc cancels it; Shift-Tab changes the permission mode
question    y allow, s for this session, a always in this project, e everywhere, n [reason] deny, 1-9 choose
            Space: next page; Tab: to the message and back
transcript  PgUp, PgDn, Shift-Up, Shift-Down scroll; Ctrl-O unfolds everything
            Tab goes there: j, k select; Enter unfolds; g, G: begin, end
            / search, n, N: next; [ ] turn; { } error; < > approval
            y copies; e: pager; v: image; Esc: back to the message
sub-agents  F2 or t: the tree; o opens the one of the selected call
leave       Ctrl-C or Ctrl-P Ctrl-Q: the session continues; Ctrl-Z suspends
commands    /cancel /resume /compact /detach; of the daemon: /plan /mode /model
            /todo, and command files";

/// The parts of the screen.
#[derive(Debug, Clone, Copy)]
struct Parts {
    title: Rect,
    transcript: Rect,
    panel: Rect,
    notice: Rect,
    queue: Rect,
    message: Rect,
    status: Rect,
}

impl SessionView {
    fn parts(&mut self, area: Rect) -> Parts {
        let message = if self.setup.writes {
            self.composer.rows(usize::from(area.width.saturating_sub(2))) + 2
        } else {
            0
        };
        let message = message
            .min(area.height / 3)
            .max(if self.setup.writes { 3 } else { 0 });
        let theme = self.setup.theme;
        let queue = self.queue_rows();
        let rest = area.height.saturating_sub(message + queue + 4);
        let panel = self.panel.as_mut().map_or(0, |panel| {
            let rows = panel.lay_out(usize::from(area.width.saturating_sub(3)), theme);
            let most = rest.saturating_sub(3).max(5);
            u16::try_from(rows + 2).unwrap_or(most).min(most)
        });
        let notice = u16::from(self.notice_text().is_some());
        let [title, transcript, panel, notice, queue, message, status] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(panel),
            Constraint::Length(notice),
            Constraint::Length(queue),
            Constraint::Length(message),
            Constraint::Length(1),
        ])
        .areas(area);
        Parts {
            title,
            transcript,
            panel,
            notice,
            queue,
            message,
            status,
        }
    }

    /// Fits the view to the screen, at a moment. Call it before `draw`.
    pub fn arrange(&mut self, area: Rect, now: agentd_protocol::Timestamp) {
        self.now = now;
        if self
            .notice
            .as_ref()
            .is_some_and(|(_, at)| now.since_ms(*at) > NOTICE_MS)
        {
            self.notice = None;
        }
        if self.cancelling.is_some_and(|at| now.since_ms(at) > 3_000) {
            self.cancelling = None;
        }
        let parts = self.parts(area);
        if let Some(panel) = &mut self.panel {
            panel.shown_in(usize::from(parts.panel.height.saturating_sub(2)));
        }
        self.area = parts.transcript;
        let height = usize::from(parts.transcript.height);
        self.visible = self.rows(|rows| rows.visible(self.position, height));
        let placeholder = self.placeholder();
        self.composer.style(self.setup.theme, placeholder);
    }

    fn placeholder(&self) -> &'static str {
        if self.facts.turn.is_none() {
            return "a message starts a turn; ? shows the keys";
        }
        match self.delivery {
            Delivery::Queue => "a message waits for the next turn",
            Delivery::Collect => "a message waits for the next turn, with others that do",
            Delivery::Interrupt => "a message cancels the turn and starts the next",
            Delivery::Start | Delivery::Steer => "a message joins the running turn",
        }
    }

    /// Draws the view. It must have been arranged for this size.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let parts = self.parts(frame.area());
        let view: &Self = self;
        view.draw_title(frame, parts.title);
        view.draw_transcript(frame, parts.transcript);
        if let Some(panel) = &view.panel {
            view.draw_panel(frame, parts.panel, panel);
        }
        if let Some((text, bad)) = view.notice_text() {
            let style = if bad {
                view.setup.theme.bad()
            } else {
                view.setup.theme.warn()
            };
            let text = cut(&one_line(&text, 500), usize::from(parts.notice.width));
            frame.render_widget(Line::styled(text, style), parts.notice);
        }
        if view.setup.writes {
            view.draw_message(frame, parts.message);
        }
        view.draw_queue(frame, parts.queue);
        view.draw_status(frame, parts.status);
        view.draw_tree(frame);
        if view.help {
            view.draw_help(frame);
        }
    }

    fn notice_text(&self) -> Option<(String, bool)> {
        if self.lost {
            return Some(("connection to the daemon lost; reconnecting".to_owned(), true));
        }
        if self.cancelling.is_some() {
            let what = one_line(&self.facts.status.reason, 60);
            return Some((format!("{what}: Esc again cancels the turn"), false));
        }
        if let Focus::Search(words) = &self.focus {
            return Some((format!("/{words}▏"), false));
        }
        self.notice.as_ref().map(|(text, _)| (text.clone(), false))
    }

    fn draw_title(&self, frame: &mut Frame<'_>, area: Rect) {
        let theme = self.setup.theme;
        let width = usize::from(area.width);
        let name = format!(" {} ", one_line(&self.facts.name, width / 2));
        let id = format!("{}  ", self.facts.session.short());
        let place = one_line(&self.facts.workdir, 200);
        let room = width.saturating_sub(columns(&name) + id.len() + 2);
        let spans = vec![
            Span::styled(name, theme.bold()),
            Span::raw(id),
            Span::raw(cut(&place, room)),
        ];
        frame.render_widget(Paragraph::new(Line::from(spans)).style(theme.bar()), area);
    }

    fn draw_transcript(&self, frame: &mut Frame<'_>, area: Rect) {
        let theme = self.setup.theme;
        let words = self.found.as_ref().map(|words| words.to_lowercase());
        let rows = self.visible.iter().take(usize::from(area.height));
        for (row, y) in rows.zip(area.y..) {
            let place = Rect::new(area.x, y, area.width, 1);
            let line = match &words {
                Some(words) => marked(&row.line, words, theme.found()),
                None => row.line.clone(),
            };
            frame.render_widget(line, place);
            if self.focus != Focus::Message && self.selected == Some(row.entry) && row.entry != 0 {
                frame.buffer_mut().set_style(place, theme.selected());
            }
        }
        let missing = self.visible.is_empty();
        if missing {
            frame.render_widget(Line::styled("  no events yet", theme.dim()), area);
        }
        let below = self.position != crate::scroll::Position::Follow || !self.log.at_end();
        if below && area.height > 0 {
            let text = if self.loading {
                " loading … "
            } else {
                " more below: End follows "
            };
            let width = u16::try_from(columns(text)).unwrap_or(0).min(area.width);
            let place = Rect::new(area.right() - width, area.bottom() - 1, width, 1);
            frame.render_widget(Clear, place);
            frame.render_widget(Line::styled(text, theme.bar()), place);
        }
    }

    fn draw_panel(&self, frame: &mut Frame<'_>, area: Rect, panel: &Panel) {
        let theme = self.setup.theme;
        let behind = self.asks.behind();
        let style = if panel.focused {
            theme.warn().add_modifier(Modifier::BOLD)
        } else {
            theme.dim()
        };
        let mut title = " your decision ".to_owned();
        if behind > 0 {
            let next = self.asks.waiting().skip(1).take(MOST_NEXT);
            let next: Vec<String> = next
                .map(|open| one_line(&for_terminal(&open.title), 60))
                .collect();
            title.push_str(&format!("· {behind} more waiting: {} ", next.join(", ")));
        }
        let title = cut(&title, usize::from(area.width));
        let hint = match &panel.words {
            Some(words) => format!(
                " {}▏ Enter sends, Esc back ",
                tail(words, usize::from(area.width) / 2)
            ),
            None => format!(" {} ", panel.hint(self.now)),
        };
        let block = Block::new()
            .borders(Borders::TOP | Borders::BOTTOM)
            .border_style(style)
            .title(Line::styled(title, style))
            .title_bottom(Line::styled(cut(&hint, usize::from(area.width)), style));
        let inside = block.inner(area);
        frame.render_widget(block, area);
        frame.render_widget(Paragraph::new(Text::from(panel.visible().to_vec())), inside);
    }

    fn draw_message(&self, frame: &mut Frame<'_>, area: Rect) {
        let theme = self.setup.theme;
        let here = self.focus == Focus::Message && !self.panel.as_ref().is_some_and(|panel| panel.focused);
        let style = if here { theme.accent() } else { theme.dim() };
        let mut title = String::new();
        if self.facts.turn.is_some() {
            title = format!(" {} (Ctrl-T) ", word(&self.delivery));
        }
        let title = cut(&title, usize::from(area.width.saturating_sub(2)));
        let block = Block::new()
            .borders(Borders::TOP | Borders::BOTTOM)
            .border_style(style)
            .title(Line::styled(title, style));
        let inside = block.inner(area);
        frame.render_widget(block, area);
        let [mark, field] = Layout::horizontal([Constraint::Length(2), Constraint::Min(1)]).areas(inside);
        frame.render_widget(Line::styled("> ", style), mark);
        if here {
            frame.render_widget(self.composer.widget(), field);
        } else {
            let text = one_line(&self.composer.text(), usize::from(field.width));
            frame.render_widget(Line::styled(text, theme.dim()), field);
        }
        self.draw_proposals(frame, area);
    }

    fn draw_proposals(&self, frame: &mut Frame<'_>, message: Rect) {
        let Some(popup) = &self.composer.popup else { return };
        let theme = self.setup.theme;
        let rows = popup.proposals.len().min(PROPOSALS);
        let first = (popup.selected + 1).saturating_sub(rows);
        let height = u16::try_from(rows).unwrap_or(0).min(message.y);
        let area = Rect::new(message.x, message.y - height, message.width, height);
        frame.render_widget(Clear, area);
        let shown = popup.proposals.iter().enumerate().skip(first).take(rows);
        for ((index, one), y) in shown.zip(area.y..area.bottom()) {
            let style = if index == popup.selected {
                theme.selected()
            } else {
                theme.bar()
            };
            let text = format!("  {:<24} {}", one_line(&one.text, 60), one_line(&one.help, 120));
            let text = format!(
                "{:<width$}",
                cut(&text, usize::from(area.width)),
                width = usize::from(area.width)
            );
            frame.render_widget(Line::styled(text, style), Rect::new(area.x, y, area.width, 1));
        }
    }

    fn draw_status(&self, frame: &mut Frame<'_>, area: Rect) {
        let theme = self.setup.theme;
        let width = usize::from(area.width);
        let state = self.facts.state(self.now);
        let mut spans = vec![
            Span::styled(
                format!(" {} ", cut(&state, width / 2)),
                theme.state(self.facts.status.state),
            ),
            Span::styled(
                format!(
                    "· {} · {} ",
                    one_line(&self.facts.model, 24),
                    word(&self.facts.mode)
                ),
                theme.plain(),
            ),
        ];
        let mut used: usize = spans.iter().map(|span| columns(&span.content)).sum();
        for part in self.facts.numbers() {
            let part = format!("· {part} ");
            used += columns(&part);
            if used > width {
                break;
            }
            spans.push(Span::styled(part, theme.dim()));
        }
        if let Some(item) = self
            .facts
            .todo
            .iter()
            .find(|item| item.status == TodoStatus::InProgress)
        {
            let room = width.saturating_sub(used + 2);
            if room > 12 {
                spans.push(Span::styled(
                    format!("· {}", one_line(&item.content, room)),
                    theme.dim(),
                ));
            }
        }
        frame.render_widget(Line::from(spans), area);
    }

    fn draw_help(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let rows = u16::try_from(HELP.lines().count() + 2)
            .unwrap_or(u16::MAX)
            .min(area.height);
        let place = Rect::new(area.x, area.bottom().saturating_sub(rows + 1), area.width, rows);
        frame.render_widget(Clear, place);
        let style = self.setup.theme.accent();
        let block = Block::new()
            .borders(Borders::TOP | Borders::BOTTOM)
            .border_style(style)
            .title(" keys (any key closes this) ");
        let text = Paragraph::new(HELP)
            .wrap(ratatui::widgets::Wrap { trim: false })
            .block(block);
        frame.render_widget(text, place);
    }
}

/// The end of a text.
fn tail(text: &str, most: usize) -> String {
    let skip = text.chars().count().saturating_sub(most);
    text.chars().skip(skip).collect()
}

/// The line with what a search found.
fn marked(line: &Line<'static>, words: &str, style: ratatui::style::Style) -> Line<'static> {
    if words.is_empty() || !line.to_string().to_lowercase().contains(words) {
        return line.clone();
    }
    let mut spans = Vec::new();
    for span in &line.spans {
        let lower = span.content.to_lowercase();
        // Lower case may have other lengths; then only the whole span can be marked.
        match lower.find(words).filter(|_| lower.len() == span.content.len()) {
            Some(at) => {
                let end = at + words.len();
                let pieces = [
                    (span.content.get(..at), span.style),
                    (span.content.get(at..end), span.style.patch(style)),
                    (span.content.get(end..), span.style),
                ];
                let pieces = pieces
                    .into_iter()
                    .filter_map(|(text, style)| Some((text?, style)));
                spans.extend(pieces.map(|(text, style)| Span::styled(text.to_owned(), style)));
            }
            None => spans.push(span.clone()),
        }
    }
    Line::from(spans)
}
