//! The plan of a conversation: words in its first prompt, so that the server needs no state between requests.

use super::speech::Speech;
use super::task;
use memchr::memmem;
use serde_json::{Value, json};

/// `plan:KEY steps=20 tool=bash command=true text=done fail=2:529:1 hang=3 hangs=1 first=200;`, anywhere in the prompt.
/// Ends with `;`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Identifies the conversation when failures are counted.
    pub key: String,
    /// Steps with a tool call before the final text.
    pub steps: usize,
    /// The tool to call.
    pub tool: PlanTool,
    /// The shell command of each step's `Bash` call.
    pub command: String,
    /// Calls in one step.
    pub calls: usize,
    /// The final text. `@now` is replaced with the time of the answer in microseconds.
    pub text: String,
    /// The first N attempts fail with this status and this `Retry-After` in seconds.
    pub fail: Option<(u32, u16, Option<u64>)>,
    /// At this step (from 0), the stream starts and then hangs.
    pub hang: Option<usize>,
    /// It hangs this many times and then answers; absent: always.
    pub hangs: Option<u32>,
    /// Milliseconds before the first byte of each answer; absent: the server's default.
    pub first_ms: Option<u64>,
    /// The request offers no `Edit`, so the task changes files with `ApplyPatch`.
    pub patches: bool,
}

/// The tool that a step calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlanTool {
    /// `Bash` with the plan's command.
    #[default]
    Bash,
    /// `Read` of a line of `bench.txt`.
    Read,
    /// `Bash` and `Read` in turn.
    Mix,
    /// `Write` of a new file.
    Write,
    /// The scripted task of the cost mode.
    Task,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool's name.
    pub name: &'static str,
    /// Its arguments.
    pub input: Value,
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Tool calls.
    Calls(Vec<Call>),
    /// The final text.
    Text(String),
    /// Some text, then silence.
    Hang(String),
}

impl Step {
    /// Whether the stream never ends.
    #[must_use]
    pub const fn hang(&self) -> bool {
        matches!(self, Self::Hang(_))
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            key: String::new(),
            steps: 0,
            tool: PlanTool::Bash,
            command: "true".to_owned(),
            calls: 1,
            text: "All done.".to_owned(),
            fail: None,
            hang: None,
            hangs: None,
            first_ms: None,
            patches: false,
        }
    }
}

