//! `show --prompt`: the text that the model gets before the conversation.

use crate::render::{Paint, clean};
use agentd_protocol::{PromptShown, PromptSource};

/// The sources with their sizes, then the whole text.
pub(crate) fn prompt_text(shown: &PromptShown, paint: Paint) -> String {
    let mut text = String::new();
    for source in &shown.sources {
        text.push_str(&row(source, paint));
        text.push('\n');
    }
    let all = format!("{:>8}  total", shown.text.len());
    text.push_str(&paint.bold(&all));
    text.push_str("\n\n");
    text.push_str(&clean(&shown.text));
    text.push('\n');
    text
}

fn row(source: &PromptSource, paint: Paint) -> String {
    let name = clean(&source.name);
    let note = source.note.as_deref().map(clean).unwrap_or_default();
    let note = if note.is_empty() {
        String::new()
    } else {
        format!("  ({note})")
    };
    if source.loaded {
        format!("{:>8}  {name}{}", source.bytes, paint.dim(&note))
    } else {
        paint.dim(&format!("{:>8}  {name}{note}", "omitted"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_come_with_their_sizes_and_hide_nothing() {
        let source = |name: &str, bytes, note: Option<&str>| PromptSource {
            name: name.into(),
            loaded: bytes > 0,
            bytes,
            note: note.map(str::to_owned),
        };
        let shown = PromptShown {
            sources: vec![
                source("base", 6, None),
                source("/p/AGENTS.md", 0, Some("a \u{1b}[31mlink")),
            ],
            text: "Be\u{1b} a cat".into(),
        };
        let text = prompt_text(&shown, Paint::new(false));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "       6  base");
        assert!(lines[1].starts_with(" omitted  /p/AGENTS.md  (a "), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}
