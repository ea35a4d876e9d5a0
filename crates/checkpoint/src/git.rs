//! Starts `git` on a bare repository of this crate.
//!
//! It never sees the recorded directory, and no configuration except the repository's own, which agentd wrote.

use crate::archive::common_dir;
use crate::error::Error;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The most characters of an error message that are kept.
const LAST_WORDS: usize = 300;

/// `git` for one bare repository.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    repository: PathBuf,
    more: Vec<(&'static str, OsString)>,
}

impl Git {
    pub(crate) fn new(repository: &Path) -> Self {
        Self {
            repository: repository.to_owned(),
            more: Vec::new(),
        }
    }

    /// The same, which can also read the objects of another repository.
    pub(crate) fn borrowing(mut self, other: &Self) -> Self {
        let objects = common_dir(&other.repository).join("objects");
        self.more
            .push(("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects.into()));
        self
    }

    /// The same with the names of an author.
    pub(crate) fn named(&self, names: &[(&'static str, &str)]) -> Self {
        let mut git = self.clone();
        let names = names.iter().map(|(name, value)| (*name, OsString::from(value)));
        git.more.extend(names);
        git
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "git runs on agentd's own repository, not on a session's files, so it needs no sandbox"
    )]
    fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = Command::new("git");
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", "/dev/null")
            .env("LC_ALL", "C")
            .env("GIT_DIR", &self.repository)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .envs(self.more.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"])
            .args(["-c", "core.alternateRefsCommand=true", "-c", "gc.auto=0"])
            .args(["-c", "fastimport.unpackLimit=1"])
            .args(["-c", "core.compression=1", "-c", "pack.compression=1"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end and returns its output.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Vec<u8>, Error> {
        let output = self.command(args).output().map_err(|error| not_started(&error))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(Error::Git {
            what: name(args),
            why: last_words(&output.stderr),
        })
    }

    /// The same with an input, which it reads before it writes anything but messages.
    pub(crate) fn run_with<A: AsRef<OsStr>>(&self, args: &[A], input: &[u8]) -> Result<Vec<u8>, Error> {
        let mut child = self.start(args)?;
        if let Some(mut pipe) = child.stdin.take() {
            // If it ends early, its exit code says why.
            let _ = pipe.write_all(input);
        }
        let output = child.wait_with_output().map_err(|error| not_started(&error))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(Error::Git {
            what: name(args),
            why: last_words(&output.stderr),
        })
    }

    /// Starts it with pipes.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Child, Error> {
        let mut command = self.command(args);
        command
            .stdin(Stdio::piped())
            .spawn()
            .map_err(|error| not_started(&error))
    }
}

/// Runs `git init` for a new bare repository.
pub(crate) fn init(dir: &Path) -> Result<(), Error> {
    let git = Git::new(dir);
    let args = ["init", "-q", "--bare", "--template=", "--object-format=sha1"];
    git.run(&args.map(OsStr::new)).map(drop)
}

fn not_started(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::NoGit,
        _ => Error::Git {
            what: "start".to_owned(),
            why: error.to_string(),
        },
    }
}

fn name<A: AsRef<OsStr>>(args: &[A]) -> String {
    let first = args.first().map(|word| word.as_ref().to_string_lossy());
    first.map(std::borrow::Cow::into_owned).unwrap_or_default()
}

/// The end of what it wrote to standard error.
pub(crate) fn last_words(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    let skip = text.chars().count().saturating_sub(LAST_WORDS);
    text.chars().skip(skip).collect()
}
