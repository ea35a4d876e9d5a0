//! One run of git.

use crate::children::noted;
use crate::environment::GitEnvironment;
use crate::error::{GitError, words};
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Options in every run: no hook, no monitor, no background work.
const ALWAYS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.pager=cat",
    "core.alternateRefsCommand=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "advice.detachedHead=false",
    "credential.interactive=false",
];

/// One run of git.
#[derive(Debug)]
pub struct Run<'a> {
    /// Words after the options, the first being the command.
    args: Vec<OsString>,
    /// More options, as for `git -c`.
    options: Vec<String>,
    /// More variables.
    variables: Vec<(&'static str, OsString)>,
    pub(crate) dir: &'a Path,
    pub(crate) input: Option<Vec<u8>>,
    pub(crate) within: Duration,
    /// The protocol by which it may reach a server: only then it sees the operator's configuration and keys.
    protocol: Option<String>,
}

impl<'a> Run<'a> {
    /// A run in a directory that ends within this time.
    pub fn new<W: AsRef<OsStr>>(dir: &'a Path, within: Duration, args: impl IntoIterator<Item = W>) -> Self {
        Self {
            args: args.into_iter().map(|word| word.as_ref().to_owned()).collect(),
            options: Vec::new(),
            variables: Vec::new(),
            dir,
            input: None,
            within,
            protocol: None,
        }
    }

    /// A run on a bare repository, for [`blocking`] and [`start`]. Whoever owns the thread limits the time.
    pub fn bare<W: AsRef<OsStr>>(repository: &Path, args: impl IntoIterator<Item = W>) -> Self {
        Self::new(Path::new("/"), Duration::MAX, args).repository(repository, None)
    }

    /// Names the repository and the tree that it works on.
    #[must_use]
    pub fn repository(mut self, git_dir: &Path, tree: Option<&Path>) -> Self {
        self.variables.push(("GIT_DIR", git_dir.into()));
        if let Some(tree) = tree {
            self.variables.push(("GIT_WORK_TREE", tree.into()));
        }
        self
    }

    /// One more variable.
    #[must_use]
    pub fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// One more option, as for `git -c`.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// What git reads.
    #[must_use]
    pub fn input(mut self, input: Vec<u8>) -> Self {
        self.input = Some(input);
        self
    }

    /// Lets it reach a server, with the operator's configuration and keys, by this protocol and no other.
    #[must_use]
    pub fn remote(mut self, protocol: &str) -> Self {
        self.protocol = Some(protocol.to_owned());
        self
    }

    /// The git command.
    pub(crate) fn name(&self) -> String {
        let name = self
            .args
            .iter()
            .find(|word| !word.as_encoded_bytes().starts_with(b"-"));
        name.map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// The process to start. It leads a process group: git starts processes of its own.
    #[expect(clippy::disallowed_methods, reason = "this is where the daemon runs git")]
    pub(crate) fn command(&self, environment: &GitEnvironment) -> Command {
        let mut command = Command::new(environment.program().unwrap_or_else(|| "git".into()));
        let variables = self.variables.iter().map(|(name, value)| (*name, value));
        command
            .env_clear()
            .envs(environment.variables(self.protocol.as_deref()))
            .envs(variables)
            .current_dir(self.dir)
            .stdin(if self.input.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let options = ALWAYS.into_iter().chain(self.options.iter().map(String::as_str));
        for option in options {
            command.arg("-c").arg(option);
        }
        command.args(&self.args);
        command
    }
}

/// Runs git to its end and returns its output. Git must read its whole input before it writes anything but messages.
///
/// # Errors
/// It failed.
pub fn blocking(environment: &GitEnvironment, mut run: Run<'_>) -> Result<Vec<u8>, GitError> {
    let (name, input) = (run.name(), run.input.take());
    let failed = |error| GitError::not_started(name.clone(), error);
    let output = match input {
        None => {
            let child = noted(|| run.command(environment).spawn(), |child| Some(child.id()));
            child.and_then(Child::wait_with_output).map_err(failed)?
        }
        Some(input) => {
            let mut child = start(environment, &run)?;
            if let Some(mut pipe) = child.stdin.take() {
                // If git does not read it, its exit status says why.
                let _ = pipe.write_all(&input);
            }
            child.wait_with_output().map_err(failed)?
        }
    };
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(GitError::Failed {
        command: name,
        message: words(&output.stderr, output.status.code()),
    })
}

/// Starts git with pipes.
///
/// # Errors
/// It cannot be started.
pub fn start(environment: &GitEnvironment, run: &Run<'_>) -> Result<Child, GitError> {
    let mut command = run.command(environment);
    command.stdin(Stdio::piped());
    noted(|| command.spawn(), |child| Some(child.id()))
        .map_err(|error| GitError::not_started(run.name(), error))
}
