//! The program that appends, and how the tests start it on a mounted disk.

use super::check::{event, session};
use agentd_faulty_disk::{Disk, Mounted};
use agentd_protocol::{Seq, Stamp, Timestamp};
use agentd_store::{Append, Backend, Blob, Options, Outcome, Range};
use agentd_store_sqlite::open;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

const DIR: &str = "AGENTD_TEST_DISK";
const WORK: &str = "AGENTD_TEST_WORK";
/// The number of attempts to append or to open the store while the disk is full.
const TRIES: usize = 20;
/// The logs, written in turn.
pub(crate) const SESSIONS: u64 = 3;

/// The final content of each log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) appends: u64,
    pub(crate) bytes: usize,
    /// The append of each log that has a blob too large for a row; 0: none.
    pub(crate) blob_at: u64,
}

impl Work {
    pub(crate) fn blob(self, which: u64, seq: Seq) -> Option<Blob> {
        static MADE: Mutex<BTreeMap<(u64, Seq), Blob>> = Mutex::new(BTreeMap::new());
        if seq != self.blob_at {
            return None;
        }
        let mut made = MADE.lock().unwrap();
        let make = || Blob::new(format!("{which}/{seq} ").repeat(60_000).into());
        Some(made.entry((which, seq)).or_insert_with(make).clone())
    }

    fn append(self, which: u64, seq: Seq) -> Append {
        // The same append has the same id, also in the next process.
        let id = Stamp::new(Timestamp(5), which << 32 | seq).append();
        let mut append = Append::new(session(which), 1, seq - 1, id);
        append.events = vec![event(which, seq, self.bytes)];
        append.blobs = self.blob(which, seq).into_iter().collect();
        append
    }
}

/// How the program ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    /// The store stopped, or could not be opened.
    Stopped(String),
}

/// A disk, its mount point, and the program.
pub(crate) struct Machine {
    pub(crate) disk: Disk,
    mounted: Mounted,
    _dir: TempDir,
}

impl Machine {
    pub(crate) fn new() -> Result<Self, String> {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new();
        let mounted = Mounted::new(&disk, dir.path())
            .map_err(|error| format!("kernel: no FUSE file system can be mounted here: {}", error.0))?;
        Ok(Self {
            disk,
            mounted,
            _dir: dir,
        })
    }

    pub(crate) fn run(&self, work: Work) -> Ended {
        self.start(work, 0)
    }

    /// The number of concurrent sessions.
    pub(crate) fn run_together(&self, work: Work, sessions: u64) -> Ended {
        self.start(work, sessions)
    }

    #[expect(clippy::disallowed_methods, reason = "the test starts itself on the disk")]
    fn start(&self, work: Work, together: u64) -> Ended {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "disk::child", "--nocapture"])
            .stderr(Stdio::piped());
        let text = format!("{} {} {} {together}", work.appends, work.bytes, work.blob_at);
        child.env(DIR, self.mounted.directory()).env(WORK, text);
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ended::Done;
        }
        let why = said.lines().find_map(|line| line.split_once("stopped: "));
        match why {
            Some((_, why)) => Ended::Stopped(why.to_owned()),
            None => panic!("{said}{}", String::from_utf8_lossy(&output.stderr)),
        }
    }
}

/// Ends like a machine that loses power: without closing or cleaning up anything.
fn stopped(why: &str) -> ! {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "\nstopped: {why}");
    let _ = out.flush();
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    unreachable!("killed")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the other half of the test says what to do"
)]
pub(crate) async fn child() {
    let (Ok(dir), Ok(text)) = (std::env::var(DIR), std::env::var(WORK)) else {
        return;
    };
    let numbers: Vec<u64> = text.split(' ').map(|number| number.parse().unwrap()).collect();
    let work = Work {
        appends: numbers[0],
        bytes: usize::try_from(numbers[1]).unwrap(),
        blob_at: numbers[2],
    };
    let said = said(Path::new(&dir));
    let log = opened(&Path::new(&dir).join("data"));
    match numbers[3] {
        0 => {
            let mut heads = Vec::new();
            for which in 0..SESSIONS {
                let page = log.load(session(which), Range::default()).await;
                heads.push(page.map_or(0, |page| page.head));
            }
            for seq in 1..=work.appends {
                for which in 0..SESSIONS {
                    if heads[usize::try_from(which).unwrap()] < seq {
                        append(&log, work, which, seq, &said).await;
                    }
                }
            }
        }
        sessions => {
            let append_all = |which| {
                let (log, said) = (Arc::clone(&log), Arc::clone(&said));
                tokio::spawn(async move {
                    for seq in 1..=work.appends {
                        append(&log, work, which, seq, &said).await;
                    }
                })
            };
            for done in (0..sessions).map(append_all).collect::<Vec<_>>() {
                done.await.unwrap();
            }
        }
    }
}

/// Adds a note to the disk's list of changes; never fails.
fn said(dir: &Path) -> Arc<Mutex<File>> {
    let path = dir.join("acknowledged");
    let open = || File::options().append(true).create(true).open(&path);
    let file = (0..TRIES).find_map(|_| open().ok());
    Arc::new(Mutex::new(
        file.unwrap_or_else(|| stopped("the disk is read-only: no notes")),
    ))
}

fn opened(data: &Path) -> Arc<dyn Backend> {
    let mut why = String::new();
    for _ in 0..TRIES {
        match open("sqlite:agentd.db", data, Options::default()) {
            Ok(log) => return log,
            Err(error) => why = error.to_string(),
        }
    }
    stopped(&why)
}

async fn append(log: &Arc<dyn Backend>, work: Work, which: u64, seq: Seq, said: &Mutex<File>) {
    for _ in 0..TRIES {
        match log.append(work.append(which, seq)).await {
            Outcome::Committed { head, .. } | Outcome::Duplicate { head } => {
                assert_eq!(head, seq);
                let line = format!("{which} {seq}\n");
                said.lock().unwrap().write_all(line.as_bytes()).unwrap();
                return;
            }
            Outcome::Full => assert_eq!(*log.fatal().borrow(), None),
            Outcome::Unknown | Outcome::Failed(_) if log.fatal().borrow().is_some() => {
                let why = log.fatal().borrow().clone();
                stopped(&why.unwrap_or_default());
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("no space came back for {which} {seq}");
}
