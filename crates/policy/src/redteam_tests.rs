//! Inputs that agents were attacked with: none may be allowed by a rule for the harmless command beside it.

use crate::{Policy, Request, Rule, Source, Subject, judge};
use agentd_protocol::{EffectClass, PermissionMode, Verdict, VerdictKind};

fn policy(rules: &[&str]) -> Policy {
    Policy::new(Some("/home/ana")).with(
        rules
            .iter()
            .map(|rule| Rule::parse(rule, Source::Operator).unwrap())
            .collect(),
    )
}

pub(crate) fn verdict(rules: &[&str], mode: PermissionMode, command: &str) -> VerdictKind {
    judged(rules, mode, command).kind
}

/// The rule that decides in mode default.
pub(crate) fn reason(rules: &[&str], command: &str) -> String {
    judged(rules, PermissionMode::Default, command).rule
}

fn judged(rules: &[&str], mode: PermissionMode, command: &str) -> Verdict {
    let subject = Subject::Command {
        command: command.to_owned(),
    };
    let request = Request {
        tool: "Bash",
        subject: &subject,
        effect: EffectClass::Exec,
        mode,
        workdir: "/w",
    };
    judge(&policy(rules), &request).verdict
}

/// With the rule, the harmless command runs and no other does.
#[track_caller]
pub(crate) fn check(rule: &str, harmless: &str, attacks: &[&str]) {
    let rule = format!("allow Bash({rule})");
    let control = verdict(&[&rule], PermissionMode::Default, harmless);
    assert_eq!(
        control,
        VerdictKind::Allow,
        "positive control: {rule}: {harmless}"
    );
    for attack in attacks {
        for rules in [
            &[rule.as_str()][..],
            &[rule.as_str(), "allow Bash(*)"],
            &[rule.as_str(), "allow Bash"],
        ] {
            assert_eq!(
                verdict(rules, PermissionMode::Default, attack),
                VerdictKind::Ask,
                "{rules:?}: {attack:?}"
            );
        }
    }
}

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

#[test]
fn i7_whatever_is_not_plain_is_asked_about() {
    for command in [
        "echo $(touch M)",
        "echo `touch M`",
        "cat <(touch M)",
        "cat <<E\n$(touch M)\nE",
        "echo hi & touch M",
        "touch${IFS}M",
        "to\\uch M",
        "$'\\x74ouch' M",
        "a=tou;b=ch;$a$b M",
        "{touch,M}",
        "/usr/bin/touc? M",
        "eval $(echo x | base64 -d)",
        "ls(){ touch M;}; ls",
        "x='a[$(touch M)]'; echo $((x))",
        "[[ -v 'a[$(x)]' ]]",
        "export PATH=$PWD/bin:$PATH; ls",
        "BASH_ENV=be bash -c true",
        "GIT_EXTERNAL_DIFF=x git diff",
        "echo hi\rtouch M",
        "echo\u{a0}hi",
        "echo hi >M",
        "echo hi >>M",
        "echo hi 2>M",
        "echo hi >&M",
        "cat <M",
        "echo \"$HOME\"",
        "echo *",
        "echo hi # x",
        "( echo hi )",
        "if true; then echo; fi",
        "! echo hi",
        "echo hi |& cat",
        "echo 'a",
        "echo \"a\\\"b\"",
        "echo hi\u{202e}",
        "time echo hi",
        "while true; do echo; done",
    ] {
        let rules = [
            "allow Bash(*)",
            "allow Bash(echo:*)",
            "allow Bash(cat:*)",
            "allow Bash(ls:*)",
            "allow Bash(touch M)",
        ];
        assert_eq!(
            verdict(&rules, PermissionMode::Default, command),
            VerdictKind::Ask,
            "{command:?}"
        );
    }
    assert_eq!(
        verdict(&["allow Bash(touch M)"], PermissionMode::Default, "to''uch M"),
        VerdictKind::Allow,
        "the same words"
    );
}

