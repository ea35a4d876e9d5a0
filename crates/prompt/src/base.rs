//! The prompt text that every agent starts with, unless the session replaces it.

use agentd_protocol::ToolProtocol;
use agentd_settings::Dialect;

/// The base prompt. It names no model, no date and no path: those belong to the environment.
pub(crate) const BASE: &str = include_str!("words/base.md");
/// The prompt text of a session that starts in plan mode.
pub(crate) const PLAN: &str = include_str!("words/plan.md");

/// The prompt texts for model families.
const TEMPLATES: [(&str, &str); 5] = [
    ("anthropic", include_str!("words/anthropic.md")),
    ("openai", include_str!("words/openai.md")),
    ("gemini", include_str!("words/gemini.md")),
    ("chat", include_str!("words/chat.md")),
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
        Dialect::OpenaiChat if is_small(&model) => "local",
        // DeepSeek, Kimi, GLM, Qwen-Coder, Grok, Mistral Large and their like.
        Dialect::OpenaiChat => "chat",
    }
}

/// The most billions of parameters of a model that takes small steps.
const SMALL: f32 = 34.0;

/// Whether a name says that the model is small, such as `qwen3-8b` or `gemma3:4b`, or says nothing, as that of a server
/// that runs one model.
fn is_small(model: &str) -> bool {
    let size = |word: &str| word.strip_suffix('b')?.parse::<f32>().ok();
    let mut words = model.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    matches!(model, "" | "default") || words.any(|word| size(word).is_some_and(|size| size <= SMALL))
}

/// The text of a template.
pub(crate) fn template(name: &str) -> Option<&'static str> {
    let found = TEMPLATES.iter().find(|(known, _)| *known == name);
    found.map(|(_, words)| *words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolset::OfferedTools;

    #[test]
    fn the_template_follows_the_model_and_its_dialect() {
        use ToolProtocol::{JsonText, Native};
        let rows = [
            (Dialect::Anthropic, Native, "claude-sonnet-5-5", "anthropic"),
            (Dialect::OpenaiResponses, Native, "gpt-4.1", "openai"),
            (Dialect::Gemini, Native, "gemini-2.5-flash", "gemini"),
            (Dialect::OpenaiChat, Native, "anthropic/claude-x", "anthropic"),
            (Dialect::OpenaiChat, Native, "qwen3-coder", "chat"),
            (Dialect::OpenaiChat, Native, "deepseek/deepseek-chat", "chat"),
            (Dialect::OpenaiChat, Native, "qwen3-coder-480b-a35b", "chat"),
            (Dialect::OpenaiChat, Native, "qwen2.5-coder-7b-instruct", "local"),
            (Dialect::OpenaiChat, Native, "gemma3:4b", "local"),
            (Dialect::OpenaiChat, Native, "default", "local"),
            (Dialect::Ollama, Native, "qwen3", "local"),
            (Dialect::Anthropic, JsonText, "claude-sonnet-5-5", "local"),
            (Dialect::Scripted, JsonText, "builtin", ""),
        ];
        for (dialect, protocol, model, expected) in rows {
            assert_eq!(template_of(dialect, protocol, model), expected, "{model}");
            assert_eq!(template(expected).is_some(), !expected.is_empty());
        }
    }

    /// The text for a session that offers every tool which it names.
    fn all_tools(words: &'static str) -> String {
        let inside = words.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let names = inside.flat_map(|inside| inside.trim_start_matches('?').split('|'));
        let names: Vec<String> = names.map(str::to_owned).collect();
        OfferedTools(&names).lines(words).0
    }

    #[test]
    fn the_words_leave_room_for_the_environment_in_900_tokens() {
        for (name, words) in TEMPLATES {
            let words = [BASE, words].map(|words| all_tools(words).len());
            let tokens = words.iter().sum::<usize>() / 4;
            // The rest of the 900 tokens belongs to the environment.
            assert!(tokens <= 850, "{name}: {tokens}");
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
