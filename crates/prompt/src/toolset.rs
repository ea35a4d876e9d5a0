//! Sentences about tools: a prompt has them only for tools that the session offers.
//!
//! The texts in `words` never name a tool in plain letters. A line names it as `{Tool}` and exists only if the session
//! offers that tool. A line that is about tools without their names begins with `{?One|Other}` and exists if one of them
//! is offered.

use std::ops::Range;

/// The tools that a session offers, by canonical name.
#[derive(Debug, Clone, Copy)]
pub struct OfferedTools<'a>(pub &'a [String]);

/// A line of a prompt that is about tools, with the line break before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLine {
    /// Its place in the prompt, in bytes.
    pub(crate) at: Range<usize>,
    /// It exists while one tool of each group is sent.
    needs: Vec<Vec<&'static str>>,
}

impl ToolLine {
    /// A part of a prompt that needs this tool.
    pub(crate) fn new(at: Range<usize>, tool: &'static str) -> Self {
        let needs = vec![vec![tool]];
        Self { at, needs }
    }

    /// The line in a text that begins at `start`.
    pub(crate) fn from(self, start: usize) -> Self {
        let at = self.at.start + start..self.at.end + start;
        Self { at, ..self }
    }

    fn fits(&self, has: impl Fn(&str) -> bool) -> bool {
        fit(&self.needs, has)
    }
}

fn fit(needs: &[Vec<&'static str>], has: impl Fn(&str) -> bool) -> bool {
    needs.iter().all(|group| group.iter().any(|tool| has(tool)))
}

impl OfferedTools<'_> {
    pub(crate) fn has(self, tool: &str) -> bool {
        self.0.iter().any(|offered| offered == tool)
    }

    /// The lines of a text that are true for these tools, and which of them are about tools.
    pub(crate) fn lines(self, words: &'static str) -> (String, Vec<ToolLine>) {
        let (mut text, mut about) = (String::new(), Vec::new());
        for line in words.trim().lines() {
            let (needs, line) = read(line);
            if !fit(&needs, |tool| self.has(tool)) {
                continue;
            }
            let start = text.len();
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&line);
            if !needs.is_empty() {
                let offered = |group: Vec<&'static str>| group.into_iter().filter(|tool| self.has(tool));
                let needs = needs.into_iter().map(|group| offered(group).collect());
                about.push(ToolLine {
                    at: start..text.len(),
                    needs: needs.collect(),
                });
            }
        }
        (text, about)
    }
}

/// The needs of a line, and its text.
fn read(line: &'static str) -> (Vec<Vec<&'static str>>, String) {
    let (mut needs, mut text, mut rest) = (Vec::new(), String::new(), line);
    while let Some((before, (inside, after))) = rest
        .split_once('{')
        .and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        text.push_str(before);
        if let Some(one_of) = inside.strip_prefix('?') {
            needs.push(one_of.split('|').collect());
        } else {
            text.push_str(inside);
            needs.push(vec![inside]);
        }
        rest = after;
    }
    text.push_str(rest);
    (needs, text)
}

/// A prompt without the lines that need a tool which is left out, and the place that `mark` has in it.
#[must_use]
pub fn without_tools(
    text: &str,
    lines: &[ToolLine],
    left_out: impl Fn(&str) -> bool,
    mark: usize,
) -> (String, usize) {
    let (mut kept, mut from, mut moved) = (String::with_capacity(text.len()), 0, mark);
    for line in lines.iter().filter(|line| !line.fits(|tool| !left_out(tool))) {
        kept.push_str(text.get(from..line.at.start).unwrap_or_default());
        if line.at.end <= mark {
            moved = moved.saturating_sub(line.at.len());
        }
        from = line.at.end;
    }
    kept.push_str(text.get(from..).unwrap_or_default());
    (kept, moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "# Work\n- Look.\n{?Bash}# Commands\n- Change files with {Edit}.\n{?Job|BashStart}- Use jobs.\n{?Bash}- Ask with {AskUser} first.\n";

    fn said(tools: &[&str]) -> String {
        let tools: Vec<String> = tools.iter().map(|&tool| tool.to_owned()).collect();
        OfferedTools(&tools).lines(WORDS).0
    }

    #[test]
    fn a_line_is_there_only_with_its_tools() {
        for (tools, lines) in [
            (&[][..], "# Work\n- Look."),
            (&["Edit"], "# Work\n- Look.\n- Change files with Edit."),
            (&["Job"], "# Work\n- Look.\n- Use jobs."),
            (&["BashStart"], "# Work\n- Look.\n- Use jobs."),
            (&["Bash"], "# Work\n- Look.\n# Commands"),
            (&["AskUser"], "# Work\n- Look."),
            (
                &["Bash", "AskUser"],
                "# Work\n- Look.\n# Commands\n- Ask with AskUser first.",
            ),
        ] {
            assert_eq!(said(tools), lines, "{tools:?}");
        }
    }

    #[test]
    fn leaving_a_tool_out_later_gives_the_prompt_of_a_session_without_it() {
        let all = ["Bash", "Edit", "Job", "AskUser"];
        let tools: Vec<String> = all.map(str::to_owned).to_vec();
        let (text, lines) = OfferedTools(&tools).lines(WORDS);
        let whole = format!("{text}\n\nThe end.");
        for out in all {
            let kept: Vec<&str> = all.into_iter().filter(|tool| *tool != out).collect();
            let (rest, mark) = without_tools(&whole, &lines, |tool| tool == out, text.len());
            assert_eq!(rest, format!("{}\n\nThe end.", said(&kept)), "{out}");
            assert_eq!(rest.get(..mark), Some(said(&kept).as_str()), "{out}");
        }
        assert_eq!(without_tools(&whole, &lines, |_| false, 3), (whole.clone(), 3));
    }
}
