//! Decides which steps of an operation under way a command may write: `git rebase --continue` of a person carries them out.
//! Pure.

use crate::config_change::{ConfigChange, is_plain};
use crate::git_config::entries;
use std::collections::BTreeSet;

/// Steps that run no program, and write no reference that a person did not name.
const STEPS: [&str; 24] = [
    "b", "break", "d", "drop", "e", "edit", "f", "fixup", "l", "label", "m", "merge", "noop", "p", "pick",
    "r", "reset", "revert", "reword", "s", "squash", "t", "#", "",
];
/// Options that run nothing, whatever their value.
const OPTIONS: [&str; 11] = [
    "options.allow-empty",
    "options.allow-empty-message",
    "options.allow-ff",
    "options.default-msg-cleanup",
    "options.drop-redundant-commits",
    "options.edit",
    "options.keep-redundant-commits",
    "options.mainline",
    "options.no-commit",
    "options.record-origin",
    "options.signoff",
];

/// Checks whether a command may replace the list of steps `old` by `new`.
///
/// # Errors
/// The first new step that does more than to pick, change and merge commits.
pub fn check_steps(old: &str, new: &str) -> Result<(), ConfigChange> {
    let known: BTreeSet<&str> = old.split('\n').map(trimmed).collect();
    let is_free = |line: &&str| {
        let word = line.split([' ', '\t']).next().unwrap_or_default();
        known.contains(line) || STEPS.contains(&word) || line.starts_with('#')
    };
    match new.split('\n').map(trimmed).find(|line| !is_free(line)) {
        Some(line) => Err(ConfigChange::Step(line.chars().take(200).collect())),
        None => Ok(()),
    }
}

/// A line without what git skips around a step.
fn trimmed(line: &str) -> &str {
    line.trim_start_matches([' ', '\t']).trim_end_matches('\r')
}

/// Checks whether a command may replace the options of a series of picks. A person's choices may stay.
///
/// # Errors
/// The first line or option that may run a program.
pub fn check_options(old: &str, new: &str) -> Result<(), ConfigChange> {
    let known: BTreeSet<&str> = old.split('\n').map(str::trim).collect();
    let mut lines = new.split('\n').map(str::trim);
    if let Some(line) = lines.find(|line| !known.contains(line) && !is_plain(line)) {
        return Err(ConfigChange::Doubtful(line.chars().take(200).collect()));
    }
    let before = entries(old);
    let is_free = |name: &str| OPTIONS.contains(&name);
    match entries(new)
        .iter()
        .find(|entry| !is_free(&entry.name) && !before.contains(entry))
    {
        Some(entry) => Err(ConfigChange::Decisive(entry.name.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "pick 1111 one\nexec make\n\n# Rebase 1111..2222 onto 3333\n";

    #[test]
    fn steps_that_change_commits_are_written() {
        for new in [
            "",
            "pick 1111 one\npick 2222 two\n",
            "p 1111\n  squash 2222 # two\r\n\tfixup -C 3333\n\n# exec in a comment\n#exec\n",
            "label onto\nreset onto\nmerge -C 1111 side # one\nreword 1\nedit 2\ndrop 3\nbreak\nnoop\n",
            "revert 1111 one\n",
            // Existing steps stay, also in part.
            OLD,
            "exec make\n",
        ] {
            assert_eq!(check_steps(OLD, new), Ok(()), "{new:?}");
        }
    }

    #[test]
    fn redteam_no_step_runs_a_program_or_writes_any_reference() {
        for step in [
            "exec touch ran",
            "x touch ran",
            "\texec touch ran",
            " x\ttouch ran",
            "exec",
            "update-ref refs/replace/1111",
            "u refs/heads/main",
            "EXEC make",
            "exec make all",
            "; exec touch ran",
            "pick\u{a0}1111",
            "pick\0",
            "\u{feff}pick 1111",
        ] {
            for new in [
                format!("{step}\n"),
                format!("pick 1111 one\n{step}"),
                format!("{step}\r\n"),
            ] {
                assert!(
                    matches!(check_steps(OLD, &new), Err(ConfigChange::Step(_))),
                    "{new:?}"
                );
            }
        }
    }

    #[test]
    fn redteam_no_option_of_a_pick_names_a_program() {
        let options = "[options]\n\tedit = false\n\trecord-origin = true\n\tmainline = 1\n";
        assert_eq!(check_options("", options), Ok(()), "control");
        for line in [
            "\tstrategy = x/../evil",
            "\tgpg-sign = key",
            "\tstrategy-option = theirs",
            "[core]\n\tfsmonitor = x",
            "\tedit = a\\",
            "\tedit = \"false\"",
        ] {
            assert!(
                check_options("", &format!("{options}{line}\n")).is_err(),
                "{line}"
            );
        }
        let chosen = format!("{options}\tstrategy = ours\n");
        assert_eq!(check_options(&chosen, &chosen), Ok(()));
        assert!(check_options(&chosen, &chosen.replace("ours", "evil")).is_err());
    }
}
