//! Messages that were sent from here, over all sessions.

use crate::environment::Environment;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// The most messages that are read, and the longest that is kept.
const MOST: usize = 500;
const LONGEST: usize = 8 << 10;
/// A larger file is shortened when it is read.
const MOST_BYTES: usize = 1 << 20;

/// The file with one message, as a JSON string, in each line.
#[derive(Debug)]
pub(crate) struct History(Option<PathBuf>);

impl History {
    pub(crate) fn of(environment: &Environment) -> Self {
        let base = environment
            .path("XDG_STATE_HOME")
            .or_else(|| Some(environment.path("HOME")?.join(".local").join("state")));
        Self(base.map(|base| base.join("agentctl").join("history.jsonl")))
    }

    /// The messages, the oldest first. A history that cannot be read is empty.
    pub(crate) fn read(&self) -> Vec<String> {
        let Some(path) = &self.0 else { return Vec::new() };
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(MOST);
        let kept = lines.get(from..).unwrap_or_default();
        if text.len() > MOST_BYTES {
            let _ = fs::write(path, format!("{}\n", kept.join("\n")));
        }
        kept.iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Adds a message. That it is not remembered is no reason to disturb the person.
    pub(crate) fn add(&self, message: &str) {
        let (Some(path), Ok(line)) = (&self.0, serde_json::to_string(message)) else {
            return;
        };
        if message.len() > LONGEST || message.trim().is_empty() {
            return;
        }
        if let Some(folder) = path.parent() {
            let _ = fs::create_dir_all(folder);
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_in_order_and_long_ones_are_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap();
        let history = History::of(&Environment::new([("XDG_STATE_HOME".into(), home.into())], None));
        assert_eq!(history.read(), [""; 0]);
        for message in ["one", "two\nlines", " ", &"x".repeat(LONGEST + 1)] {
            history.add(message);
        }
        assert_eq!(history.read(), ["one", "two\nlines"]);
    }
}
