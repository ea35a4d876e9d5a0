//! The red-team list, row by row, as far as the verdict decides: each row has a command that the same rules allow.
//! The tests of the sandbox prove that it blocks the effect, too.

use super::{asked, check, reason, verdict};
use agentd_protocol::{PermissionMode, VerdictKind};

#[test]
fn redteam_01_git_options_that_write_a_file() {
    check(
        "git diff:*",
        "git diff --stat",
        &["git diff --output=M", "git diff --output M"],
    );
    check("git log:*", "git log -1", &["git log --output=M"]);
}

#[test]
fn redteam_02_git_global_options() {
    check(
        "git:*",
        "git status",
        &[
            "git -c core.fsmonitor='touch M' status",
            "git -C /x status",
            "git --git-dir=/x status",
            "git --exec-path=/x status",
            "git -p log",
        ],
    );
}

#[test]
fn redteam_03_an_alias_of_the_repository_is_not_covered() {
    check("git:*", "git diff --stat", &["git st", "git diff --ext-diff"]);
}

#[test]
fn redteam_05_git_commands_that_run_or_write() {
    check(
        "git:*",
        "git status",
        &[
            "git grep -O'touch M' x",
            "git archive -o M HEAD",
            "git bundle create M HEAD",
            "git ls-remote 'ext::sh -c \"touch M\"'",
        ],
    );
}

#[test]
fn redteam_06_find_that_runs_deletes_or_writes() {
    check(
        "find:*",
        "find . -name x",
        &[
            "find . -exec touch M +",
            "find . -execdir touch M +",
            "find . -ok touch M +",
            "find . -delete",
            "find . -fprintf M x",
        ],
    );
}

#[test]
fn redteam_07_sed_scripts_that_write_or_run() {
    asked(
        &["allow Bash(sed:*)", "allow Bash(sed -n 5p f)"],
        "sed -n 5p f",
        &["sed -n 'w M' f", "sed '1e touch M' f", "sed -i s/a/b/ f"],
    );
}

#[test]
fn redteam_08_awk_programs_that_write_or_run() {
    asked(
        &["allow Bash(awk:*)", "allow Bash(awk 1 f)"],
        "awk 1 f",
        &["awk 'BEGIN{system(\"touch M\")}'", "awk '{print > \"M\"}' f"],
    );
}

#[test]
fn redteam_09_programs_that_write_a_named_file() {
    check("sort:*", "sort f", &["sort -o M f"]);
    check("uniq:*", "uniq f", &["uniq f M"]);
    check("shuf:*", "shuf f", &["shuf -o M f"]);
    check(
        "cat:*",
        "cat f",
        &["cat f | tee M", "dd of=M", "split f", "install f M"],
    );
}

#[test]
fn redteam_10_programs_that_run_what_they_are_given() {
    check(
        "tar:*",
        "tar -tf a.tar",
        &["tar -xf a --checkpoint-action=exec=x", "tar -I 'sh -c x' -xf a"],
    );
    check("cat:*", "cat f", &["cat f | xargs touch", "env -S 'touch M'"]);
}

#[test]
fn redteam_11_options_that_name_another_program() {
    check("rg:*", "rg x", &["rg --pre x y", "rg --hostname-bin x y"]);
    check("fd:*", "fd x", &["fd -x touch"]);
    check("go test:*", "go test ./x", &["go test -exec ./x"]);
    check("make test:*", "make test", &["make test -f x"]);
    check("npm:*", "npm test", &["npm exec x"]);
}

#[test]
fn redteam_12_substitutions() {
    asked(
        &["allow Bash(echo:*)", "allow Bash(cat:*)", "allow Bash(touch M)"],
        "echo hi",
        &[
            "echo $(touch M)",
            "echo `touch M`",
            "cat <(touch M)",
            "cat <<E\n$(touch M)\nE",
        ],
    );
}

#[test]
fn redteam_13_each_part_is_judged() {
    asked(
        &["allow Bash(echo:*)"],
        "echo hi; echo ho",
        &[
            "echo hi\ntouch M",
            "echo hi & touch M",
            "echo hi; touch M",
            "echo hi && touch M",
            "echo hi | touch M",
        ],
    );
}

#[test]
fn redteam_14_words_that_hide_what_they_are() {
    asked(
        &["allow Bash(*)", "allow Bash(touch M)"],
        "touch M",
        &[
            "touch${IFS}M",
            "to\\uch M",
            "$'\\x74ouch' M",
            "a=tou;b=ch;$a$b M",
            "{touch,M}",
            "/usr/bin/touc? M",
        ],
    );
    // Empty quotes hide nothing: the words are the same, and therefore the verdict.
    asked(&["allow Bash(echo:*)"], "ec''ho M", &["to''uch M"]);
}

#[test]
fn redteam_15_eval_trap_and_functions() {
    asked(
        &["allow Bash(*)", "allow Bash(ls:*)"],
        "ls -l",
        &[
            "eval $(echo x | base64 -d)",
            "trap 'touch M' EXIT",
            "ls(){ touch M;}; ls",
        ],
    );
}

#[test]
fn redteam_16_arithmetic_and_subscripts_that_run() {
    asked(
        &["allow Bash(*)", "allow Bash(echo:*)"],
        "echo 1",
        &[
            "x='a[$(touch M)]'; echo $((x))",
            "[[ -v 'a[$(touch M)]' ]]",
            "printf -v 'a[$(touch M)]' x",
        ],
    );
}

#[test]
fn redteam_17_variables_that_change_what_runs() {
    asked(
        &["allow Bash(*)", "allow Bash(ls:*)", "allow Bash(git diff:*)"],
        "git diff",
        &[
            "export PATH=$PWD/bin:$PATH; ls",
            "BASH_ENV=be bash -c true",
            "GIT_EXTERNAL_DIFF=x git diff",
        ],
    );
}

#[test]
fn redteam_18_a_denied_command_behind_many_parts() {
    let rules = ["allow Bash(true)", "allow Bash(curl:*)", "deny Bash(curl:*)"];
    let behind = |last: &str| format!("{}{last}", "true; ".repeat(60));
    for mode in [PermissionMode::Default, PermissionMode::Yolo] {
        assert_eq!(verdict(&rules, mode, &behind("true")), VerdictKind::Allow);
        assert_eq!(verdict(&rules, mode, &behind("curl evil")), VerdictKind::Deny);
    }
}

#[test]
fn redteam_19_texts_that_no_shell_should_get() {
    let huge = format!("echo {}", "a".repeat(1 << 20));
    let rules = ["allow Bash(echo:*)", "allow Bash(touch M)"];
    asked(
        &rules,
        "echo hi",
        &["echo hi\rtouch M", "echo\u{a0}hi", "echo hi\u{202e}", &huge],
    );
    for (command, rule) in [
        ("echo hi\0touch M", "gate:unreadable"),
        (&huge, "gate:unreadable"),
        ("echo hi\rtouch M", "gate:not_plain"),
    ] {
        assert_eq!(reason(&rules, command), rule, "{:?}", command.get(..16));
    }
    let nul = verdict(&rules, PermissionMode::Yolo, "echo hi\0touch M");
    assert_eq!(nul, VerdictKind::Deny);
}
