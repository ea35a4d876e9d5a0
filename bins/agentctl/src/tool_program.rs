//! Asks the program `agentd` about the tools. This program does not contain them: they would be most of its size.

use crate::autostart::GET_AGENTD;
use crate::environment::Environment;
use crate::failure::Failure;
use agentd_policy::{LONGEST_LINE, TOOLS_ARG, ToolAnswer, ToolQuestion};
use agentd_protocol::Fault;
use std::io::{Error, ErrorKind, Result as IoResult};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// The deadline for the answers to one list of questions.
const WITHIN: Duration = Duration::from_secs(30);

/// The program `agentd`, which starts with the first question and ends with this value.
#[derive(Debug)]
pub(crate) struct ToolProgram {
    path: Option<PathBuf>,
    running: Option<Running>,
}

impl ToolProgram {
    /// The program that belongs to this one. It need not exist as long as nothing is asked.
    pub(crate) fn new(environment: &Environment) -> Self {
        Self {
            path: environment.find_program("agentd"),
            running: None,
        }
    }

    /// The answer to a question.
    pub(crate) async fn answer(&mut self, question: ToolQuestion) -> Result<ToolAnswer, Failure> {
        let answer = self.answers(&[question]).await?.pop();
        answer.ok_or_else(|| Fault::internal("no_answer", "a question about a tool has no answer").into())
    }

    /// The answers to these questions, in the same order.
    pub(crate) async fn answers(&mut self, questions: &[ToolQuestion]) -> Result<Vec<ToolAnswer>, Failure> {
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        let path = self.path.as_deref().ok_or_else(|| {
            Fault::unavailable(
                "no_agentd",
                "only `agentd` knows the tools whose calls are judged, and it was not found",
            )
            .hint(GET_AGENTD)
        })?;
        let running = match &mut self.running {
            Some(running) => running,
            none => {
                let started = Running::start(command(path), LONGEST_LINE);
                none.insert(started.map_err(|error| failed(path, &error))?)
            }
        };
        let answers = timeout(WITHIN, running.answers(questions)).await;
        let answers = answers.unwrap_or_else(|_| Err(late()));
        if answers.is_err() {
            // Its next line could be the answer to one of these questions.
            self.running = None;
        }
        answers.map_err(|error| failed(path, &error))
    }
}

fn late() -> Error {
    let text = format!("it did not answer within {} s", WITHIN.as_secs());
    Error::new(ErrorKind::TimedOut, text)
}

fn failed(path: &Path, error: &Error) -> Failure {
    let message = format!("cannot ask {} about its tools: {error}", path.display());
    let hint = format!(
        "install agentd of the version of this agentctl, which is {}",
        env!("CARGO_PKG_VERSION")
    );
    Failure::Fault(Fault::unavailable("agentd_failed", message).hint(hint))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program that contains the tools answers here, and runs none"
)]
fn command(path: &Path) -> Command {
    let mut command = Command::new(path);
    // It needs no setting, and no key.
    command.arg(TOOLS_ARG).env_clear().current_dir("/");
    command
}

/// The running program. It ends when its input closes, and is killed when this is dropped.
#[derive(Debug)]
struct Running {
    _child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    longest: u64,
}

impl Running {
    fn start(mut command: Command, longest: u64) -> IoResult<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::other("it has no input or output"));
        };
        Ok(Self {
            _child: child,
            input,
            output: BufReader::new(output),
            longest,
        })
    }

    async fn answers(&mut self, questions: &[ToolQuestion]) -> IoResult<Vec<ToolAnswer>> {
        let Self {
            input,
            output,
            longest,
            ..
        } = self;
        // It answers while it reads, so neither side waits for the other to empty a pipe.
        let write = async {
            for question in questions {
                let mut line = serde_json::to_vec(question)?;
                line.push(b'\n');
                input.write_all(&line).await?;
            }
            input.flush().await
        };
        let read = async {
            let mut answers = Vec::new();
            for _ in questions {
                answers.push(answer(output, *longest).await?);
            }
            Ok(answers)
        };
        tokio::try_join!(write, read).map(|((), answers)| answers)
    }
}

async fn answer(output: &mut BufReader<ChildStdout>, longest: u64) -> IoResult<ToolAnswer> {
    let mut line = Vec::new();
    output.take(longest).read_until(b'\n', &mut line).await?;
    if line.last() != Some(&b'\n') {
        let text = "it ended without an answer, or the answer is too long";
        return Err(Error::new(ErrorKind::UnexpectedEof, text));
    }
    Ok(serde_json::from_slice(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &str = "Read";

    #[expect(clippy::disallowed_methods, reason = "stands for the program agentd")]
    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    async fn asked(script: &str, count: usize) -> Result<Vec<ToolAnswer>, String> {
        let mut program = ToolProgram {
            path: Some("/bin/agentd".into()),
            running: Some(Running::start(shell(script), 1000).unwrap()),
        };
        let questions = vec![ToolQuestion::Tool(QUESTION.to_owned()); count];
        let answers = program.answers(&questions).await;
        answers.map_err(|failure| failure.to_string())
    }

    #[tokio::test]
    async fn each_question_gets_its_answer() {
        let echo = r#"while read -r line; do echo '{"refused":"no"}'; done"#;
        // More than both pipes hold.
        let answers = asked(echo, 10_000).await.unwrap();
        assert_eq!(answers, vec![ToolAnswer::Refused("no".to_owned()); 10_000]);
        assert_eq!(asked(echo, 0).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_program_of_another_version_is_reported() {
        for (script, told) in [
            // An agentd that does not know the argument.
            (
                "read -r line; echo unexpected argument >&2; exit 2",
                "it ended without an answer",
            ),
            ("read -r line; echo hello", "expected value"),
            ("read -r line; echo '{}'", "expected value"),
            ("yes | tr -d '\\n'", "the answer is too long"),
        ] {
            let why = asked(script, 1).await.unwrap_err();
            assert!(
                why.starts_with("cannot ask /bin/agentd about its tools: "),
                "{why}"
            );
            assert!(why.contains(told), "{script}: {why}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn i6_a_program_that_does_not_answer_is_given_up() {
        let why = asked("exec sleep 600", 1).await.unwrap_err();
        assert!(why.ends_with("it did not answer within 30 s"), "{why}");
    }

    #[tokio::test]
    async fn a_missing_program_is_reported_when_something_is_asked() {
        let mut program = ToolProgram::new(&Environment::default());
        assert_eq!(program.answers(&[]).await.unwrap(), []);
        let question = ToolQuestion::Tool(QUESTION.to_owned());
        let fault = program.answers(&[question]).await.unwrap_err().fault();
        assert_eq!(
            (fault.code.as_str(), fault.hint.as_deref()),
            ("no_agentd", Some(GET_AGENTD))
        );
    }
}
