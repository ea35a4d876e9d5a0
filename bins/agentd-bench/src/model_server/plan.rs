//! What a conversation wants from the server: words in its first prompt, so that requests need no state.

use memchr::memmem;

/// `plan:KEY steps=20 tool=Bash:true text=done fail=2:529:1 hang=3 hangs=1;` somewhere in the prompt. Ends with `;`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Tells conversations apart where failures are counted.
    pub key: String,
    /// Steps with a tool call before the final text.
    pub steps: usize,
    /// The shell command of each step's `Bash` call.
    pub command: String,
    /// Calls in one step.
    pub calls: usize,
    /// The final text.
    pub text: String,
    /// The first N attempts fail with this status and this `Retry-After` in seconds.
    pub fail: Option<(u32, u16, Option<u64>)>,
    /// At this step (from 0) the stream starts and then hangs.
    pub hang: Option<usize>,
    /// It hangs this often and then answers; absent: always.
    pub hangs: Option<u32>,
}

/// What one request is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Tool calls: the commands.
    Calls(Vec<String>),
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
            command: "true".to_owned(),
            calls: 1,
            text: "All done.".to_owned(),
            fail: None,
            hang: None,
            hangs: None,
        }
    }
}

impl Plan {
    /// Reads the last plan of a request body; without one the answer is a final text.
    #[must_use]
    pub fn read(body: &[u8]) -> Self {
        let mut plan = Self::default();
        let Some(start) = memmem::rfind(body, b"plan:") else {
            return plan;
        };
        let rest = body.get(start + 5..).unwrap_or_default();
        let end = memchr::memchr(b';', rest).unwrap_or(0);
        let words = String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned();
        for (n, word) in words.split_whitespace().enumerate() {
            match word.split_once('=') {
                None if n == 0 => word.clone_into(&mut plan.key),
                Some(("steps", value)) => plan.steps = value.parse().unwrap_or(0),
                Some(("calls", value)) => plan.calls = value.parse().unwrap_or(1),
                Some(("hang", value)) => plan.hang = value.parse().ok(),
                Some(("hangs", value)) => plan.hangs = value.parse().ok(),
                Some(("command", value)) => plan.command = value.replace('_', " "),
                Some(("text", value)) => plan.text = value.replace('_', " "),
                Some(("fail", value)) => plan.fail = fail(value),
                _ => {}
            }
        }
        plan
    }

    /// The same plan with nothing that hangs.
    #[must_use]
    pub fn without_hang(&self) -> Self {
        Self {
            hang: None,
            ..self.clone()
        }
    }

    /// The step that this request is at: one assistant message per step so far since the plan was given.
    #[must_use]
    pub fn step(&self, body: &[u8]) -> Step {
        let since = memmem::rfind(body, b"plan:").unwrap_or(0);
        let done =
            memmem::find_iter(body.get(since..).unwrap_or_default(), b"\"role\":\"assistant\"").count();
        if self.hang == Some(done) {
            return Step::Hang("Thinking about it".to_owned());
        }
        if done < self.steps {
            return Step::Calls((0..self.calls).map(|n| self.command_at(done, n)).collect());
        }
        Step::Text(self.text.clone())
    }

    fn command_at(&self, step: usize, call: usize) -> String {
        // Each call is a little different, so that no guard against repetition speaks.
        self.command.replace("{n}", &format!("{step}.{call}")) + &format!(" # {step}.{call}")
    }
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
    fn a_plan_is_read_from_the_prompt_and_followed_by_counting_assistant_messages() {
        let prompt =
            r#"[{"role":"user","content":"plan:a steps=2 command=echo_hi fail=1:503:2 text=bye_now;"}"#;
        let body = prompt.as_bytes();
        let plan = Plan::read(body);
        assert_eq!(plan.fail, Some((1, 503, Some(2))));
        assert_eq!(plan.step(body), Step::Calls(vec!["echo hi # 0.0".to_owned()]));
        let later = format!(r#"{prompt},{{"role":"assistant"}},{{"role":"assistant"}}]"#);
        assert_eq!(plan.step(later.as_bytes()), Step::Text("bye now".to_owned()));
    }
}
