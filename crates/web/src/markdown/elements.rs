//! The meaning of HTML elements for the text.

/// The role of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Hidden, with its content.
    Hidden,
    /// The page's title.
    Title,
    /// A heading: its own paragraph, with a mark in front.
    Heading(&'static str),
    /// Surrounded by blank lines.
    Paragraph,
    /// On its own lines.
    Block,
    /// A quotation.
    Quote,
    /// A list.
    List {
        /// Whether its items have numbers.
        numbered: bool,
    },
    /// An item of a list.
    Item,
    /// Preformatted text.
    Pre,
    /// Enclosed in marks.
    Marked(&'static str),
    /// A link.
    Link,
    /// A table.
    Table,
    /// A table row.
    Row,
    /// A table cell.
    Cell {
        /// Whether it is a header cell.
        head: bool,
    },
    /// No meaning for the text.
    Plain,
}

pub(crate) fn role(name: &str) -> Role {
    match name {
        "script" | "style" | "template" | "svg" | "iframe" | "object" | "canvas" | "audio" | "video"
        | "noframes" | "noembed" | "datalist" => Role::Hidden,
        "title" => Role::Title,
        "h1" => Role::Heading("# "),
        "h2" => Role::Heading("## "),
        "h3" => Role::Heading("### "),
        "h4" => Role::Heading("#### "),
        "h5" => Role::Heading("##### "),
        "h6" => Role::Heading("###### "),
        "p" | "section" | "article" | "figure" | "dl" | "details" | "fieldset" => Role::Paragraph,
        "div" | "header" | "footer" | "main" | "nav" | "aside" | "dt" | "dd" | "figcaption" | "address"
        | "summary" | "form" | "caption" | "option" | "legend" | "center" | "body" | "head" | "html" => {
            Role::Block
        }
        "blockquote" => Role::Quote,
        "ul" | "menu" => Role::List { numbered: false },
        "ol" => Role::List { numbered: true },
        "li" => Role::Item,
        "pre" | "xmp" | "listing" | "plaintext" | "textarea" => Role::Pre,
        "b" | "strong" => Role::Marked("**"),
        "i" | "em" => Role::Marked("*"),
        "s" | "del" | "strike" => Role::Marked("~~"),
        "code" | "kbd" | "samp" | "tt" => Role::Marked("`"),
        "a" => Role::Link,
        "table" => Role::Table,
        "tr" => Role::Row,
        "td" => Role::Cell { head: false },
        "th" => Role::Cell { head: true },
        _ => Role::Plain,
    }
}

/// Elements without an end tag.
pub(crate) fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "basefont"
            | "bgsound"
            | "br"
            | "col"
            | "embed"
            | "frame"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Whether the start of another element implicitly ends an open one.
pub(crate) fn ends_before(open: &str, next: &str) -> bool {
    match open {
        "p" => !matches!(
            role(next),
            Role::Plain | Role::Marked(_) | Role::Link | Role::Hidden | Role::Title
        ),
        "li" => next == "li",
        "dt" | "dd" => matches!(next, "dt" | "dd"),
        "tr" => matches!(next, "tr" | "tbody" | "tfoot" | "thead"),
        "td" | "th" => matches!(next, "td" | "th" | "tr" | "tbody" | "tfoot" | "thead"),
        "tbody" | "thead" | "tfoot" => matches!(next, "tbody" | "tfoot" | "thead"),
        "option" => matches!(next, "option" | "optgroup"),
        "a" => next == "a",
        _ => false,
    }
}

/// Whether the start of an element can end others.
pub(crate) fn ends_others(name: &str) -> bool {
    !matches!(
        role(name),
        Role::Plain | Role::Marked(_) | Role::Hidden | Role::Title
    ) || matches!(name, "tbody" | "thead" | "tfoot" | "optgroup")
}

/// Whether an open element protects its ancestors from being ended by the start of another one.
pub(crate) fn stops(open: &str, next: &str) -> bool {
    let part = matches!(next, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot");
    let held = matches!(
        role(open),
        Role::List { .. } | Role::Quote | Role::Block | Role::Cell { .. }
    );
    open == "table" || (held && !part)
}

/// Whether an open element stops an end tag from reaching beyond it: a stray end tag in a cell closes no table.
pub(crate) fn holds(name: &str, ended: &str) -> bool {
    match name {
        "table" => !matches!(ended, "table" | "body" | "html"),
        "td" | "th" => !matches!(
            ended,
            "td" | "th" | "tr" | "tbody" | "thead" | "tfoot" | "table" | "body" | "html"
        ),
        "ul" | "ol" | "menu" => ended == "li",
        _ => false,
    }
}
