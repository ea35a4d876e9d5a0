use super::*;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A working directory with these files.
fn world(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

#[track_caller]
fn names(dir: &Path, near: &[&str], expected: &[&str]) {
    let near: Vec<PathBuf> = near.iter().map(PathBuf::from).collect();
    let real = dir.canonicalize().unwrap();
    let others = Others {
        home: Some(&real),
        system: &real.join("no-system-configuration"),
    };
    let found = named(&real, &others, &near);
    let everything = found.everything.is_some().then(PathBuf::new);
    let found: Vec<PathBuf> = everything.into_iter().chain(found.paths).collect();
    assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>());
}

#[test]
fn i7_what_a_configuration_names_is_found() {
    let dir = world(&[
        (
            ".git/config",
            "[core] hooksPath = tools/hooks\n\tattributesFile = conf/attributes\n[include]\n\tpath = ../conf/shared\n\
             [IncludeIf \"onbranch:x\"]\n\tpath = \"../gone\"\n[Include]\npath = ../../outside\n\
             [filter \"x\"]\nclean = sh 'tools/clean.sh' %f\n[alias]\nz = \"!cd / && ./run me\"\n[user]\nname = src\n",
        ),
        ("conf/shared", "[include]\npath = more\n"),
        ("conf/more", "[core]\nfsmonitor = tools/watch\n"),
        (".git/config.worktree", "[gpg]\nprogram = tools/gpg\n"),
        ("tools/clean.sh", ""),
        ("tools/watch", ""),
        ("tools/gpg", ""),
        ("run", ""),
        ("src/main.rs", ""),
    ]);
    let expected = [
        "conf/attributes",
        "conf/more",
        "conf/shared",
        "gone",
        "run",
        "tools/clean.sh",
        "tools/gpg",
        "tools/hooks",
        "tools/watch",
    ];
    names(dir.path(), &[], &expected);
}

#[test]
fn i7_repositories_above_below_and_elsewhere_count() {
    let dir = world(&[
        ("top/.git/config", "[core]\nhooksPath = w/hooks\n"),
        ("top/w/.gitmodules", "[submodule \"m\"]\npath = lib/m\n"),
        ("top/w/lib/m/.git", "gitdir: ../../store/m\n"),
        ("top/w/store/m/config", "[core]\nhooksPath = h\n"),
        ("top/w/deep/r/.git/config", "[core]\nhooksPath = h\n"),
        ("top/w/tree/.git", "gitdir: ../trees/t"),
        ("top/w/trees/t/commondir", "../../common"),
        ("top/w/common/config", "[core]\nhooksPath = h\n"),
    ]);
    let workdir = dir.path().join("top/w");
    names(&workdir, &[], &["hooks", "lib/m/h", "store/m"]);
    let near = ["deep/r/h/pre-commit", "tree/x"];
    let expected = [
        "common", "deep/r/h", "hooks", "lib/m/h", "store/m", "tree/h", "trees/t",
    ];
    names(&workdir, &near, &expected);
}

#[test]
fn i7_links_are_named_with_where_they_lead() {
    let dir = world(&[(".git/config", "[core]\nhooksPath = h\n"), ("real/x", "")]);
    symlink("real", dir.path().join("h")).unwrap();
    names(dir.path(), &[], &["h", "real"]);
    let dir = world(&[("real/config", "[core]\nhooksPath = .\n")]);
    symlink("real", dir.path().join(".git")).unwrap();
    // Hooks at the top: every file there may be one.
    names(dir.path(), &[], &["", ".git", "real"]);
}

