//! Options, programs and scripts that write or run.

use super::{check, verdict};
use agentd_protocol::{PermissionMode, VerdictKind};

#[test]
fn i7_git_options_that_write_or_run_are_not_allowed() {
    check(
        "git diff:*",
        "git diff --stat",
        &[
            "git diff --output=M",
            "git diff --outp M",
            "git diff --ext-diff",
            "git diff --textconv",
        ],
    );
    check(
        "git log:*",
        "git log --oneline",
        &["git log --output=M", "git log --no-index"],
    );
    check(
        "git:*",
        "git status",
        &[
            "git -c core.fsmonitor='touch M' status",
            "git -C /x status",
            "git --git-dir=/x status",
            "git --exec-path=/x status",
            "git -p log",
            "git st",
            "git grep -O'touch M' x",
            "git archive -o M HEAD",
            "git bundle create M HEAD",
            "git ls-remote 'ext::sh -c \"touch M\"'",
            "git fetch 'ext::sh -c \"touch M\"'",
            "git fetch --upload-pack='touch M' x",
            "git config core.pager x",
        ],
    );
}

#[test]
fn i7_find_sed_and_awk_that_run_or_write_are_not_allowed() {
    check(
        "find:*",
        "find . -name x",
        &[
            "find . -exec touch M +",
            "find . -execdir a +",
            "find . -ok a +",
            "find . -delete",
            "find . -fprintf M x",
            "find . -fls M",
        ],
    );
    for script in ["sed -n 'w M' f", "sed '1e touch M' f", "sed -i s/a/b/ f"] {
        assert_eq!(
            verdict(&["allow Bash(sed:*)"], PermissionMode::Default, script),
            VerdictKind::Ask,
            "{script}"
        );
    }
    for script in ["awk 'BEGIN{system(1)}'", "awk '{print > 1}' f"] {
        assert_eq!(
            verdict(&["allow Bash(awk:*)"], PermissionMode::Default, script),
            VerdictKind::Ask,
            "{script}"
        );
    }
    assert_eq!(
        verdict(
            &["allow Bash(sed -n 5p f)"],
            PermissionMode::Default,
            "sed -n 5p f"
        ),
        VerdictKind::Allow
    );
}

#[test]
fn i7_options_that_write_a_file_are_not_allowed() {
    check(
        "sort:*",
        "sort -u f",
        &[
            "sort -o M f",
            "sort -uo M f",
            "sort --output=M f",
            "sort --compress-program=x f",
        ],
    );
    check("uniq:*", "uniq -c f", &["uniq f M", "uniq -c f M", "uniq - M"]);
    check("shuf:*", "shuf f", &["shuf -o M f"]);
    check(
        "cat:*",
        "cat f",
        &["cat f | tee M", "tee M", "dd of=M", "install f M"],
    );
}

#[test]
fn i7_options_that_run_another_program_are_not_allowed() {
    check(
        "tar:*",
        "tar -tf a.tar",
        &[
            "tar -xf a --checkpoint-action=exec=x",
            "tar -I 'sh -c x' -xf a",
            "tar xIf x a",
            "tar -xf a --to-command=x",
            "tar -xf a --use-comp x",
        ],
    );
    check(
        "rg:*",
        "rg -n x",
        &["rg --pre x y", "rg --hostname-bin x y", "rg -z x"],
    );
    check("fd:*", "fd x", &["fd -x touch", "fd . --exec touch"]);
    check(
        "go test:*",
        "go test ./x",
        &["go test -exec ./x", "go test --exec=./x", "go test -toolexec x"],
    );
    check(
        "npm:*",
        "npm test",
        &["npm exec x", "npm x y", "npm --script-shell=x test"],
    );
    check(
        "make test:*",
        "make test",
        &[
            "make test -f x",
            "make test SHELL=x",
            "make other",
            "make -C /x test",
        ],
    );
    check(
        "cargo test:*",
        "cargo test -p a",
        &["cargo test --config x", "cargo test -Z x"],
    );
}

#[test]
fn i7_programs_that_run_their_arguments_need_an_exact_rule() {
    for command in [
        "xargs touch",
        "env -S 'touch M'",
        "env A=b touch M",
        "sh -c x",
        "bash -c x",
        "python3 -c x",
        "python3.11 x.py",
        "eval x",
        "nohup x",
        "timeout 1 x",
        "perl -e x",
        "node x.js",
        "source x",
        ". x",
        "exec x",
        "command x",
        "./x",
        "/tmp/cargo x",
        "npx y",
        "printf -v 'a[$(x)]' y",
        "trap x EXIT",
        "export A=b",
        "ssh h x",
        "busybox sh",
    ] {
        for rules in [&["allow Bash(*)"][..], &["allow Bash"]] {
            assert_eq!(
                verdict(rules, PermissionMode::Default, command),
                VerdictKind::Ask,
                "{command}"
            );
        }
    }
    for (rule, command, expected) in [
        ("python3:*", "python3 -c x", VerdictKind::Ask),
        ("python3 -u:*", "python3 -u -c x", VerdictKind::Ask),
        (
            "python3 manage.py:*",
            "python3 manage.py test",
            VerdictKind::Allow,
        ),
        ("sh test.sh", "sh test.sh", VerdictKind::Allow),
        ("sh:*", "sh test.sh", VerdictKind::Ask),
        ("xargs:*", "xargs touch", VerdictKind::Ask),
        ("xargs touch", "xargs touch", VerdictKind::Allow),
    ] {
        assert_eq!(
            verdict(
                &[&format!("allow Bash({rule})")],
                PermissionMode::Default,
                command
            ),
            expected,
            "{rule}: {command}"
        );
    }
}
