//! Runs git on a bare repository. It never sees the recorded directory.

use crate::archive::common_dir;
use crate::error::{Error, at};
use agentd_git::{GitEnvironment, Run};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;

/// Few packs, and little time for what is read soon or never.
const OPTIONS: [&str; 3] = [
    "fastimport.unpackLimit=1",
    "core.compression=1",
    "pack.compression=1",
];

/// The files of an empty bare repository (gitrepository-layout(5)).
const REPOSITORY: [(&str, &str); 2] = [
    ("HEAD", "ref: refs/heads/main\n"),
    (
        "config",
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n",
    ),
];

/// Git for one repository.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    environment: Arc<GitEnvironment>,
    repository: PathBuf,
    more: Vec<(&'static str, OsString)>,
}

impl Git {
    pub(crate) fn new(environment: &Arc<GitEnvironment>, repository: &Path) -> Self {
        Self {
            environment: Arc::clone(environment),
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

    /// Whether there is such a program.
    pub(crate) fn is_installed(&self) -> bool {
        self.environment.program().is_some()
    }

    fn prepared<A: AsRef<OsStr>>(&self, args: &[A]) -> Run<'static> {
        let mut run = Run::bare(&self.repository, args);
        for option in OPTIONS {
            run = run.option(option);
        }
        for (name, value) in &self.more {
            run = run.variable(name, value);
        }
        run
    }

    /// Runs it to its end and returns its output.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Vec<u8>, Error> {
        Ok(agentd_git::blocking(&self.environment, self.prepared(args))?)
    }

    /// The same with an input, which it reads before it writes anything but messages.
    pub(crate) fn run_with<A: AsRef<OsStr>>(&self, args: &[A], input: &[u8]) -> Result<Vec<u8>, Error> {
        let run = self.prepared(args).input(input.to_owned());
        Ok(agentd_git::blocking(&self.environment, run)?)
    }

    /// Pushes a commit to a new branch of a server that it reaches by this protocol.
    pub(crate) fn push(&self, commit: &str, (url, protocol): (&str, &str), name: &str) -> Result<(), Error> {
        let args = [
            "push".to_owned(),
            "--quiet".to_owned(),
            "--no-verify".to_owned(),
            // The branch must not exist.
            format!("--force-with-lease={name}:"),
            "--end-of-options".to_owned(),
            url.to_owned(),
            format!("{commit}:{name}"),
        ];
        let run = self.prepared(&args).remote(protocol);
        let run = run
            .option("http.lowSpeedLimit=1000")
            .option("http.lowSpeedTime=30");
        Ok(agentd_git::blocking(&self.environment, run).map(drop)?)
    }

    /// Starts it with pipes.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Child, Error> {
        Ok(agentd_git::start(&self.environment, &self.prepared(args))?)
    }

    /// Makes the repository in its directory, which is empty: what git needs there, without starting it.
    pub(crate) fn init(&self) -> Result<(), Error> {
        for name in ["objects", "refs"] {
            let dir = self.repository.join(name);
            fs::create_dir(&dir).map_err(at(&dir))?;
        }
        for (name, text) in REPOSITORY {
            let file = self.repository.join(name);
            fs::write(&file, text).map_err(at(&file))?;
        }
        Ok(())
    }
}
