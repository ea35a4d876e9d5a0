//! Writes Markdown from the tokens of a page.

use super::attributes::{attribute, hidden};
use super::elements::{Role, ends_before, ends_others, is_void, role};
use super::open::{Open, Stack};
use crate::content::Content;
use crate::content::unseen;
use html5ever::tokenizer::Tag;
use url::Url;

/// The longest title.
const TITLE_CHARS: usize = 300;

/// The output so far, and its state.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(super) base: Url,
    pub(super) out: String,
    /// The limit of the output.
    pub(super) room: usize,
    pub(super) full: bool,
    pub(super) stack: Stack,
    /// Open elements that did not fit on the stack.
    pub(super) beyond: usize,
    /// Line breaks to write before the next word.
    pub(super) newlines: usize,
    pub(super) space: bool,
    /// Whether a cell of a table without header cells began.
    pub(super) bar: bool,
    pub(super) lead: &'static str,
    /// Marks on the stack that are not written yet.
    pub(super) waiting: usize,
    /// Open cells of tables with header cells: their content must stay on one line.
    pub(super) cells: usize,
    pub(super) pre: Option<String>,
    pub(super) title: String,
}

impl Writer {
    pub(crate) fn new(base: &Url, size: usize) -> Self {
        Self {
            base: base.clone(),
            out: String::new(),
            // Absolute links are longer, so a page full of short links grows.
            room: size.saturating_mul(2).saturating_add(64 << 10),
            full: false,
            stack: Stack::default(),
            beyond: 0,
            newlines: 1,
            space: false,
            bar: false,
            lead: "",
            waiting: 0,
            cells: 0,
            pre: None,
            title: String::new(),
        }
    }

    pub(crate) fn finish(mut self) -> Content {
        self.close_to(0);
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        Content {
            title: Some(title).filter(|title| !title.is_empty()),
            text: self.out.trim().to_owned(),
            cut: self.full,
        }
    }

    pub(crate) fn start(&mut self, tag: &Tag) {
        let name: &str = &tag.name;
        if let Some(open) = self.stack.top(Role::Hidden)
            && !ends_before(&open.name, name)
        {
            open.count += u64::from(open.name == name && !is_void(name));
            return;
        }
        self.close_to(self.stack.before_start(name));
        if is_void(name) {
            self.void(name, tag);
            return;
        }
        let role = self.role(name, tag);
        if !self.stack.has_room() && role != Role::Hidden {
            self.beyond += 1;
            return;
        }
        let open = self.open(Open::new(name, role), tag);
        self.stack.push(open);
    }

    pub(crate) fn end(&mut self, name: &str) {
        if let Some(open) = self.stack.top(Role::Hidden) {
            if open.name == name && open.count == 0 {
                self.stack.pop();
            } else {
                open.count = open.count.saturating_sub(u64::from(open.name == name));
            }
            return;
        }
        if is_void(name) {
            // Some pages write `</br>` and mean `<br>`.
            if name == "br" {
                self.line();
            }
            return;
        }
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if let Some(stay) = self.stack.after_end(name) {
            self.close_to(stay);
        }
    }

    pub(crate) fn text(&mut self, text: &str) {
        match self.stack.iter().next_back().map(|open| open.role) {
            Some(Role::Hidden) => return,
            Some(Role::Title) => {
                let room = TITLE_CHARS.saturating_sub(self.title.chars().count());
                self.title.extend(text.chars().filter(|c| !unseen(*c)).take(room));
                return;
            }
            _ => {}
        }
        if let Some(pre) = &mut self.pre {
            pre.extend(text.chars().filter(|c| !unseen(*c)));
            return;
        }
        let mut rest = text;
        while !self.full && !rest.is_empty() {
            let word = rest.trim_start();
            self.space |= word.len() < rest.len();
            let end = word.find(char::is_whitespace).unwrap_or(word.len());
            let (word, after) = word.split_at(end);
            self.word(word);
            rest = after;
        }
    }

    fn word(&mut self, word: &str) {
        let mut seen: String = word.chars().filter(|c| !unseen(*c)).collect();
        if self.cells > 0 && seen.contains('|') {
            seen = seen.replace('|', "\\|");
        }
        if !seen.is_empty() {
            self.flush();
            self.put(&seen);
        }
    }

