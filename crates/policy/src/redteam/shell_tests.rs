//! Texts as a shell interprets them.

use super::verdict;
use agentd_protocol::{PermissionMode, VerdictKind};

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
