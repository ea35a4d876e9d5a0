//! Runs git for the daemon. Git runs programs that configurations name, and agents can write files that git reads. So each
//! run gets an empty environment and a configuration of agentd's own; the repositories of sessions are never the ones
//! that it reads its configuration from.

use crate::error::{WorkspaceError, at};
use crate::workspaces::GitEnvironment;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

/// The most bytes of an error message that are kept.
const MAX_MESSAGE: u64 = 8_192;
/// The most bytes of output that a caller can ask for.
pub(crate) const MAX_OUTPUT: u64 = 64 << 20;

/// Options in every run: no hook, no monitor, no background work, no protocol but those that a caller adds.
const ALWAYS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.pager=cat",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "advice.detachedHead=false",
    "credential.interactive=false",
];

/// One run of git.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// Words after the options, the first being the command.
    args: Vec<OsString>,
    /// More options, as for `git -c`.
    options: Vec<String>,
    /// More variables.
    variables: Vec<(&'static str, OsString)>,
    dir: &'a Path,
    input: Option<Vec<u8>>,
    within: Duration,
    /// Whether it is meant to reach a server: only then it sees the operator's configuration and keys.
    remote: bool,
}

impl<'a> Run<'a> {
    pub(crate) fn new<W: AsRef<OsStr>>(
        dir: &'a Path,
        within: Duration,
        args: impl IntoIterator<Item = W>,
    ) -> Self {
        Self {
            args: args.into_iter().map(|word| word.as_ref().to_owned()).collect(),
            options: Vec::new(),
            variables: Vec::new(),
            dir,
            input: None,
            within,
            remote: false,
        }
    }

    /// Names the repository, and the tree and the index that it works on.
    pub(crate) fn repository(mut self, git_dir: &Path, tree: Option<&Path>) -> Self {
        self.variables.push(("GIT_DIR", git_dir.into()));
        if let Some(tree) = tree {
            self.variables.push(("GIT_WORK_TREE", tree.into()));
        }
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    pub(crate) fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    pub(crate) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = Some(input);
        self
    }

    pub(crate) const fn remote(mut self) -> Self {
        self.remote = true;
        self
    }
}

/// What git answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) output: Vec<u8>,
    pub(crate) success: bool,
    message: String,
}

impl Answer {
    /// What git said about its failure.
    pub(crate) fn message(&self) -> String {
        self.message.clone()
    }

    /// The output as text without the last line break.
    pub(crate) fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.output);
        text.trim_end_matches('\n').to_owned()
    }
}

/// Runs git and expects success.
pub(crate) async fn git(environment: &GitEnvironment, run: Run<'_>) -> Result<Answer, WorkspaceError> {
    let step = step(&run);
    let answer = ask(environment, run).await?;
    if answer.success {
        return Ok(answer);
    }
    Err(WorkspaceError::Git {
        step,
        message: answer.message,
    })
}

fn step(run: &Run<'_>) -> String {
    let name = run
        .args
        .iter()
        .find(|word| !word.as_encoded_bytes().starts_with(b"-"));
    name.map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "this is where the daemon runs git")]
fn command(environment: &GitEnvironment, run: &mut Run<'_>) -> tokio::process::Command {
    let mut command = tokio::process::Command::new("git");
    command
        .env_clear()
        .envs(environment.variables(run.remote))
        .envs(std::mem::take(&mut run.variables))
        .current_dir(run.dir)
        .stdin(if run.input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let options = ALWAYS.iter().map(|option| (*option).to_owned());
    for option in options.chain(std::mem::take(&mut run.options)) {
        command.arg("-c").arg(option);
    }
    command.args(&run.args);
    command
}

/// Runs git; its failure is an answer, too.
pub(crate) async fn ask(environment: &GitEnvironment, mut run: Run<'_>) -> Result<Answer, WorkspaceError> {
    let (step, within) = (step(&run), run.within);
    let mut command = command(environment, &mut run);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => WorkspaceError::refused(
            "git_missing",
            "cannot run git on this machine",
            "install git 2.36 or later, or use the workspace kind shared",
        ),
        _ => at(run.dir)(error),
    })?;
    // Git's own children hold the pipes; when this is dropped, they end with it.
    let _group = child.id().map(Group);
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let (Some(mut stdin), Some(bytes)) = (input, run.input) {
            // If git does not read it, its exit status says why.
            let _ = stdin.write_all(&bytes).await;
        }
    };
    let all = async {
        let (output, errors, ()) = tokio::join!(read(output, MAX_OUTPUT), read(errors, MAX_MESSAGE), feed);
        (output, errors, child.wait().await)
    };
    let (output, errors, status) = timeout(within, all).await.map_err(|_| WorkspaceError::GitSlow {
        step: step.clone(),
        within,
    })?;
    let (output, whole) = output;
    let status = status.map_err(at(run.dir))?;
    if !whole {
        return Err(WorkspaceError::Git {
            step,
            message: format!("more than {MAX_OUTPUT} bytes of output"),
        });
    }
    Ok(Answer {
        output,
        success: status.success(),
        message: message(&errors.0, status.code()),
    })
}

/// The first lines of git's error, without its prefixes.
fn message(errors: &[u8], code: Option<i32>) -> String {
    let text = String::from_utf8_lossy(errors);
    let lines: Vec<&str> = text
        .lines()
        .map(|line| {
            line.trim_start_matches("fatal: ")
                .trim_start_matches("error: ")
                .trim()
        })
        .filter(|line| !line.is_empty())
        .take(3)
        .collect();
    if lines.is_empty() {
        return code.map_or_else(
            || "ended by a signal".to_owned(),
            |code| format!("exit status {code}"),
        );
    }
    lines.join("; ").chars().filter(|c| !c.is_control()).collect()
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
