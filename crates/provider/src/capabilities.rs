//! What models can do: a shipped list, which the configuration overrides.

use agentd_protocol::ThinkingLevel;
use agentd_settings::{CapabilitiesConfig, Dialect, ThinkingForm};
use serde::Deserialize;
use std::sync::LazyLock;

/// The shipped list. It is a data file because models change more often than this program is released.
static KNOWN: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let file: Result<File, _> = toml::from_str(include_str!("../models.toml"));
    let mut rows = file.map(|file| file.model).unwrap_or_default();
    rows.sort_by_key(|row| (letters(&row.pattern), row.dialect.is_some()));
    rows
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Vec<Row>,
}

/// A row of the list: the capabilities of the models that match a pattern.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    #[serde(rename = "match")]
    pattern: String,
    dialect: Option<Dialect>,
    context_window: Option<u64>,
    max_output: Option<u32>,
    images: Option<bool>,
    thinking: Option<ThinkingForm>,
    levels: Option<Vec<ThinkingLevel>>,
    temperature: Option<bool>,
    structured_output: Option<bool>,
    min_cache_tokens: Option<u64>,
    text_calls: Option<bool>,
}

/// The capabilities of one model.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about a model on its own, not a state of one thing"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// It accepts images.
    pub images: bool,
    /// Whether it does is stated by the list or by the configuration, and not only a careful guess.
    pub images_known: bool,
    /// How thinking is requested.
    pub thinking: ThinkingForm,
    /// The levels that it accepts, from least to most; others are mapped to the nearest.
    pub thinking_levels: Vec<ThinkingLevel>,
    /// It accepts a temperature.
    pub temperature: bool,
    /// Its output can be constrained to a JSON Schema.
    pub structured_output: bool,
    /// The shortest prompt that its provider caches, in tokens.
    pub min_cache_tokens: u64,
    /// Calls of its template that its server left in the text are calls.
    pub text_calls: bool,
}

/// The limits of one model, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Size {
    pub(crate) context_window: Option<u64>,
    pub(crate) max_output: Option<u32>,
}

impl Capabilities {
    /// The known capabilities of a model, overridden by the configuration.
    #[must_use]
    pub fn of(dialect: Dialect, model: &str, config: &CapabilitiesConfig) -> Self {
        let mut known = Self::careful(dialect);
        for row in rows(dialect, model) {
            known.learn(row);
        }
        let mut levels = config.thinking_levels.clone().unwrap_or(known.thinking_levels);
        levels.sort_unstable();
        Self {
            images: config.images.unwrap_or(known.images),
            images_known: config.images.is_some() || known.images_known,
            thinking: config.thinking.unwrap_or(known.thinking),
            thinking_levels: levels,
            temperature: config.temperature.unwrap_or(known.temperature),
            structured_output: config.structured_output.unwrap_or(known.structured_output),
            min_cache_tokens: config.min_cache_tokens.unwrap_or(known.min_cache_tokens),
            text_calls: config.text_calls.unwrap_or(known.text_calls),
        }
    }

    /// Conservative defaults for an unknown model: little that a server would refuse.
    const fn careful(dialect: Dialect) -> Self {
        let (images, structured_output) = match dialect {
            Dialect::Anthropic => (true, false),
            Dialect::OpenaiResponses | Dialect::Gemini | Dialect::Scripted => (true, true),
            Dialect::OpenaiChat => (false, false),
            // Their servers can constrain any model to a grammar.
            Dialect::LlamaCompletion | Dialect::Ollama => (false, true),
        };
        Self {
            images,
            images_known: false,
            // Sent only when a level was requested; if the server refuses it, later requests omit it.
            thinking: match dialect {
                Dialect::OpenaiChat => ThinkingForm::Effort,
                Dialect::Ollama => ThinkingForm::Switch,
                Dialect::Anthropic
                | Dialect::OpenaiResponses
                | Dialect::Gemini
                | Dialect::LlamaCompletion
                | Dialect::Scripted => ThinkingForm::None,
            },
            thinking_levels: Vec::new(),
            temperature: true,
            structured_output,
            min_cache_tokens: 1_024,
            // Where models of any origin run behind a parser that may not know their template.
            text_calls: match dialect {
                Dialect::OpenaiChat | Dialect::Ollama | Dialect::LlamaCompletion => true,
                Dialect::Anthropic | Dialect::OpenaiResponses | Dialect::Gemini | Dialect::Scripted => false,
            },
        }
    }

