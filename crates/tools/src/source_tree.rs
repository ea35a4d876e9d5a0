//! Maps a source tree: the walk, its limits, and the cache. The results are stored in a file for the next map, so that
//! only changed files are read again.

use crate::ctags;
use crate::tag_program::MISSING;
use crate::walk::{Patience, files};
use agentd_repo_map::{
    Cache, Language, MAX_FILE_BYTES, MapError, Priority, RankedDefinition, Rendered, SourceMap, Stamp,
    TagFinder, TagFinders, is_foreign, render,
};
use agentd_sandbox::{Beneath, OpenFile, WardenSlot};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The most source files in a map.
const MAX_FILES: usize = 5_000;
/// The most bytes of them together: a byte of source costs about three in memory.
const MAX_BYTES: u64 = 64_000_000;
/// The most definitions to consider; more than fit into the largest budget.
pub(crate) const MAX_PLACES: usize = 8_000;
/// The most files to read for the lines to show.
pub(crate) const MAX_SHOWN: usize = 1_000;
/// The most directories with a stored map.
const MAX_KEPT: usize = 64;

/// A tree to map, and where its map is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree<'a> {
    pub(crate) workdir: &'a Beneath,
    pub(crate) base: &'a Path,
    pub(crate) map_dir: &'a Path,
}

/// What parses the files of a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parsers<'a> {
    /// For languages with a grammar.
    pub(crate) finders: Option<&'a dyn TagFinders>,
    /// Where ctags runs, for other languages; without it, these show earlier results.
    pub(crate) warden: Option<&'a WardenSlot>,
}

/// A file in a language without a grammar, for ctags.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
}

impl Tree<'_> {
    /// Maps the tree, and returns whether it covers every file.
    pub(crate) fn map(&self, patience: &Patience, parsers: Parsers<'_>) -> (SourceMap, bool) {
        let kept = kept_at(self.map_dir, &self.workdir.path().join(self.base));
        let mut map = SourceMap::new(read_kept(&kept));
        let mut foreign = Vec::new();
        let mut finder = parsers.finders.map(|finders| finders.finder(Priority::Call));
        let (mut most, mut room) = (MAX_FILES, MAX_BYTES);
        let complete = files(self.workdir, self.base, false, &|| patience.is_over(), |path| {
            let Some(name) = path.to_str().map(str::to_owned) else {
                return true;
            };
            let bytes = if Language::of(&name).is_some() {
                add(&mut map, self.workdir, (&path, &name), &mut finder, patience)
            } else if is_foreign(&name) {
                let (bytes, unknown) = look(&mut map, self.workdir, &path, &name);
                foreign.extend(unknown.then_some(Foreign { path, name }));
                bytes
            } else {
                return true;
            };
            most = most.saturating_sub(1);
            room = room.saturating_sub(bytes);
            most > 0 && room > 0
        });
        let answered = parsers
            .warden
            .is_none_or(|warden| ctags::ask(&mut map, foreign, self.workdir, warden, patience));
        // A map that is not complete is stored, too: otherwise slow files would take all the time of the next one again.
        if map.cache().parsed() > 0 || (complete && map.cache().is_new() && map.unavailable().is_none()) {
            let whole = complete && map.unavailable().is_none();
            // A failure to store the map only makes the next one slower.
            let _ = keep(self.map_dir, &kept, map.cache(), whole);
        }
        let settled = complete && answered && map.postponed() == 0;
        (map, settled)
    }

    /// Reads the lines of the places, and renders as many as fit.
    pub(crate) fn show(&self, places: &[RankedDefinition], budget: usize) -> Rendered {
        let mut files: BTreeMap<&str, Option<String>> = BTreeMap::new();
        for place in places {
            if files.len() < MAX_SHOWN {
                files
                    .entry(&place.path)
                    .or_insert_with(|| text(self.workdir, &place.path));
            }
        }
        let lines: BTreeMap<&str, Vec<&str>> = files
            .iter()
            .filter_map(|(path, text)| Some((*path, text.as_deref()?.lines().collect())))
            .collect();
        let line = |place: &RankedDefinition| {
            let at = usize::try_from(place.line).ok()?.checked_sub(1)?;
            lines.get(place.path.as_str())?.get(at).copied()
        };
        let shown: Vec<(&str, u32, &str)> = places
            .iter()
            .filter_map(|place| Some((place.path.as_str(), place.line, line(place)?)))
            .collect();
        render(&shown, budget)
    }
}

