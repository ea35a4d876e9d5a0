//! Reads recorded contents with one `git cat-file`.

use crate::archive::Archive;
use crate::error::Error;
use crate::git::Git;
use crate::take::{hex, id_of};
use crate::trees::Tree;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};

/// Reads recorded contents.
#[derive(Debug)]
pub struct Contents {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Archive {
    /// Opens the recorded contents.
    ///
    /// # Errors
    /// `git` cannot be started.
    pub fn contents(&self) -> Result<Contents, Error> {
        Contents::of(&self.git())
    }
}

impl Contents {
    pub(crate) fn of(git: &Git) -> Result<Self, Error> {
        let mut child = git.start(&["cat-file", "--batch-command"])?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                child,
                input,
                output: BufReader::new(output),
            }),
            _ => Err(failed("it has no pipes")),
        }
    }
}

impl Contents {
    /// The content with this id.
    ///
    /// # Errors
    /// It is not there, or `git` failed.
    pub fn get(&mut self, id: &str) -> Result<Vec<u8>, Error> {
        let size = self.ask("contents", id)?;
        let mut bytes = vec![0; size + 1];
        self.output
            .read_exact(&mut bytes)
            .map_err(|error| failed(&error.to_string()))?;
        bytes.truncate(size);
        // Commands can write the objects of the repository that they are borrowed from, and git does not check this.
        if hex(&id_of(&bytes)) != id {
            return Err(Error::Forged(id.to_owned()));
        }
        Ok(bytes)
    }

    /// The size of the content with this id.
    ///
    /// # Errors
    /// It is not there, or `git` failed.
    pub fn size(&mut self, id: &str) -> Result<usize, Error> {
        self.ask("info", id)
    }

    fn ask(&mut self, command: &str, id: &str) -> Result<usize, Error> {
        let id = Tree::parse(id)?;
        let asked = writeln!(self.input, "{command} {id}").and_then(|()| self.input.flush());
        asked.map_err(|error| failed(&error.to_string()))?;
        let mut head = String::new();
        self.output
            .read_line(&mut head)
            .map_err(|error| failed(&error.to_string()))?;
        let mut words = head.trim_end().split(' ').skip(1);
        match (words.next(), words.next().map(str::parse)) {
            (Some("missing"), _) => Err(Error::Lost(id.to_string())),
            (Some("blob"), Some(Ok(size))) => Ok(size),
            _ => Err(failed("an unexpected answer")),
        }
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(why: &str) -> Error {
    Error::Git {
        what: "cat-file".to_owned(),
        why: why.to_owned(),
    }
}
