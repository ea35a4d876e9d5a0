//! Skills: `skills/NAME/SKILL.md`. The prompt lists them; the tool Skill reads one on demand.

use crate::front_matter::split;
use crate::library::{Library, named};
use crate::places::Places;
use agentd_protocol::{PromptPart, PromptPartKind};
use serde::Deserialize;
use std::fmt::Write as _;
use std::path::Path;

/// The maximum size of a skill's file.
const MAX_BYTES: u64 = 262_144;
/// The most skills that are listed.
const MAX_LISTED: usize = 64;
/// The most characters of a description in the list.
const MAX_DESCRIPTION: usize = 300;

/// A skill that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its purpose.
    pub description: String,
    /// Its instructions.
    pub text: String,
    /// The path of its file.
    pub path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Front {
    description: String,
}

/// Returns the skill of this name: the operator's, else the project's. Blocks: it reads files.
///
/// # Errors
/// When there is no such skill, or its file cannot be used.
pub fn skill(places: &Places, workdir: &Path, name: &str) -> Result<Skill, String> {
    let library = Library::open(places, workdir, "skills");
    let unknown = || match library.names(None) {
        names if names.is_empty() => format!("there is no skill {name:?}: no skills are installed"),
        names => format!("there is no skill {name:?}; there are: {}", names.join(", ")),
    };
    if !named(name) {
        return Err(unknown());
    }
    let found = library.find(&Path::new(name).join("SKILL.md"), MAX_BYTES)?;
    let found = found.ok_or_else(unknown)?;
    let (front, text) = split::<Front>(&found.text).map_err(|why| format!("the skill {name}: {why}"))?;
    Ok(Skill {
        description: front.description,
        text: text.to_owned(),
        path: found.path,
    })
}

/// The list of skills as a part of the prompt; none if there are no skills. Blocks: it reads files.
#[must_use]
pub fn skill_list(places: &Places, workdir: &Path) -> Option<PromptPart> {
    let library = Library::open(places, workdir, "skills");
    let names = library.names(None);
    let (mut text, mut bad) = (String::new(), Vec::new());
    for name in names.iter().take(MAX_LISTED) {
        match skill(places, workdir, name) {
            Ok(skill) => {
                let words = skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
                let words: String = words.chars().take(MAX_DESCRIPTION).collect();
                let _ = writeln!(text, "- {name}: {words}");
            }
            Err(why) => bad.push(why),
        }
    }
    if names.len() > MAX_LISTED {
        bad.push(format!("{} more are not listed", names.len() - MAX_LISTED));
    }
    (!text.is_empty() || !bad.is_empty()).then(|| PromptPart {
        kind: PromptPartKind::Skills,
        source: "skills".to_owned(),
        text: text.trim_end().to_owned(),
        note: (!bad.is_empty()).then(|| bad.join("; ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::project;

    #[test]
    fn skills_are_listed_by_name_and_read_whole() {
        let workdir = project(&[
            (
                ".agentd/skills/release/SKILL.md",
                "---\ndescription: Cut a\n  release\n---\n\nTag it.\n",
            ),
            (".agentd/skills/bad/SKILL.md", "---\n"),
            (".agentd/skills/empty/README.md", ""),
        ]);
        let operator = project(&[("skills/review/SKILL.md", "---\ndescription: Review\n---\nLook.")]);
        let places = Places {
            operator: Some(operator.path().to_owned()),
            ..Places::default()
        };
        let list = skill_list(&places, workdir.path()).unwrap();
        assert_eq!(list.text, "- release: Cut a release\n- review: Review");
        assert!(list.note.as_deref().unwrap().contains("no end"), "{list:?}");
        let read = skill(&places, workdir.path(), "release").unwrap();
        assert_eq!(read.text, "Tag it.");
        assert!(
            skill(&places, workdir.path(), "../release")
                .unwrap_err()
                .contains("there are: bad, empty, release, review")
        );
    }

    #[test]
    fn without_skills_there_is_no_part() {
        assert_eq!(skill_list(&Places::default(), project(&[]).path()), None);
    }

    #[test]
    fn i8_redteam_a_skill_does_not_tell_what_a_link_leads_to() {
        let workdir = project(&[
            (".env", "KEY=1"),
            ("docs/release.md", "Tag it."),
            ("secret/SKILL.md", "hush"),
        ]);
        let skills = workdir.path().join(".agentd/skills");
        for (name, target) in [("key", "../../../.env"), ("release", "../../../docs/release.md")] {
            std::fs::create_dir_all(skills.join(name)).unwrap();
            std::os::unix::fs::symlink(target, skills.join(name).join("SKILL.md")).unwrap();
        }
        std::os::unix::fs::symlink("../../secret", skills.join("hush")).unwrap();
        let places = Places::default();
        assert_eq!(
            skill(&places, workdir.path(), "release").unwrap().text,
            "Tag it.",
            "positive control"
        );
        let why = skill(&places, workdir.path(), "key").unwrap_err();
        assert!(why.contains("not an instruction file"), "{why}");
        // If the directory is a link, its target is judged.
        assert_eq!(
            skill(&places, workdir.path(), "hush").unwrap().text,
            "hush",
            "positive control"
        );
        let judge = crate::places::ReadJudge::new(|real| {
            if real.ends_with("secret/SKILL.md") {
                Err("a rule forbids it".to_owned())
            } else {
                Ok(())
            }
        });
        let why = skill(&Places { judge, ..places }, workdir.path(), "hush").unwrap_err();
        assert!(why.contains("a rule forbids it"), "{why}");
    }
}
