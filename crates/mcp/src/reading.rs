//! Reads the content of a result item by item. An item that cannot be read leaves a mark in the text, and harms no other.

use crate::answer::Media;
use crate::cleaning::words;
use agentd_text::{for_terminal, one_line, plain};
use serde_json::{Map, Value};

/// The most images and sounds in one result.
const MAX_MEDIA: usize = 16;
/// The largest one in bytes, encoded.
const MAX_MEDIA_BYTES: usize = 6 << 20;
/// The most problems of one result that are named.
const MAX_PROBLEMS: usize = 20;

/// The readable content of a result.
#[derive(Default)]
pub(crate) struct Reading {
    /// The text for the model.
    pub(crate) text: String,
    /// The same text before overwritten parts and escape sequences were removed from it.
    pub(crate) raw: String,
    /// Whether text is missing that was overwritten or erased.
    pub(crate) lost: bool,
    /// Images and sounds.
    pub(crate) media: Vec<Media>,
    /// What could not be read, and why.
    pub(crate) problems: Vec<String>,
    /// Whether the tool failed.
    pub(crate) failed: bool,
    /// Problems beyond those that are named.
    unnamed: usize,
    /// Whether the result has content that could be read.
    has_content: bool,
}

impl Reading {
    /// Reads a result: an object with `content`, `structuredContent` and `isError`, all of them optional. Whatever else a
    /// server sends is shown as it is.
    pub(crate) fn of(result: Value) -> Self {
        let mut reading = Self::default();
        match result {
            Value::Object(fields) => reading.object(fields),
            Value::Array(items) => {
                reading.problem("the result is a list instead of an object".to_owned());
                reading.items(items);
            }
            Value::Null => reading.problem("the result is null".to_owned()),
            other => {
                reading.problem("the result is not an object".to_owned());
                reading.value(&other);
            }
        }
        if reading.unnamed > 0 {
            let more = format!("[{} more items of the result could not be read]", reading.unnamed);
            reading.line(&more);
        }
        reading
    }

    /// A line of our own.
    pub(crate) fn line(&mut self, line: &str) {
        for text in [&mut self.text, &mut self.raw] {
            add_line(text, line);
        }
    }

