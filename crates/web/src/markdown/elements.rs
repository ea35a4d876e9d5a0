//! What the elements of HTML mean for the text.

/// What an element does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It and what is in it are not shown.
    Hidden,
    /// The page's title.
    Title,
    /// A paragraph of its own, with a word in front: a heading.
    Heading(&'static str),
    /// Blank lines around it.
    Paragraph,
    /// Lines of its own.
    Block,
    /// A quotation.
    Quote,
    /// A list, whose items have numbers or not.
    List {
        /// Whether they have.
        numbered: bool,
    },
    /// An item of a list.
    Item,
    /// Text as it is.
    Pre,
    /// A mark on both sides.
    Marked(&'static str),
    /// A link.
    Link,
    /// A table.
    Table,
    /// A row of one.
    Row,
    /// A cell of one.
    Cell {
        /// Whether it heads a column or a row.
        head: bool,
    },
    /// It means nothing for the text.
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

/// Elements that never have an end.
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

/// Whether an open element ends where another one begins, though nobody wrote its end.
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

/// Whether the beginning of an element can end others.
pub(crate) fn ends_others(name: &str) -> bool {
    !matches!(
        role(name),
        Role::Plain | Role::Marked(_) | Role::Hidden | Role::Title
    ) || matches!(name, "tbody" | "thead" | "tfoot" | "optgroup")
}

/// Whether an open element keeps what is around it from being ended by the beginning of another one.
pub(crate) fn stops(open: &str, next: &str) -> bool {
    let part = matches!(next, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot");
    let held = matches!(
        role(open),
        Role::List { .. } | Role::Quote | Role::Block | Role::Cell { .. }
    );
    open == "table" || (held && !part)
}

/// Elements that an end inside them does not reach beyond: an end that nobody opened in a cell closes no table.
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
