//! The result of a call, for the model.

use crate::cleaning::words;
use crate::error::McpError;
use crate::reading::Reading;
use agentd_protocol::{ToolOutcome, ToolStatus, Truncated};
use serde_json::{Value, json};
use std::time::Duration;

/// The code of JSON-RPC for arguments that do not fit.
const INVALID_PARAMS: i32 = -32602;

/// The answer to a call.
#[derive(Debug)]
pub struct CallAnswer {
    /// The result.
    pub outcome: ToolOutcome,
    /// The complete text, if the result does not contain all of it.
    pub whole: Option<Vec<u8>>,
    /// Images and sounds; the text marks the position of each.
    pub media: Vec<Media>,
}

/// An image or a sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// The media type that the server declares.
    pub media_type: String,
    /// Its bytes in base64, not decoded.
    pub base64: String,
}

impl CallAnswer {
    /// Converts the result of a server's tool. It leaves out unreadable parts, with a warning that names the tool.
    pub(crate) fn of(server: &str, tool: &str, result: Value, max_bytes: usize) -> Self {
        let mut reading = Reading::of(result);
        let failed = reading.failed;
        if reading.text.is_empty() {
            let said = if failed {
                "The call failed without a message."
            } else {
                "The call succeeded without output."
            };
            reading.line(said);
        }
        let mut details = json!({ "server": server });
        if let Some(map) = details.as_object_mut() {
            if failed {
                map.insert("code".to_owned(), "E_TOOL".into());
            }
            if !reading.problems.is_empty() {
                let (tool, problems) = (words(tool), reading.problems.join("; "));
                tracing::warn!(
                    server,
                    tool,
                    "a result of a tool server is not as the protocol says: {problems}"
                );
                map.insert("warnings".to_owned(), reading.problems.into());
            }
        }
        let (text, cut) = shortened(&reading.text, max_bytes);
        // The log keeps the whole text if the model does not see all of it.
        let truncated = (cut || reading.lost).then(|| size_of(&reading.raw));
        let status = if failed { ToolStatus::Error } else { ToolStatus::Ok };
        Self {
            whole: truncated.is_some().then(|| reading.raw.into_bytes()),
            outcome: ToolOutcome {
                details: Some(details),
                truncated,
                ..ToolOutcome::text(status, text)
            },
            media: reading.media,
        }
    }

    /// The result of a call that failed, with advice on what to do instead.
    pub(crate) fn failed(error: &McpError) -> Self {
        let (code, status, unknown, advice) = match error {
            McpError::Slow { what: "a call", .. } => (
                "E_TIMEOUT",
                ToolStatus::Timeout,
                true,
                "agentd asked the server to stop the call. Whether it had an effect is unknown: check before you call it again, and request less at once.",
            ),
            McpError::Slow { .. } => (
                "E_TIMEOUT",
                ToolStatus::Timeout,
                false,
                "The tool was not called.",
            ),
            McpError::Gone { .. } => (
                "E_TOOL",
                ToolStatus::Error,
                true,
                "Whether the call had an effect is unknown: check before you call it again. The next call restarts the server.",
            ),
            McpError::Refused { code, .. } => {
                let advice = if *code == INVALID_PARAMS {
                    "Check the arguments against the tool's description."
                } else {
                    "Change the call only if the message says what is wrong with it."
                };
                ("E_TOOL", ToolStatus::Error, false, advice)
            }
            McpError::Resting { .. } => (
                "E_TOOL",
                ToolStatus::Error,
                false,
                "The tool was not called. Continue without it, or try later.",
            ),
            McpError::Full { .. } => ("E_TOOL", ToolStatus::Error, false, "Try again later."),
            _ => (
                "E_TOOL",
                ToolStatus::Error,
                false,
                "The tool was not called. Continue without it and tell the user.",
            ),
        };
        Self::refused(code, status, format!("{error}. {advice}")).unknown(unknown)
    }

    /// The result of a call of a tool that does not exist.
    pub(crate) fn no_such_tool(name: &str, server: &str, tools: &[&str]) -> Self {
        let name = words(name);
        let text = if tools.is_empty() {
            format!("`{name}` is not available: the tool server {server} has no tools at present.")
        } else {
            let shown = tools.get(..tools.len().min(40)).unwrap_or_default();
            format!(
                "`{name}` is not available (any more). The tools of {server} are: {}.",
                shown.join(", ")
            )
        };
        Self::refused("E_UNKNOWN_TOOL", ToolStatus::Error, text)
    }

    /// The result of a call whose name belongs to no server.
    pub(crate) fn no_such_server(name: &str, servers: &[&str]) -> Self {
        let text = format!(
            "`{}` belongs to no tool server. The servers are: {}.",
            words(name),
            servers.join(", ")
        );
        Self::refused("E_UNKNOWN_TOOL", ToolStatus::Error, text)
    }

    pub(crate) fn within(mut self, time: Duration) -> Self {
        self.outcome.duration_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self
    }

    fn refused(code: &str, status: ToolStatus, text: String) -> Self {
        Self {
            outcome: ToolOutcome {
                details: Some(json!({ "code": code })),
                ..ToolOutcome::text(status, text)
            },
            whole: None,
            media: Vec::new(),
        }
    }

