//! Custom agents: `agents/NAME.md` in the operator's directory, or in the project's `.agentd`.

use crate::front_matter::{Words, split};
use crate::library::{Library, named};
use crate::places::{Origin, Places};
use agentd_protocol::{PermissionMode, PromptPart, PromptPartKind};
use serde::Deserialize;
use std::path::Path;

/// The maximum size of an agent's file.
const MAX_BYTES: u64 = 65_536;
/// The most agents that are listed.
const MAX_LISTED: usize = 32;
/// The most characters of a description in the list.
const MAX_DESCRIPTION: usize = 200;

/// A custom agent as its file defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDefinition {
    /// Its name: the file's, without `.md`.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// The only tools that it has; none means all.
    pub tools: Option<Vec<String>>,
    /// The configured name of its model. A project cannot choose one.
    pub model: Option<String>,
    /// Its permission mode; a project's can only be stricter than the session's.
    pub mode: Option<PermissionMode>,
    /// The most steps in a turn.
    pub max_turns: Option<i32>,
    /// Its instructions.
    pub prompt: String,
    /// Whether the file is the operator's or the project's.
    pub origin: Origin,
    /// The path of the file.
    pub path: String,
}

/// The front matter of an agent's file. Unknown keys are ignored: they are for other programs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Front {
    description: String,
    tools: Option<Words>,
    model: Option<String>,
    mode: Option<PermissionMode>,
    max_turns: Option<i32>,
}

/// Returns the agent of this name: the operator's, else the project's. Blocks: it reads files.
///
/// # Errors
/// When there is no such agent, or its file cannot be used; the text says what to do.
pub fn agent(places: &Places, workdir: &Path, name: &str) -> Result<AgentDefinition, String> {
    if !named(name) {
        return Err(format!(
            "{name:?} is not a valid agent name: use letters, digits, - and _"
        ));
    }
    let library = Library::open(places, workdir, "agents");
    let file = format!("{name}.md");
    match library.find(Path::new(&file), MAX_BYTES)? {
        Some(found) => parse(name, &found.text, found.origin, &found.path)
            .map_err(|why| format!("the agent {name} in {}: {why}", found.path)),
        None => Err(unknown(&library, name)),
    }
}

/// The list of custom agents for the tool Task; none if there are no agents. Blocks: it reads files.
#[must_use]
pub(crate) fn agent_list(places: &Places, workdir: &Path) -> Option<PromptPart> {
    let names = Library::open(places, workdir, "agents").names(Some(".md"));
    let mut lines: Vec<String> = Vec::new();
    // Invalid agents are not listed; a request for one by name returns the reason.
    for found in names.iter().filter_map(|name| agent(places, workdir, name).ok()) {
        if lines.len() == MAX_LISTED {
            lines.push("- and more: ask for one by its name".to_owned());
            break;
        }
        let words = found.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let words: String = words.chars().take(MAX_DESCRIPTION).collect();
        let line = format!("- {}: {words}", found.name);
        lines.push(line.trim_end_matches([':', ' ']).to_owned());
    }
    (!lines.is_empty()).then(|| PromptPart {
        kind: PromptPartKind::Agents,
        source: "agents".to_owned(),
        text: lines.join("\n"),
        note: Some("said by the tool Task".to_owned()),
    })
}

fn parse(name: &str, text: &str, origin: Origin, path: &str) -> Result<AgentDefinition, String> {
    let (front, prompt) = split::<Front>(text)?;
    if prompt.is_empty() {
        return Err("it has no text after the block at the top".to_owned());
    }
    let inherits = |model: &String| !matches!(model.as_str(), "" | "inherit" | "auto" | "default");
    Ok(AgentDefinition {
        name: name.to_owned(),
        description: front.description,
        tools: front.tools.map(Words::into_list),
        model: front
            .model
            .filter(inherits)
            .filter(|_| origin == Origin::Operator),
        mode: front.mode,
        max_turns: front.max_turns.filter(|turns| *turns > 0),
        prompt: prompt.to_owned(),
        origin,
        path: path.to_owned(),
    })
}

