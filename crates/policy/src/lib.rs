//! Permission rules, modes and shell analysis: turns a tool call into a verdict. Starts no process, reads no file.
//!
//! Invariant I7: nothing here fails open. Unreadable calls need an approval or are denied, adding a deny rule never makes a
//! verdict more permissive, and the strictest part of a command decides. Commands are parsed in order to *allow* them;
//! denials are best effort, because text is no security boundary: the sandbox is.
//!
//! Flow: `Rule::parse` -> `Policy::with` -> `judge(&policy, &request)` -> `Judgement`.
//!
//! ```
//! use agentd_policy::{Policy, Request, Rule, Source, Subject, judge};
//! use agentd_protocol::{EffectClass, PermissionMode, VerdictKind};
//!
//! let rules = ["allow Bash(cargo test:*)", "deny Bash(rm:*)"];
//! let rules: Result<Vec<_>, _> = rules.iter().map(|rule| Rule::parse(rule, Source::Operator)).collect();
//! let policy = Policy::new(Some("/home/ana")).with(rules?);
//! let verdict = |command: &str| {
//!     let subject = Subject::Command { command: command.to_owned() };
//!     let request = Request {
//!         tool: "Bash",
//!         subject: &subject,
//!         effect: EffectClass::Exec,
//!         mode: PermissionMode::Default,
//!         workdir: "/work",
//!     };
//!     judge(&policy, &request).verdict.kind
//! };
//! assert_eq!(verdict("cargo test -p cli"), VerdictKind::Allow);
//! assert_eq!(verdict("cargo test && make"), VerdictKind::Ask);
//! assert_eq!(verdict("cargo test; rm -r src"), VerdictKind::Deny);
//! # Ok::<(), agentd_policy::PolicyError>(())
//! ```

mod computed;
mod consumers;
mod danger;
mod error;
mod examples;
mod explain;
mod glob;
mod grants;
mod guarded;
mod guards;
mod judge;
mod level;
mod loose;
mod meet;
mod nested;
mod operands;
mod path;
mod pattern;
mod plain;
mod policy;
mod request;
mod rule;
mod runs;
mod scripts;
mod scripts_of;
mod several;
mod shell;
mod text_only;
mod tool_facts;
mod tools;
mod tree;
mod unmodelled;
mod url;
mod variables;
mod words;

pub use error::PolicyError;
pub use examples::ExampleError;
pub use explain::{Explanation, Part, explain, quoted};
pub use glob::{check_glob, compile_glob};
pub use grants::{Bound, Here, JudgeFn, judge_with};
pub use guarded::written_paths;
pub use guards::{Guard, Hold, RISK_OF_NONE, gaps, gaps_in_words, guards, level_in_words};
pub use judge::judge;
pub use level::{Wanted, choose_level};
pub use loose::YOLO_LIMITS;
pub use policy::{Policy, wholly_denied};
pub use request::{Judgement, Request, Subject};
pub use rule::{Rule, Source};
pub use runs::runs;
pub use scripts::{Decides, decides};
pub use text_only::by_text_only;
pub use tool_facts::{CallFacts, LONGEST_LINE, REMOTE_PREFIX, TOOLS_ARG, ToolAnswer, ToolQuestion};
pub use tools::{BASH, LS, READ, WRITE};

#[cfg(test)]
mod redteam;
#[cfg(test)]
mod tests;
