//! Instruction files: the operator's own, then the project's, from the root of the repository down to the working
//! directory. They are read once, when a session is created.

use crate::places::{OPERATOR_FILE, Places, ReadJudge};
use agentd_protocol::{PromptPart, PromptPartKind};
use agentd_sandbox::{Beneath, SandboxError};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The number of levels in which to search for the repository root.
const MAX_DEPTH: usize = 64;

/// Finds and reads the instruction files. Outside a repository only `workdir` itself counts. Blocks: it reads files.
#[must_use]
pub fn instruction_files(places: &Places, workdir: &Path) -> Vec<PromptPart> {
    let mut room = Room {
        left: places.max_bytes,
        max: places.max_bytes,
        judge: &places.judge,
        told: BTreeSet::new(),
    };
    let mut parts = project_files(places, workdir, &mut room);
    parts.splice(0..0, operator_file(places, &mut room));
    parts
}

fn project_files(places: &Places, workdir: &Path, room: &mut Room<'_>) -> Vec<PromptPart> {
    let root = repository_root(workdir);
    let Ok(beneath) = Beneath::open(root) else {
        return Vec::new();
    };
    let inner = workdir.strip_prefix(root).unwrap_or(Path::new(""));
    // The nearest directory is the most specific, so it gets its share of the limit first, and comes last in the prompt.
    let mut directories: Vec<Vec<PromptPart>> = inner
        .ancestors()
        .map(|directory| {
            let paths = places.names.iter().map(|name| directory.join(name));
            paths
                .filter_map(|path| room.read(&beneath, root, &path, PromptPartKind::Project))
                .collect()
        })
        .collect();
    directories.reverse();
    directories.concat()
}

fn operator_file(places: &Places, room: &mut Room<'_>) -> Option<PromptPart> {
    let directory = places.operator.as_deref()?;
    let beneath = Beneath::open(directory).ok()?;
    room.read(
        &beneath,
        directory,
        Path::new(OPERATOR_FILE),
        PromptPartKind::Operator,
    )
}

/// The nearest directory with a `.git`, or `workdir` if there is none.
fn repository_root(workdir: &Path) -> &Path {
    let mut ancestors = workdir.ancestors().take(MAX_DEPTH);
    ancestors
        .find(|directory| directory.join(".git").symlink_metadata().is_ok())
        .unwrap_or(workdir)
}

/// The remaining budget for instructions.
struct Room<'a> {
    left: usize,
    max: usize,
    judge: &'a ReadJudge,
    /// Texts already included: many projects have the same text under several names.
    told: BTreeSet<String>,
}

