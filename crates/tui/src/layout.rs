//! Entries as lines of the terminal's width, and a cache of them.

use crate::entry::{Card, Entry, Kind, Place, Stage};
use crate::live::Live;
use crate::markdown::markdown;
use crate::syntax::{Code, Diff};
use crate::theme::Theme;
use crate::wrap::{chop, cut, wrap};
use agentd_protocol::{Timestamp, ToolStatus};
use agentd_text::{for_terminal, one_line};
use agentd_viewer::{Tag, clock, span};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Lines shown of a folded output, of a folded diff, and of anything unfolded.
const FOLDED: usize = 5;
const FOLDED_DIFF: usize = 14;
const UNFOLDED: usize = 2_000;
/// Lines shown of a folded text below a line.
const BELOW: usize = 6;
/// The most laid-out entries that are kept.
const KEPT: usize = 600;

/// How entries are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Look {
    pub(crate) width: usize,
    pub(crate) theme: Theme,
    /// Whether everything is unfolded.
    pub(crate) open: bool,
}

type Key = (Look, u64, bool, u64);
pub(crate) type Lines = Rc<Vec<Line<'static>>>;

/// Laid-out entries. Only what is on the screen is laid out, and only when it changes.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    kept: RefCell<HashMap<u64, (Key, Lines)>>,
    code: Code,
    live: RefCell<Live>,
}

impl Layouts {
    /// The lines of an entry.
    pub(crate) fn lines(&self, entry: &Entry, look: Look, now: Timestamp) -> Lines {
        let open = entry.open.unwrap_or(look.open);
        let key = (look, entry.revision, open, seconds(entry, now));
        let mut kept = self.kept.borrow_mut();
        if let Some((same, lines)) = kept.get(&entry.id)
            && *same == key
        {
            return Rc::clone(lines);
        }
        if kept.len() >= KEPT {
            kept.clear();
        }
        // The end of an answer that streamed: its blocks are laid out already.
        let streamed = match &entry.kind {
            Kind::Said(text) => self.live.borrow_mut().whole(text, look),
            Kind::User { .. } | Kind::Thought(_) | Kind::Tool(_) | Kind::Line(_) => None,
        };
        let lines = streamed.unwrap_or_else(|| laid_out(entry, look, open, now, &self.code));
        let lines = Rc::new(lines);
        kept.insert(entry.id, (key, Rc::clone(&lines)));
        lines
    }

    /// What streams: the reasoning and the text so far.
    pub(crate) fn streaming(&self, thinking: &str, text: &str, look: Look) -> Vec<Lines> {
        self.live.borrow_mut().lines(thinking, text, look)
    }
}

/// What changes a running call's lines although no event does.
fn seconds(entry: &Entry, now: Timestamp) -> u64 {
    match &entry.kind {
        Kind::Tool(card) => match card.stage {
            Stage::Running(since) => now.since_ms(since) / 1_000,
            Stage::Proposed | Stage::Asked | Stage::Ended(_) => 0,
        },
        Kind::User { .. } | Kind::Said(_) | Kind::Thought(_) | Kind::Line(_) => 0,
    }
}

/// Whether an empty line separates two entries.
pub(crate) const fn apart(before: &Entry, after: &Entry) -> bool {
    !matches!(
        (&before.kind, &after.kind),
        (Kind::Line(_) | Kind::Tool(_), Kind::Line(_) | Kind::Tool(_)) | (Kind::Thought(_), Kind::Tool(_))
    )
}