    fn learn(&mut self, row: &Row) {
        self.images = row.images.unwrap_or(self.images);
        self.images_known |= row.images.is_some();
        self.thinking = row.thinking.unwrap_or(self.thinking);
        if let Some(levels) = &row.levels {
            self.thinking_levels.clone_from(levels);
        }
        self.temperature = row.temperature.unwrap_or(self.temperature);
        self.structured_output = row.structured_output.unwrap_or(self.structured_output);
        self.min_cache_tokens = row.min_cache_tokens.unwrap_or(self.min_cache_tokens);
        self.text_calls = row.text_calls.unwrap_or(self.text_calls);
    }
}

impl Size {
    /// The known limits of a model.
    pub(crate) fn of(dialect: Dialect, model: &str) -> Self {
        rows(dialect, model).fold(Self::default(), |size, row| Self {
            context_window: row.context_window.or(size.context_window),
            max_output: row.max_output.or(size.max_output),
        })
    }
}

/// The rows that match a model, the most specific one last.
fn rows(dialect: Dialect, model: &str) -> impl Iterator<Item = &'static Row> {
    let name = model.rsplit('/').next().unwrap_or_default().to_lowercase();
    KNOWN.iter().filter(move |row| {
        row.dialect.is_none_or(|only| only == dialect) && matches(row.pattern.as_bytes(), name.as_bytes())
    })
}

fn letters(pattern: &str) -> usize {
    pattern
        .bytes()
        .filter(|byte| !matches!(byte, b'*' | b'?'))
        .count()
}

