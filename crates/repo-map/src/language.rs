//! The languages whose grammars are built in.

use tree_sitter::Language as Grammar;

/// A language with a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

/// The grammar of the shell comes without a query.
const BASH_TAGS: &str = "
(function_definition name: (word) @name) @definition.function
(command name: (command_name (word) @name)) @reference.call
";

/// What the grammars' own queries leave out and readers ask for.
const RUST_MORE: &str = "
(const_item name: (identifier) @name) @definition.constant
(static_item name: (identifier) @name) @definition.constant
(function_signature_item name: (identifier) @name) @definition.method
(type_identifier) @name @reference.type
";
const C_MORE: &str = "
(preproc_function_def name: (identifier) @name) @definition.macro
(preproc_def name: (identifier) @name) @definition.constant
(call_expression function: (identifier) @name) @reference.call
(type_identifier) @name @reference.type
";
const CPP_MORE: &str = "
(call_expression function: (identifier) @name) @reference.call
(call_expression function: (field_expression field: (field_identifier) @name)) @reference.call
(type_identifier) @name @reference.type
(namespace_definition name: (namespace_identifier) @name) @definition.module
";
const TYPESCRIPT_MORE: &str = "
(type_alias_declaration name: (type_identifier) @name) @definition.type
(enum_declaration name: (identifier) @name) @definition.type
";
/// Definitions alone: the query of the crate names its captures in ways of its own.
const C_SHARP_TAGS: &str = "
(class_declaration name: (identifier) @name) @definition.class
(interface_declaration name: (identifier) @name) @definition.interface
(struct_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(enum_declaration name: (identifier) @name) @definition.class
(method_declaration name: (identifier) @name) @definition.method
(property_declaration name: (identifier) @name) @definition.property
(namespace_declaration name: (identifier) @name) @definition.module
(invocation_expression function: (identifier) @name) @reference.call
(invocation_expression function: (member_access_expression name: (identifier) @name)) @reference.call
(object_creation_expression type: (identifier) @name) @reference.class
(base_list (identifier) @name) @reference.class
";

impl Language {
    /// All of them.
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

    /// The language of a file, by the end of its name.
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

    /// For people.
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

    pub(crate) fn grammar(self) -> Grammar {
        match self {
            Self::Bash => tree_sitter_bash::LANGUAGE.into(),
            Self::C => tree_sitter_c::LANGUAGE.into(),
            Self::CSharp => tree_sitter_c_sharp::LANGUAGE.into(),
            Self::Cpp => tree_sitter_cpp::LANGUAGE.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::Java => tree_sitter_java::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::Ruby => tree_sitter_ruby::LANGUAGE.into(),
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        }
    }

    /// The query that finds its tags: `@name` within `@definition.KIND` or `@reference.KIND`.
    pub(crate) fn query(self) -> String {
        let parts: &[&str] = match self {
            Self::Bash => &[BASH_TAGS],
            Self::C => &[tree_sitter_c::TAGS_QUERY, C_MORE],
            Self::CSharp => &[C_SHARP_TAGS],
            Self::Cpp => &[tree_sitter_cpp::TAGS_QUERY, CPP_MORE],
            Self::Go => &[tree_sitter_go::TAGS_QUERY],
            Self::Java => &[tree_sitter_java::TAGS_QUERY],
            Self::JavaScript => &[tree_sitter_javascript::TAGS_QUERY],
            Self::Python => &[tree_sitter_python::TAGS_QUERY],
            Self::Ruby => &[tree_sitter_ruby::TAGS_QUERY],
            Self::Rust => &[tree_sitter_rust::TAGS_QUERY, RUST_MORE],
            // What is common with JavaScript, then its own.
            Self::Tsx | Self::TypeScript => &[
                tree_sitter_javascript::TAGS_QUERY,
                tree_sitter_typescript::TAGS_QUERY,
                TYPESCRIPT_MORE,
            ],
        };
        parts.join("\n")
    }
}
