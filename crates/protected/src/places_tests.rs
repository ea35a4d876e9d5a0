use super::*;
use crate::{Class, Named, ProtectedPaths};
use std::fs;

fn places() -> Places {
    let own = [
        PathBuf::from("/home/ana/.local/share/agentd"),
        PathBuf::from("/srv/agentd"),
    ];
    let data = "/home/ana/.local/share/agentd/workspaces";
    Places::of(Some(Path::new("/home/ana")), own)
        .with_workspaces(data.into())
        .with_workspaces("/srv/agentd/workspaces".into())
}

fn reason(path: &str) -> Option<Reason> {
    places().place(Path::new(path)).map(|place| place.reason)
}

/// Directories that a caller may name as a working directory, with what runs or obeys the files in them.
const ATTACKS: [(&str, &str); 25] = [
    ("/home/ana/.ssh", "sshd: authorized_keys"),
    (
        "/home/ana/.config/autostart",
        "freedesktop.org, Desktop Application Autostart",
    ),
    ("/home/ana/.config/systemd/user", "systemd.unit(5)"),
    ("/home/ana/.config/git", "git-config(1)"),
    ("/home/ana/.git_template", "git-init(1), init.templateDir"),
    ("/home/ana/.cargo/bin", "PATH"),
    ("/home/ana/bin", "PATH"),
    ("/home/ana/go/bin", "PATH"),
    ("/home/ana/.local/bin", "PATH"),
    (
        "/home/ana/.local/share/applications",
        "Desktop Entry Specification",
    ),
    (
        "/home/ana/.claude",
        "CVE-2025-59536 (Claude Code: hooks in settings)",
    ),
    (
        "/home/ana/.codex",
        "CVE-2025-61260 (Codex CLI: servers in config.toml)",
    ),
    ("/home/ana/.cursor", "CVE-2025-54135 (Cursor: mcp.json)"),
    ("/home/ana/.gemini/extensions", "Gemini CLI, extensions"),
    ("/home/ana/.config/agentd", "agentd's own rules"),
    (
        "/home/ana/.cache/build/app",
        "zsh: a prompt's cache is sourced; an exception frees nothing here",
    ),
    ("/home/ana/.gradle/init.d", "Gradle, initialization scripts"),
    ("/home/eve/.ssh", "another user's home directory"),
    ("/root/.config/systemd/user", "the same for root"),
    ("/etc/cron.d", "cron(8)"),
    ("/usr/lib/systemd/system", "systemd.unit(5)"),
    ("/var/spool/cron/crontabs", "cron(8)"),
    ("/srv/app/.git/hooks", "githooks(5)"),
    ("/srv/build/app/.github/workflows", "below an exception's name"),
    ("/srv/app/.vscode", "CVE-2025-53773 (GitHub Copilot)"),
];

#[test]
fn redteam_a_working_directory_does_not_make_a_place_ordinary() {
    for (dir, source) in ATTACKS {
        let dir = Path::new(dir);
        assert!(places().place(dir).is_some(), "{} ({source})", dir.display());
        let named = Named {
            workdir: Some(dir.to_owned()),
            ..Named::default()
        };
        let relative = Path::new("ordinary");
        let paths = ProtectedPaths::default().with_places(places());
        assert!(
            paths.guard(relative).is_none(),
            "control: the name alone is ordinary"
        );
        let paths = paths.with_named(named);
        assert!(
            matches!(paths.classify(relative), Class::Protected(_)),
            "{}",
            dir.display()
        );
        assert!(paths.guard(relative).is_some(), "{}", dir.display());
        assert!(paths.guard(Path::new("")).is_some(), "{}", dir.display());
    }
}

#[test]
fn working_directories_are_no_places() {
    for dir in [
        "/home/ana",
        "/home/ana/src/app",
        "/home/ana/binary",
        "/home/ana/build/app",
        "/tmp/.tmpAbC/w",
        "/opt/app",
        "/usr/src/app",
        "/srv/app/target",
        "/home/ana/.local/share/agentd/workspaces/01/app/src",
        "/srv/agentd/workspaces/01/app",
        "/home/ana/.codex/worktrees/a1/app",
        "/srv/app/.worktrees/fix",
        "/srv/app/.claude/worktrees/fix/src",
    ] {
        assert_eq!(reason(dir), None, "{dir}");
    }
    for dir in [
        "/srv/agentd",
        "/srv/agentd/logs",
        "/srv/agentd/workspaces/01",
        "/srv/agentd/workspaces/01/git",
        "/srv/agentd/workspaces/01/git/refs",
    ] {
        assert_eq!(reason(dir), Some(Reason::Own), "{dir}");
    }
    for dir in [
        "/srv/app/.worktrees",
        "/srv/app/.claude/worktrees",
        "/srv/app/.git/worktrees/a/b",
    ] {
        assert!(reason(dir).is_some(), "{dir}");
    }
}

#[test]
fn places_below_a_working_directory_stay_protected() {
    let class = |workdir: &str, path: &str| {
        let named = Named {
            workdir: Some(workdir.into()),
            ..Named::default()
        };
        let paths = ProtectedPaths::default().with_places(places());
        paths.with_named(named).classify(Path::new(path))
    };
    let protected = Class::Protected(Reason::Home);
    assert_eq!(class("/home/ana", "bin/ls"), protected);
    assert_eq!(class("/home/ana", ".cache/zsh"), protected);
    assert_eq!(class("/home", "ana/.ssh/authorized_keys"), protected);
    assert_eq!(class("/", "home/ana/go/bin/gopls"), protected);
    assert_eq!(class("/", "etc/passwd"), Class::Protected(Reason::System));
    assert_eq!(class("/home/ana", "src/bin/main.rs"), Class::Free);
    assert_eq!(class("/srv/app", "bin/tool"), Class::Free);
    // What git writes stays its data where the directory is none of these.
    assert_eq!(class("/srv/app", ".git/index"), Class::GitData);
}

#[test]
fn a_place_says_what_and_why() {
    let place = places().place(Path::new("/home/ana/.ssh/keys")).unwrap();
    assert_eq!(place.path, Path::new("/home/ana/.ssh"));
    assert!(
        place.to_string().starts_with("/home/ana/.ssh is protected: "),
        "{place}"
    );
    assert_eq!(
        Places::of(Some(Path::new("/")), []).place(Path::new("/srv")),
        None
    );
}

#[test]
fn links_of_the_home_directory_lead_to_places() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    fs::create_dir_all(top.join("dotfiles/config/autostart")).unwrap();
    fs::create_dir_all(top.join("real")).unwrap();
    fs::write(top.join("dotfiles/zshrc"), "").unwrap();
    let home = top.join("home");
    std::os::unix::fs::symlink(top.join("real"), &home).unwrap();
    std::os::unix::fs::symlink(top.join("dotfiles/config"), home.join(".config")).unwrap();
    std::os::unix::fs::symlink(top.join("dotfiles/zshrc"), home.join(".zshrc")).unwrap();
    std::os::unix::fs::symlink(&top, home.join(".everything")).unwrap();
    let (text, real) = (
        Places::of(Some(&home), []),
        Places::of(Some(&home), []).followed(),
    );
    for (path, is_place) in [
        ("dotfiles/config/autostart", true),
        ("dotfiles/zshrc", true),
        ("real/bin", true),
        ("dotfiles", false),
        ("real", false),
    ] {
        assert_eq!(real.place(&top.join(path)).is_some(), is_place, "{path}");
        assert_eq!(text.place(&top.join(path)), None, "control: {path}");
    }
}
