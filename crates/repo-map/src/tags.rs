//! What a file defines and what it names.

use serde::{Deserialize, Serialize};

/// What a definition is.
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
    /// From the last part of a capture's name, as the grammars' queries have them.
    pub(crate) fn of(capture: &str) -> Self {
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
    /// What it is.
    pub kind: Kind,
    /// The line of the name, from 1.
    pub line: u32,
}

/// A name that a file uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The name.
    pub name: String,
    /// How often.
    pub count: u32,
}

/// The tags of one file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tags {
    /// What it defines, by line.
    pub definitions: Vec<Definition>,
    /// What it uses, by name; each name once.
    pub references: Vec<Reference>,
}
