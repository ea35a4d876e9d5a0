//! Markdown as styled lines of a given width.

use crate::syntax::Code;
use crate::theme::Theme;
use crate::wrap::{chop, columns, cut, wrap};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// The most rows of a table that are laid out in columns.
const MOST_ROWS: usize = 500;
/// The narrowest column of a table that is cut.
const NARROWEST: usize = 6;

/// What is understood beyond CommonMark.
pub(crate) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// The text as lines. It must already be safe for a terminal.
pub(crate) fn markdown(text: &str, width: usize, theme: Theme, painter: &Code) -> Vec<Line<'static>> {
    let mut page = Page::new(width, theme, painter);
    for event in Parser::new_ext(text, OPTIONS) {
        page.event(event);
    }
    page.flush();
    while page.lines.last().is_some_and(|line| line.width() == 0) {
        page.lines.pop();
    }
    page.lines
}

/// A block that indents what it contains.
enum Inside {
    /// A list: the next number, if it is numbered.
    List(Option<u64>),
    /// An item: the columns of its marker.
    Item(usize),
    Quote,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: String,
}

struct Page<'a> {
    painter: &'a Code,
    width: usize,
    theme: Theme,
    lines: Vec<Line<'static>>,
    /// The paragraph so far.
    spans: Vec<Span<'static>>,
    inside: Vec<Inside>,
    /// The marker of an item whose text has not begun.
    marker: Option<String>,
    styles: Vec<Style>,
    /// The language and the text of the block of code so far.
    code: Option<(String, String)>,
    table: Option<Table>,
    link: Option<String>,
}

impl<'a> Page<'a> {
    const fn new(width: usize, theme: Theme, painter: &'a Code) -> Self {
        Self {
            painter,
            width,
            theme,
            lines: Vec::new(),
            spans: Vec::new(),
            inside: Vec::new(),
            marker: None,
            styles: Vec::new(),
            code: None,
            table: None,
            link: None,
        }
    }