    const fn unknown(mut self, unknown: bool) -> Self {
        self.outcome.outcome_unknown = unknown;
        self
    }
}

/// The beginning and the end of a text that is too long, and whether it is.
fn shortened(text: &str, max_bytes: usize) -> (String, bool) {
    if text.len() <= max_bytes {
        return (text.to_owned(), false);
    }
    let half = max_bytes / 2;
    let head = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len().saturating_sub(half))..)
        .unwrap_or_default();
    let missing = text.len().saturating_sub(head.len() + tail.len());
    (format!("{head}\n[... {missing} bytes omitted ...]\n{tail}"), true)
}

fn size_of(text: &str) -> Truncated {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    Truncated {
        bytes: count(text.len()),
        lines: count(text.lines().count()),
        spill: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(result: Value, max_bytes: usize) -> CallAnswer {
        CallAnswer::of("s", "t", result, max_bytes)
    }

    #[test]
    fn every_kind_of_content_leaves_its_trace() {
        let answer = answer(
            json!({ "content": [
                { "type": "text", "text": "one" },
                { "type": "image", "data": "AAAA", "mimeType": "image/png" },
                { "type": "resource_link", "uri": "file:///x", "name": "x" },
                { "type": "resource", "resource": { "uri": "file:///y", "text": "why" } },
                { "type": "resource", "resource": { "uri": "file:///z", "blob": "AAAA" } },
            ] }),
            1000,
        );
        assert_eq!(
            answer.outcome,
            ToolOutcome {
                details: Some(json!({ "server": "s" })),
                ..ToolOutcome::text(
                    ToolStatus::Ok,
                    "one\n[image image/png, about 3 bytes, not shown as text]\n[resource file:///x (x)]\n\
                     [resource file:///y]\nwhy\n[resource file:///z]\n\
                     [resource application/octet-stream, about 3 bytes, not shown as text]"
                )
            }
        );
        assert_eq!(answer.media.len(), 2);
    }

    #[test]
    fn a_failure_and_an_empty_result_say_so() {
        let failed = answer(json!({ "content": [], "isError": true }), 100);
        assert_eq!(
            (failed.outcome.status, failed.outcome.details),
            (
                ToolStatus::Error,
                Some(json!({ "server": "s", "code": "E_TOOL" }))
            )
        );
        let structured = answer(json!({ "structuredContent": { "a": 1 } }), 100);
        assert_eq!(structured.outcome.llm_text, "{\"a\":1}");
    }

    #[test]
    fn a_long_text_is_cut_in_the_middle_and_kept_whole_beside() {
        let text = format!("{}{}", "a".repeat(50), "\u{20ac}".repeat(50));
        let answer = answer(json!({ "content": [{ "type": "text", "text": text }] }), 20);
        assert_eq!(
            answer.outcome.llm_text,
            format!(
                "{}\n[... 181 bytes omitted ...]\n{}",
                "a".repeat(10),
                "\u{20ac}".repeat(3)
            )
        );
        assert_eq!(
            answer.outcome.truncated.map(|cut| (cut.bytes, cut.lines)),
            Some((200, 1))
        );
        assert_eq!(answer.whole, Some(text.into_bytes()));
    }

    /// Each control case has the same words in plain letters.
    #[test]
    fn i7_redteam_hidden_words_of_a_server_are_spelled_out() {
        let of = |text: &str| {
            let said = json!({ "content": [
                { "type": "text", "text": text },
                { "type": "resource", "resource": { "uri": "file:///y", "text": text } },
            ] });
            answer(said, 10_000).outcome.llm_text
        };
        assert_eq!(
            of("ok\tnow\u{fc}"),
            "ok\tnow\u{fc}\n[resource file:///y]\nok\tnow\u{fc}",
            "positive control"
        );
        for hidden in [
            // ASCII in the block of tags (Goodside 2024; Embrace The Red, "ASCII Smuggler").
            "\u{e0072}\u{e006d}\u{e0020}\u{e002d}",
            // Text that is displayed in another order (CVE-2021-42574, Trojan Source).
            "\u{202e}txt.exe\u{202c}",
            "\u{2066}x\u{2069}",
            // Zero width, soft hyphen, invisible operators, Mongolian separator, Hangul filler.
            "a\u{200b}b",
            "a\u{2064}b",
            "a\u{ad}b",
            "a\u{180e}b",
            "a\u{3164}b",
            // Bytes in variation selectors (Butler 2025, "Smuggling arbitrary data through an emoji").
            "\u{e0101}\u{e0140}",
            // Sequences that a terminal executes (Trail of Bits 2025, ANSI sequences of MCP servers).
            "\u{1b}[8mhidden\u{1b}[0m",
        ] {
            let told = of(hidden);
            let left: Vec<char> = hidden
                .chars()
                .filter(|c| !c.is_ascii_graphic() && *c != ' ' && told.contains(*c))
                .collect();
            assert!(left.is_empty(), "{told:?} has {left:?}");
        }
        let structured = json!({ "content": [], "structuredContent": { "a\u{202e}": "\u{e0041}" } });
        assert!(answer(structured, 1_000).outcome.llm_text.is_ascii());
    }
}
