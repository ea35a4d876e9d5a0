use super::*;

/// The configuration that `git init` writes.
const FRESH: &str =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";
/// A person's configuration in an old repository.
const OLD: &str = "[core]\n\tbare = false\n\thooksPath = .husky ; ours\n[remote \"origin\"]\n\turl = https://example.org/a.git\n\
                   \tfetch = +refs/heads/*:refs/remotes/origin/*\n[filter \"lfs\"]\n\tprocess = \"git-lfs filter-process\"\n\
                   [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[alias]\n\tz = !f() { \\\n\t ls; }; f\n";

#[track_caller]
fn allowed(old: &str, new: &str) {
    assert_eq!(check_config_change(old, new), Ok(()), "{new}");
}

#[track_caller]
fn refused(old: &str, new: &str) {
    assert!(check_config_change(old, new).is_err(), "{new}");
}

#[test]
fn a_new_repository_gets_what_git_init_and_git_clone_write() {
    allowed("", "");
    allowed("", FRESH);
    let url = format!("{FRESH}[remote \"origin\"]\n\turl = git@example.org:a/b.git\n");
    let fetch = format!("{url}\tfetch = +refs/heads/*:refs/remotes/origin/*\n");
    let branch = format!("{fetch}[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n");
    let user = format!("{branch}[user]\n\tname = Jos\u{e9} d'A.\n\temail = j@example.org\n");
    for step in [FRESH, &url, &fetch, &branch, &user].windows(2) {
        allowed(step[0], step[1]);
    }
    allowed("", &user);
    let partial =
        "\tpromisor = true\n\tpartialclonefilter = blob:none\n[extensions]\n\tpartialClone = origin\n";
    allowed(&fetch, &format!("{fetch}{partial}"));
}

#[test]
fn a_branch_follows_a_remote_that_is_there() {
    allowed(
        OLD,
        &format!("{OLD}[branch \"b\"]\n\tremote = origin\n\tmerge = refs/heads/b\n"),
    );
    allowed(
        OLD,
        &format!("{OLD}[branch \"b\"]\n\tremote = .\n\tmerge = refs/heads/main\n"),
    );
    refused(
        OLD,
        &format!("{OLD}[branch \"b\"]\n\tremote = https://evil.example/x\n"),
    );
    // Only a person chooses where `git push` goes.
    refused(
        OLD,
        &OLD.replace(
            "[branch \"main\"]\n\tremote = origin",
            "[branch \"main\"]\n\tremote = .",
        ),
    );
    refused(OLD, &OLD.replace("example.org", "evil.example"));
    refused(
        OLD,
        &format!("{OLD}[remote \"evil\"]\n\turl = https://evil.example/x\n"),
    );
    refused(
        OLD,
        &format!("{OLD}[remote \"origin\"]\n\turl = https://evil.example/x\n"),
    );
    refused(
        OLD,
        &format!("{OLD}[remote \"origin\"]\n\tpushurl = https://evil.example/x\n"),
    );
    refused(OLD, &OLD.replace("remote \"origin\"", "remote \"other\""));
}

#[test]
fn i7_what_runs_a_program_or_reads_a_file_is_refused() {
    for evil in [
        "[core]\n\thooksPath = h",
        "[core]\n\tfsmonitor = h",
        "[core]\n\tsshCommand = h",
        "[core]\n\tpager = h",
        "[core]\n\teditor = h",
        "[core]\n\tattributesFile = a",
        "[core]\n\texcludesFile = a",
        "[core]\n\tworktree = ..",
        "[core]\n\tgitProxy = h",
        "[core]\n\taskPass = h",
        "[core]\n\talternateRefsCommand = h",
        "[CORE]\n\tFSMONITOR = h",
        "[core \"x\"]\n\tbare = h",
        "[alias]\n\tst = !h",
        "[credential]\n\thelper = !h",
        "[diff]\n\texternal = h",
        "[diff \"x\"]\n\tcommand = h",
        "[diff \"x\"]\n\ttextconv = h",
        "[difftool \"x\"]\n\tcmd = h",
        "[extensions]\n\tworktreeConfig = true",
        "[filter \"x\"]\n\tclean = h",
        "[filter \"x\"]\n\tsmudge = h",
        "[gpg]\n\tprogram = h",
        "[gpg \"ssh\"]\n\tdefaultKeyCommand = h",
        "[include]\n\tpath = ../x",
        "[includeIf \"onbranch:x\"]\n\tpath = ../x",
        "[init]\n\ttemplateDir = x",
        "[interactive]\n\tdiffFilter = h",
        "[merge \"x\"]\n\tdriver = h",
        "[pager]\n\tlog = h",
        "[protocol \"ext\"]\n\tallow = always",
        "[remote \"o\"]\n\turl = ext::sh -c h",
        "[remote \"o\"]\n\turl = --upload-pack=h",
        "[remote \"o\"]\n\turl = a\n\tuploadpack = h",
        "[remote \"o\"]\n\turl = a\n\tvcs = h",
        "[remote \"o\"]\n\turl = a\n\tproxy = h",
        "[remote \"o\"]\n\turl = a\n[remote \"p\"]\n\turl = b",
        "[safe]\n\tdirectory = *",
        "[sequence]\n\teditor = h",
        "[submodule \"x\"]\n\tupdate = !h",
        "[trailer \"x\"]\n\tcommand = h",
        "[uploadpack]\n\tpackObjectsHook = h",
        "[url \"ext::h\"]\n\tinsteadOf = https://",
        "[user]\n\tsigningKey = h",
    ] {
        refused("", &format!("{evil}\n"));
        refused(FRESH, &format!("{FRESH}{evil}\n"));
        refused(OLD, &format!("{OLD}{evil}\n"));
    }
}

