//! Sixteen changes between question and run, and what else may decide what a command does. docs/security/approvals.md lists
//! them with their sources.

use super::*;
use crate::{Prepared, likeness, partly_watched};
use agentd_protocol::Binding;
use serde_json::json;
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// A project, a directory outside of it, a home and programs.
struct Place(World);

impl Place {
    fn new() -> Self {
        let world = World::new();
        for (path, text) in [
            ("w/x.sh", ". ./lib.sh\n. ../out/far.sh\n"),
            ("w/lib.sh", "echo good\n"),
            ("w/Makefile", "include part.mk\ninclude ../out/far.mk\nall:\n"),
            ("w/part.mk", "A=1\n"),
            ("w/sub/Makefile", "all:\n"),
            ("w/app/__init__.py", ""),
            ("w/app/__main__.py", "import app.part\n"),
            ("w/app/part.py", "1\n"),
            ("w/index.js", "require('./part')\n"),
            ("w/part.js", "1\n"),
            ("w/package.json", "{}\n"),
            ("w/justfile", "x:\n"),
            ("w/build.rs", "fn main() {}\n"),
            ("w/conftest.py", "1\n"),
            ("w/logs/a.log", "1\n"),
            (
                "w/.git/config",
                "[alias]\n\tlg = log\n[core]\n\thooksPath = ../out/hooks/pre\n",
            ),
            ("w/.git/hooks/pre-commit", "#!/bin/sh\n"),
            ("w/.git/index", "1\n"),
            ("w/tool", "#!/usr/bin/env far\n"),
            ("out/far.sh", "echo good\n"),
            ("out/far.mk", "A=1\n"),
            ("out/Makefile", "all:\n"),
            ("out/hooks/pre", "1\n"),
            ("home/.gitconfig", "[alias]\n"),
            ("bin/far", "#!/bin/sh\n"),
            ("bin/python3", "#!/bin/sh\n"),
        ] {
            world.put(path, text);
        }
        let place = Self(world);
        for program in ["bin/far", "bin/python3", "w/tool"] {
            fs::set_permissions(place.path(program), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir_all(place.path("w/venv/bin")).unwrap();
        symlink("../../../bin/python3", place.path("w/venv/bin/python")).unwrap();
        place
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.root().join(path)
    }

    fn bind(&self, call: &Prepared, most: usize) -> Binding {
        let root = self.0.root();
        let environment = Environment::default()
            .with("PATH", format!("{0}/first:{0}/bin", root.display()))
            .with("HOME", format!("{}/home", root.display()));
        let beneath = Beneath::open(&root.join("w")).unwrap();
        call.binding(&beneath, &environment, most).unwrap()
    }
}

fn bash(command: &str) -> Prepared {
    let registry = Registry::builtin(&ToolLimits::default());
    registry.prepare("Bash", &json!({ "command": command })).unwrap()
}

/// Which changes the binding detects when one happens after the question.
fn noticed(command: &str, change: &dyn Fn(&Place)) -> Vec<String> {
    let (place, call) = (Place::new(), bash(command));
    let asked = place.bind(&call, 1_000);
    // Positive control: without a change the binding still holds.
    assert_eq!(
        asked.changes(&place.bind(&call, 1_000)),
        Vec::<String>::new(),
        "{command}"
    );
    change(&place);
    asked.changes(&place.bind(&call, 1_000))
}

/// A command, and a change that happens after the question.
type Change = (&'static str, Box<dyn Fn(&Place)>);

fn put(path: &'static str) -> Box<dyn Fn(&Place)> {
    Box::new(move |place| _ = place.0.put(path, "something else\n"))
}

#[test]
fn redteam_45_i7_each_of_sixteen_changes_voids_the_approval_of_a_command() {
    let changes: Vec<Change> = vec![
        // The first half of them once went undetected.
        ("sh x.sh", put("w/lib.sh")),
        ("make", put("w/part.mk")),
        ("make -C sub", put("w/sub/Makefile")),
        ("python3 -c 'import app.part'", put("w/app/part.py")),
        ("python3 -m app", put("w/app/__main__.py")),
        ("git lg", put("w/.git/config")),
        ("rm logs/*.log", put("w/logs/b.log")),
        ("python3 -V", put("bin/python3")),
        // The other half was always detected.
        ("sh x.sh", put("w/x.sh")),
        ("make", put("w/Makefile")),
        ("npm test", put("w/package.json")),
        ("just x", put("w/justfile")),
        ("sh < lib.sh", put("w/lib.sh")),
        ("./tool", put("w/tool")),
        ("cd sub && make", put("w/sub/Makefile")),
        ("sed -i s/a/b/ lib.sh", put("w/lib.sh")),
    ];
    assert_eq!(changes.len(), 16);
    for (command, change) in &changes {
        assert_ne!(noticed(command, change), Vec::<String>::new(), "{command}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn redteam_45_i7_what_a_command_runs_from_elsewhere_is_bound_too() {
    let changes: Vec<Change> = vec![
        ("sh x.sh", put("out/far.sh")),
        (". ../out/far.sh", put("out/far.sh")),
        ("make", put("out/far.mk")),
        ("make -C ../out", put("out/Makefile")),
        ("make --directory=../out", put("out/Makefile")),
        ("cd ../out && make", put("out/Makefile")),
        ("git lg", put("home/.gitconfig")),
        ("git commit -m x", put("home/.config/git/config")),
        ("git commit -m x", put("w/.git/hooks/pre-commit")),
        ("git commit -m x", put("out/hooks/pre")),
        ("npm test", put("home/.npmrc")),
        ("cargo test", put("home/.cargo/config.toml")),
        ("cargo test", put("w/build.rs")),
        ("cargo test", put("w/.cargo/config.toml")),
        ("pytest", put("w/conftest.py")),
        ("node index.js", put("w/part.js")),
        ("node index.js", put("w/node_modules/part/index.js")),
        ("venv/bin/python -V", put("bin/python3")),
        ("./tool", put("bin/far")),
        ("frobnicate", put("w/anything")),
        // A program that is now found earlier on the path.
        (
            "python3 -V",
            Box::new(|place| {
                place.0.put("first/python3", "#!/bin/sh\n");
                fs::set_permissions(place.path("first/python3"), fs::Permissions::from_mode(0o755)).unwrap();
            }),
        ),
        // The same size and modification time: the inode and the change time reveal it.
        (
            "make",
            Box::new(|place| {
                let old = fs::metadata(place.path("w/part.mk")).unwrap().modified().unwrap();
                place.0.put("w/part.mk.new", "A=2\n");
                fs::File::open(place.path("w/part.mk.new"))
                    .unwrap()
                    .set_modified(old)
                    .unwrap();
                fs::rename(place.path("w/part.mk.new"), place.path("w/part.mk")).unwrap();
            }),
        ),
        // A retargeted link, and a change of a link's target.
        (
            "make",
            Box::new(|place| {
                fs::remove_file(place.path("w/part.mk")).unwrap();
                symlink("../out/far.mk", place.path("w/part.mk")).unwrap();
            }),
        ),
        (
            "make",
            Box::new(|place| fs::remove_file(place.path("w/part.mk")).unwrap()),
        ),
        (
            "make",
            Box::new(|place| {
                fs::set_permissions(place.path("w/tool"), fs::Permissions::from_mode(0o700)).unwrap();
            }),
        ),
    ];
    for (command, change) in &changes {
        assert_ne!(noticed(command, change), Vec::<String>::new(), "{command}");
    }
}

#[test]
fn unrelated_changes_void_nothing() {
    for (command, path) in [
        ("touch A", "w/lib.sh"),
        ("rm x.sh", "w/lib.sh"),
        ("git commit -m x", "w/.git/index"),
        ("git commit -m x", "w/.git/objects/ab/cd"),
        ("make", "out/else"),
        ("make", "home/.gitconfig"),
    ] {
        assert_eq!(
            noticed(command, &put(path)),
            Vec::<String>::new(),
            "{command}: {path}"
        );
    }
}

#[test]
fn redteam_45_i6_a_pipe_is_not_opened_and_a_huge_directory_is_reported() {
    let place = Place::new();
    for name in ["w/pipe.sh", "w/Makefile2", "out/pipe"] {
        rustix::fs::mkfifoat(rustix::fs::CWD, place.path(name), rustix::fs::Mode::from(0o600)).unwrap();
    }
    place.0.put("w/loop.sh", ". ./pipe.sh\n. ../out/pipe\n");
    // The pipe has no writer, so a blocking open would never return.
    for command in ["sh pipe.sh", "sh loop.sh", "make -f Makefile2", "sh ../out/pipe"] {
        assert!(place.bind(&bash(command), 1_000).trees.len() == 1, "{command}");
    }
    let make = bash("make");
    let whole = place.bind(&make, 1_000);
    assert_eq!(partly_watched(&whole).count(), 0, "positive control");
    let some = place.bind(&make, 5);
    assert_eq!(partly_watched(&some).count(), 1);
    // A new entry directly in a directory that was not read is still detected.
    place.0.put("w/new.mk", "1\n");
    assert_ne!(some.changes(&place.bind(&make, 5)), Vec::<String>::new());
}

#[test]
fn redteam_45_i7_only_the_same_call_in_the_same_place_is_equal() {
    let (one, other) = (Place::new(), Place::new());
    let call = bash("sh x.sh");
    let like = |place: &Place, call: &Prepared| likeness(&place.bind(call, 1_000));
    assert_eq!(like(&one, &call), like(&one, &call), "positive control");
    assert_ne!(like(&one, &call), like(&other, &call), "another directory");
    assert_ne!(like(&one, &call), like(&one, &bash("sh x.sh ")), "another text");
    let before = like(&one, &call);
    one.0.put("w/x.sh", "echo bad\n");
    assert_ne!(before, like(&one, &call), "another script");
}
