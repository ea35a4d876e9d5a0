//! Why git failed, where it cannot know it.

use agentd_sandbox::{Exit, GitRefusal};
use std::path::PathBuf;

/// Each reason in words, with what to do instead. The first that applies explains the others.
const REASONS: [(GitRefusal, &str); 4] = [
    (
        GitRefusal::Kept,
        "commands only read this repository, or this part of it, because others work in it, too (sandbox.keep_git). To \
         commit, clone it into $TMPDIR and work there. A session in a workspace of its own (agentctl run --workspace clone) can \
         commit.",
    ),
    (
        GitRefusal::Steps,
        "the steps of a rebase may pick, change and merge commits, but not run programs (exec). Edit their list with `sed -i`, \
         which replaces the file.",
    ),
    (
        GitRefusal::Setting,
        "commands may not change a setting that decides what git runs or where it pushes, and may add a remote only as a URL \
         with a host. A clone of a path works in $TMPDIR.",
    ),
    (
        GitRefusal::Metadata,
        "commands may not write files that decide what git runs or shows: hooks, more worktrees or submodules, bare \
         repositories, patches that `git am` applies. In $TMPDIR they may.",
    ),
];

/// Why a command may not write what git wanted to write.
pub(crate) fn without_permission(text: &str, exit: Exit) -> String {
    let is_about_git = text.contains(".git") || text.contains("ermission denied");
    if exit.code == Some(0) || !is_about_git {
        return String::new();
    }
    let reason = REASONS.iter().find(|(reason, _)| exit.refused.has(*reason));
    reason.map_or_else(String::new, |(_, words)| format!("[git: {words}]\n"))
}

/// Why git says that there is no repository where one is.
pub(crate) fn without_objects(text: &str, repositories: &[PathBuf]) -> String {
    if repositories.is_empty() || !text.contains("not a git repository") {
        return String::new();
    }
    let named: Vec<_> = repositories
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    format!(
        "[git does not work in {}: its history names files that a rule denies to read, so commands cannot read its objects]\n",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(code: i32, refused: &[GitRefusal]) -> Exit {
        Exit {
            code: Some(code),
            signal: None,
            exceeded: None,
            refused: refused.iter().copied().collect(),
        }
    }

    #[test]
    fn a_refusal_explains_what_git_says() {
        let said = "fatal: Unable to create '/w/.git/index.lock': Permission denied\n";
        for (refusal, words) in REASONS {
            let note = without_permission(said, exit(128, &[refusal]));
            assert_eq!(note, format!("[git: {words}]\n"));
        }
        let both = exit(128, &[GitRefusal::Metadata, GitRefusal::Kept]);
        assert!(without_permission(said, both).contains("only read this repository"));
    }

    #[test]
    fn what_did_not_fail_or_is_not_about_git_is_not_explained() {
        let said = "fatal: Unable to create '/w/.git/index.lock': Permission denied\n";
        assert_eq!(without_permission(said, exit(0, &[GitRefusal::Kept])), "");
        assert_eq!(without_permission(said, exit(1, &[])), "");
        // `git status` may not refresh the index; the test after it failed for another reason.
        assert_eq!(
            without_permission("1 test failed\n", exit(1, &[GitRefusal::Kept])),
            ""
        );
    }

    #[test]
    fn hidden_objects_explain_what_git_says() {
        let said = "fatal: not a git repository (or any of the parent directories): .git\n";
        let repositories = [PathBuf::from("/w/.git")];
        let note = without_objects(said, &repositories);
        assert!(
            note.starts_with("[git does not work in /w/.git: its history names files that a rule denies")
        );
        assert_eq!(without_objects(said, &[]), "");
        assert_eq!(without_objects("fatal: bad revision", &repositories), "");
    }
}