#[test]
fn i7_a_line_that_leaves_doubt_is_refused() {
    for line in [
        "[core] hooksPath = h",
        "[core]hooksPath=h",
        "name=x",
        "name = \"x\"",
        "name = x \\",
        "name = x # y",
        "name = x ; y",
        "name",
        "= x",
        "na_me = x",
        "[user \"a\"",
        "[user \"a\\\"b\"]",
        "[user \"a\" ]",
        "[user.x]",
        "[\"user\"]",
        "name = x\r\u{b}",
        "\u{feff}[core]",
    ] {
        let new = format!("[user]\n\t{line}\n");
        assert!(
            matches!(check_config_change("", &new), Err(ConfigChange::Doubtful(_))),
            "{line:?}"
        );
    }
}

#[test]
fn what_a_person_set_stays_as_it_is() {
    allowed(OLD, OLD);
    allowed(OLD, &format!("{OLD}[user]\n\tname = a\n"));
    for line in OLD.lines().filter(|line| !line.contains("bare = false")) {
        let without = OLD.replacen(&format!("{line}\n"), "", 1);
        assert_ne!(without, OLD);
        refused(OLD, &without);
    }
    refused(OLD, "");
    // The same lines in another order have another meaning.
    let swapped = OLD.replacen(
        ".husky ; ours\n",
        ".husky ; ours\n[core]\n\thooksPath = .husky ; ours\n",
        1,
    );
    refused(OLD, &swapped);
    // A continued line must not absorb a new one.
    refused(OLD, &OLD.replace("{ \\\n", "{ \\\n\tname = x\n"));
    refused(
        "[user]\n\tname = a \\\n",
        "[user]\n\tname = a \\\n[core]\n\thooksPath = h\n",
    );
}

#[test]
fn a_configuration_that_decides_nothing_may_be_removed() {
    let cloned = format!(
        "{FRESH}[remote \"origin\"]\n\turl = https://example.org/a\n[branch \"main\"]\n\tremote = origin\n"
    );
    assert!(may_remove_config(""));
    assert!(may_remove_config(&cloned));
    assert!(!may_remove_config(OLD));
    assert!(!may_remove_config("[core]\n\thooksPath = /dev/null\n"));
}

#[test]
fn redteam_a_remote_has_a_host() {
    let remote = |url: &str| check_config_change(FRESH, &format!("{FRESH}[remote \"o\"]\n\turl = {url}\n"));
    for url in [
        "https://example.org/a.git",
        "http://127.0.0.1:3000/a",
        "ssh://git@example.org:2222/a",
        "git://example.org/a",
        "git@example.org:a/b.git",
        "example.org:a",
        "https://[::1]/a",
    ] {
        let expected = url.contains("::");
        assert_eq!(remote(url).is_err(), expected, "control: {url}");
    }
    for url in [
        "/srv/evil.git",
        "../evil.git",
        "evil",
        ".",
        "./a:b",
        "~/evil.git",
        "file:///srv/evil.git",
        "file://localhost/srv/evil.git",
        "FILE:///srv/evil.git",
        "https:///srv/evil.git",
        "ssh://-oProxyCommand=sh/a",
        "-oProxyCommand=sh:a",
        "x@-oProxyCommand=sh:a",
        "ext::sh -c evil",
        "fd::7",
        "C:",
        "",
    ] {
        assert!(remote(url).is_err(), "{url}");
    }
}

#[test]
fn redteam_packed_references_replace_nothing() {
    let old = "# pack-refs with: peeled fully-peeled sorted \n1111 refs/heads/main\n";
    assert_eq!(
        check_packed_refs(old, &format!("{old}2222 refs/heads/side\n^3333\n")),
        Ok(()),
        "control"
    );
    let replaced = format!("{old}2222 refs/replace/1111\n");
    assert!(check_packed_refs(old, &replaced).is_err());
    assert!(check_packed_refs(old, &replaced.replace("replace", "Replace")).is_err());
    assert!(check_packed_refs(&replaced, &replaced.replace("2222", "4444")).is_err());
    // What a person replaced stays.
    assert_eq!(check_packed_refs(&replaced, &replaced), Ok(()));
    assert_eq!(check_packed_refs(&replaced, old), Ok(()));
}