    fn object(&mut self, mut fields: Map<String, Value>) {
        self.failed = self.is_error(fields.get("isError"));
        let asks = fields.get("resultType").and_then(Value::as_str);
        if let Some(kind) = asks.filter(|kind| *kind != "complete") {
            let kind = one_line(kind, 40);
            self.failed = true;
            self.trouble(format!(
                "its kind is {kind:?}, which agentd does not support: the call is not complete"
            ));
        }
        let known = ["content", "structuredContent", "isError", "_meta", "resultType"];
        let strange = !fields.is_empty() && !known.iter().any(|name| fields.contains_key(*name));
        match fields.remove("content") {
            // Some servers write an empty list as null.
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) => self.items(items),
            Some(item) => {
                self.problem("`content` is not a list".to_owned());
                self.item(1, item);
            }
        }
        if strange {
            self.problem("the result has no `content`".to_owned());
            self.value(&Value::Object(fields));
        } else if !self.has_content
            && let Some(value) = fields.get("structuredContent").filter(|value| !value.is_null())
        {
            self.value(value);
        }
    }

    fn is_error(&mut self, said: Option<&Value>) -> bool {
        match said {
            None | Some(Value::Null) => false,
            Some(Value::Bool(failed)) => *failed,
            Some(other) => {
                self.problem("`isError` is neither true nor false".to_owned());
                other.as_str() != Some("false") && other.as_i64() != Some(0)
            }
        }
    }

    fn items(&mut self, items: Vec<Value>) {
        for (number, item) in (1_usize..).zip(items) {
            self.item(number, item);
        }
    }

    fn item(&mut self, number: usize, item: Value) {
        match item {
            Value::Object(fields) => {
                if let Err(why) = self.block(fields) {
                    self.trouble(format!("item {number} {why}"));
                }
            }
            Value::String(text) => {
                self.problem(format!("item {number} is a bare string"));
                self.said(&text);
            }
            Value::Null => self.trouble(format!("item {number} is null")),
            other => {
                self.problem(format!("item {number} is not an object"));
                self.value(&other);
            }
        }
    }

    /// Reads one item, or says what is wrong with it.
    fn block(&mut self, mut fields: Map<String, Value>) -> Result<(), String> {
        let kind = match fields.get("type") {
            Some(Value::String(kind)) => one_line(kind, 40),
            Some(_) => return Err(self.unknown(&fields, "has a `type` that is not a string")),
            None => return Err(self.unknown(&fields, "has no `type`")),
        };
        match kind.as_str() {
            "text" => match fields.get("text") {
                Some(Value::String(text)) => self.said(text),
                None | Some(Value::Null) => return Err("is a text without `text`".to_owned()),
                Some(value) => {
                    self.value(value);
                    return Err("has a `text` that is not a string; it is shown as JSON".to_owned());
                }
            },
            "image" | "audio" => {
                let Some(Value::String(data)) = fields.remove("data") else {
                    return Err(format!("is of the type {kind} and has no `data`"));
                };
                let any = format!("{kind}/*");
                let media_type = text_of(&fields, "mimeType").unwrap_or(&any).to_owned();
                self.medium(&kind, &media_type, data);
            }
            "resource_link" => {
                let uri = text_of(&fields, "uri").ok_or("is a link without `uri`")?;
                let name =
                    text_of(&fields, "name").map_or_else(String::new, |name| format!(" ({})", words(name)));
                let line = format!("[resource {}{name}]", words(uri));
                self.content_line(&line);
            }
            "resource" => match fields.remove("resource") {
                Some(Value::Object(resource)) => return self.resource(resource),
                _ => return Err("is a resource without `resource`".to_owned()),
            },
            _ => {
                let why = format!("has the unknown type {kind:?}");
                return Err(self.unknown(&fields, &why));
            }
        }
        Ok(())
    }

    /// An item of an unknown kind; its text is shown if it has one.
    fn unknown(&mut self, fields: &Map<String, Value>, why: &str) -> String {
        match text_of(fields, "text") {
            Some(text) => {
                self.said(text);
                format!("{why}; only its text is shown")
            }
            None => why.to_owned(),
        }
    }

    fn resource(&mut self, mut fields: Map<String, Value>) -> Result<(), String> {
        let uri = text_of(&fields, "uri").unwrap_or("without a URI");
        let line = format!("[resource {}]", words(uri));
        self.content_line(&line);
        if let Some(text) = text_of(&fields, "text") {
            self.said(text);
            return Ok(());
        }
        let Some(Value::String(blob)) = fields.remove("blob") else {
            return Err("is a resource with neither `text` nor `blob`".to_owned());
        };
        let media_type = text_of(&fields, "mimeType").unwrap_or("application/octet-stream");
        self.medium("resource", media_type, blob);
        Ok(())
    }

    fn medium(&mut self, kind: &str, media_type: &str, base64: String) {
        let media_type = words(media_type);
        let bytes = base64.len() / 4 * 3;
        let kept = self.media.len() < MAX_MEDIA && base64.len() <= MAX_MEDIA_BYTES;
        let fate = if kept {
            "not shown as text"
        } else {
            "omitted: too much content"
        };
        self.content_line(&format!("[{kind} {media_type}, about {bytes} bytes, {fate}]"));
        if kept {
            self.media.push(Media { media_type, base64 });
        }
    }

    /// Adds a text from the server as a person would see it at a terminal. The model must not obey what a person cannot
    /// see: hidden characters are spelled out.
    fn said(&mut self, text: &str) {
        self.has_content = true;
        let seen = plain(text);
        self.lost |= seen.lost;
        add_line(&mut self.text, &for_terminal(&seen.text));
        add_line(&mut self.raw, &for_terminal(text));
    }

    /// Adds a value as JSON.
    fn value(&mut self, value: &Value) {
        self.said(&value.to_string());
    }

    fn content_line(&mut self, line: &str) {
        self.has_content = true;
        self.line(line);
    }

    /// Records a problem and marks its place in the text.
    fn trouble(&mut self, what: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.line(&format!("[{what}]"));
        }
        self.problem(what);
    }

    /// Records a problem that lost nothing.
    fn problem(&mut self, what: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(what);
        } else {
            self.unnamed += 1;
        }
    }
}

fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

fn text_of<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}
