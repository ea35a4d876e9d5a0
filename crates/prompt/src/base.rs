//! The prompt text that every agent starts with, unless the session replaces it.

use agentd_protocol::ToolProtocol;
use agentd_settings::Dialect;

/// The base prompt. It names no model, no date and no path: those belong to the environment.
pub(crate) const BASE: &str = include_str!("words/base.md");
/// The prompt text of a session that starts in plan mode.
pub(crate) const PLAN: &str = include_str!("words/plan.md");

/// The prompt texts for model families.
const TEMPLATES: [(&str, &str); 4] = [
    ("anthropic", include_str!("words/anthropic.md")),
    ("openai", include_str!("words/openai.md")),
    ("gemini", include_str!("words/gemini.md")),
    ("local", include_str!("words/local.md")),
];

/// The template of a model, by its protocol and dialect; where all families share a dialect, by its name. Empty: none.
#[must_use]
pub fn template_of(dialect: Dialect, protocol: ToolProtocol, model: &str) -> &'static str {
    let model = model.to_ascii_lowercase();
    let is = |word: &str| model.contains(word);
    match dialect {
        Dialect::Scripted => "",
        _ if protocol == ToolProtocol::JsonText => "local",
        Dialect::Anthropic => "anthropic",
        Dialect::Gemini => "gemini",
        Dialect::OpenaiResponses => "openai",
        Dialect::Ollama | Dialect::LlamaCompletion => "local",
        // Models of every family are served over this dialect.
        Dialect::OpenaiChat if is("claude") => "anthropic",
        Dialect::OpenaiChat if is("gemini") => "gemini",
        Dialect::OpenaiChat if is("gpt") || is("/o3") || is("/o4") => "openai",
        Dialect::OpenaiChat => "local",
    }
}

/// The text of a template.
pub(crate) fn template(name: &str) -> Option<&'static str> {
    let found = TEMPLATES.iter().find(|(known, _)| *known == name);
    found.map(|(_, words)| *words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_follows_the_model_and_its_dialect() {
        use ToolProtocol::{JsonText, Native};
        let rows = [
            (Dialect::Anthropic, Native, "claude-sonnet-5-5", "anthropic"),
            (Dialect::OpenaiResponses, Native, "gpt-4.1", "openai"),
            (Dialect::Gemini, Native, "gemini-2.5-flash", "gemini"),
            (Dialect::OpenaiChat, Native, "anthropic/claude-x", "anthropic"),
            (Dialect::OpenaiChat, Native, "qwen3-coder", "local"),
            (Dialect::Ollama, Native, "qwen3", "local"),
            (Dialect::Anthropic, JsonText, "claude-sonnet-5-5", "local"),
            (Dialect::Scripted, JsonText, "builtin", ""),
        ];
        for (dialect, protocol, model, expected) in rows {
            assert_eq!(template_of(dialect, protocol, model), expected, "{model}");
            assert_eq!(template(expected).is_some(), !expected.is_empty());
        }
    }

    #[test]
    fn the_words_say_what_every_agent_must_know() {
        for word in [
            "[agentd]",
            "`path:line`",
            "language in which the person writes",
            "in the same message",
        ] {
            assert!(BASE.contains(word), "{word}");
        }
        for part in [
            "Summary",
            "Current state",
            "Steps",
            "Tests",
            "Risks",
            "ExitPlanMode",
        ] {
            assert!(PLAN.contains(part), "{part}");
        }
    }
}
