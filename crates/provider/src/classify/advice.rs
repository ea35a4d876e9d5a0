//! Extracts advice from an error: how to change the request so that it may succeed.

use super::item;
use super::patterns::{MISCALLED, has};
use crate::error::Advice;
use crate::fields::{error_message, number};
use agentd_protocol::{FailureClass, RefusedItem, RequestPart, ThinkingLevel};
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

/// The advice of an error; `text` is its whole text in lower case, `said` its message.
pub(super) fn advice(class: FailureClass, body: &Value, text: &str, said: &str) -> Option<Advice> {
    match class {
        FailureClass::ContextOverflow => window(body, text),
        FailureClass::InvalidRequest if has(text, MISCALLED) => Some(miscalled(body)),
        FailureClass::InvalidRequest => mended(text, said),
        FailureClass::ContentFilter => item::refused(text, said)
            .filter(|item| matches!(item, RefusedItem::Image { .. }))
            .map(Advice::Item),
        FailureClass::RateLimited
        | FailureClass::Overloaded
        | FailureClass::Transient
        | FailureClass::QuotaExhausted
        | FailureClass::Auth
        | FailureClass::Internal
        | FailureClass::Cancelled => None,
    }
}

/// The formats in which models write the name of the tool that they call.
static CALLED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    all(&[
        r#""name"\s*:\s*"([\w.-]{1,64})""#,
        r"<function[=/( ]*([\w.-]{1,64})",
    ])
});
/// The most bytes of a failed call that are kept.
const LONGEST_CALL: usize = 4_096;

/// The model's text, if the server quotes it; else the server's message.
fn miscalled(body: &Value) -> Advice {
    let written = body.pointer("/error/failed_generation").and_then(Value::as_str);
    let said = written.map_or_else(|| error_message(body).unwrap_or_default(), str::to_owned);
    of_call(&said)
}

/// The advice for a call that could not be parsed.
pub(crate) fn of_call(said: &str) -> Advice {
    let name = CALLED.iter().find_map(|one| one.captures(said)?.get(1));
    Advice::Miscalled {
        name: name.map_or("unknown", |name| name.as_str()).to_owned(),
        said: said
            .get(..said.floor_char_boundary(LONGEST_CALL))
            .unwrap_or_default()
            .to_owned(),
    }
}

/// A number outside of these bounds is not a context window.
const WINDOWS: std::ops::RangeInclusive<u64> = 128..=1_000_000_000;

/// The phrases by which servers state their limit.
static TAKEN: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    all(&[
        r"tokens > ([\d,]+) maximum",
        r"context limit: [\d,]+ \+ [\d,]+ > ([\d,]+)",
        r"maximum (?:context|prompt) length (?:is|of) ([\d,]+)",
        r"model with ([\d,]+) maximum context length",
        r"exceeds the (?:maximum number of tokens allowed|limit of|available context size) \(?([\d,]+)",
        r"context length of only ([\d,]+)",
        r"model token limit: ([\d,]+)",
        r"tokens per min[^:]*: limit ([\d,]+), requested",
        r"context (?:window|length|size)(?: is| of|:)? ([\d,]+)",
    ])
});

/// The phrases by which servers state the size of the request.
static GOT: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    all(&[
        r"([\d,]+) tokens > [\d,]+ maximum",
        r"context limit: ([\d,]+) \+",
        r"\(([\d,]+) (?:in|of) (?:the )?(?:messages|text input|prompt)",
        r"resulted in ([\d,]+)",
        r"request (?:has|contains) ([\d,]+)",
        r"prompt contains (?:at least )?([\d,]+)",
        r"token count(?: of)? \(?([\d,]+)",
        r"request \(([\d,]+) tokens\)",
        r"keep the first ([\d,]+) tokens",
        r"requested(?: about)?:? ([\d,]+)",
    ])
});

fn all(patterns: &[&str]) -> Vec<Regex> {
    patterns.iter().filter_map(|one| Regex::new(one).ok()).collect()
}

/// The first number that one of the patterns finds.
fn found(patterns: &[Regex], text: &str) -> Option<u64> {
    let number = patterns.iter().find_map(|one| one.captures(text)?.get(1))?;
    number.as_str().replace(',', "").parse().ok()
}

fn window(body: &Value, text: &str) -> Option<Advice> {
    let field =
        |name: &str| number(body, &format!("/error/{name}")).or_else(|| number(body, &format!("/{name}")));
    let tokens = field("n_ctx").or_else(|| found(&TAKEN, text))?;
    let sent = field("n_prompt_tokens").or_else(|| found(&GOT, text));
    WINDOWS
        .contains(&tokens)
        .then_some(Advice::Window { tokens, sent })
}

