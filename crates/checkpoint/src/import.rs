//! Writes objects with `git fast-import`: it gets only the changed files, and the rest of a tree from the commit before.

use crate::error::Error;
use crate::git::Git;
use crate::quoted;
use crate::trees::{Item, Kind, Tree};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::process::{Child, ChildStdin};

/// Who records files.
pub(crate) const AGENTD: &str = "agentd <agentd@localhost>";

/// The files with which a commit begins.
#[derive(Debug)]
pub(crate) enum Onto<'a> {
    /// The last recording of the directory, if there is one.
    Commit(Option<&'a str>),
    /// No files. Nothing else refers to the commit.
    Nothing,
    /// The files of a tree. Nothing else refers to the commit.
    Tree(&'a Tree),
}

/// A commit that is being written.
#[derive(Debug)]
pub(crate) struct Import {
    child: Child,
    input: BufWriter<ChildStdin>,
}

impl Import {
    /// Begins a commit after another one; without one, it has only the files that are put into it.
    pub(crate) fn begin(git: &Git, onto: &Onto<'_>, seconds: i64) -> Result<Self, Error> {
        let mut child = git.start(&["fast-import", "--quiet", "--done", "--force"])?;
        let Some(input) = child.stdin.take() else {
            return Err(failed("it has no input".to_owned()));
        };
        let mut import = Self {
            child,
            input: BufWriter::with_capacity(1 << 16, input),
        };
        let begun = import.head(onto, seconds);
        import.check(begun)
    }

    fn head(&mut self, onto: &Onto<'_>, seconds: i64) -> io::Result<()> {
        let out = &mut self.input;
        let name = match onto {
            Onto::Commit(_) => "refs/agentd/files",
            Onto::Nothing | Onto::Tree(_) => "refs/agentd/scratch",
        };
        writeln!(out, "commit {name}\nmark :1")?;
        writeln!(out, "committer {AGENTD} {seconds} +0000")?;
        writeln!(out, "data 10\ncheckpoint")?;
        match onto {
            Onto::Commit(Some(commit)) => writeln!(out, "from {commit}"),
            Onto::Commit(None) | Onto::Nothing => writeln!(out, "deleteall"),
            Onto::Tree(tree) => writeln!(out, "deleteall\nM 040000 {tree} \"\""),
        }
    }

    fn check(mut self, done: io::Result<()>) -> Result<Self, Error> {
        match done {
            Ok(()) => Ok(self),
            Err(error) => Err(self.why(&error)),
        }
    }

    /// The cause of a broken pipe.
    fn why(&mut self, error: &io::Error) -> Error {
        let _ = self.child.kill();
        let mut words = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(1 << 16).read_to_end(&mut words);
        }
        failed(if words.is_empty() {
            error.to_string()
        } else {
            agentd_git::words(&words, None)
        })
    }

    /// Deletes a path.
    pub(crate) fn delete(mut self, path: &[u8]) -> Result<Self, Error> {
        let out = &mut self.input;
        let done = write!(out, "D ")
            .and_then(|()| quoted::write(out, path))
            .and_then(|()| writeln!(out));
        self.check(done)
    }

    /// Puts a file whose content is there already.
    pub(crate) fn put_known(mut self, path: &[u8], item: &Item) -> Result<Self, Error> {
        let out = &mut self.input;
        let done = write!(out, "M {} {} ", item.kind.mode(), item.content)
            .and_then(|()| quoted::write(out, path))
            .and_then(|()| writeln!(out));
        self.check(done)
    }

    /// Puts a file.
    pub(crate) fn put(mut self, path: &[u8], kind: Kind, content: &[u8]) -> Result<Self, Error> {
        let out = &mut self.input;
        let done = write!(out, "M {} inline ", kind.mode())
            .and_then(|()| quoted::write(out, path))
            .and_then(|()| writeln!(out, "\ndata {}", content.len()))
            .and_then(|()| out.write_all(content))
            .and_then(|()| writeln!(out));
        self.check(done)
    }

    /// Ends the commit; returns its id and its tree.
    pub(crate) fn finish(mut self) -> Result<(String, Tree), Error> {
        let done = writeln!(self.input, "\nget-mark :1\nls :1 \"\"\ndone").and_then(|()| self.input.flush());
        self = self.check(done)?;
        let mut answers = String::new();
        if let Some(output) = self.child.stdout.take() {
            let mut lines = BufReader::new(output);
            for _ in 0..2 {
                if let Err(error) = lines.read_line(&mut answers) {
                    return Err(self.why(&error));
                }
            }
        }
        let ended = self.child.wait().map_err(|error| failed(error.to_string()))?;
        if !ended.success() {
            return Err(self.why(&io::Error::other(ended.to_string())));
        }
        let mut lines = answers.lines();
        let commit = lines.next().unwrap_or_default().to_owned();
        let tree = lines.next().unwrap_or_default();
        let tree = tree.strip_prefix("040000 tree ").and_then(|rest| rest.get(..40));
        // A commit without files has no tree that could be listed.
        let tree = tree.map_or_else(|| Ok(Tree::empty()), Tree::parse)?;
        Ok((commit, tree))
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(why: String) -> Error {
    Error::Git {
        what: "fast-import".to_owned(),
        why,
    }
}
