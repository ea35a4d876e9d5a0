//! The description of a call for people: a title, the full text, and the risks.

use super::Case;
use crate::danger::danger;
use crate::guarded::Guarded;
use crate::path::{inside, name_hidden};
use crate::request::Subject;

impl Case<'_> {
    pub(super) fn words(&self) -> (String, String) {
        match self.request.subject {
            Subject::Command { command } => (format!("Run {}", one_line(command)), command.clone()),
            Subject::Path { write, path } => {
                let verb = if *write { "Change" } else { "Read" };
                let shown = self
                    .path
                    .as_deref()
                    .and_then(|path| inside(self.request.workdir, path))
                    .unwrap_or(path);
                (
                    format!("{verb} {}", one_line(shown)),
                    self.path.clone().unwrap_or_default(),
                )
            }
            Subject::Url(url) => (format!("Fetch {}", one_line(url)), url.clone()),
            Subject::Paths { paths, .. } => (
                format!("{} {} files", self.request.tool, paths.len()),
                paths.join("\n"),
            ),
            Subject::Remote { arguments, .. } => (self.request.tool.to_owned(), arguments.clone()),
            Subject::Nothing => (self.request.tool.to_owned(), String::new()),
        }
    }

    pub(super) fn risks(&self, detail: &str) -> Vec<String> {
        let mut risks: Vec<String> = self.guarded.iter().take(4).map(Guarded::why).collect();
        let hidden = name_hidden(detail);
        if !hidden.is_empty() {
            risks.push(format!("it has hidden characters: {}", hidden.join(" ")));
        }
        if let Some(analysis) = &self.analysis {
            match &analysis.segments {
                Err(why) => risks.push(format!("it has {why}")),
                Ok(segments) if segments.iter().any(|argv| danger(argv).is_some()) => {
                    risks.push("it can run other programs or write files".to_owned());
                }
                Ok(_) => {}
            }
            let written: Vec<&str> = self.written_files().take(4).collect();
            if !written.is_empty() {
                risks.push(format!("it writes {}", written.join(", ")));
            }
        }
        let outside = |path: &String| inside(self.request.workdir, path).is_none();
        if self.path.as_ref().is_some_and(outside) {
            risks.push("it is outside the working directory".to_owned());
        }
        risks
    }
}

/// The first line of a text, cut at 100 characters.
pub(super) fn one_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let mut short: String = first.chars().take(100).collect();
    if short.len() < first.len() || lines.next().is_some() {
        short.push('…');
    }
    short
}
