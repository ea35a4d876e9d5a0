//! Universal Ctags under the session's warden, for files in languages without a grammar. It receives their content and
//! opens no file. If it is not installed, these files are left out.

use crate::source_tree::{Foreign, content, open};
use crate::walk::Patience;
use agentd_repo_map::{CTAGS, CtagsReply, SourceMap, Stamp, is_universal, question};
use agentd_sandbox::{Beneath, CommandSpec, Heard, Piped, Running, WardenSlot};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The timeout for starting it and for its answer about one file. A file that exceeds it is left out.
const WITHIN: Duration = Duration::from_secs(5);
/// The largest answer about one file.
const MAX_ANSWER: u64 = 4 << 20;
/// How often it is restarted after a file that it failed on.
const MAX_STARTS: u32 = 4;

/// Asks ctags about the files that are not known yet. Returns whether all of them are settled, which they are when
/// ctags is not installed. Must not run on the runtime's threads; each wait is bounded.
pub(crate) fn ask(
    map: &mut SourceMap,
    files: Vec<Foreign>,
    workdir: &Beneath,
    warden: &WardenSlot,
    patience: &Patience,
) -> bool {
    let Ok(runtime) = Handle::try_current() else {
        return files.is_empty();
    };
    let mut running = None;
    let mut starts = 0;
    for file in files {
        if patience.is_over() {
            return false;
        }
        let Some(opened) = open(workdir, &file.path) else {
            continue;
        };
        let stamp = Stamp(opened.version.stamp());
        let Some(source) = content(opened) else { continue };
        if map.knows_content(&file.name, stamp, &source) {
            continue;
        }
        if running.is_none() && starts < MAX_STARTS {
            running = runtime.block_on(Ctags::start(workdir, warden));
            starts += 1;
        }
        // Ctags is not installed, or failed too often.
        let Some(ctags) = &mut running else {
            return starts == 1;
        };
        let answer = runtime.block_on(ctags.answer(&file.name, &source));
        if answer.is_none() {
            running = None;
        }
        map.add_foreign(&file.name, stamp, &source, answer);
    }
    true
}

/// A running ctags. Dropping it ends it.
struct Ctags {
    stdin: pipe::Sender,
    stdout: BufReader<pipe::Receiver>,
    running: Running,
    ended: bool,
}

impl Ctags {
    /// `None` if it is not installed.
    async fn start(workdir: &Beneath, warden: &WardenSlot) -> Option<Self> {
        let command = CommandSpec {
            argv: CTAGS.map(str::to_owned).to_vec(),
            cwd: workdir.path().to_owned(),
            env: Vec::new(),
        };
        let start = async { warden.get().await?.run_piped(command).await };
        let Piped {
            stdin,
            stdout,
            running,
        } = timeout(WITHIN, start).await.ok()?.ok()?;
        let mut ctags = Self {
            stdin,
            stdout: BufReader::new(stdout),
            running,
            ended: false,
        };
        let mut first = false;
        ctags
            .exchange(&[], |line| {
                first = is_universal(line);
                true
            })
            .await?;
        first.then_some(ctags)
    }

    /// `None` if it does not answer; then it is no longer usable.
    async fn answer(&mut self, name: &str, source: &[u8]) -> Option<CtagsReply> {
        let asked = [question(name, source.len()).as_bytes(), source].concat();
        let mut answer = CtagsReply::default();
        self.exchange(&asked, |line| answer.take(line)).await?;
        Some(answer)
    }

    /// Sends a request and reads lines up to the last one, while its warnings are read and discarded.
    async fn exchange(&mut self, say: &[u8], mut last: impl FnMut(&str) -> bool) -> Option<()> {
        let Self {
            stdin,
            stdout,
            running,
            ended,
        } = self;
        let talk = async {
            stdin.write_all(say).await.ok()?;
            let mut limited = stdout.take(MAX_ANSWER);
            let mut line = Vec::new();
            loop {
                line.clear();
                if limited.read_until(b'\n', &mut line).await.ok()? == 0 {
                    return None;
                }
                if last(&String::from_utf8_lossy(&line)) {
                    return Some(());
                }
            }
        };
        let warnings = async {
            let mut buffer = vec![0; 4096];
            while !*ended {
                *ended = !matches!(running.hear(&mut buffer).await, Ok(Heard::Output(_)));
            }
            // The rest of its output may still be in the pipe.
            std::future::pending::<()>().await;
        };
        let both = async {
            tokio::select! {
                talked = talk => talked,
                () = warnings => None,
            }
        };
        timeout(WITHIN, both).await.ok()?
    }
}
