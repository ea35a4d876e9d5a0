//! A denied word that stands in plain text somewhere in a command, in mode yolo. Each attack is allowed without the rule.

use super::{judged, judged_by, policy, verdict};
use crate::{Policy, Request, Rule, Source, Subject, explain};
use agentd_protocol::{EffectClass, PermissionMode, VerdictKind};
use proptest::prelude::*;

/// Lines: `denied rule<tab>command`. `\n` is a line break.
const ATTACKS: &str = include_str!("words_attacks.txt");
/// Commands that run although all rules of the attacks are in force.
const HARMLESS: &str = include_str!("words_harmless.txt");

fn yolo(rules: &[&str], command: &str) -> VerdictKind {
    verdict(rules, PermissionMode::Yolo, command)
}

/// The rows of a table: the rule in force, and the command.
fn rows(table: &'static str) -> Vec<(&'static str, String)> {
    let mut rule = "";
    let mut rows = Vec::new();
    for line in table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line.strip_prefix("== ") {
            Some(next) => rule = next,
            None => rows.push((rule, line.replace("\\n", "\n"))),
        }
    }
    rows
}

#[test]
fn i7_redteam_a_denied_word_anywhere_in_a_command_is_found() {
    let rows = rows(ATTACKS);
    assert!(rows.len() >= 117, "{}", rows.len());
    let mut failed = Vec::new();
    for (rule, command) in &rows {
        let control = yolo(&[], command);
        let kind = yolo(&[rule], command);
        if control != VerdictKind::Allow || kind != VerdictKind::Deny {
            failed.push(format!(
                "{rule}: {command:?}: {kind:?}, without the rule {control:?}"
            ));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {}:\n{}",
        failed.len(),
        rows.len(),
        failed.join("\n")
    );
}

#[test]
fn harmless_commands_with_the_same_rules_still_run_in_yolo() {
    let rows = rows(HARMLESS);
    assert!(rows.len() >= 60, "{}", rows.len());
    let rules: Vec<&str> = ATTACKS
        .lines()
        .filter_map(|line| line.strip_prefix("== "))
        .collect();
    let failed: Vec<_> = rows
        .iter()
        .filter(|(_, command)| yolo(&rules, command) != VerdictKind::Allow)
        .map(|(_, command)| {
            format!(
                "{command:?} {}",
                judged(&rules, PermissionMode::Yolo, command).reason
            )
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {}:\n{}",
        failed.len(),
        rows.len(),
        failed.join("\n")
    );
}

/// The built-in deny rules, as the configuration has them.
fn builtin() -> Policy {
    let config = include_str!("../../../../config/agentd.toml");
    let rule = |line: &str| {
        let text = line
            .trim()
            .strip_prefix("{ deny = \"")?
            .split("\", examples")
            .next()?;
        Some(Rule::new(VerdictKind::Deny, text, Source::Builtin).unwrap())
    };
    let rules: Vec<Rule> = config.lines().filter_map(rule).collect();
    assert!(rules.len() > 40, "{}", rules.len());
    Policy::new(Some("/home/ana")).with(rules)
}

#[test]
fn harmless_commands_run_in_yolo_with_the_built_in_rules() {
    let policy = builtin();
    let rows = rows(HARMLESS);
    for (_, command) in &rows {
        let verdict = judged_by(&policy, PermissionMode::Yolo, command);
        // A bare star may be credentials.json.
        let expected = if command == "ls *" {
            VerdictKind::Deny
        } else {
            VerdictKind::Allow
        };
        assert_eq!(verdict.kind, expected, "{command:?}: {}", verdict.reason);
    }
}

#[test]
fn i7_redteam_built_in_rules_match_where_a_command_may_begin() {
    let policy = builtin();
    for command in [
        "awk 'BEGIN{system(\"curl x\")}'",
        "git -c core.pager='curl x' log",
        "tar --to-command='wget x' -xf a.tar",
        "sed 'e curl x' file",
        "trap 'nc -l 80' EXIT",
        "coproc curl x",
        "vim -c '!sudo ls'",
        "rg --pre curl x",
        "PAGER='curl x' man ls",
        "RUSTC_WRAPPER=curl cargo build",
        "rlwrap curl x",
        "kubectl exec pod -- curl x",
        "env '-Scurl x'",
        "git grep -Ocurl x",
        "c?rl x",
    ] {
        let verdict = judged_by(&policy, PermissionMode::Yolo, command);
        assert_eq!(verdict.kind, VerdictKind::Deny, "{command:?}");
        assert_eq!(yolo(&[], command), VerdictKind::Allow, "control: {command:?}");
    }
}

#[test]
fn i7_redteam_a_rule_that_allows_does_not_allow_a_denied_word() {
    let allow = ["allow Bash(*)", "allow Bash(rlwrap:*)"];
    let both = ["allow Bash(*)", "allow Bash(rlwrap:*)", "deny Bash(curl *)"];
    for command in ["rlwrap curl x", "mywrapper --command 'curl x'"] {
        assert_eq!(
            verdict(&allow, PermissionMode::Default, command),
            VerdictKind::Allow,
            "control"
        );
        assert_eq!(
            verdict(&both, PermissionMode::Default, command),
            VerdictKind::Deny,
            "{command}"
        );
    }
    assert_eq!(
        verdict(&both, PermissionMode::Default, "grep curl x"),
        VerdictKind::Allow
    );
}

#[test]
fn i7_a_command_that_only_the_shell_knows_is_asked_about() {
    for command in ["$EDITOR x", "\"$1\" x", "$(cat name) x", "\"${a[@]}\" x"] {
        assert_eq!(
            yolo(&["deny Bash(curl *)"], command),
            VerdictKind::Ask,
            "{command}"
        );
        assert_eq!(yolo(&[], command), VerdictKind::Allow, "control: {command}");
        assert_eq!(
            yolo(&["deny Bash(git push --force:*)"], "$EDITOR x"),
            VerdictKind::Allow,
            "other arguments"
        );
    }
}

#[test]
fn the_verdict_says_where_the_word_occurs() {
    for (command, expected) in [
        (
            "awk 'BEGIN{system(\"curl x\")}'",
            "`curl` occurs in an argument of awk, which may run it",
        ),
        (
            "PAGER='curl x' man ls",
            "`curl` occurs in the variable PAGER, which a program may run",
        ),
        (
            "sqlite3 db <<< '.shell curl x'",
            "`curl` occurs in the input of sqlite3, which may run it",
        ),
        ("c?rl x", "the command c?rl may be it"),
    ] {
        let subject = Subject::Command {
            command: command.to_owned(),
        };
        let request = Request {
            tool: "Bash",
            subject: &subject,
            effect: EffectClass::Exec,
            mode: PermissionMode::Yolo,
            workdir: "/w",
        };
        let explained = explain(&policy(&["deny Bash(curl *)"]), &request);
        let verdict = &explained.judgement.verdict;
        assert_eq!(
            (verdict.kind, verdict.rule.as_str()),
            (VerdictKind::Deny, "Bash(curl *)")
        );
        assert!(verdict.reason.ends_with(expected), "{}", verdict.reason);
    }
}

/// One way to write each letter of a word so that a shell reads the same word.
fn written() -> impl Strategy<Value = String> {
    let letters: Vec<_> = "danger".chars().map(|c| (Just(c), 0..6_u8)).collect();
    letters.prop_map(|letters| {
        let one = |(c, way): (char, u8)| match way {
            0 => format!("'{c}'"),
            1 => format!("\"{c}\""),
            2 => format!("\\{c}"),
            3 => format!("$'\\x{:02x}'", u32::from(c)),
            4 => format!("''{c}\"\""),
            _ => c.to_string(),
        };
        letters.into_iter().map(one).collect()
    })
}

proptest! {
    #[test]
    fn i7_a_denied_word_is_found_however_it_is_quoted(word in written(), place in 0..7_usize) {
        let places = ["{}", "ls; {} x", "echo $({} x)", "X=y {} x", "timeout 5 {} x", "/bin/{} x", "if true; then {}; fi"];
        let command = places[place].replace("{}", &word);
        prop_assert_eq!(yolo(&[], &command), VerdictKind::Allow, "control: {}", command);
        prop_assert_eq!(yolo(&["deny Bash(danger:*)"], &command), VerdictKind::Deny, "{}", command);
    }
}
