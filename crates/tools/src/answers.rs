//! Answers to programs that do not contain the tools: what is known of a tool, and what the rules judge about a call.

use crate::spec::Registry;
use agentd_policy::{CallFacts, LONGEST_LINE, ToolAnswer, ToolQuestion};
use serde_json::Value;
use std::io::{BufRead, Error, ErrorKind, Read as _, Result, Write};
use std::path::Path;

impl Registry {
    /// Answers a question. Pure and quick.
    #[must_use]
    pub fn answer(&self, question: &ToolQuestion) -> ToolAnswer {
        match question {
            ToolQuestion::Tool(name) => self.described(name),
            ToolQuestion::Call { tool, input, workdir } => match self.prepare(tool, input) {
                Ok(call) => {
                    let call = call.within(Path::new(workdir));
                    ToolAnswer::Call(CallFacts {
                        name: call.name.into_owned(),
                        effect: call.effect,
                        title: call.title,
                        subject: call.subject,
                    })
                }
                Err(refusal) => ToolAnswer::Refused(refusal.llm_text),
            },
        }
    }

    fn described(&self, name: &str) -> ToolAnswer {
        if let Some(spec) = self.get(name) {
            return ToolAnswer::Tool {
                name: spec.name.clone().into_owned(),
                effect: spec.effect,
            };
        }
        let why = self.prepare(name, &Value::Null).err();
        ToolAnswer::Refused(why.map_or_else(|| format!("unknown tool {name:?}"), |refusal| refusal.llm_text))
    }

    /// Answers every line of `input` with a line of `output`, until `input` ends.
    ///
    /// # Errors
    /// A line is too long or is not a question, or reading or writing fails.
    pub fn answer_lines(&self, mut input: impl BufRead, mut output: impl Write) -> Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            if line.pop() != Some(b'\n') {
                return Err(Error::new(
                    ErrorKind::InvalidData,
                    "a line is incomplete or too long",
                ));
            }
            let question = serde_json::from_slice(&line)?;
            let mut answer = serde_json::to_vec(&self.answer(&question))?;
            answer.push(b'\n');
            output.write_all(&answer)?;
            output.flush()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_policy::{BASH, Subject};
    use agentd_protocol::EffectClass;
    use agentd_settings::ToolsConfig;
    use serde_json::json;

    fn answered(input: &str) -> Result<Vec<ToolAnswer>> {
        let mut output = Vec::new();
        Registry::builtin(&ToolsConfig::default()).answer_lines(input.as_bytes(), &mut output)?;
        let lines = output
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        Ok(lines.map(|line| serde_json::from_slice(line).unwrap()).collect())
    }

    fn lines(questions: &[ToolQuestion]) -> String {
        let line = |question| serde_json::to_string(question).unwrap() + "\n";
        questions.iter().map(line).collect()
    }

    fn call(tool: &str, input: Value) -> ToolQuestion {
        ToolQuestion::Call {
            tool: tool.to_owned(),
            input,
            workdir: "/w".to_owned(),
        }
    }

    #[test]
    fn every_line_has_its_answer() {
        let questions = [
            ToolQuestion::Tool("bash".to_owned()),
            call("bash", json!({ "command": "make" })),
            call("Write", json!({ "path": "/w/a/../b", "content": "x" })),
            call("Bash", json!({ "comand": "make" })),
            ToolQuestion::Tool("Reed".to_owned()),
        ];
        let answers = answered(&lines(&questions)).unwrap();
        let facts = |name: &str, effect, title: &str, subject| {
            ToolAnswer::Call(CallFacts {
                name: name.to_owned(),
                effect,
                title: title.to_owned(),
                subject,
            })
        };
        let command = Subject::Command {
            command: "make".to_owned(),
        };
        // Rules for relative paths match a path in the working directory.
        let path = Subject::Path {
            write: true,
            path: "b".to_owned(),
        };
        assert_eq!(
            answers[..3],
            [
                ToolAnswer::Tool {
                    name: BASH.to_owned(),
                    effect: EffectClass::Exec
                },
                facts("Bash", EffectClass::Exec, "Bash make", command),
                facts("Write", EffectClass::Write, "Write /w/b", path),
            ]
        );
        let [ToolAnswer::Refused(misspelt), ToolAnswer::Refused(unknown)] = &answers[3..] else {
            panic!("{answers:?}");
        };
        assert!(misspelt.contains("did you mean `command`?"), "{misspelt}");
        assert!(unknown.contains("Did you mean `Read`?"), "{unknown}");
    }

    #[test]
    fn a_line_that_is_no_question_ends_the_answers() {
        assert_eq!(answered("").unwrap(), []);
        for bad in ["x\n", "{}\n", "{\"tool\":\"Read\"}"] {
            assert!(answered(bad).is_err(), "{bad:?}");
        }
    }
}
