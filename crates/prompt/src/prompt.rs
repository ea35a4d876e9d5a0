//! The layers of a system prompt, put together.

use crate::base::BASE;
use crate::instructions::{InstructionFile, instruction_files};
use agentd_protocol::{SessionCreated, Timestamp};
use std::path::Path;

/// What separates two layers.
const SEPARATOR: &str = "\n\n---\n\n";
/// The length of a date in RFC 3339.
const DATE: usize = 10;

/// A finished system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPrompt {
    /// What the model is told.
    pub text: String,
    /// What it was made from, in order.
    pub sources: Vec<Source>,
}

/// One layer of a system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// `base`, `environment`, the path of an instruction file, `appended`.
    pub name: String,
    /// Whether it is in the prompt.
    pub loaded: bool,
    /// Its length in bytes.
    pub bytes: usize,
}

/// What a system prompt is made from.
#[derive(Debug, Clone, Copy)]
pub struct Layers<'a> {
    /// Stands in for the base prompt.
    pub replace: Option<&'a str>,
    /// Comes last.
    pub append: Option<&'a str>,
    /// The absolute working directory.
    pub workdir: &'a str,
    /// The operating system and the processor.
    pub platform: &'a str,
    /// When the session was created; only the day is told.
    pub created_at: Timestamp,
    /// The instruction files, outermost first.
    pub instructions: &'a [InstructionFile],
}

/// Puts the layers together.
#[must_use]
pub fn build(layers: &Layers<'_>) -> SystemPrompt {
    let mut prompt = SystemPrompt {
        text: String::new(),
        sources: Vec::new(),
    };
    prompt.add("base", layers.replace.unwrap_or(BASE));
    prompt.add("environment", &environment(layers));
    for file in layers.instructions {
        let name = file.path.display().to_string();
        match &file.text {
            Ok(text) if !text.is_empty() => {
                prompt.add(
                    &name,
                    &format!("Instructions of the project, from {name}:\n\n{text}"),
                );
            }
            Ok(_) | Err(_) => prompt.sources.push(Source {
                name,
                loaded: false,
                bytes: 0,
            }),
        }
    }
    if let Some(append) = layers.append {
        prompt.add("appended", append);
    }
    prompt
}

impl SystemPrompt {
    fn add(&mut self, name: &str, text: &str) {
        let text = text.trim();
        let loaded = !text.is_empty();
        if loaded && !self.text.is_empty() {
            self.text.push_str(SEPARATOR);
        }
        self.text.push_str(text);
        self.sources.push(Source {
            name: name.to_owned(),
            loaded,
            bytes: text.len(),
        });
    }
}

fn environment(layers: &Layers<'_>) -> String {
    let at = layers.created_at.to_string();
    let date = at.get(..DATE).unwrap_or(&at);
    format!(
        "Environment\n- Working directory: {}\n- Platform: {}\n- Date (when this session began): {date}",
        layers.workdir, layers.platform
    )
}

/// The system prompt of a session that was created at `at`. Blocks: it reads the instruction files.
#[must_use]
pub fn session_prompt(created: &SessionCreated, at: Timestamp) -> SystemPrompt {
    let instructions = instruction_files(Path::new(&created.workdir));
    build(&Layers {
        replace: created.system_prompt.as_deref(),
        append: created.append_system_prompt.as_deref(),
        workdir: &created.workdir,
        platform: &format!("{} ({})", std::env::consts::OS, std::env::consts::ARCH),
        created_at: at,
        instructions: &instructions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers<'a>(instructions: &'a [InstructionFile]) -> Layers<'a> {
        Layers {
            replace: None,
            append: None,
            workdir: "/work/p",
            platform: "linux (x86_64)",
            created_at: Timestamp(1_763_629_200_123),
            instructions,
        }
    }

    const ENVIRONMENT: &str = "Environment\n- Working directory: /work/p\n- Platform: linux (x86_64)\n- Date (when this session began): 2025-11-20";

    #[test]
    fn the_base_comes_first_and_the_environment_after_it() {
        assert_eq!(
            build(&layers(&[])).text,
            format!("{BASE}{SEPARATOR}{ENVIRONMENT}")
        );
    }

    #[test]
    fn the_base_can_be_replaced_and_words_appended() {
        let file = |path: &str, text: Result<String, String>| InstructionFile {
            path: path.into(),
            text,
        };
        let files = [
            file("/p/AGENTS.md", Ok("Use tabs.".into())),
            file("/p/a/AGENTS.md", Err("a link".into())),
        ];
        let prompt = build(&Layers {
            replace: Some("Be a cat.\n"),
            append: Some("Purr."),
            ..layers(&files)
        });
        let project = "Instructions of the project, from /p/AGENTS.md:\n\nUse tabs.";
        let expected = ["Be a cat.", ENVIRONMENT, project, "Purr."].join(SEPARATOR);
        let source = |name: &str, loaded, bytes| Source {
            name: name.into(),
            loaded,
            bytes,
        };
        let sources = vec![
            source("base", true, 9),
            source("environment", true, ENVIRONMENT.len()),
            source("/p/AGENTS.md", true, project.len()),
            source("/p/a/AGENTS.md", false, 0),
            source("appended", true, 5),
        ];
        assert_eq!(
            prompt,
            SystemPrompt {
                text: expected,
                sources
            }
        );
    }

    #[test]
    fn the_same_session_gives_the_same_bytes_all_day() {
        let later = Layers {
            created_at: Timestamp(1_763_629_200_123 + 3_600_000),
            ..layers(&[])
        };
        assert_eq!(build(&later), build(&layers(&[])));
    }
}