/// The server refuses the reasoning of earlier answers.
const REASONING: &[&[&str]] = &[
    &["invalid_encrypted_content"],
    &["encrypted content", "could not be"],
    &["signature", "thinking", "block"],
    &["thought signature", "not valid"],
    &["corrupted thought signature"],
    &["thought_signature", "invalid"],
    &["thinking", "blocks", "cannot be modified"],
    &["reasoning", "without its required following item"],
    &["reasoning_content", "not permitted"],
    &["reasoning_content", "unknown"],
    &["reasoning_content", "unrecognized"],
    &["reasoning_content", "unsupported"],
    &["reasoning_content", "not supported"],
    &["reasoning_details", "not permitted"],
    &["'messages", ".reasoning", "unsupported"],
];

/// With thinking on, the server requires the reasoning of earlier answers, which this conversation lacks.
const MISSING: &[&[&str]] = &[
    &["reasoning_content", "must be passed back"],
    &["reasoning_content", "is missing"],
    &["expected `thinking`", "but found"],
];

/// The words of a refusal.
const REFUSED: &[&str] = &[
    "not support",
    "unsupported",
    "deprecated",
    "not allowed",
    "not permitted",
    "not available",
    "unknown",
    "unrecognized",
    "unexpected",
    "incompatible",
    "invalid value",
    "is invalid",
    "only the default",
    "may only be",
    "must be",
    "cannot be",
    "can't be",
    "only works in",
    "extra inputs",
    "extra fields",
    "not recognized",
    "no such",
    "extra_forbidden",
];

const THINKING: &[&str] = &[
    "reasoning_effort",
    "reasoning.effort",
    "reasoning effort",
    "thinking",
    "effort",
];

fn mended(text: &str, said: &str) -> Option<Advice> {
    let refused = REFUSED.iter().any(|words| text.contains(words));
    if refused && text.contains("cache_control") && text.contains("ttl") {
        Some(Advice::Without(RequestPart::CacheHour))
    } else if refused && text.contains("cache_control") {
        Some(Advice::Without(RequestPart::CacheMarks))
    } else if has(text, MISSING) {
        Some(Advice::Think(vec![ThinkingLevel::Off]))
    } else if has(text, REASONING) {
        Some(Advice::Without(RequestPart::Reasoning))
    } else if has(text, item::NO_IMAGES) {
        Some(Advice::Without(RequestPart::Images))
    } else if let Some(item) = item::refused(text, said) {
        Some(Advice::Item(item))
    } else if let Some(part) = optional(text).filter(|_| refused) {
        Some(Advice::Without(part))
    } else if refused && text.contains("temperature") {
        Some(Advice::Without(RequestPart::Temperature))
    } else if THINKING.iter().any(|word| text.contains(word)) {
        let levels = supported(text);
        (refused || levels.is_some()).then(|| Advice::Think(levels.unwrap_or_default()))
    } else {
        None
    }
}

/// The optional fields that servers refuse by name.
const OPTIONAL: &[(&[&[&str]], RequestPart)] = &[
    (
        &[&["stream_options"], &["include_usage"]],
        RequestPart::StreamOptions,
    ),
    (
        &[&["max_completion_tokens"], &["'max_tokens'", "not supported"]],
        RequestPart::LimitName,
    ),
    (
        &[&["tool_choice"], &["parallel_tool_calls"]],
        RequestPart::ToolChoice,
    ),
    (&[&["developer", "role"]], RequestPart::DeveloperRole),
];

fn optional(text: &str) -> Option<RequestPart> {
    let found = OPTIONAL.iter().find(|(rows, _)| has(text, rows));
    found.map(|(_, part)| *part)
}

/// The phrases that precede a list of accepted values.
const LISTS: &[&str] = &[
    "supported values are",
    "supported values:",
    "must be one of",
    "should be one of",
    "expected one of",
    "valid values are",
    "allowed values",
    "supported levels",
];
/// The longest list, in bytes.
const LIST: usize = 200;

/// The levels that an error lists as accepted; none if it lists nothing.
fn supported(text: &str) -> Option<Vec<ThinkingLevel>> {
    let (_, list) = LISTS.iter().find_map(|words| text.split_once(words))?;
    let list = list.get(..list.floor_char_boundary(LIST)).unwrap_or(list);
    let list = list.split(". ").next().unwrap_or(list);
    let words = list.split(|c: char| !c.is_ascii_alphabetic());
    let mut levels: Vec<ThinkingLevel> = words.filter_map(level).collect();
    levels.sort_unstable();
    levels.dedup();
    (!levels.is_empty()).then_some(levels)
}

fn level(word: &str) -> Option<ThinkingLevel> {
    match word {
        "none" | "off" | "disabled" => Some(ThinkingLevel::Off),
        "minimal" => Some(ThinkingLevel::Minimal),
        "low" => Some(ThinkingLevel::Low),
        "medium" => Some(ThinkingLevel::Medium),
        "high" => Some(ThinkingLevel::High),
        "xhigh" | "max" => Some(ThinkingLevel::Max),
        _ => None,
    }
}