fn unknown(library: &Library, name: &str) -> String {
    let mut known = library.names(Some(".md"));
    known.dedup();
    if known.is_empty() {
        return format!(
            "there is no agent {name}: add agents/{name}.md to your configuration directory, or to .agentd of the working directory"
        );
    }
    format!("there is no agent {name}; there are: {}", known.join(", "))
}

/// The stricter of two modes.
#[must_use]
pub const fn stricter(one: PermissionMode, other: PermissionMode) -> PermissionMode {
    one.stricter(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::project;

    const REVIEWER: &str = "---\nname: reviewer\ndescription: Reads code\ntools: Read, Grep\nmodel: opus\nmode: plan\ncolor: red\n---\n\nYou review code.\n";

    fn places(operator: Option<&Path>) -> Places {
        Places {
            operator: operator.map(Path::to_owned),
            ..Places::default()
        }
    }

    #[test]
    fn the_operators_agent_wins_and_chooses_its_model() {
        let workdir = project(&[(".agentd/agents/reviewer.md", "Project words.")]);
        let operator = project(&[("agents/reviewer.md", REVIEWER)]);
        let found = agent(&places(Some(operator.path())), workdir.path(), "reviewer").unwrap();
        assert_eq!(found.tools, Some(vec!["Read".to_owned(), "Grep".to_owned()]));
        assert_eq!(
            (found.model.as_deref(), found.mode),
            (Some("opus"), Some(PermissionMode::Plan))
        );
        assert_eq!(
            (found.prompt.as_str(), found.origin),
            ("You review code.", Origin::Operator)
        );
    }

    #[test]
    fn a_projects_agent_chooses_no_model() {
        let workdir = project(&[(".agentd/agents/reviewer.md", REVIEWER)]);
        let found = agent(&places(None), workdir.path(), "reviewer").unwrap();
        assert_eq!((found.model, found.origin), (None, Origin::Project));
        let off = Places {
            project: false,
            ..places(None)
        };
        assert!(agent(&off, workdir.path(), "reviewer").is_err());
    }

    #[test]
    fn what_cannot_be_used_is_explained() {
        let workdir = project(&[
            (".agentd/agents/a.md", "---\nmode: fast\n---\nx"),
            (".agentd/agents/b.md", " "),
        ]);
        let why = |name| agent(&places(None), workdir.path(), name).unwrap_err();
        assert!(
            why("a").contains("cannot parse") && why("a").contains("a.md"),
            "{}",
            why("a")
        );
        assert!(why("b").contains("has no text"), "{}", why("b"));
        assert!(why("c").contains("there are: a, b"), "{}", why("c"));
        assert!(why("../a").contains("not a valid agent name"), "{}", why("../a"));
    }

    #[test]
    fn agents_are_listed_by_name_up_to_a_bound() {
        let list = |files: &[(&str, &str)]| agent_list(&places(None), project(files).path());
        assert_eq!(list(&[]), None);
        let words = format!("---\ndescription: Reads\n  code {}\n---\nx", "x".repeat(500));
        let some = list(&[
            (".agentd/agents/b.md", words.as_str()),
            (".agentd/agents/a.md", "Plain."),
            (".agentd/agents/broken.md", "---\nmode: fast\n---\nx"),
        ]);
        let text = some.unwrap().text;
        assert!(text.starts_with("- a\n- b: Reads code xxx"), "{text}");
        assert_eq!(text.len(), "- a\n- b: ".len() + MAX_DESCRIPTION);
        let many: Vec<String> = (0..40).map(|n| format!(".agentd/agents/a{n}.md")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "x")).collect();
        let text = list(&many).unwrap().text;
        assert_eq!(text.lines().count(), MAX_LISTED + 1);
        assert!(text.ends_with("by its name"), "{text}");
    }

    #[test]
    fn the_stricter_mode_is_the_one_that_allows_less() {
        use PermissionMode::{AcceptEdits, Default, Plan, Yolo};
        for (one, other, expected) in [
            (Yolo, Plan, Plan),
            (Default, Yolo, Default),
            (AcceptEdits, Default, Default),
        ] {
            assert_eq!(stricter(one, other), expected);
            assert_eq!(stricter(other, one), expected);
        }
    }
}
