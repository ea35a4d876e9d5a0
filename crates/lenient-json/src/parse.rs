//! One value within a text.

use crate::fault::Mistake;
use crate::repair::{Repair, Repairs};
use serde_json::{Map, Number, Value};

/// The deepest nesting; no real call is deeper.
pub const DEEPEST: usize = 100;

/// Why the text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The model ended it.
    Own,
    /// It was cut off, so nothing that is missing may be added.
    Cut,
}

/// A value that was found in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The value.
    pub value: Value,
    /// The index of the first byte after it.
    pub end: usize,
    /// What was repaired.
    pub repairs: Repairs,
}

/// Reads the value that begins at a byte of the text; white space may precede it. What follows it is not looked at.
///
/// # Errors
/// When it cannot be read without guessing.
pub fn value_at(text: &str, at: usize, ending: Ending) -> Result<Found, Mistake> {
    let mut parser = Parser::new(text, at, ending);
    let value = parser.value()?;
    Ok(Found {
        value,
        end: parser.at,
        repairs: parser.repairs,
    })
}

pub(crate) const fn mistake(at: usize, what: &'static str) -> Mistake {
    Mistake { what, at }
}

/// Where the parser is in its text.
#[derive(Debug)]
pub(crate) struct Parser<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    pub(crate) repairs: Repairs,
    ending: Ending,
    depth: usize,
    /// How many of the open brackets are lists.
    lists: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, at: usize, ending: Ending) -> Self {
        Self {
            text,
            at: text.floor_char_boundary(at),
            repairs: Repairs::default(),
            ending,
            depth: 0,
            lists: 0,
        }
    }

    pub(crate) fn byte_at(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.byte_at(self.at)
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn skip_space(&mut self) {
        let rest = self.rest();
        let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        self.at += rest.len() - trimmed.len();
    }

    fn value(&mut self) -> Result<Value, Mistake> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.nested(|parser| parser.object().map(Value::Object)),
            Some(b'[') => self.nested(|parser| parser.list().map(Value::Array)),
            Some(quote @ (b'"' | b'\'')) => self.string(quote).map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.word(),
            None => Err(mistake(self.at, "a value is missing")),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Value, Mistake>) -> Result<Value, Mistake> {
        if self.depth >= DEEPEST {
            return Err(mistake(self.at, "brackets are nested more than 100 deep"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Map<String, Value>, Mistake> {
        let start = self.at;
        self.at += 1;
        let mut fields = Map::new();
        loop {
            self.skip_space();
            match self.peek() {
                Some(b'}') => {
                    if !fields.is_empty() {
                        self.repairs.add(Repair::TrailingComma);
                    }
                    self.at += 1;
                    return Ok(fields);
                }
                None => return Err(mistake(start, "the object that begins here does not end")),
                Some(_) => {}
            }
            let key = self.key()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(mistake(self.at, "a colon is missing after the key"));
            }
            self.at += 1;
            let value = self.value()?;
            let complete = !value.is_number();
            fields.insert(key, value);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(fields);
                }
                None if self.may_close(complete) => {
                    self.repairs.add(Repair::MissingBrace);
                    return Ok(fields);
                }
                None => return Err(mistake(start, "the object that begins here does not end")),
                Some(_) => return Err(mistake(self.at, NO_COMMA)),
            }
        }
    }

    /// At the end of the text: whether only closing braces can be missing. A number may be incomplete, and a list may
    /// lack an item.
    fn may_close(&self, complete: bool) -> bool {
        self.ending == Ending::Own && complete && self.lists == 0
    }

    fn key(&mut self) -> Result<String, Mistake> {
        if let Some(quote @ (b'"' | b'\'')) = self.peek() {
            return self.string(quote);
        }
        let rest = self.rest();
        let length = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '$'))
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let is_key = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$');
        if !is_key || !after.trim_start().starts_with(':') {
            return Err(mistake(self.at, "a key in double quotes is missing"));
        }
        self.repairs.add(Repair::BareKey);
        self.at += length;
        Ok(word.to_owned())
    }

    fn list(&mut self) -> Result<Vec<Value>, Mistake> {
        let start = self.at;
        self.at += 1;
        self.lists += 1;
        let mut items = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                Some(b']') => {
                    if !items.is_empty() {
                        self.repairs.add(Repair::TrailingComma);
                    }
                    break;
                }
                None => return Err(mistake(start, "the list that begins here does not end")),
                Some(_) => {}
            }
            items.push(self.value()?);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                None => return Err(mistake(start, "the list that begins here does not end")),
                Some(_) => return Err(mistake(self.at, NO_COMMA)),
            }
        }
        self.at += 1;
        self.lists -= 1;
        Ok(items)
    }

    fn number(&mut self) -> Result<Value, Mistake> {
        let rest = self.rest();
        let length = rest
            .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
            .unwrap_or(rest.len());
        let number = rest
            .get(..length)
            .and_then(|digits| serde_json::from_str::<Number>(digits).ok());
        let number = number.ok_or_else(|| mistake(self.at, "this is not a number of JSON"))?;
        self.at += length;
        Ok(Value::Number(number))
    }

    fn word(&mut self) -> Result<Value, Mistake> {
        let rest = self.rest();
        let length = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let (value, python) = match rest.get(..length) {
            Some("true") => (Value::Bool(true), false),
            Some("false") => (Value::Bool(false), false),
            Some("null") => (Value::Null, false),
            Some("True") => (Value::Bool(true), true),
            Some("False") => (Value::Bool(false), true),
            Some("None") => (Value::Null, true),
            _ => {
                return Err(mistake(
                    self.at,
                    "this is not a value of JSON; a text needs double quotes",
                ));
            }
        };
        if python {
            self.repairs.add(Repair::PythonWord);
        }
        self.at += length;
        Ok(value)
    }
}

/// The usual cause of this one is worth a hint.
const NO_COMMA: &str =
    "a comma or a closing bracket is missing; perhaps a quote within a string is not escaped";
