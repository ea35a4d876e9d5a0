//! A whole text that should be one object: the arguments of a call.

use crate::fault::Fault;
use crate::parse::{Ending, Parser, value_at};
use crate::repair::{Repair, Repairs};
use serde_json::{Map, Value};

/// An object, and what had to be repaired to read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The object.
    pub object: Map<String, Value>,
    /// What was repaired.
    pub repairs: Repairs,
}

/// Reads a text that should be one object. An empty text is not one.
///
/// # Errors
/// When it cannot be read without guessing.
pub fn decode(text: &str, ending: Ending) -> Result<Decoded, Fault> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Decoded {
            object,
            repairs: Repairs::default(),
        }),
        Ok(Value::String(inner)) => {
            let mut decoded = one_object(&inner, ending)?;
            decoded.repairs.add(Repair::EncodedTwice);
            Ok(decoded)
        }
        Ok(_) | Err(_) => one_object(text, ending),
    }
}

fn one_object(text: &str, ending: Ending) -> Result<Decoded, Fault> {
    let mut parser = Parser::new(text, 0, ending);
    open_fence(&mut parser);
    let (mut objects, mut extra) = (Vec::new(), Repairs::default());
    loop {
        parser.skip_space();
        let at = parser.at;
        if parser.peek().is_none() && !objects.is_empty() {
            break;
        }
        if !objects.is_empty() && junk(&mut parser) {
            continue;
        }
        let found = value_at(text, at, ending).map_err(|mistake| mistake.located(text))?;
        let Value::Object(object) = found.value else {
            return Err(Fault::at(text, at, "this is not an object in braces"));
        };
        extra.extend(&found.repairs);
        parser.at = found.end;
        objects.push((at, object));
    }
    parser.repairs.extend(&extra);
    let object = the_one(text, objects, &mut parser.repairs)?;
    Ok(Decoded {
        object,
        repairs: parser.repairs,
    })
}

/// Skips an opening fence with its language.
fn open_fence(parser: &mut Parser<'_>) {
    parser.skip_space();
    let Some(fenced) = parser.rest().strip_prefix("```") else {
        return;
    };
    let inside = fenced.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if inside.trim_start().starts_with('{') {
        parser.at = parser.text.len() - inside.len();
        parser.repairs.add(Repair::Fence);
    }
}

/// Skips what may follow an object without a meaning of its own.
fn junk(parser: &mut Parser<'_>) -> bool {
    let rest = parser.rest();
    let (length, repair) = if rest.starts_with("```") {
        (3, Repair::Fence)
    } else if rest.starts_with('}') {
        (1, Repair::ExtraBrace)
    } else if let Some(length) = token(rest) {
        (length, Repair::TemplateToken)
    } else {
        return false;
    };
    parser.at += length;
    parser.repairs.add(repair);
    true
}

/// The length of a token like `<|im_end|>` or `</tool_call>` at the beginning of a text.
fn token(text: &str) -> Option<usize> {
    const CLOSING: [&str; 3] = ["</tool_call>", "</function>", "</s>"];
    if let Some(closing) = CLOSING.iter().find(|closing| text.starts_with(**closing)) {
        return Some(closing.len());
    }
    let inside = text.strip_prefix("<|")?;
    let word = inside
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(inside.len());
    inside.get(word..)?.starts_with("|>").then_some(word + 4)
}

/// The only object that is not empty. Several that differ would be several calls, or a mistake: which, nobody can tell.
fn the_one(
    text: &str,
    objects: Vec<(usize, Map<String, Value>)>,
    repairs: &mut Repairs,
) -> Result<Map<String, Value>, Fault> {
    let all = objects.len();
    let mut full = objects.into_iter().filter(|(_, object)| !object.is_empty());
    let Some((_, first)) = full.next() else {
        if all > 1 {
            repairs.add(Repair::Repeated);
        }
        return Ok(Map::new());
    };
    let mut used = 1;
    for (at, other) in full {
        if other != first {
            let what = "a second, different object begins here; make one call for each object";
            return Err(Fault::at(text, at, what));
        }
        used += 1;
        repairs.add(Repair::Repeated);
    }
    if used < all {
        repairs.add(Repair::EmptyObject);
    }
    Ok(first)
}
