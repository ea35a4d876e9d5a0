//! Runs git and waits for its end, within bounds of time and output.

use crate::children::noted;
use crate::environment::GitEnvironment;
use crate::error::{GitError, words};
use crate::run::Run;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStdout;
use tokio::time::timeout;

/// The most bytes of an error message that are read.
const MAX_MESSAGE: u64 = 8_192;
/// The most bytes of output.
pub const MAX_OUTPUT: u64 = 64 << 20;
/// The longest line of [`lines`] in bytes.
const MAX_LINE: usize = 64 << 10;

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
pub async fn ask(environment: &GitEnvironment, run: Run<'_>) -> Result<Answer, GitError> {
    let command = run.name();
    let ((output, whole), success, message) =
        driven(environment, run, |output| read(output, MAX_OUTPUT)).await?;
    if !whole {
        return Err(GitError::Failed {
            command,
            message: format!("more than {MAX_OUTPUT} bytes of output"),
        });
    }
    Ok(Answer {
        output,
        success,
        message,
    })
}

/// Runs git and passes each line of its output to `each`, until that returns false. Returns whether `each` has seen all of
/// them. Memory does not grow with the output.
///
/// # Errors
/// It cannot be started, failed, wrote a line of more than 64 KiB, or did not end in time.
pub async fn lines(
    environment: &GitEnvironment,
    run: Run<'_>,
    each: impl FnMut(&[u8]) -> bool,
) -> Result<bool, GitError> {
    let command = run.name();
    let (passed, success, message) = driven(environment, run, |output| pass(output, each)).await?;
    match passed {
        Passed::All if success => Ok(true),
        Passed::All => Err(GitError::Failed { command, message }),
        // Closing the pipe has ended git by a signal, which is no failure.
        Passed::Stopped => Ok(false),
        Passed::Broken(message) => Err(GitError::Failed { command, message }),
    }
}

/// Runs git to its end while `consume` reads its output. Also returns whether git succeeded, and its messages.
async fn driven<T, F: Future<Output = T>>(
    environment: &GitEnvironment,
    mut run: Run<'_>,
    consume: impl FnOnce(Option<ChildStdout>) -> F,
) -> Result<(T, bool, String), GitError> {
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
        let (consumed, errors, ()) = tokio::join!(consume(output), read(errors, MAX_MESSAGE), feed);
        (consumed, errors, child.wait().await)
    };
    let (consumed, errors, status) = timeout(within, all).await.map_err(|_| GitError::Slow {
        command: name.clone(),
        within,
    })?;
    let status = status.map_err(failed)?;
    Ok((consumed, status.success(), words(&errors.0, status.code())))
}

/// How the lines of an output ended.
enum Passed {
    All,
    Stopped,
    Broken(String),
}

/// Passes lines on without their line breaks. Drops the output when it returns.
async fn pass(output: Option<ChildStdout>, mut each: impl FnMut(&[u8]) -> bool) -> Passed {
    let Some(mut output) = output else {
        return Passed::All;
    };
    let (mut kept, mut chunk) = (Vec::new(), vec![0; MAX_LINE]);
    loop {
        let count = match output.read(&mut chunk).await {
            Ok(count) => count,
            Err(error) => return Passed::Broken(error.to_string()),
        };
        kept.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let ended = match kept.iter().rposition(|byte| *byte == b'\n') {
            _ if count == 0 => kept.len(),
            last => last.map_or(0, |at| at + 1),
        };
        let whole = kept.get(..ended).unwrap_or_default();
        let mut whole = whole.split_inclusive(|byte| *byte == b'\n');
        if !whole.all(|line| each(line.strip_suffix(b"\n").unwrap_or(line))) {
            return Passed::Stopped;
        }
        kept.drain(..ended);
        match count {
            0 => return Passed::All,
            _ if kept.len() > MAX_LINE => {
                return Passed::Broken(format!("a line of more than {MAX_LINE} bytes"));
            }
            _ => {}
        }
    }
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
