//! Writes to paths that act without an explicit build or run: none is allowed in `accept-edits`, or by a rule that was
//! written with ordinary files in mind. `docs/security/protected.md` has the table.

use super::{judged, policy};
use crate::{Judgement, Policy, Request, Subject, judge};
use agentd_protected::{Named, ProtectedPaths};
use agentd_protocol::{EffectClass, PermissionMode, Scope, VerdictKind};

const EDITORS: [&str; 5] = ["Write", "Edit", "MultiEdit", "ApplyPatch", "UndoPatch"];

/// Paths, each with the publication of an attack that uses it.
const ATTACKS: [(&str, &str); 34] = [
    (
        ".git/modules/lib/config",
        "issue 12; CVE-2024-32002 (submodule git directories)",
    ),
    (".git/config.worktree", "issue 12"),
    (".git", "issue 12; CVE-2024-32465 (another user's git directory)"),
    (
        ".git/hooks/post-checkout",
        "CVE-2024-32002, CVE-2025-48384 (a written hook runs at checkout)",
    ),
    (
        ".GIT/hooks/pre-commit",
        "CVE-2014-9390, CVE-2021-21300 (file systems that ignore case)",
    ),
    (
        ".git/info/attributes",
        "gitattributes(5): filters and diff drivers",
    ),
    (
        ".git/objects/info/alternates",
        "CVE-2022-39253, CVE-2024-32004 (objects of elsewhere)",
    ),
    (".git/index", "git's own data: no file tool has a reason"),
    (
        "sub/.git/config",
        "issue 12: core.fsmonitor of a nested repository",
    ),
    ("vendor/x/.git/worktrees/t/commondir", "issue 12"),
    (
        "theme/HEAD",
        "bare repositories in a work tree: safe.bareRepository, git-config(1)",
    ),
    (
        ".gitmodules",
        "CVE-2018-11235, CVE-2025-48384 (names and paths of submodules)",
    ),
    (".gitattributes", "issue 12; gitattributes(5)"),
    (".husky/pre-commit", "issue 12: below core.hooksPath"),
    (
        "tools/hooks/pre-push",
        "issue 12: below core.hooksPath, without a dot",
    ),
    (
        ".vscode/settings.json",
        "CVE-2025-53773 (Copilot: chat.tools.autoApprove)",
    ),
    (".vscode/tasks.json", "VS Code runOn: folderOpen"),
    ("packages/a/.idea/workspace.xml", "issue 12: run configurations"),
    (
        ".claude/settings.json",
        "CVE-2025-59536 (Claude Code: hooks of the project)",
    ),
    (".claude/settings.local.json", "CVE-2025-59536"),
    (".mcp.json", "CVE-2025-59536 (servers of the project)"),
    (
        ".cursor/mcp.json",
        "CVE-2025-54135, CVE-2025-54136 (CurXecute, MCPoison)",
    ),
    (
        ".cursor/rules/x.mdc",
        "rules file backdoor (Pillar Security, 2025)",
    ),
    (
        ".codex/config.toml",
        "CVE-2025-61260 (Codex CLI: servers of the project)",
    ),
    (".gemini/settings.json", "the same for Gemini CLI"),
    (".envrc", "direnv(1)"),
    (".cargo/config.toml", "Cargo: build.rustc-wrapper, target.runner"),
    (".github/workflows/ci.yml", "issue 12: runs at the next push"),
    (".npmrc", "npm: script-shell, node-options"),
    (".yarnrc.yml", "Yarn: yarnPath"),
    (".pre-commit-config.yaml", "pre-commit: local hooks"),
    (
        ".devcontainer/devcontainer.json",
        "initializeCommand runs on the host",
    ),
    ("AGENTS.md", "issue 12: instructions for the next agent"),
    ("sub/claude.md", "the same, and case does not matter"),
];

fn subject(path: &str) -> Subject {
    Subject::Path {
        write: true,
        path: path.to_owned(),
    }
}

fn hooked(rules: &[&str]) -> Policy {
    let named = ProtectedPaths::default().with_named(Named::paths(["tools/hooks"]));
    policy(rules).protecting(named)
}

fn write(policy: &Policy, tool: &str, mode: PermissionMode, subject: &Subject) -> Judgement {
    let request = Request {
        tool,
        subject,
        effect: EffectClass::Write,
        mode,
        workdir: "/w",
    };
    judge(policy, &request)
}

