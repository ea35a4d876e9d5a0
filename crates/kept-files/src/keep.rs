//! Puts recorded files into the store.

use crate::store::FileStore;
use agentd_actor_kit::StoreMsg;
use agentd_checkpoint::{Archive, Tree};
use agentd_fault_points as fault;
use agentd_file_work::FileWork;
use agentd_protocol::{KeptFiles, SessionId};
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long packing may take.
const PACK_WITHIN: Duration = Duration::from_secs(120);
/// How long the store may take for one blob.
const PUT_WITHIN: Duration = Duration::from_secs(30);
/// The bytes of one blob.
const PART: u64 = 4 << 20;
/// Packs of whole repositories that this machine keeps to make no two for the same commit.
const MOST_BASES: usize = 8;

/// Files that were just recorded.
#[derive(Debug)]
pub struct NewFiles {
    /// The session.
    pub session: SessionId,
    /// Where they are recorded.
    pub archive: Archive,
    /// The files.
    pub tree: Tree,
    /// The files that the store kept last.
    pub before: Option<Tree>,
    /// The bytes that the store keeps for the session.
    pub bytes: u64,
    /// The commit that the workspace was made from.
    pub base: Option<String>,
}

impl FileStore {
    /// Puts what is new into the store. `None`: nothing is new, or the operator keeps files only locally.
    ///
    /// # Errors
    /// The store has no copy of these files; the text says why. Earlier copies stay good.
    pub async fn keep(&self, new: NewFiles) -> Result<Option<KeptFiles>, String> {
        let Some(most) = self.rules.keep_bytes else {
            return Ok(None);
        };
        if new.before.as_ref() == Some(&new.tree) {
            return Ok(None);
        }
        let room = most.saturating_sub(new.bytes);
        let (session, archive) = (new.session, new.archive.clone());
        let bases = self.keeper.bases();
        let packed = self
            .on_disk(session, move || pack(&new, &bases, room))
            .await?
            .map_err(|error| error.to_string())?;
        let mut kept = KeptFiles {
            packs: Vec::new(),
            bytes: 0,
        };
        for path in packed {
            let put = self.put(session, path.clone()).await;
            if path.starts_with(archive.own_files()) {
                let _ = self.on_disk(session, move || fs::remove_file(path)).await;
            }
            let (parts, bytes) = put?;
            kept.bytes += bytes;
            kept.packs.push(parts);
        }
        Ok(Some(kept))
    }

    /// Puts a file into the store. Returns the names of its parts, and its bytes.
    async fn put(&self, session: SessionId, path: PathBuf) -> Result<(Vec<String>, u64), String> {
        let (mut parts, mut at) = (Vec::new(), 0);
        loop {
            let path = path.clone();
            let read = self.on_disk(session, move || part(&path, at)).await?;
            let bytes = read.map_err(|error| error.to_string())?;
            if bytes.is_empty() {
                return Ok((parts, at));
            }
            at += bytes.len() as u64;
            let put = self
                .store
                .call(PUT_WITHIN, |done| StoreMsg::PutBlob { session, bytes, done });
            let name = put.await.map_err(|error| error.to_string())?;
            parts.push(name.map_err(|error| error.to_string())?);
        }
    }

    /// Runs something on the daemon's own files.
    pub(crate) async fn on_disk<T: Send + 'static>(
        &self,
        session: SessionId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let files = FileWork::of_session(&session.to_string());
        let done = files.run(self.workspaces.root(), PACK_WITHIN, work).await;
        done.map_err(|failed| failed.to_string())
    }
}

fn part(path: &Path, at: u64) -> io::Result<Bytes> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(PART).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

/// Makes the packs. The first one of a session has the files of the commit that it began with; other sessions that began
/// with the same commit have the same one.
fn pack(new: &NewFiles, bases: &Path, room: u64) -> Result<Vec<PathBuf>, agentd_checkpoint::Error> {
    let (mut packs, mut room) = (Vec::new(), room);
    let mut known = new.before.clone();
    let base = new.base.as_ref().filter(|_| known.is_none());
    if let Some(tree) = base.and_then(|commit| new.archive.tree_of(commit)) {
        let path = bases.join(format!("{tree}.pack"));
        if !path.exists() {
            make_room(bases);
            new.archive.pack_to(&tree, None, &path, room)?;
        }
        // It may have been made for another session, which had more room.
        let bytes = fs::metadata(&path).map_or(u64::MAX, |about| about.len());
        room = room
            .checked_sub(bytes)
            .ok_or(agentd_checkpoint::Error::StoreLimit(room))?;
        packs.push(path);
        known = Some(tree);
    }
    if known.as_ref() != Some(&new.tree) {
        let path = new.archive.own_files().join("new.pack");
        new.archive.pack_to(&new.tree, known.as_ref(), &path, room)?;
        packs.push(path);
    }
    fault::point(fault::FILES_PACKED)?;
    Ok(packs)
}

/// Removes the oldest of these packs. They are made again when they are needed.
fn make_room(bases: &Path) {
    let _ = fs::create_dir_all(bases);
    let entries = fs::read_dir(bases).into_iter().flatten().flatten();
    let mut all: Vec<_> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    all.sort();
    let surplus = all.len().saturating_sub(MOST_BASES - 1);
    for (_, path) in all.into_iter().take(surplus) {
        let _ = fs::remove_file(path);
    }
}
