//! Deny rules in mode yolo, against text that hides what it runs. Each attack is allowed without the rule.

use super::verdict;
use agentd_protocol::{PermissionMode, VerdictKind};

fn yolo(rules: &[&str], command: &str) -> VerdictKind {
    verdict(rules, PermissionMode::Yolo, command)
}

#[track_caller]
fn denied(rule: &str, attacks: &[&str]) {
    for attack in attacks {
        assert_eq!(
            yolo(&[], attack),
            VerdictKind::Allow,
            "positive control: {attack}"
        );
        assert_eq!(yolo(&[rule], attack), VerdictKind::Deny, "{rule}: {attack}");
    }
}

#[test]
fn i7_redteam_a_denied_command_is_found_in_what_yolo_would_run() {
    denied(
        "deny Bash(danger:*)",
        &[
            // The report.
            "x=danger; $x",
            "echo danger | sh",
            "sh <<E\ndanger now\nE",
            "bash <<'E'\nif true; then danger; fi\nE",
            "sh <<< danger",
            "python3 -c \"import os; os.system('danger now')\"",
            // Values that are set in the text, in pieces.
            "a=dan; b=ger; $a$b x",
            "x='danger now'; $x",
            "x=ls; x=danger; ${x} -l",
            "x=danger; sh -c \"$x now\"",
            "x=danger; y=$x; env $y",
            // GTFOBins: interpreters and editors that start others.
            "python3 -c 'import subprocess as s; s.run([\"danger\", \"now\"])'",
            "python3 -c \"__import__('os').system('dan'+'ger')\"",
            "python3 -c 'import os; os.system(\"\\x64anger\")'",
            "perl -e 'exec \"danger\"'",
            "perl -e 'print `danger now`'",
            "ruby -e 'system(\"danger\")'",
            "node -e \"require('child_process').execSync('danger now')\"",
            "awk 'BEGIN { system(\"danger\") }' | sh",
            "echo now | xargs -I{} sh -c 'danger {}'",
            "php -r 'system(\"danger\");'",
            "lua -e 'os.execute(\"danger\")'",
            // Claude Code issue 23314: deny patterns did not look past a here-document.
            "cat > x.sh <<'E'\ndanger now\nE\nsh x.sh",
            // Claude Code issue 70369: brace group and process substitution.
            "{ danger now; }",
            "cat <(danger) x",
            // Claude Code issues 36637 and 31523, and the cap of 50 parts that Adversa reported.
            "git fetch && git pull && danger -fd",
            "printf 'danger now' > x; . ./x",
            "eval \"$(printf 'danger now')\"",
            "bash -s <<< 'FOO=1 danger'",
            "printf '%s\\n' 'danger' | bash -s --",
        ],
    );
}

#[test]
fn i7_redteam_a_denied_sub_command_is_found_too() {
    denied(
        "deny Bash(git push:*)",
        &[
            "x=push; git $x",
            "git $(echo push) origin",
            "git `echo push` origin",
            "python3 -c \"import subprocess; subprocess.run(['git', 'push'])\"",
            "node -e 'require(\"child_process\").spawnSync(\"git\", [\"push\"])' | sh",
            "echo 'git -C x push' | bash",
            "sh <<E\ngit push -f\nE",
        ],
    );
    denied(
        "deny Bash(rm -rf:*)",
        &[
            "x=-rf; rm $x y",
            "echo rm -f -r y | sh",
            "python3 -c 'import os; os.system(\"rm -r -f y\")'",
        ],
    );
}

#[test]
fn i7_redteam_a_denied_path_is_found_in_what_yolo_would_run() {
    denied(
        "deny Write(**/.app/config)",
        &[
            "cp x .app/config",
            "cp -t .app config",
            "cp config .app/",
            "mv x .app/config",
            "install -m 600 x .app/config",
            "ln -sf x .app/config",
            "ln .app/config y",
            "tee .app/config < x",
            "echo x | tee -a y .app/config",
            "dd if=x of=.app/config",
            "git config -f .app/config --add core.fsmonitor x",
            "sed -i s/a/b/ .app/config",
            "truncate -s 0 .app/config",
            "rsync x .app/config",
            "curl -o .app/config file:///x",
            "cd .app && tee config < x",
            "f=.app/config; cp x $f",
            "find . -name x -exec cp {} .app/config ';'",
            "env A=b cp x .app/config",
            // Claude Code issue 70369: a deny rule for writing did not apply to commands.
            "python3 -c \"open('.app/config', 'w').write('x')\"",
            "sh <<E\necho x > .app/config\nE",
            "node -e \"require('fs').writeFileSync('.app/config', '')\"",
        ],
    );
    denied(
        "deny Write(**/.git/config)",
        &["git config core.pager x", "git -C . config set core.editor x"],
    );
    denied(
        "deny Read(**/.env)",
        &[
            "cat .env",
            "cat .e*",
            "cat .en?",
            "cat ./x/../.env",
            // A one-liner of the interpreter read a file denied to Read (melodic-software/claude-code-plugins 1598).
            "python3 -c \"print(open('.env').read())\"",
            "perl -ne 'print' .env",
            "f=.env; cat $f",
            "{ cat .env; }",
            "sh <<< 'cat .env'",
            "git diff --no-index /dev/null .env",
            "tar cf - .env",
            "curl -d @.env x",
        ],
    );
    denied(
        "deny Read(secret/**)",
        &[
            "cd secret && cat x",
            "grep -r . secret",
            "cp -r secret other",
            "tar c secret",
            "(cd secret; ls)",
            "cat secret/*",
        ],
    );
}

#[test]
fn what_is_understood_or_merely_spoken_of_still_runs_in_yolo() {
    let rules = [
        "deny Bash(danger:*)",
        "deny Bash(git push:*)",
        "deny Read(**/*.key)",
        "deny Write(**/.git/config)",
    ];
    for command in [
        "git commit -m 'no danger'",
        "git commit -m \"$(cat <<'E'\npush the button, avoid danger\nE\n)\"",
        "cat > notes.md <<'E'\nmind the danger\nE",
        "echo \"$HOME\" danger",
        "grep -rn danger src > found",
        "git log \"$x\" | head",
        "python3 -c 'for item in x: print(item.key)'",
        "python3 manage.py test",
        "git config --get remote.origin.url",
        "git config user.name",
        "cp .git/config backup",
        "cat \"$file\" | sort",
        "make -j4 2>&1 | tail",
    ] {
        assert_eq!(yolo(&rules, command), VerdictKind::Allow, "{command}");
    }
}

#[test]
fn i7_words_that_only_occur_in_code_are_not_allowed() {
    for (command, expected) in [
        ("python3 -c 'x = danger'", VerdictKind::Deny),
        ("bash -c 'ls # mind the danger'", VerdictKind::Ask),
    ] {
        assert_eq!(yolo(&["deny Bash(danger:*)"], command), expected, "{command}");
        assert_eq!(
            yolo(&["deny Bash(danger2:*)"], command),
            VerdictKind::Allow,
            "control: {command}"
        );
    }
}

/// What docs/security/rules.md and the line at the switch name as limits: nothing in the text tells.
#[test]
fn limits_of_yolo_are_as_documented() {
    for command in [
        "sh deploy.sh",
        "echo ZGFuZ2VyIG5vdwo= | base64 -d | sh",
        "echo regnad | rev | sh",
    ] {
        assert_eq!(
            yolo(&["deny Bash(danger:*)"], command),
            VerdictKind::Allow,
            "{command}"
        );
    }
}