fn laid_out(entry: &Entry, look: Look, open: bool, now: Timestamp, code: &Code) -> Vec<Line<'static>> {
    let theme = look.theme;
    match &entry.kind {
        Kind::User { text, place, .. } => user(text, *place, look),
        Kind::Said(text) => said(text, look, code),
        Kind::Thought(text) => thought(text, look, open),
        Kind::Tool(card) => tool(card, look, open, now),
        Kind::Line(line) => {
            let style = theme.tag(line.tag);
            let word = Span::styled(format!("{:<8} ", line.word), style);
            let indent = [Span::raw(" ".repeat(9))];
            let text_style = if matches!(line.tag, Tag::Note | Tag::Mark | Tag::Thought) {
                theme.dim()
            } else {
                theme.plain()
            };
            let mark = line.imported.then(|| Span::styled("¦ ", theme.dim()));
            let first: Vec<_> = mark.clone().into_iter().chain([word]).collect();
            let next: Vec<_> = mark.into_iter().chain(indent.clone()).collect();
            let text = one_line(&for_terminal(&line.text), 2_000);
            let mut lines = wrap(&[Span::styled(text, text_style)], look.width, &first, &next);
            let most = if open { UNFOLDED } else { BELOW };
            lines.extend(output(&line.below.join("\n"), look, most, Keep::First, &indent));
            lines
        }
    }
}

fn user(text: &str, place: Place, look: Look) -> Vec<Line<'static>> {
    let theme = look.theme;
    let style = match place {
        Place::Joined => theme.bold(),
        Place::Queued(_) | Place::Withdrawn => theme.dim(),
    };
    let bar = Span::styled("▌ ", theme.accent());
    let clean = for_terminal(text.trim_end());
    let mut spans = vec![Span::styled(clean.into_owned(), style)];
    match place {
        Place::Joined => {}
        Place::Queued(_) => spans.push(Span::styled("  (queued)", theme.warn())),
        Place::Withdrawn => spans.push(Span::styled("  (withdrawn)", theme.dim())),
    }
    wrap(
        &spans,
        look.width,
        std::slice::from_ref(&bar),
        std::slice::from_ref(&bar),
    )
}

/// The model's text.
pub(crate) fn said(text: &str, look: Look, code: &Code) -> Vec<Line<'static>> {
    markdown(&for_terminal(text), look.width, look.theme, code)
}

/// The model's reasoning; folded, it is one line.
pub(crate) fn thought(text: &str, look: Look, open: bool) -> Vec<Line<'static>> {
    let style = look.theme.dim().add_modifier(Modifier::ITALIC);
    let clean = for_terminal(text.trim());
    let mark = Span::styled("∴ ", style);
    if open {
        let spans = [Span::styled(clean.into_owned(), style)];
        return wrap(&spans, look.width, &[mark], &[Span::raw("  ")]);
    }
    let count = clean.lines().count();
    let first = clean.lines().next().unwrap_or_default();
    let more = if count > 1 {
        format!(" (thought, {count} lines)")
    } else {
        " (thought)".to_owned()
    };
    let room = look.width.saturating_sub(3 + more.len());
    let said = cut(first, room);
    vec![Line::from(vec![
        mark,
        Span::styled(said, style),
        Span::styled(more, style),
    ])]
}

fn tool(card: &Card, look: Look, open: bool, now: Timestamp) -> Vec<Line<'static>> {
    let theme = look.theme;
    let (word, style) = match card.stage {
        Stage::Proposed => ("proposed".to_owned(), theme.dim()),
        Stage::Asked => ("asks".to_owned(), theme.warn()),
        Stage::Running(since) => (format!("running {}", clock(now.since_ms(since))), theme.accent()),
        Stage::Ended(status) => ended(card, status, theme),
    };
    let title = one_line(&for_terminal(&card.heading()), 400);
    let mark = Span::styled("● ", style);
    let spans = [
        Span::styled(title, theme.bold()),
        Span::styled(format!("  {word}"), style),
    ];
    let mut lines = wrap(&spans, look.width, &[mark], &[Span::raw("  ")]);
    if let Some(child) = &card.child {
        let line = cut(
            &one_line(&for_terminal(&child.line), 400),
            look.width.saturating_sub(6),
        );
        let style = if child.ended { theme.dim() } else { theme.accent() };
        lines.push(Line::from(vec![
            Span::styled("  ↳ ", theme.dim()),
            Span::styled(line, style),
        ]));
    }
    if open && let Some(input) = &card.input {
        let input = arguments(input);
        lines.extend(output(&input, look, UNFOLDED, Keep::First, &[Span::raw("  ")]));
        if !card.output.is_empty() {
            lines.push(Line::styled("  ├ result", theme.dim()));
        }
    }
    let (most, keep) = match (open, card.ended()) {
        (true, _) => (UNFOLDED, Keep::First),
        (false, true) => (FOLDED, Keep::First),
        (false, false) => (FOLDED, Keep::Last),
    };
    lines.extend(output(&card.output, look, most, keep, &[Span::raw("  ")]));
    lines
}