#[test]
fn i7_redteam_protected_paths_are_asked_about_in_accept_edits_and_under_wide_rules() {
    use PermissionMode::{AcceptEdits, Default};
    let wide: Vec<String> = EDITORS
        .iter()
        .flat_map(|tool| {
            ["", "(**)", "(/w/**)", "(.*/**)", "(**/.*)"].map(|inner| format!("allow {tool}{inner}"))
        })
        .collect();
    let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
    for tool in EDITORS {
        for rules in [&[][..], &wide] {
            let plain = write(&hooked(rules), tool, AcceptEdits, &subject("src/main.rs")).verdict;
            assert_eq!(plain.kind, VerdictKind::Allow, "control: {tool}");
            for (path, source) in ATTACKS {
                for mode in [AcceptEdits, Default] {
                    for path in [path.to_owned(), format!("/w/{path}"), format!("src/../{path}")] {
                        let judgement = write(&hooked(rules), tool, mode, &subject(&path));
                        let at = format!("{tool} {path} {mode:?} ({source})");
                        assert_eq!(judgement.verdict.kind, VerdictKind::Ask, "{at}");
                        assert_eq!(judgement.verdict.rule, "gate:protected", "{at}");
                        assert_eq!(judgement.scopes, [Scope::Once], "{at}");
                        let said = judgement.risks.join("\n");
                        assert!(said.contains("may run code outside the sandbox"), "{at}: {said}");
                    }
                }
            }
        }
    }
}

#[test]
fn i7_redteam_one_protected_file_among_many_is_asked_about() {
    for (path, source) in ATTACKS {
        let paths = ["src/a.rs", path, "src/b.rs"].map(str::to_owned).to_vec();
        let several = Subject::Paths { write: true, paths };
        let judgement = write(&hooked(&[]), "ApplyPatch", PermissionMode::AcceptEdits, &several);
        assert_eq!(judgement.verdict.rule, "gate:protected", "{path} ({source})");
        assert_eq!(judgement.grant, None);
    }
}

#[test]
fn a_rule_that_spells_the_protected_name_counts() {
    use PermissionMode::Default;
    let kind = |rule: &str, path: &str| {
        write(&hooked(&[rule]), "Write", Default, &subject(path))
            .verdict
            .kind
    };
    for (rule, path) in [
        ("allow Write(.github/**)", ".github/workflows/ci.yml"),
        ("allow Write(**/.github/**)", "sub/.github/x"),
        ("allow Write(AGENTS.md)", "AGENTS.md"),
        ("allow Write(tools/hooks/*)", "tools/hooks/pre-commit"),
    ] {
        assert_eq!(kind(rule, path), VerdictKind::Allow, "{rule}");
    }
    for (rule, path) in [
        ("allow Write(.github/**)", ".vscode/tasks.json"),
        ("allow Write(**/workflows/**)", ".github/workflows/ci.yml"),
        ("allow Write(.g*/**)", ".github/workflows/ci.yml"),
        ("allow Write(sub/.github/**)", "sub/.github/.git/config"),
        ("allow Write(*.md)", "AGENTS.md"),
    ] {
        assert_eq!(kind(rule, path), VerdictKind::Ask, "{rule}");
    }
}