/// Adds a file and returns its size.
fn add(
    map: &mut SourceMap,
    workdir: &Beneath,
    (path, name): (&Path, &str),
    finder: &mut Option<Box<dyn TagFinder>>,
    patience: &Patience,
) -> u64 {
    let Some(opened) = open(workdir, path) else {
        return 0;
    };
    let bytes = opened.bytes;
    let stamp = Stamp(opened.version.stamp());
    let find = |language, source: &[u8]| match finder {
        Some(finder) => finder.tags(language, source, &|| patience.is_over()),
        None => Err(MapError::Unavailable(MISSING.to_owned())),
    };
    map.add(name, stamp, || content(opened), find);
    bytes
}

/// Adds a file; returns its size and whether it needs ctags.
fn look(map: &mut SourceMap, workdir: &Beneath, path: &Path, name: &str) -> (u64, bool) {
    match open(workdir, path) {
        Some(opened) => (opened.bytes, !map.knows(name, Stamp(opened.version.stamp()))),
        None => (0, false),
    }
}

/// Opens a file if it is still there and not too large.
pub(crate) fn open(workdir: &Beneath, path: &Path) -> Option<OpenFile> {
    let opened = workdir.open_file(path).ok()?;
    (opened.real.as_path() == path && fits(&opened)).then_some(opened)
}

fn fits(opened: &OpenFile) -> bool {
    usize::try_from(opened.bytes).is_ok_and(|bytes| bytes <= MAX_FILE_BYTES)
}

pub(crate) fn content(opened: OpenFile) -> Option<Vec<u8>> {
    let most = u64::try_from(MAX_FILE_BYTES).ok()?.saturating_add(1);
    let mut content = Vec::new();
    opened.file.take(most).read_to_end(&mut content).ok()?;
    // A file with a zero byte is not text.
    (memchr::memchr(0, &content).is_none()).then_some(content)
}

fn text(workdir: &Beneath, path: &str) -> Option<String> {
    let opened = workdir.open_file(Path::new(path)).ok().filter(fits)?;
    Some(String::from_utf8_lossy(&content(opened)?).into_owned())
}

/// The file that stores the map of a directory.
fn kept_at(map_dir: &Path, directory: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    let mut name = String::new();
    for byte in Sha256::digest(directory.as_os_str().as_bytes()).iter().take(16) {
        let _ = write!(name, "{byte:02x}");
    }
    map_dir.join(name).with_extension("map")
}

/// The stored map, or an empty one: a damaged map is rebuilt.
fn read_kept(path: &Path) -> Cache {
    std::fs::read(path)
        .ok()
        .and_then(|bytes| Cache::read(&bytes).ok())
        .unwrap_or_default()
}

/// Replaces the stored map atomically, and removes the maps that were unused for the longest time.
fn keep(map_dir: &Path, path: &Path, cache: &Cache, whole: bool) -> std::io::Result<()> {
    let Some(bytes) = cache.bytes(whole).ok().flatten() else {
        return Ok(());
    };
    std::fs::create_dir_all(map_dir)?;
    let mut file = tempfile::NamedTempFile::new_in(map_dir)?;
    file.write_all(&bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    let mut kept: Vec<(SystemTime, PathBuf)> = std::fs::read_dir(map_dir)?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
        })
        .collect();
    kept.sort();
    let many = kept.len().saturating_sub(MAX_KEPT);
    for (_, path) in kept.into_iter().take(many) {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}