fn ended(card: &Card, status: ToolStatus, theme: Theme) -> (String, Style) {
    let (word, style) = match status {
        ToolStatus::Ok => ("ok", theme.good()),
        ToolStatus::Error => ("error", theme.bad()),
        ToolStatus::Denied => ("denied", theme.bad()),
        ToolStatus::Interrupted => ("stopped", theme.bad()),
        ToolStatus::Timeout => ("timeout", theme.bad()),
    };
    let ran = card.took_ms > 0 || !matches!(status, ToolStatus::Denied | ToolStatus::Interrupted);
    let mut text = word.to_owned();
    if ran {
        text.push_str(&format!(" {}", span(card.took_ms)));
    }
    if card.unknown {
        text.push_str(", outcome unknown");
    }
    (text, style)
}

/// The arguments of a call, one a line; the texts of long ones keep their line breaks.
fn arguments(input: &serde_json::Value) -> String {
    let Some(map) = input.as_object() else {
        return input.to_string();
    };
    let lines = map.iter().map(|(key, value)| match value.as_str() {
        Some(text) if text.contains('\n') => format!("{key}:\n{text}"),
        Some(text) => format!("{key}: {text}"),
        None => format!("{key}: {value}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Which lines of a folded text are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    First,
    Last,
}

/// Lines of an output, behind a bar. A diff has its colours.
fn output(text: &str, look: Look, most: usize, keep: Keep, indent: &[Span<'static>]) -> Vec<Line<'static>> {
    let theme = look.theme;
    if text.trim().is_empty() {
        return Vec::new();
    }
    let clean = for_terminal(text.trim_end_matches('\n'));
    let mut all: Vec<&str> = clean.lines().collect();
    let hunk = all.iter().position(|line| line.starts_with("@@ "));
    let mut painter = hunk.map(|_| Diff::new(&all, theme));
    let mut most = most;
    if let Some(hunk) = hunk
        && most == FOLDED
    {
        // The title names the file.
        let mut at = 0;
        all.retain(|line| {
            at += 1;
            at > hunk || !(line.starts_with("--- ") || line.starts_with("+++ "))
        });
        most = FOLDED_DIFF;
    }
    let hidden = all.len().saturating_sub(most);
    let shown = match keep {
        Keep::First => all.get(..all.len().min(most)),
        Keep::Last => all.get(hidden..),
    };
    let mut prefix = indent.to_vec();
    prefix.push(Span::styled("│ ", theme.dim()));
    let more = |lines: &mut Vec<Line<'static>>| {
        if hidden > 0 {
            let plural = if hidden == 1 { "line" } else { "lines" };
            let mut spans = indent.to_vec();
            spans.push(Span::styled(format!("└ {hidden} more {plural}"), theme.dim()));
            lines.push(Line::from(spans));
        }
    };
    let mut lines = Vec::new();
    if keep == Keep::Last {
        more(&mut lines);
    }
    for line in shown.unwrap_or_default() {
        let line = match &mut painter {
            Some(painter) => painter.line(line),
            None => vec![Span::styled((*line).to_owned(), theme.dim())],
        };
        let rows = chop(&line, look.width, &prefix);
        // A folded output takes no more rows than lines.
        let rows_shown = if most == UNFOLDED { rows.len() } else { 2 };
        lines.extend(rows.into_iter().take(rows_shown));
    }
    if keep == Keep::First {
        more(&mut lines);
    }
    lines
}
