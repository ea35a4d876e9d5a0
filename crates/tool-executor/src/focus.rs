//! Finds the parts of a long output that are about the last input: an option of `[tools]`.

use agentd_settings::{Shape, ToolsConfig};
use agentd_tools::{FilesSeen, windows};
use bytes::Bytes;

/// The divisor for the share of a result that these lines may take.
const SHARE: u64 = 4;

/// The words to search for, and the limit of the lines to show.
#[derive(Debug)]
pub(crate) struct Focus {
    words: Vec<String>,
    max_bytes: usize,
}

impl Focus {
    /// `None` unless the operator or the session's preset enables it and the last input has words.
    pub(crate) fn of(limits: &ToolsConfig, seen: &FilesSeen) -> Option<Self> {
        let wanted = (limits.shape == Shape::Keywords || seen.is_focused()) && !seen.words().is_empty();
        wanted.then(|| Self {
            words: seen.words().to_vec(),
            max_bytes: usize::try_from(limits.max_bytes / SHARE).unwrap_or(usize::MAX),
        })
    }

    /// These lines, for the model. Searching a long output takes a while, so it uses a blocking thread.
    #[expect(clippy::disallowed_methods, reason = "it works in memory only")]
    pub(crate) async fn about(self, output: Bytes) -> String {
        let look = move || windows(&String::from_utf8_lossy(&output), &self.words, self.max_bytes);
        match tokio::task::spawn_blocking(look).await {
            Ok(found) if found.is_empty() => found,
            Ok(found) => format!("\n[Lines of the whole output near words of the last input:]\n{found}"),
            Err(error) => {
                tracing::warn!(%error, "could not search a long output");
                String::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{
        Block, Budget, Delivery, EventBody, InputAccepted, InputId, LoopLimits, SessionCreated,
    };
    use serde_json::json;

    fn asked(text: &str) -> FilesSeen {
        let mut seen = FilesSeen::default();
        seen.learn(&EventBody::from(InputAccepted {
            input: InputId::NIL,
            key: None,
            delivery: Delivery::Start,
            content: vec![Block::text(text)],
            model: None,
            agent: None,
        }));
        seen
    }

    #[test]
    fn the_preset_react_overrides_the_daemons_shape() {
        let created = |keyword_windows| {
            let limits = LoopLimits {
                keyword_windows,
                ..LoopLimits::default()
            };
            let created = json!({
                "title": "", "project": "", "workdir": "/w", "model": "m", "mode": "default",
                "limits": limits, "budget": Budget::default(),
            });
            let created: SessionCreated = serde_json::from_value(created).unwrap();
            let mut seen = asked("why is needle missing?");
            seen.learn(&EventBody::from(created));
            Focus::of(&ToolsConfig::default(), &seen).is_some()
        };
        assert_eq!([true, false].map(created), [true, false]);
    }

    #[tokio::test]
    async fn lines_about_the_last_input_are_found_on_request() {
        let mut limits = ToolsConfig::default();
        assert!(
            Focus::of(&limits, &asked("why is needle missing?")).is_none(),
            "off by default"
        );
        limits.shape = Shape::Keywords;
        assert!(Focus::of(&limits, &asked("why?")).is_none());
        let output = format!("{}the needle\n{}", "hay\n".repeat(50), "hay\n".repeat(50));
        let focus = Focus::of(&limits, &asked("why is needle missing?")).unwrap();
        let found = focus.about(Bytes::from(output)).await;
        assert!(
            found.contains("51\tthe needle\n") && found.lines().count() == 9,
            "{found}"
        );
    }
}
