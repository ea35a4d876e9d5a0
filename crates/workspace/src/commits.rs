//! Reads the references of a repository that commands can write: as text, since git would read its configuration.

use agentd_git::text;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The most references.
const MAX_REFERENCES: usize = 10_000;
/// The largest file of packed references.
const MAX_PACKED: u64 = 16 << 20;
/// The largest other file.
const MAX_LOOSE: u64 = 4_096;
/// The deepest name of a branch.
const MAX_DEPTH: usize = 16;
/// The name under which a commit that is on no branch is listed.
const DETACHED: &str = "HEAD";

/// The branches and the stash of a repository, and the commit that is checked out if it is on none of them. `None` if
/// they cannot be read within the bounds.
pub(crate) fn heads(git_dir: &Path) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for line in text(&git_dir.join("packed-refs"), MAX_PACKED)?.lines() {
        if let Some((object, name)) = line.split_once(' ')
            && is_object(object)
            && is_work(name)
        {
            found.insert(name.to_owned(), object.to_owned());
        }
    }
    loose(git_dir, "refs/heads", 0, &mut found)?;
    let stash = text(&git_dir.join("refs/stash"), MAX_LOOSE)?;
    if is_object(stash.trim()) {
        found.insert("refs/stash".to_owned(), stash.trim().to_owned());
    }
    found.extend(detached(git_dir)?);
    (found.len() <= MAX_REFERENCES).then_some(found)
}

/// The reference that is checked out.
pub(crate) fn checked_out(git_dir: &Path) -> Option<String> {
    let head = text(&git_dir.join("HEAD"), MAX_LOOSE)?;
    let branch = head.trim().strip_prefix("ref: ").map(str::trim);
    match branch {
        Some(name) => name.starts_with("refs/heads/").then(|| name.to_owned()),
        None => Some(DETACHED.to_owned()),
    }
}

/// The commit that is checked out, if it is on no branch.
pub(crate) fn detached(git_dir: &Path) -> Option<Option<(String, String)>> {
    let head = text(&git_dir.join("HEAD"), MAX_LOOSE)?;
    let head = head.trim();
    Some(is_object(head).then(|| (DETACHED.to_owned(), head.to_owned())))
}

fn is_work(name: &str) -> bool {
    name.starts_with("refs/heads/") || name == "refs/stash"
}

fn is_object(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn loose(git_dir: &Path, name: &str, depth: usize, found: &mut BTreeMap<String, String>) -> Option<()> {
    let entries = match fs::read_dir(git_dir.join(name)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(()),
        Err(_) => return None,
    };
    if depth > MAX_DEPTH {
        return None;
    }
    for entry in entries {
        let entry = entry.ok()?;
        let below = format!("{name}/{}", entry.file_name().to_str()?);
        if entry.file_type().ok()?.is_dir() {
            loose(git_dir, &below, depth + 1, found)?;
        } else {
            let object = text(&entry.path(), MAX_LOOSE)?;
            // A lock, or something that git does not take for a reference either.
            if is_object(object.trim()) && !below.ends_with(".lock") {
                found.insert(below, object.trim().to_owned());
            }
        }
        if found.len() > MAX_REFERENCES {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_text_within_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let (git, a, b, c) = (dir.path(), "a".repeat(40), "b".repeat(40), "c".repeat(40));
        fs::create_dir_all(git.join("refs/heads/x")).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/x/y\n").unwrap();
        fs::write(git.join("refs/heads/x/y"), format!("{a}\n")).unwrap();
        fs::write(git.join("refs/heads/x/y.lock"), format!("{c}\n")).unwrap();
        let packed =
            format!("# pack-refs\n{b} refs/heads/x/y\n{b} refs/heads/z\n{b} refs/remotes/origin/main\n");
        fs::write(git.join("packed-refs"), packed).unwrap();
        let expected = [("refs/heads/x/y", &a), ("refs/heads/z", &b)];
        let expected = expected.map(|(name, object)| (name.to_owned(), object.clone()));
        assert_eq!(heads(git), Some(BTreeMap::from(expected)));
        assert_eq!(checked_out(git).as_deref(), Some("refs/heads/x/y"));
        fs::write(git.join("HEAD"), &c).unwrap();
        assert_eq!(heads(git).unwrap().get("HEAD"), Some(&c));
        assert_eq!(checked_out(git).as_deref(), Some("HEAD"));
        // A link, a pipe and a long file are no references, and say so.
        std::os::unix::fs::symlink("/etc/passwd", git.join("refs/heads/link")).unwrap();
        assert_eq!(heads(git), None);
        fs::remove_file(git.join("refs/heads/link")).unwrap();
        fs::write(git.join("refs/heads/long"), "x".repeat(5_000)).unwrap();
        assert_eq!(heads(git), None);
    }
}
