//! The grammars, and their queries for tags.

use agentd_repo_map::Language;
use tree_sitter::Language as Grammar;

/// The shell grammar comes without a query.
const BASH_TAGS: &str = "
(function_definition name: (word) @name) @definition.function
(command name: (command_name (word) @name)) @reference.call
";

/// Definitions that the grammar's own query leaves out but readers look for.
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
/// A replacement for the query of the crate, which names its captures differently.
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

/// The grammar of a language.
pub(crate) fn grammar(language: Language) -> Grammar {
    match language {
        Language::Bash => tree_sitter_bash::LANGUAGE.into(),
        Language::C => tree_sitter_c::LANGUAGE.into(),
        Language::CSharp => tree_sitter_c_sharp::LANGUAGE.into(),
        Language::Cpp => tree_sitter_cpp::LANGUAGE.into(),
        Language::Go => tree_sitter_go::LANGUAGE.into(),
        Language::Java => tree_sitter_java::LANGUAGE.into(),
        Language::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
        Language::Python => tree_sitter_python::LANGUAGE.into(),
        Language::Ruby => tree_sitter_ruby::LANGUAGE.into(),
        Language::Rust => tree_sitter_rust::LANGUAGE.into(),
        Language::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
        Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
    }
}

/// The query for the tags of a language: `@name` within `@definition.KIND` or `@reference.KIND`.
pub(crate) fn query(language: Language) -> String {
    let parts: &[&str] = match language {
        Language::Bash => &[BASH_TAGS],
        Language::C => &[tree_sitter_c::TAGS_QUERY, C_MORE],
        Language::CSharp => &[C_SHARP_TAGS],
        Language::Cpp => &[tree_sitter_cpp::TAGS_QUERY, CPP_MORE],
        Language::Go => &[tree_sitter_go::TAGS_QUERY],
        Language::Java => &[tree_sitter_java::TAGS_QUERY],
        Language::JavaScript => &[tree_sitter_javascript::TAGS_QUERY],
        Language::Python => &[tree_sitter_python::TAGS_QUERY],
        Language::Ruby => &[tree_sitter_ruby::TAGS_QUERY],
        Language::Rust => &[tree_sitter_rust::TAGS_QUERY, RUST_MORE],
        // The JavaScript part first, then its own.
        Language::Tsx | Language::TypeScript => &[
            tree_sitter_javascript::TAGS_QUERY,
            tree_sitter_typescript::TAGS_QUERY,
            TYPESCRIPT_MORE,
        ],
    };
    parts.join("\n")
}