#[test]
fn yolo_asks_about_what_git_runs_and_plan_denies() {
    use PermissionMode::{Plan, Yolo};
    let kind = |mode, path: &str| write(&hooked(&[]), "Write", mode, &subject(path)).verdict.kind;
    for path in [
        ".git/hooks/x",
        ".git",
        "theme/HEAD",
        "tools/hooks/x",
        ".git/modules/m/config",
    ] {
        assert_eq!(kind(Yolo, path), VerdictKind::Ask, "{path}");
    }
    for path in [".github/workflows/ci.yml", "AGENTS.md", "src/x"] {
        assert_eq!(kind(Yolo, path), VerdictKind::Allow, "{path}");
        assert_eq!(kind(Plan, path), VerdictKind::Deny, "{path}");
    }
    let denied = write(
        &hooked(&["deny Write(.github/**)"]),
        "Write",
        Yolo,
        &subject(".github/x"),
    );
    assert_eq!(denied.verdict.kind, VerdictKind::Deny);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn i7_redteam_commands_that_write_protected_files_are_asked_about_under_prefix_rules() {
    let rules = [
        "allow Bash(cp:*)",
        "allow Bash(mv:*)",
        "allow Bash(ln:*)",
        "allow Bash(install:*)",
        "allow Bash(tee:*)",
        "allow Bash(touch:*)",
        "allow Bash(mkdir:*)",
        "allow Bash(rm:*)",
        "allow Bash(tar:*)",
        "allow Bash(chmod:*)",
        "allow Bash(git:*)",
        "allow Bash(cat:*)",
        "allow Bash(echo:*)",
        "allow Bash(cd:*)",
        "allow Bash(*)",
    ];
    for attack in [
        "cp x .git/hooks/pre-commit",
        "cp -t .github/workflows x",
        "cp --target-directory=.vscode tasks.json",
        "cp x -t.husky",
        "mv x AGENTS.md",
        "ln -s ../evil .git/hooks",
        "install -m755 x .husky/pre-commit",
        "tee .envrc",
        "cat x | tee -a .cargo/config.toml",
        "touch sub/.git",
        "mkdir -p .claude",
        "rm .gitattributes",
        "tar -xf x.tar -C .git",
        "chmod +x .git/hooks/pre-commit",
        "cp x ~/.bashrc",
        "cp x /w/tools/hooks/pre-push",
        "/bin/cp x .npmrc",
        "cd .git && cp ../x hooks",
        "mkdir a && cp x a/HEAD",
        "git init sub",
        "git config core.fsmonitor ./x",
        "git clone x y",
        "git submodule add x",
    ] {
        let command = Subject::Command {
            command: attack.to_owned(),
        };
        let request = Request {
            tool: "Bash",
            subject: &command,
            effect: EffectClass::Exec,
            mode: PermissionMode::AcceptEdits,
            workdir: "/w",
        };
        let judgement = judge(&hooked(&rules), &request);
        assert_eq!(judgement.verdict.kind, VerdictKind::Ask, "{attack}");
        assert!(
            judgement
                .risks
                .iter()
                .any(|risk| risk.contains("outside the sandbox")),
            "{attack}"
        );
    }
    for plain in [
        "cp x src/y",
        "cat .github/workflows/ci.yml",
        "git add .github",
        "git status",
        "mkdir target/.x",
        "cd .github && cat x",
        "touch .gitignore",
    ] {
        let kind = judged(&rules, PermissionMode::Default, plain).kind;
        assert_eq!(kind, VerdictKind::Allow, "control: {plain}");
    }
    for exact in ["cp x .github/y", "git config user.name x"] {
        let rule = format!("allow Bash({exact})");
        assert_eq!(
            judged(&[&rule], PermissionMode::Default, exact).kind,
            VerdictKind::Allow,
            "{exact}"
        );
    }
    let named = judged(
        &["allow Bash(git config:*)"],
        PermissionMode::Default,
        "git config user.name x",
    );
    assert_eq!(named.kind, VerdictKind::Allow);
}

/// Working directories, files below them whose own names are ordinary, and what reads them.
const PLACES: [(&str, &str, &str); 12] = [
    ("/home/ana/.ssh", "authorized_keys", "sshd(8)"),
    (
        "/home/ana/.config/autostart",
        "x.desktop",
        "Desktop Application Autostart Specification",
    ),
    ("/home/ana/.config/systemd/user", "x.service", "systemd.unit(5)"),
    ("/home/ana/.config/git", "config", "git-config(1)"),
    ("/home/ana/.git_template", "hooks/post-checkout", "git-init(1)"),
    ("/home/ana/.cargo/bin", "cargo", "PATH"),
    ("/home/ana/bin", "ls", "PATH"),
    (
        "/home/ana/.claude",
        "settings.json",
        "CVE-2025-59536 (Claude Code)",
    ),
    ("/home/ana/.codex", "config.toml", "CVE-2025-61260 (Codex CLI)"),
    ("/home/ana/.cursor", "mcp.json", "CVE-2025-54135 (Cursor)"),
    ("/srv/agentd", "config.toml", "agentd's own"),
    ("/etc", "profile", "system"),
];

/// The caller chooses the working directory. Below each of these the file's own name is ordinary.
#[test]
fn i7_redteam_no_working_directory_makes_a_protected_place_ordinary() {
    use PermissionMode::{AcceptEdits, Yolo};
    let home = std::path::Path::new("/home/ana");
    let places = agentd_protected::Places::of(Some(home), ["/srv/agentd".into()]);
    let guarded = ProtectedPaths::default().with_places(places);
    let kind = |protected: &ProtectedPaths, workdir: &str, mode, subject: &Subject| {
        let policy = Policy::new(Some("/home/ana")).protecting(protected.clone());
        let (tool, effect) = match subject {
            Subject::Command { .. } => ("Bash", EffectClass::Exec),
            _ => ("Write", EffectClass::Write),
        };
        let request = Request {
            tool,
            subject,
            effect,
            mode,
            workdir,
        };
        judge(&policy, &request).verdict
    };
    for (workdir, path, source) in PLACES {
        let by_name = ProtectedPaths::default().guard(std::path::Path::new(path));
        assert!(by_name.is_none(), "control: the name alone: {workdir} {path}");
        for path in [
            path.to_owned(),
            format!("{workdir}/{path}"),
            format!("sub/../{path}"),
        ] {
            let write = subject(&path);
            for mode in [AcceptEdits, Yolo] {
                let verdict = kind(&guarded, workdir, mode, &write);
                assert_eq!(
                    verdict.kind,
                    VerdictKind::Ask,
                    "{workdir} {path} {mode:?} ({source})"
                );
                assert_eq!(verdict.rule, "gate:protected");
                let command = format!("cp x {path}");
                let command = kind(&guarded, workdir, mode, &Subject::Command { command });
                assert_eq!(
                    command.kind,
                    VerdictKind::Ask,
                    "cp {workdir} {path} {mode:?} ({source})"
                );
            }
        }
    }
    for path in ["/home/ana/app/src/main.rs", "/home/ana/app/bin/x"] {
        let plain = kind(&guarded, "/home/ana/app", AcceptEdits, &subject(path)).kind;
        assert_eq!(plain, VerdictKind::Allow, "control: {path}");
    }
    let discarded = Subject::Command {
        command: "ls > /dev/null".to_owned(),
    };
    assert_eq!(
        kind(&guarded, "/home/ana/app", Yolo, &discarded).kind,
        VerdictKind::Allow
    );
}