/// Whether a glob matches a whole name. It backtracks to one star at most, so the cost is the product of both lengths.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(n) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(wanted) if wanted == byte || *wanted == b'?' => (p, n) = (p + 1, n + 1),
            Some(_) | None => match &mut star {
                Some((at, taken)) => {
                    *taken += 1;
                    (p, n) = (*at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern
        .get(p..)
        .unwrap_or_default()
        .iter()
        .all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off};

    fn of(dialect: Dialect, model: &str) -> Capabilities {
        Capabilities::of(dialect, model, &CapabilitiesConfig::default())
    }

    #[test]
    fn the_shipped_list_can_be_read_and_names_each_pattern_once() {
        let file: File = toml::from_str(include_str!("../models.toml")).unwrap();
        let mut patterns: Vec<_> = file.model.iter().map(|row| row.pattern.as_str()).collect();
        let all = patterns.len();
        patterns.sort_unstable();
        patterns.dedup();
        assert_eq!((patterns.len(), KNOWN.len()), (all, all));
        for row in &*KNOWN {
            assert!(
                row.levels.as_ref().is_none_or(|levels| levels.is_sorted()),
                "{row:?}"
            );
            assert_eq!(row.pattern, row.pattern.to_lowercase());
        }
    }

    #[test]
    fn the_row_that_says_most_wins() {
        let newest = Capabilities {
            images: true,
            images_known: true,
            thinking: ThinkingForm::Adaptive,
            thinking_levels: vec![Off, Low, Medium, High, Max],
            temperature: false,
            structured_output: true,
            min_cache_tokens: 512,
            text_calls: false,
        };
        assert_eq!(of(Dialect::Anthropic, "claude-opus-5-5"), newest);
        assert_eq!(of(Dialect::OpenaiChat, "anthropic/Claude-Opus-5.5"), newest);
        let older = Capabilities {
            thinking: ThinkingForm::Budget,
            temperature: true,
            min_cache_tokens: 4_096,
            ..newest.clone()
        };
        assert_eq!(of(Dialect::Anthropic, "claude-opus-4-5-20251101"), older);
        let sonnet = Capabilities {
            min_cache_tokens: 1_024,
            ..newest
        };
        assert_eq!(of(Dialect::Anthropic, "claude-sonnet-5-5"), sonnet);
    }

    #[test]
    fn what_models_take_differs() {
        let check = |model: &str, thinking, levels: &[ThinkingLevel], temperature| {
            let known = of(Dialect::OpenaiChat, model);
            let found = (
                known.thinking,
                known.thinking_levels.as_slice(),
                known.temperature,
            );
            assert_eq!(found, (thinking, levels, temperature), "{model}");
        };
        use ThinkingForm::{Adaptive, Budget, Effort, None, Switch};
        check("claude-opus-4-7", Adaptive, &[Off, Low, Medium, High, Max], false);
        check(
            "claude-opus-4-1-20250805",
            Budget,
            &[Off, Low, Medium, High, Max],
            true,
        );
        check("claude-sonnet-4-6", Adaptive, &[Off, Low, Medium, High], true);
        check("gpt-4.1-mini", None, &[], true);
        check("gpt-5-2025-08-07", Effort, &[Minimal, Low, Medium, High], false);
        check("gpt-5.2", Effort, &[Off, Low, Medium, High, Max], false);
        check("gpt-5.1", Effort, &[Off, Low, Medium, High], false);
        check("o4-mini", Effort, &[Low, Medium, High], false);
        check("openai/gpt-oss-20b", Effort, &[Low, Medium, High], true);
        check("gemini-2.5-pro", Budget, &[Minimal, Low, Medium, High, Max], true);
        check("gemini-3-pro-preview", Effort, &[Low, High], true);
        check("qwen3:8b", Switch, &[Off, Medium], true);
        check("unknown-model", Effort, &[], true);
    }

    #[test]
    fn an_unknown_model_is_not_sent_what_its_server_may_refuse() {
        let of = |dialect| {
            let known = of(dialect, "unknown-model");
            (known.images, known.structured_output)
        };
        assert_eq!(of(Dialect::OpenaiChat), (false, false));
        assert_eq!(of(Dialect::LlamaCompletion), (false, true));
        assert_eq!(of(Dialect::Gemini), (true, true));
    }

    #[test]
    fn calls_in_the_text_count_where_a_server_may_not_know_the_template() {
        let of = |dialect, model| of(dialect, model).text_calls;
        assert!(of(Dialect::OpenaiChat, "unknown-model") && of(Dialect::Ollama, "qwen3:8b"));
        assert!(of(Dialect::OpenaiChat, "openai/gpt-oss-20b"));
        for model in [
            "gpt-4o",
            "gpt-5.2",
            "o4-mini",
            "anthropic/claude-opus-4.5",
            "google/gemini-2.5-pro",
        ] {
            assert!(!of(Dialect::OpenaiChat, model), "{model}");
        }
        for dialect in [Dialect::Anthropic, Dialect::OpenaiResponses, Dialect::Gemini] {
            assert!(!of(dialect, "unknown-model"), "{dialect:?}");
        }
    }

    #[test]
    fn the_configuration_wins() {
        let config = CapabilitiesConfig {
            images: Some(true),
            thinking: Some(ThinkingForm::Switch),
            thinking_levels: Some(vec![High, Off]),
            temperature: Some(false),
            structured_output: Some(true),
            min_cache_tokens: Some(7),
            text_calls: Some(false),
        };
        let expected = Capabilities {
            images: true,
            images_known: true,
            thinking: ThinkingForm::Switch,
            thinking_levels: vec![Off, High],
            temperature: false,
            structured_output: true,
            min_cache_tokens: 7,
            text_calls: false,
        };
        assert_eq!(
            Capabilities::of(Dialect::OpenaiChat, "unknown-model", &config),
            expected
        );
    }

    #[test]
    fn sizes_are_known_where_they_were_published() {
        let of = |model: &str| {
            let size = Size::of(Dialect::OpenaiChat, model);
            (size.context_window, size.max_output)
        };
        assert_eq!(of("gpt-4.1"), (Some(1_047_576), Some(32_768)));
        assert_eq!(of("claude-3-7-sonnet-20250219"), (Some(200_000), Some(64_000)));
        assert_eq!(of("unknown-model"), (None, None));
    }

    #[test]
    fn a_glob_covers_the_whole_name() {
        let check = |pattern: &str, name: &str, expected| {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        };
        check("a*c?", "abbcd", true);
        check("a*c", "abcb", false);
        check("*b*", "abc", true);
        check("a", "ab", false);
        check("", "", true);
        check("a*", "a", true);
        check("a?", "a", false);
        check("*a*a*a*b", &"a".repeat(10_000), false);
    }
}
