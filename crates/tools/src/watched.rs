//! Code that a command may run unnamed: files of its directory, programs on the path, files elsewhere. Identifies files
//! by version (device, inode, mode, size, times). Opens only regular files, and never with an open that can block.

use agentd_sandbox::{Beneath, Environment};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::fs::{self, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// Data in git's directory; everything else in it may lead to code that runs.
const GIT_DATA: [&str; 9] = [
    "objects",
    "logs",
    "refs",
    "index",
    "lfs",
    "packed-refs",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "COMMIT_EDITMSG",
];
/// How much of a file is searched for the names of other files.
const SEARCHED: u64 = 64 << 10;
/// The prefix for a directory that was not covered completely.
pub(crate) const PARTLY: &str = "partly:";

/// One hash over the version of every file below a directory. Beyond `most` entries it covers only the remaining
/// directories themselves, and the result starts with [`PARTLY`].
pub(crate) fn tree(root: &Path, most: usize) -> String {
    let mut hash = Sha256::new();
    let mut room = most;
    let mut waiting = VecDeque::from([root.to_owned()]);
    let mut whole = true;
    while let Some(dir) = waiting.pop_front() {
        if room == 0 {
            whole = false;
            // This still detects files that are added or removed directly in it.
            feed(&mut hash, &dir, fs::symlink_metadata(&dir).ok().as_ref(), true);
            continue;
        }
        let in_git = dir
            .components()
            .any(|part| part == Component::Normal(".git".as_ref()));
        let Ok(entries) = fs::read_dir(&dir) else {
            feed(&mut hash, &dir, None, false);
            continue;
        };
        let mut entries: Vec<PathBuf> = entries
            .take(room.saturating_add(1))
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        if entries.len() > room {
            whole = false;
            feed(&mut hash, &dir, fs::symlink_metadata(&dir).ok().as_ref(), true);
        }
        entries.sort_unstable();
        entries.truncate(room);
        room -= entries.len();
        for path in entries {
            let data = |name: &std::ffi::OsStr| GIT_DATA.iter().any(|data| name == *data);
            if in_git && path.file_name().is_some_and(data) {
                continue;
            }
            let metadata = fs::symlink_metadata(&path).ok();
            let is_dir = metadata.as_ref().is_some_and(Metadata::is_dir);
            if metadata.as_ref().is_some_and(Metadata::is_symlink) {
                // The target of a link is what would run.
                hash.update(version(&path).as_bytes());
            }
            feed(&mut hash, &path, metadata.as_ref(), !is_dir);
            if is_dir {
                waiting.push_back(path);
            }
        }
    }
    let hash = crate::binding::hex(hash);
    if whole { hash } else { format!("{PARTLY}{hash}") }
}

/// Hashes an entry. The times of a directory change with each build in it, so its entries must be enough.
fn feed(hash: &mut Sha256, path: &Path, metadata: Option<&Metadata>, times: bool) {
    hash.update(path.as_os_str().as_encoded_bytes());
    hash.update(b"\0");
    let state = metadata.map_or_else(|| "unreadable".to_owned(), |metadata| state(metadata, times));
    hash.update(state.as_bytes());
    hash.update(b"\0");
}

fn state(of: &Metadata, times: bool) -> String {
    let same = format!("{}:{}:{:o}", of.dev(), of.ino(), of.mode());
    if !times {
        return same;
    }
    let (modified, changed) = ((of.mtime(), of.mtime_nsec()), (of.ctime(), of.ctime_nsec()));
    format!("{same}:{}:{modified:?}:{changed:?}", of.len())
}

/// Identifies the file that is now at a path, links followed, without opening it.
#[expect(
    clippy::disallowed_methods,
    reason = "the real path is compared with an earlier one; nothing is opened by it"
)]
pub(crate) fn version(path: &Path) -> String {
    match (fs::canonicalize(path), fs::metadata(path)) {
        (Ok(real), Ok(metadata)) => format!("{} {}", real.display(), state(&metadata, true)),
        _ => "absent".to_owned(),
    }
}

/// The path of a program, as a shell in `workdir` would find it.
pub(crate) fn program(name: &str, workdir: &Path, environment: &Environment) -> Option<PathBuf> {
    let runs =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
    if name.contains('/') {
        return Some(workdir.join(name)).filter(runs);
    }
    let path = environment.iter().find(|(name, _)| *name == "PATH")?.1;
    path.split(':').map(|dir| workdir.join(dir).join(name)).find(runs)
}

/// The user's home directory, as commands see it.
pub(crate) fn home(environment: &Environment) -> Option<PathBuf> {
    let home = environment.iter().find(|(name, _)| *name == "HOME")?.1;
    Some(PathBuf::from(home)).filter(|home| home.is_absolute())
}

/// The names in a script or build file: words that look like paths, and the programs on a `#!` line.
pub(crate) fn names_in(path: &Path) -> (Vec<String>, Vec<String>) {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return (Vec::new(), Vec::new());
    };
    let opened = Beneath::open_anywhere(parent).and_then(|parent| parent.open_file(Path::new(name)));
    let mut text = Vec::new();
    let read = opened.map(|opened| opened.file.take(SEARCHED).read_to_end(&mut text));
    if !matches!(read, Ok(Ok(_))) {
        return (Vec::new(), Vec::new());
    }
    let text = String::from_utf8_lossy(&text);
    let first = text.lines().next().and_then(|line| line.strip_prefix("#!"));
    let programs = first
        .into_iter()
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect();
    let ends = |c: char| c.is_whitespace() || "\"'`=;:,()[]{}<>|&!#@".contains(c);
    let paths = text
        .split(ends)
        .filter(|word| word.contains('/') && word.len() > 1)
        .map(str::to_owned);
    (paths.collect(), programs)
}
