//! Slash commands defined by files: `commands/NAME.md`.

use crate::front_matter::split;
use crate::library::{Library, named};
use crate::places::Places;
use serde::Deserialize;
use std::path::Path;

/// The maximum size of a command's file.
const MAX_BYTES: u64 = 65_536;
/// The placeholder for the text typed after the command.
const ARGUMENTS: &str = "$ARGUMENTS";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Front {
    description: String,
}

/// The text of a command defined by a file, with these arguments. None: there is no such file. Blocks: it reads files.
///
/// # Errors
/// When the file cannot be used.
pub fn command_text(
    places: &Places,
    workdir: &Path,
    name: &str,
    arguments: &str,
) -> Result<Option<String>, String> {
    if !named(name) {
        return Ok(None);
    }
    let library = Library::open(places, workdir, "commands");
    let Some(found) = library.find(Path::new(&format!("{name}.md")), MAX_BYTES)? else {
        return Ok(None);
    };
    let (_, text) = split::<Front>(&found.text).map_err(|why| format!("the command /{name}: {why}"))?;
    if text.is_empty() {
        return Err(format!("the command /{name}: {} has no text", found.path));
    }
    Ok(Some(filled(text, arguments)))
}

fn filled(text: &str, arguments: &str) -> String {
    if text.contains(ARGUMENTS) {
        return text.replace(ARGUMENTS, arguments);
    }
    if arguments.is_empty() {
        return text.to_owned();
    }
    format!("{text}\n\n{arguments}")
}

/// The commands defined by files, with their descriptions. Blocks: it reads files.
#[must_use]
pub fn command_list(places: &Places, workdir: &Path) -> Vec<(String, String)> {
    let library = Library::open(places, workdir, "commands");
    let describe = |name: String| {
        let found = library.find(Path::new(&format!("{name}.md")), MAX_BYTES).ok()??;
        let (front, _) = split::<Front>(&found.text).ok()?;
        Some((name, front.description))
    };
    library
        .names(Some(".md"))
        .into_iter()
        .filter_map(describe)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::project;

    #[test]
    fn arguments_take_their_place_or_come_last() {
        let workdir = project(&[
            (
                ".agentd/commands/fix.md",
                "---\ndescription: Fix it\n---\nFix issue $ARGUMENTS now.",
            ),
            (".agentd/commands/plain.md", "Look."),
        ]);
        let places = Places::default();
        let said = |name, arguments| command_text(&places, workdir.path(), name, arguments);
        assert_eq!(said("fix", "#12"), Ok(Some("Fix issue #12 now.".into())));
        assert_eq!(said("plain", "there"), Ok(Some("Look.\n\nthere".into())));
        assert_eq!(said("plain", ""), Ok(Some("Look.".into())));
        assert_eq!(said("etc/passwd", ""), Ok(None));
        assert_eq!(said("none", ""), Ok(None));
        let listed = command_list(&places, workdir.path());
        assert_eq!(
            listed,
            [("fix".into(), "Fix it".into()), ("plain".into(), String::new())]
        );
    }
}
