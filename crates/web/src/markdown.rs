//! Converts HTML to Markdown, token by token: the stack of open elements and the output are bounded and there is no
//! tree, so no page can make this deep or large.

mod attributes;
mod elements;
mod lines;
mod open;
mod table;
mod writer;

use crate::content::Content;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use std::cell::RefCell;
use std::time::{Duration, Instant};
use url::Url;
use writer::Writer;

/// Bytes to read between two checks of the clock.
const CHUNK: usize = 8 << 10;

/// Converts a page; `base` makes links absolute. Leaves out the rest when the time is over: the tokenizer is very slow
/// on a single tag with very many attributes.
pub(crate) fn from_html(html: &str, base: &Url, within: Duration) -> Content {
    let began = Instant::now();
    let sink = Sink(RefCell::new(Writer::new(base, html.len())));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut rest = html;
    while !rest.is_empty() && began.elapsed() < within {
        let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK.min(rest.len())));
        input.push_back(StrTendril::from_slice(chunk));
        let _ = tokenizer.feed(&input);
        rest = after;
    }
    tokenizer.end();
    let mut page = tokenizer.sink.0.into_inner().finish();
    page.cut |= !rest.is_empty();
    page
}

struct Sink(RefCell<Writer>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut writer = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                writer.start(&tag);
                return inside(&tag.name);
            }
            Token::TagToken(tag) => writer.end(&tag.name),
            Token::CharacterTokens(text) => writer.text(&text),
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

/// How the tokenizer must read the content of an element.
fn inside(name: &str) -> TokenSinkResult<()> {
    match name {
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => TokenSinkResult::RawData(RawKind::Rawtext),
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

#[cfg(test)]
mod tests;
