//! The names that a file defines and uses.

use serde::{Deserialize, Serialize};

/// Larger files are generated or data, and left out.
pub const MAX_FILE_BYTES: usize = 2_000_000;
/// The most definitions, and the most used names, of one file; further ones are dropped.
pub const MAX_TAGS: usize = 10_000;
/// Longer words, in bytes, are not names.
pub const MAX_NAME: usize = 120;

/// The kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// A function outside a type.
    Function,
    /// A function of a type.
    Method,
    /// A class, structure, enumeration, trait, interface or type alias.
    Type,
    /// A module or name space.
    Module,
    /// A macro.
    Macro,
    /// A constant or variable.
    Value,
}

impl Kind {
    /// The kind for the last part of a capture's name in the grammars' queries.
    #[must_use]
    pub fn of(capture: &str) -> Self {
        match capture {
            "function" => Self::Function,
            "method" => Self::Method,
            "module" => Self::Module,
            "macro" => Self::Macro,
            "constant" | "variable" | "field" | "property" => Self::Value,
            _ => Self::Type,
        }
    }
}

/// A name that a file defines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: Kind,
    /// The line of the name, from 1.
    pub line: u32,
}

/// A name that a file uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The name.
    pub name: String,
    /// How often the file uses it.
    pub count: u32,
}

/// The tags of one file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tags {
    /// The definitions, by line.
    pub definitions: Vec<Definition>,
    /// The references, by name; each name once.
    pub references: Vec<Reference>,
}