impl Plan {
    /// Parses the last plan of a request body. Without one, the answer is a final text.
    #[must_use]
    pub fn read(body: &[u8]) -> Self {
        let mut plan = Self {
            patches: memmem::find(body, br#""name":"Edit""#).is_none(),
            ..Self::default()
        };
        for (n, word) in words_of(body).split_whitespace().enumerate() {
            match word.split_once('=') {
                None if n == 0 => word.clone_into(&mut plan.key),
                Some(("steps", value)) => plan.steps = value.parse().unwrap_or(0),
                Some(("calls", value)) => plan.calls = value.parse().unwrap_or(1),
                Some(("tool", "read")) => plan.tool = PlanTool::Read,
                Some(("tool", "mix")) => plan.tool = PlanTool::Mix,
                Some(("tool", "write")) => plan.tool = PlanTool::Write,
                Some(("tool", "task")) => plan.tool = PlanTool::Task,
                Some(("hang", value)) => plan.hang = value.parse().ok(),
                Some(("hangs", value)) => plan.hangs = value.parse().ok(),
                Some(("first", value)) => plan.first_ms = value.parse().ok(),
                Some(("command", value)) => plan.command = value.replace('_', " "),
                // A line break is an escape sequence in the request.
                Some(("text", value)) => plan.text = value.replace('_', " ").replace("\\n", "\n"),
                Some(("fail", value)) => plan.fail = fail(value),
                _ => {}
            }
        }
        plan
    }

    /// The same plan without a hang.
    #[must_use]
    pub fn without_hang(&self) -> Self {
        Self {
            hang: None,
            ..self.clone()
        }
    }

    /// The answer to the current request: `done` steps have finished since the plan was given.
    #[must_use]
    pub fn step(&self, done: usize) -> Step {
        if self.hang == Some(done) {
            return Step::Hang("Thinking about it".to_owned());
        }
        if done < self.steps {
            return Step::Calls((0..self.calls).map(|n| self.call_at(done, n)).collect());
        }
        if self.tool == PlanTool::Task {
            return Step::Text(task::FINAL.to_owned());
        }
        Step::Text(self.text.clone())
    }

    /// The number of steps since the plan was given, counted by the dialect's mark of a model answer.
    #[must_use]
    pub(super) fn done(&self, body: &[u8], speech: Speech) -> usize {
        let since = memmem::rfind(body, b"plan:").unwrap_or(0);
        let rest = body.get(since..).unwrap_or_default();
        match speech.mark() {
            // Our own prompt states the number.
            None => {
                memmem::find(rest, b"done:").map_or(0, |at| number(rest.get(at + 5..).unwrap_or_default()))
            }
            Some((mark, per_call)) => {
                let found = memmem::find_iter(rest, mark).count();
                if per_call {
                    found / self.calls.max(1)
                } else {
                    found
                }
            }
        }
    }

    fn call_at(&self, step: usize, call: usize) -> Call {
        // Each call differs a little, so that it does not trigger the repetition guard.
        let read = match self.tool {
            PlanTool::Bash => false,
            PlanTool::Read => true,
            PlanTool::Mix => (step + call) % 2 == 1,
            PlanTool::Write => {
                let name = format!("{}-{step}-{call}.txt", self.key);
                return Call {
                    name: "Write",
                    input: json!({ "file_path": name, "content": "a line\n" }),
                };
            }
            PlanTool::Task => {
                let (name, input) = task::call(step, self.patches);
                return Call { name, input };
            }
        };
        if read {
            let line = (step + call) % 1_000 + 1;
            return Call {
                name: "Read",
                input: json!({ "file_path": "bench.txt", "offset": line, "limit": 1 }),
            };
        }
        let at = format!("{step}.{call}");
        let command = self.command.replace("{n}", &at) + &format!(" # {at}");
        Call {
            name: "Bash",
            input: json!({ "command": command }),
        }
    }
}

/// The text of the last plan in a request.
pub(super) fn words_of(body: &[u8]) -> String {
    let Some(start) = memmem::rfind(body, b"plan:") else {
        return String::new();
    };
    let rest = body.get(start + 5..).unwrap_or_default();
    let end = memchr::memchr(b';', rest).unwrap_or(0);
    String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned()
}

fn number(text: &[u8]) -> usize {
    text.iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |sum: usize, byte| {
            sum.saturating_mul(10).saturating_add(usize::from(byte - b'0'))
        })
}

fn fail(value: &str) -> Option<(u32, u16, Option<u64>)> {
    let mut parts = value.split(':');
    let times = parts.next()?.parse().ok()?;
    let status = parts.next().and_then(|s| s.parse().ok()).unwrap_or(529);
    Some((times, status, parts.next().and_then(|s| s.parse().ok())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_contains_the_plan_and_assistant_messages_count_its_steps() {
        let prompt =
            r#"[{"role":"user","content":"plan:a steps=2 command=echo_hi fail=1:503:2 text=bye_now;"}"#;
        let body = prompt.as_bytes();
        let plan = Plan::read(body);
        assert_eq!(plan.fail, Some((1, 503, Some(2))));
        let call = Call {
            name: "Bash",
            input: json!({ "command": "echo hi # 0.0" }),
        };
        assert_eq!(
            plan.step(plan.done(body, Speech::Anthropic)),
            Step::Calls(vec![call])
        );
        let later = format!(r#"{prompt},{{"role":"assistant"}},{{"role":"assistant"}}]"#);
        let done = plan.done(later.as_bytes(), Speech::Anthropic);
        assert_eq!(plan.step(done), Step::Text("bye now".to_owned()));
    }

    #[test]
    fn parallel_calls_of_a_dialect_without_messages_are_one_step() {
        let body = br#""plan:a steps=2 calls=2;" {"type":"function_call"},{"type":"function_call"},{"type":"function_call_output"}"#;
        assert_eq!(Plan::read(body).done(body, Speech::Responses), 1);
        let body = b"plan:a steps=12; done:11;";
        assert_eq!(Plan::read(body).done(body, Speech::Completion), 11);
    }
}
