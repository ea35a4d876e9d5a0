//! Converts the bytes of a body to text for a model.

use crate::charset;
use crate::error::WebError;
use crate::markdown;
use std::time::Duration;
use url::Url;

/// How to read a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As a page.
    Html,
    /// As plain text.
    Plain,
    /// Undeclared by the server: as plain text or a page, unless it is binary.
    Unsaid,
}

/// The content of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// The page's title.
    pub(crate) title: Option<String>,
    /// The text.
    pub(crate) text: String,
    /// Whether a part of it is missing.
    pub(crate) cut: bool,
}

/// The timeout for converting a page to Markdown.
const CONVERT_WITHIN: Duration = Duration::from_secs(5);

/// Text types outside `text/`.
const TEXTS: [&str; 12] = [
    "json",
    "xml",
    "javascript",
    "ecmascript",
    "x-javascript",
    "typescript",
    "yaml",
    "x-yaml",
    "toml",
    "x-ndjson",
    "sql",
    "x-sh",
];

/// How to read a body of a content type.
///
/// # Errors
/// It is not a text type.
pub(crate) fn kind(content_type: &str) -> Result<Kind, WebError> {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let Some((main, sub)) = essence.split_once('/') else {
        return Ok(Kind::Unsaid);
    };
    match (main, sub) {
        (_, "html" | "xhtml+xml") => Ok(Kind::Html),
        ("text", _) => Ok(Kind::Plain),
        ("application", sub) if TEXTS.contains(&sub) || sub.ends_with("+json") || sub.ends_with("+xml") => {
            Ok(Kind::Plain)
        }
        _ => Err(WebError::NotText(essence.chars().take(100).collect())),
    }
}

/// Reads a body.
///
/// # Errors
/// A body of undeclared type is not text.
pub(crate) fn read(bytes: &[u8], content_type: &str, kind: Kind, base: &Url) -> Result<Content, WebError> {
    let html = match kind {
        Kind::Html => true,
        Kind::Plain => false,
        Kind::Unsaid if bytes.contains(&0) => {
            return Err(WebError::NotText("unknown".to_owned()));
        }
        Kind::Unsaid => looks_like_html(bytes),
    };
    let text = charset::decode(bytes, content_type, html);
    if html {
        return Ok(markdown::from_html(&text, base, CONVERT_WITHIN));
    }
    Ok(Content {
        title: None,
        text: text.chars().filter(|c| !unseen(*c)).collect(),
        cut: false,
    })
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let start = bytes.get(..bytes.len().min(512)).unwrap_or_default();
    let start = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Characters that a person does not see but a model does: control characters, direction marks, tags. Both must read
/// the same text.
pub(crate) fn unseen(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{2060}'..='\u{2064}'
            | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}
