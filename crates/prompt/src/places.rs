//! The places that are searched for instructions, custom agents, skills and commands.

use agentd_settings::AgentsConfig;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A project's directory for its agents, skills and commands.
pub const PROJECT_DIRECTORY: &str = ".agentd";
/// The operator's instructions for all projects, a file in the operator's directory.
pub(crate) const OPERATOR_FILE: &str = "AGENTS.md";

/// The places to search, fully resolved.
#[derive(Debug, Clone)]
pub struct Places {
    /// The names of instruction files, in the order in which they are read within a directory.
    pub names: Vec<String>,
    /// The most bytes of all instruction files together.
    pub max_bytes: usize,
    /// The operator's directory.
    pub operator: Option<PathBuf>,
    /// Whether to search the project's directory, too.
    pub project: bool,
    /// Applies the permission rules to each file, by its real path.
    pub judge: ReadJudge,
}

/// The extensions of text files; a link may lead only to one of these.
const WORDS: [&str; 5] = ["md", "mdc", "markdown", "txt", "rst"];

type Judge = dyn Fn(&Path) -> Result<(), String> + Send + Sync;

/// Decides whether a file may be read, by its absolute path with all links resolved.
#[derive(Clone)]
pub struct ReadJudge(Arc<Judge>);

impl ReadJudge {
    /// Decides with `f`, whose error is the reason for a refusal. It may block.
    pub fn new(f: impl Fn(&Path) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    /// Whether a file below `root` may go into a prompt: `path` is the requested path, `real` the resolved one.
    ///
    /// # Errors
    /// The reason why it may not.
    pub(crate) fn may(&self, root: &Path, path: &Path, real: &Path) -> Result<(), String> {
        if real != path && !is_words(real) {
            let real = real.display();
            return Err(format!("it leads to {real}, which is not an instruction file"));
        }
        (self.0)(&root.join(real))
    }
}

/// Whether a link may lead there: only to text files (by extension), and through no hidden directory except `.agentd`.
fn is_words(real: &Path) -> bool {
    let hidden = |part: Component<'_>| matches!(part, Component::Normal(name) if name != OsStr::new(PROJECT_DIRECTORY) && name.as_encoded_bytes().starts_with(b"."));
    let ending = real.extension().and_then(OsStr::to_str).unwrap_or_default();
    WORDS.contains(&ending.to_ascii_lowercase().as_str()) && !real.components().any(hidden)
}

impl Default for ReadJudge {
    fn default() -> Self {
        Self::new(|_| Ok(()))
    }
}

impl fmt::Debug for ReadJudge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadJudge")
    }
}

impl Default for Places {
    /// The default file names, without an operator's directory.
    fn default() -> Self {
        Self::new(&AgentsConfig::default(), None, None)
    }
}

impl Places {
    /// Resolves the settings. `config_home` is the user's configuration directory, `home` replaces `~`.
    #[must_use]
    pub fn new(config: &AgentsConfig, config_home: Option<&Path>, home: Option<&Path>) -> Self {
        let directory = config.directory.as_str();
        let operator = if directory.is_empty() {
            config_home
                .map(Path::to_owned)
                .or_else(|| home.map(|home| home.join(".config")))
                .map(|config| config.join("agentd"))
        } else if let Some(below) = directory.strip_prefix("~/") {
            home.map(|home| home.join(below))
        } else {
            Some(PathBuf::from(directory))
        };
        Self {
            names: config.instruction_files.clone(),
            max_bytes: usize::try_from(config.instruction_bytes).unwrap_or(usize::MAX),
            operator: operator.filter(|path| path.is_absolute()),
            project: config.workdir,
            judge: ReadJudge::default(),
        }
    }
}

/// The owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The operator, who is trusted.
    Operator,
    /// The project, whose files may only narrow.
    Project,
}

impl Origin {
    /// The name shown to people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Project => "project",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator(directory: &str, config_home: Option<&str>, home: Option<&str>) -> Option<PathBuf> {
        let config = AgentsConfig {
            directory: directory.to_owned(),
            ..AgentsConfig::default()
        };
        Places::new(&config, config_home.map(Path::new), home.map(Path::new)).operator
    }

    #[test]
    fn the_operators_directory_is_found_as_the_configuration_is() {
        let rows = [
            ("", Some("/c"), Some("/home/ana"), Some("/c/agentd")),
            ("", None, Some("/home/ana"), Some("/home/ana/.config/agentd")),
            ("", None, None, None),
            (
                "~/prompts",
                Some("/c"),
                Some("/home/ana"),
                Some("/home/ana/prompts"),
            ),
            ("~/prompts", None, None, None),
            ("/srv/prompts", None, None, Some("/srv/prompts")),
        ];
        for (directory, config_home, home, expected) in rows {
            assert_eq!(
                operator(directory, config_home, home),
                expected.map(PathBuf::from),
                "{directory}"
            );
        }
    }
}