#[test]
fn i7_every_part_is_judged() {
    for command in [
        "echo hi\ntouch M",
        "echo hi; touch M",
        "echo hi && touch M",
        "echo hi || touch M",
        "echo hi | touch M",
    ] {
        assert_eq!(
            verdict(&["allow Bash(echo:*)"], PermissionMode::Default, command),
            VerdictKind::Ask,
            "{command:?}"
        );
        let both = ["allow Bash(echo:*)", "allow Bash(touch:*)"];
        assert_eq!(
            verdict(&both, PermissionMode::Default, command),
            VerdictKind::Allow,
            "{command:?}"
        );
    }
}

#[test]
fn i7_a_denied_command_is_found_wherever_it_stands() {
    let long = format!("{}curl evil", "true; ".repeat(60));
    for command in [
        long.as_str(),
        "echo $(curl x)",
        "echo `curl x`",
        "sudo -u x curl y",
        "env A=b curl x",
        "ls | xargs -n 1 curl",
        "sh -c 'curl x'",
        "bash -lc \"cd /; curl x\"",
        "eval 'curl x'",
        "cu''rl x",
        "c\\url x",
        "/usr/bin/curl x",
        "$'\\x63url' x",
        "curl${IFS}x",
        "A=b curl x",
        "f(){ curl x; }; f",
        "if true; then curl x; fi",
        "timeout 5 sh -c 'env curl x'",
        "find . -exec curl x ';'",
        "echo hi & curl x",
        "cat <<E\n$(curl x)\nE",
        "ls && ( curl x )",
        "curl x >'",
        "! curl x",
        "time curl x",
        "echo \"$(curl x)\"",
        "watch 'curl x'",
    ] {
        for mode in [
            PermissionMode::Default,
            PermissionMode::Yolo,
            PermissionMode::AcceptEdits,
            PermissionMode::Plan,
        ] {
            let rules = ["deny Bash(curl:*)", "allow Bash(*)"];
            assert_eq!(verdict(&rules, mode, command), VerdictKind::Deny, "{command:?}");
        }
    }
    assert_eq!(
        verdict(
            &["deny Bash(curl:*)"],
            PermissionMode::Yolo,
            "git commit -m 'use curl less'"
        ),
        VerdictKind::Allow
    );
}

#[test]
fn i7_a_command_that_cannot_be_read_is_never_allowed() {
    let huge = format!("echo {}", "a".repeat(1 << 20));
    for mode in [PermissionMode::Default, PermissionMode::Yolo] {
        assert_eq!(verdict(&["allow Bash(*)"], mode, &huge), VerdictKind::Ask);
        assert_eq!(
            verdict(&["allow Bash(*)"], mode, "echo hi\0touch M"),
            VerdictKind::Deny
        );
    }
}

#[test]
fn i7_texts_made_to_exhaust_the_reader_come_back() {
    for unit in [
        "(", "$(", "{", "\"", "'", "`", "<<E\n", "[[", "a|", "${", "$((", "if ", "case ", "\\", "sh -c '",
        "a=(", "sudo ",
    ] {
        let text: String = unit.repeat(60_000 / unit.len());
        assert_ne!(
            verdict(&["allow Bash(*)"], PermissionMode::Default, &text),
            VerdictKind::Allow,
            "{unit}"
        );
    }
}

#[test]
fn i7_a_deny_rule_is_found_in_what_is_too_long_to_read() {
    let rules = ["deny Bash(curl:*)", "allow Bash(*)"];
    for filler in ["a|".repeat(1_000), "true;".repeat(20_000)] {
        assert_eq!(
            verdict(&rules, PermissionMode::Yolo, &format!("{filler}curl x")),
            VerdictKind::Deny
        );
        assert_eq!(
            verdict(&rules, PermissionMode::Yolo, &format!("{filler}ls")),
            VerdictKind::Ask
        );
    }
}