    /// The role of an element in its context.
    fn role(&self, name: &str, tag: &Tag) -> Role {
        if hidden(name, tag) {
            return Role::Hidden;
        }
        let role = role(name);
        let plain = match role {
            Role::Hidden | Role::Title => false,
            _ if self.pre.is_some() => !matches!(role, Role::Block | Role::Paragraph),
            Role::Table | Role::Row | Role::Cell { .. } if self.cells > 0 => true,
            Role::Marked(_) => self.stack.any(|open| open == role),
            Role::Heading(_) | Role::Item | Role::Quote | Role::List { .. } => self.cells > 0,
            _ => false,
        };
        if plain { Role::Plain } else { role }
    }

    fn open(&mut self, mut open: Open, tag: &Tag) -> Open {
        match open.role {
            Role::Hidden | Role::Title => {}
            // An element that would have started a line starts a word instead.
            Role::Plain => self.space |= self.cells > 0 && ends_others(&open.name),
            Role::Heading(mark) => {
                self.lines(2);
                self.lead = mark;
            }
            Role::Paragraph | Role::Quote => self.lines(2),
            Role::Block => self.lines(1),
            Role::List { .. } => {
                self.lines(if self.stack.any(|role| role == Role::Item) {
                    1
                } else {
                    2
                });
                open.count = attribute(tag, "start")
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(1);
            }
            Role::Item => {
                self.lines(1);
                open.closer = self.marker();
            }
            Role::Pre => {
                self.lines(2);
                self.pre = Some(String::new());
            }
            Role::Marked(mark) => {
                open.closer = mark.to_owned();
                self.waiting += 1;
            }
            Role::Link => match attribute(tag, "href").and_then(|href| self.whole(href)) {
                Some(url) => {
                    open.closer = format!("]({url})");
                    self.waiting += 1;
                }
                None => open.role = Role::Plain,
            },
            Role::Table => self.lines(2),
            Role::Row => {
                self.lines(1);
                self.bar = false;
            }
            Role::Cell { head } => self.cell(&mut open, head),
        }
        open
    }

    fn close_to(&mut self, stay: usize) {
        while self.stack.len() > stay {
            let Some(open) = self.stack.pop() else { return };
            self.close(&open);
        }
    }

    fn close(&mut self, open: &Open) {
        match open.role {
            Role::Hidden | Role::Title | Role::Plain => {}
            Role::Heading(_) => {
                self.lead = "";
                self.lines(2);
            }
            Role::Paragraph | Role::Quote | Role::Table => self.lines(2),
            Role::Block | Role::Item => self.lines(1),
            Role::List { .. } => self.lines(if self.stack.any(|role| role == Role::Item) {
                1
            } else {
                2
            }),
            Role::Pre => self.fenced(),
            Role::Marked(_) | Role::Link if open.begun => self.put(&open.closer),
            Role::Marked(_) | Role::Link => self.waiting = self.waiting.saturating_sub(1),
            Role::Row => self.row(open),
            Role::Cell { .. } => self.cells = self.cells.saturating_sub(usize::from(open.headed)),
        }
    }

    fn void(&mut self, name: &str, tag: &Tag) {
        match name {
            "br" => self.line(),
            "hr" if self.pre.is_none() => {
                self.lines(2);
                self.flush();
                self.put("---");
                self.lines(2);
            }
            "img" if self.pre.is_none() => self.image(tag),
            "base" => {
                if let Some(Ok(base)) = attribute(tag, "href").map(|href| self.base.join(href)) {
                    self.base = base;
                }
            }
            _ => {}
        }
    }

    /// Writes an image as its alternative text.
    fn image(&mut self, tag: &Tag) {
        let alt = attribute(tag, "alt").unwrap_or_default();
        let alt: Vec<&str> = alt.split_whitespace().collect();
        if alt.is_empty() || hidden("img", tag) {
            return;
        }
        match attribute(tag, "src").and_then(|src| self.whole(src)) {
            Some(url) => self.word(&format!("![{}]({url})", alt.join(" "))),
            None => self.word(&format!("![{}]", alt.join(" "))),
        }
    }

    /// The absolute address of a link, if it leads to a page.
    fn whole(&self, href: &str) -> Option<Url> {
        let href = href.trim();
        let inner = href.is_empty() || href.starts_with('#');
        let url = self.base.join(href).ok().filter(|_| !inner)?;
        matches!(url.scheme(), "http" | "https" | "mailto").then_some(url)
    }

    /// The marker of the next item.
    fn marker(&mut self) -> String {
        match self.stack.last(|role| matches!(role, Role::List { .. })) {
            Some(list) if list.role == (Role::List { numbered: true }) => {
                let number = list.count;
                list.count = list.count.saturating_add(1);
                format!("{number}. ")
            }
            _ => "- ".to_owned(),
        }
    }
}