    fn style(&self) -> Style {
        self.styles
            .iter()
            .fold(Style::new(), |all, style| all.patch(*style))
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text, self.style()),
            Event::Code(text) => self.text(&text, self.style().patch(self.theme.code())),
            Event::InlineHtml(text) | Event::Html(text) => self.text(&text, self.style()),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, self.style()),
            Event::SoftBreak => self.text(" ", self.style()),
            Event::HardBreak => self.text("\n", self.style()),
            Event::Rule => {
                self.flush();
                let bar = "─".repeat(self.width.min(40));
                self.lines.push(Line::styled(bar, self.theme.dim()));
                self.gap();
            }
            Event::TaskListMarker(done) => {
                self.text(if done { "[x] " } else { "[ ] " }, self.style());
            }
            Event::FootnoteReference(name) => self.text(&format!("[{name}]"), self.style()),
        }
    }

    fn text(&mut self, text: &str, style: Style) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
        } else if let Some(table) = &mut self.table {
            table.cell.push_str(text);
        } else {
            self.spans.push(Span::styled(text.to_owned(), style));
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other tags look like plain text"
    )]
    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                let style = match level {
                    HeadingLevel::H1 => self
                        .theme
                        .accent()
                        .add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
                    HeadingLevel::H2 => self.theme.accent().add_modifier(Modifier::BOLD),
                    _ => self.theme.bold(),
                };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.inside.push(Inside::Quote);
            }
            Tag::CodeBlock(kind) => self.begin_code(kind),
            Tag::List(first) => {
                self.flush();
                self.inside.push(Inside::List(first));
            }
            Tag::Item => self.begin_item(),
            Tag::Emphasis => self.styles.push(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styles.push(self.theme.bold()),
            Tag::Strikethrough => self.styles.push(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } => {
                self.styles.push(Style::new().add_modifier(Modifier::UNDERLINED));
                self.link = Some(dest_url.to_string());
            }
            Tag::Image { dest_url, .. } => {
                self.text("[image] ", self.theme.dim());
                self.styles.push(Style::new());
                self.link = Some(dest_url.to_string());
            }
            Tag::Table(_) => {
                self.flush();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other tags look like plain text"
    )]
    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                if !self.inside.iter().any(|one| matches!(one, Inside::Item(_))) {
                    self.gap();
                }
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.gap();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.inside.pop();
                self.gap();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.flush();
                self.inside.pop();
                if self.inside.is_empty() {
                    self.gap();
                }
            }
            TagEnd::Item => {
                self.flush();
                self.inside.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let said = self.spans.last().map(|span| span.content.to_string());
                if let Some(url) = self.link.take().filter(|url| said.as_ref() != Some(url)) {
                    self.text(&format!(" ({url})"), self.theme.dim());
                }
            }
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    let cell = std::mem::take(&mut table.cell);
                    if let Some(row) = table.rows.last_mut() {
                        row.push(cell.trim().replace('\n', " "));
                    }
                }
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    /// The prefixes of the first line and of each further line at this place.
    fn prefixes(&mut self) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
        let (mut first, mut next) = (Vec::new(), Vec::new());
        let items = self
            .inside
            .iter()
            .filter(|one| matches!(one, Inside::Item(_)))
            .count();
        let mut item = 0;
        for one in &self.inside {
            match one {
                Inside::List(_) => {}
                Inside::Quote => {
                    let bar = Span::styled("▎ ", self.theme.dim());
                    first.push(bar.clone());
                    next.push(bar);
                }
                Inside::Item(width) => {
                    item += 1;
                    let blank = Span::raw(" ".repeat(*width));
                    next.push(blank.clone());
                    first.push(match self.marker.take_if(|_| item == items) {
                        Some(marker) => Span::styled(marker, self.theme.accent()),
                        None => blank,
                    });
                }
            }
        }
        (first, next)
    }

    fn begin_code(&mut self, kind: CodeBlockKind<'_>) {
        self.flush();
        let mut language = String::new();
        if let CodeBlockKind::Fenced(name) = kind
            && !name.is_empty()
        {
            let (mut spans, _) = self.prefixes();
            spans.push(Span::styled(name.to_string(), self.theme.dim()));
            self.lines.push(Line::from(spans));
            // Some write more behind the language: `rust,ignore`.
            let word = name.split([',', ' ', '{']).next().unwrap_or_default();
            language = word.to_lowercase();
        }
        self.code = Some((language, String::new()));
    }

    fn begin_item(&mut self) {
        self.flush();
        let marker = match self.inside.last_mut() {
            Some(Inside::List(Some(number))) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "• ".to_owned(),
        };
        self.inside.push(Inside::Item(columns(&marker)));
        self.marker = Some(marker);
    }

    /// Ends the paragraph.
    fn flush(&mut self) {
        if self.spans.is_empty() && self.marker.is_none() {
            return;
        }
        let (first, next) = self.prefixes();
        let spans = std::mem::take(&mut self.spans);
        self.lines.extend(wrap(&spans, self.width, &first, &next));
    }

    /// One empty line.
    fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| line.width() > 0) {
            self.lines.push(Line::default());
        }
    }

    fn end_code(&mut self) {
        let (language, code) = self.code.take().unwrap_or_default();
        let (mut prefix, _) = self.prefixes();
        prefix.push(Span::styled("│ ", self.theme.dim()));
        for line in self.painter.block(&language, &code, self.theme) {
            self.lines.extend(chop(&line, self.width, &prefix));
        }
        self.gap();
    }

    fn end_table(&mut self) {
        let rows = self.table.take().unwrap_or_default().rows;
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; count];
        for row in rows.iter().take(MOST_ROWS) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(cell));
            }
        }
        // The widest columns give way.
        let room = self.width.saturating_sub(2 * count.saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            let Some(widest) = widths.iter_mut().max().filter(|width| **width > NARROWEST) else {
                break;
            };
            *widest -= 1;
        }
        for (index, row) in rows.iter().enumerate() {
            let mut spans = Vec::new();
            for (width, cell) in widths.iter().zip(row) {
                let cell = cut(cell, *width);
                let pad = width.saturating_sub(columns(&cell)) + 2;
                let style = if index == 0 {
                    self.theme.bold()
                } else {
                    self.theme.plain()
                };
                spans.push(Span::styled(cell, style));
                spans.push(Span::raw(" ".repeat(pad)));
            }
            self.lines.push(Line::from(spans));
            if index == 0 {
                let bar: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.lines.push(Line::styled(bar.join("──"), self.theme.dim()));
            }
        }
        self.gap();
    }
}

#[cfg(test)]
mod tests;
