//! Runs git and waits for its end, within bounds of time and output.

use crate::children::noted;
use crate::environment::GitEnvironment;
use crate::error::{GitError, words};
use crate::run::Run;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

/// The most bytes of an error message that are read.
const MAX_MESSAGE: u64 = 8_192;
/// The most bytes of output.
pub const MAX_OUTPUT: u64 = 64 << 20;

/// What git answered.
#[derive(Debug)]
pub struct Answer {
    /// What it wrote.
    pub output: Vec<u8>,
    /// Whether it succeeded.
    pub success: bool,
    /// What it said about a failure.
    pub message: String,
}

impl Answer {
    /// The output as text without the last line break.
    #[must_use]
    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.output);
        text.trim_end_matches('\n').to_owned()
    }
}

/// Runs git and expects success.
///
/// # Errors
/// It failed, or did not end in time.
pub async fn git(environment: &GitEnvironment, run: Run<'_>) -> Result<Answer, GitError> {
    let command = run.name();
    let answer = ask(environment, run).await?;
    if answer.success {
        return Ok(answer);
    }
    Err(GitError::Failed {
        command,
        message: answer.message,
    })
}

/// Runs git; its failure is an answer, too.
///
/// # Errors
/// It cannot be started, writes too much, or did not end in time.
pub async fn ask(environment: &GitEnvironment, mut run: Run<'_>) -> Result<Answer, GitError> {
    let (name, within) = (run.name(), run.within);
    let failed = |error| GitError::Io {
        command: name.clone(),
        error,
    };
    let mut command = tokio::process::Command::from(run.command(environment));
    command.kill_on_drop(true);
    let child = noted(|| command.spawn(), |child| child.id());
    let mut child = child.map_err(|error| GitError::not_started(name.clone(), error))?;
    // Git's own children hold the pipes; when this is dropped, they end with it.
    let _group = child.id().map(Group);
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let bytes = run.input.take();
    let feed = async {
        if let (Some(mut stdin), Some(bytes)) = (input, bytes) {
            // If git does not read it, its exit status says why.
            let _ = stdin.write_all(&bytes).await;
        }
    };
    let all = async {
        let (output, errors, ()) = tokio::join!(read(output, MAX_OUTPUT), read(errors, MAX_MESSAGE), feed);
        (output, errors, child.wait().await)
    };
    let (output, errors, status) = timeout(within, all).await.map_err(|_| GitError::Slow {
        command: name.clone(),
        within,
    })?;
    let (output, whole) = output;
    let status = status.map_err(failed)?;
    if !whole {
        return Err(GitError::Failed {
            command: name,
            message: format!("more than {MAX_OUTPUT} bytes of output"),
        });
    }
    Ok(Answer {
        output,
        success: status.success(),
        message: words(&errors.0, status.code()),
    })
}

/// Reads to the end and keeps the first bytes; also says whether that was all.
async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> (Vec<u8>, bool) {
    let mut kept = Vec::new();
    let Some(mut from) = from else { return (kept, true) };
    let _ = (&mut from).take(most).read_to_end(&mut kept).await;
    let mut rest = vec![0; 8_192];
    let mut whole = true;
    while let Ok(more) = from.read(&mut rest).await {
        if more == 0 {
            break;
        }
        whole = false;
    }
    (kept, whole)
}

/// The process group of a run. Whatever is left of it is killed when this is dropped.
struct Group(u32);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}