#[test]
fn i7_what_cannot_be_read_protects_everything() {
    let all = [""];
    let dir = world(&[(".git/config", &"#".repeat(1 << 20))]);
    names(dir.path(), &[], &[]);
    fs::write(dir.path().join(".git/config"), "#".repeat((1 << 20) + 1)).unwrap();
    names(dir.path(), &[], &all);
    let words = |count: usize| format!("[a]\nb = {}\n", "x ".repeat(count));
    fs::write(dir.path().join(".git/config"), words(MAX_WORDS)).unwrap();
    names(dir.path(), &[], &[]);
    fs::write(dir.path().join(".git/config"), words(MAX_WORDS + 1)).unwrap();
    names(dir.path(), &[], &all);
    // The branches of a large repository name nothing.
    let branches = "[branch \"b\"]\nremote = origin\nmerge = refs/heads/b\n".repeat(MAX_WORDS);
    fs::write(dir.path().join(".git/config"), branches).unwrap();
    names(dir.path(), &[], &[]);
    // A file that includes itself ends at git's own depth limit.
    fs::write(dir.path().join(".git/config"), "[include]\npath = config\n").unwrap();
    names(dir.path(), &[], &[".git/config"]);
    // A pipe without a writer: opening it must not block.
    fs::remove_file(dir.path().join(".git/config")).unwrap();
    let pipe = dir.path().join(".git/config");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
    names(dir.path(), &[], &all);
    let protected = crate::ProtectedPaths::default().with_named(Named::everything("x"));
    let class = protected.classify(Path::new("src/main.rs"));
    assert_eq!(class, crate::Class::Protected(crate::Reason::NamedByGit));
}

#[test]
fn a_configuration_for_all_repositories_counts() {
    let dir = world(&[
        (".gitconfig", "[core]\nhooksPath = githooks\n"),
        (".git/config", "[x]\ny = ~/tools/x\n"),
        ("tools/x", ""),
    ]);
    names(dir.path(), &[], &["githooks", "tools/x"]);
}

#[test]
fn no_repository_names_nothing() {
    names(world(&[("src/x", "")]).path(), &["src/x"], &[]);
}

#[test]
fn redteam_a_repository_is_known_by_its_contents_whatever_its_name() {
    let dir = world(&[
        ("mirror.git/HEAD", ""),
        ("mirror.git/objects/x", ""),
        ("mirror.git/refs/x", ""),
        ("deep/a/b/HEAD", ""),
        ("deep/a/b/commondir", ""),
        ("half/HEAD", ""),
        ("half/objects/x", ""),
        ("plain/HEAD", ""),
        ("plain/hooks/x", ""),
    ]);
    let real = dir.path().canonicalize().unwrap();
    let guard = |workdir: &Path, path: &str, near: &[PathBuf]| {
        let named = named_by_git(workdir, None, near);
        let paths = crate::ProtectedPaths::default().with_named(named);
        paths.guard(Path::new(path)).map(|guard| guard.reason)
    };
    let git = Some(crate::Reason::GitMetadata);
    for path in [
        "mirror.git/hooks/post-receive",
        "mirror.git/config",
        "mirror.git/info/attributes",
        "mirror.git/x/../hooks/pre-receive",
        "mirror.git/objects/info/alternates",
        "deep/a/b/hooks/post-checkout",
        // The last part makes a repository of its directory.
        "half/refs/heads/main",
        "half/commondir",
    ] {
        let near = [PathBuf::from(path)];
        let tidy = path.replace("x/../", "");
        assert_eq!(guard(&real, &tidy, &near), git, "{path}");
        if !path.ends_with("commondir") {
            assert_eq!(
                guard(&real, &tidy, &[]),
                None,
                "control: by its name alone: {path}"
            );
        }
    }
    for path in [
        "plain/hooks/pre-push",
        "plain/objects",
        "half/config",
        "deep/a/hooks/x",
    ] {
        assert_eq!(
            guard(&real, path, &[PathBuf::from(path)]),
            None,
            "control: {path}"
        );
    }
    // The repository is the working directory, or around it.
    assert_eq!(guard(&real.join("mirror.git"), "hooks/update", &[]), git);
    assert_eq!(
        guard(&real.join("mirror.git/objects"), "info/alternates", &[]),
        git
    );
    assert_eq!(guard(&real.join("half"), "refs/x", &["refs/x".into()]), git);
    assert_eq!(guard(&real.join("plain"), "hooks/update", &[]), None, "control");
}
