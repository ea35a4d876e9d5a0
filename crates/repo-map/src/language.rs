//! The languages that have a grammar.

use serde::{Deserialize, Serialize};

/// A language with a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Language {
    Bash,
    C,
    CSharp,
    Cpp,
    Go,
    Java,
    JavaScript,
    Python,
    Ruby,
    Rust,
    Tsx,
    TypeScript,
}

impl Language {
    /// All languages with a grammar.
    pub const ALL: [Self; 12] = [
        Self::Bash,
        Self::C,
        Self::CSharp,
        Self::Cpp,
        Self::Go,
        Self::Java,
        Self::JavaScript,
        Self::Python,
        Self::Ruby,
        Self::Rust,
        Self::Tsx,
        Self::TypeScript,
    ];

    /// The language of a file, by its extension.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let (_, extension) = name.rsplit_once('.')?;
        Some(match extension.to_ascii_lowercase().as_str() {
            "sh" | "bash" => Self::Bash,
            "c" | "h" => Self::C,
            "cs" => Self::CSharp,
            "cc" | "cpp" | "cxx" | "c++" | "hh" | "hpp" | "hxx" | "h++" | "ipp" | "inl" => Self::Cpp,
            "go" => Self::Go,
            "java" => Self::Java,
            "js" | "cjs" | "mjs" | "jsx" => Self::JavaScript,
            "py" | "pyi" => Self::Python,
            "rb" | "rake" => Self::Ruby,
            "rs" => Self::Rust,
            "tsx" => Self::Tsx,
            "ts" | "cts" | "mts" => Self::TypeScript,
            _ => return None,
        })
    }

    /// The name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bash => "Bash",
            Self::C => "C",
            Self::CSharp => "C#",
            Self::Cpp => "C++",
            Self::Go => "Go",
            Self::Java => "Java",
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
            Self::Ruby => "Ruby",
            Self::Rust => "Rust",
            Self::Tsx => "TSX",
            Self::TypeScript => "TypeScript",
        }
    }
}