impl Room<'_> {
    /// Reads a file as a part of the prompt, if it exists.
    fn read(
        &mut self,
        beneath: &Beneath,
        root: &Path,
        path: &Path,
        kind: PromptPartKind,
    ) -> Option<PromptPart> {
        let (text, note) = match self.text(beneath, root, path) {
            Ok(None) => return None,
            Ok(Some((text, note))) => (text, note),
            Err(why) => (String::new(), Some(why)),
        };
        Some(PromptPart {
            kind,
            source: PathBuf::from(root).join(path).display().to_string(),
            text,
            note,
        })
    }

    fn text(
        &mut self,
        beneath: &Beneath,
        root: &Path,
        path: &Path,
    ) -> Result<Option<(String, Option<String>)>, String> {
        let opened = match beneath.open_file(path) {
            Ok(opened) => opened,
            Err(SandboxError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        self.judge.may(root, path, &opened.real)?;
        let mut bytes = Vec::new();
        let limit = u64::try_from(self.left).unwrap_or(u64::MAX);
        opened
            .file
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| error.to_string())?;
        let cut = opened.bytes > u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if cut && bytes.is_empty() {
            return Err("there was no space left for it (agents.instruction_bytes)".to_owned());
        }
        let mut text = String::from_utf8_lossy(&bytes).trim().to_owned();
        if !text.is_empty() && !self.told.insert(text.clone()) {
            return Err("the same text as in a file that is already included".to_owned());
        }
        self.left = self.left.saturating_sub(bytes.len());
        if !cut {
            let note = text.is_empty().then(|| "it is empty".to_owned());
            return Ok(Some((text, note)));
        }
        text.truncate(text.trim_end_matches(char::REPLACEMENT_CHARACTER).len());
        let note = format!("cut: the instructions are longer than {} bytes", self.max);
        text.push_str(&format!("\n\n[{note}]"));
        Ok(Some((text, Some(note))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::project;
    use std::os::unix::fs::symlink;

    fn parts(workdir: &Path) -> Vec<PromptPart> {
        instruction_files(&Places::default(), workdir)
    }

    fn texts(workdir: &Path) -> Vec<String> {
        parts(workdir).into_iter().map(|part| part.text).collect()
    }

    #[test]
    fn files_are_read_from_the_repositorys_root_down() {
        let dir = project(&[
            (".git/HEAD", ""),
            ("AGENTS.md", "root\n"),
            ("a/x", ""),
            ("a/b/AGENTS.md", "leaf"),
        ]);
        assert_eq!(texts(&dir.path().join("a/b")), ["root", "leaf"]);
        assert_eq!(texts(dir.path()), ["root"]);
    }

    #[test]
    fn outside_a_repository_only_the_working_directory_counts() {
        let dir = project(&[("AGENTS.md", "outer"), ("a/AGENTS.md", "inner")]);
        assert_eq!(texts(&dir.path().join("a")), ["inner"]);
    }

    #[test]
    fn the_names_of_a_directory_come_in_order_and_the_same_text_once() {
        let dir = project(&[
            ("CLAUDE.md", "rules"),
            ("ETCODE.md", "etcode"),
            ("CLAWDCODE.md", "clawd"),
            ("AGENTS.md", "rules"),
            ("README.md", "no"),
        ]);
        let found = parts(dir.path());
        let told: Vec<_> = found.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(told, ["rules", "clawd", "etcode", ""]);
        assert!(found[3].source.ends_with("/CLAUDE.md"), "{found:?}");
        assert!(
            found[3].note.as_deref().unwrap().starts_with("the same text"),
            "{found:?}"
        );
    }

    #[test]
    fn the_operators_file_comes_first() {
        let dir = project(&[("AGENTS.md", "project")]);
        let operator = project(&[("AGENTS.md", "operator")]);
        let places = Places {
            operator: Some(operator.path().to_owned()),
            ..Places::default()
        };
        let found = instruction_files(&places, dir.path());
        let told: Vec<_> = found.iter().map(|part| (part.kind, part.text.as_str())).collect();
        let expected = [
            (PromptPartKind::Operator, "operator"),
            (PromptPartKind::Project, "project"),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn i8_a_link_that_leaves_the_tree_is_not_followed() {
        let secret = project(&[("key", "sk-secret")]);
        let dir = project(&[(".git/HEAD", ""), ("docs/rules.md", "inside"), ("a/x", "")]);
        symlink(secret.path().join("key"), dir.path().join("AGENTS.md")).unwrap();
        symlink("../docs/rules.md", dir.path().join("a/AGENTS.md")).unwrap();
        let found = parts(&dir.path().join("a"));
        assert_eq!(texts(&dir.path().join("a")), ["", "inside"]);
        assert!(found[0].note.is_some(), "{found:?}");
    }

    #[test]
    fn long_instructions_are_cut_and_the_nearest_file_gets_its_room_first() {
        let dir = project(&[
            (".git/HEAD", ""),
            ("AGENTS.md", "root"),
            ("a/AGENTS.md", &"你".repeat(20_000)),
        ]);
        let found = parts(&dir.path().join("a"));
        let [root, leaf] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert!(
            root.text.is_empty() && root.note.as_deref().unwrap().contains("no space"),
            "{root:?}"
        );
        assert!(leaf.text.starts_with("你你") && leaf.text.ends_with("longer than 32768 bytes]"));
        assert!(leaf.text.len() < 32_768 + 100);
    }

    #[test]
    fn instructions_of_exactly_the_limit_are_whole() {
        let dir = project(&[("AGENTS.md", &"x".repeat(100))]);
        let places = |max_bytes| Places {
            max_bytes,
            ..Places::default()
        };
        let whole = instruction_files(&places(100), dir.path());
        assert_eq!((whole[0].text.len(), whole[0].note.as_ref()), (100, None));
        assert!(instruction_files(&places(99), dir.path())[0].note.is_some());
    }

    /// Each instruction file as a link to something else, with a link to instructions as the control; also with the rule
    /// that forbids the target.
    #[test]
    fn i8_redteam_instructions_do_not_tell_what_a_link_leads_to() {
        for (target, told) in [
            ("docs/rules.md", true),
            ("AGENTS.txt", true),
            (".env", false),
            ("config/prod.json", false),
            ("id_ed25519", false),
            (".git/config", false),
            // A hidden directory hides its contents, whatever their extension (CVE-2025-53109 and 53110: a
            // file server followed links out of the allowed directories).
            (".ssh/notes.md", false),
            // The extension of the target counts, not that of the link.
            ("key.md/../.env", false),
        ] {
            let dir = project(&[(".git/HEAD", ""), ("key.md/x", "")]);
            let place = dir.path().join(target);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(&place, "the secret").unwrap();
            symlink(target, dir.path().join("AGENTS.md")).unwrap();
            symlink("AGENTS.md", dir.path().join("CLAUDE.md")).unwrap();
            let found = parts(dir.path());
            assert_eq!(
                found.iter().any(|part| part.text == "the secret"),
                told,
                "{target}: {found:?}"
            );
        }
        let dir = project(&[(".git/HEAD", ""), ("docs/private.md", "the secret")]);
        symlink("docs/private.md", dir.path().join("AGENTS.md")).unwrap();
        let judge = ReadJudge::new(|real| {
            let denied = real.ends_with("docs/private.md");
            if denied {
                Err("a rule forbids it".to_owned())
            } else {
                Ok(())
            }
        });
        assert_eq!(texts(dir.path()), ["the secret"], "positive control");
        let judged = instruction_files(
            &Places {
                judge,
                ..Places::default()
            },
            dir.path(),
        );
        assert_eq!(judged[0].text, "");
        assert_eq!(judged[0].note.as_deref(), Some("a rule forbids it"));
    }
}
