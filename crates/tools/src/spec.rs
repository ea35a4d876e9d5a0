//! What a tool is.

use crate::prepared::Prepared;
use agentd_protocol::{EffectClass, ToolOutcome};
use agentd_settings::ToolsConfig;
use serde_json::Value;
use std::sync::Arc;

/// What a tool is.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// The canonical name.
    pub name: &'static str,
    /// Other names that models use for it.
    pub aliases: &'static [&'static str],
    /// A few words for people.
    pub title: &'static str,
    /// What the model reads.
    pub description: &'static str,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    /// Arguments that are right, for error texts.
    pub example: Value,
    /// What it does to the world.
    pub effect: EffectClass,
    /// Whether it may be run again after a crash.
    pub idempotent: bool,
}

/// All tools; cheap to clone, never changes.
#[derive(Debug, Clone)]
pub struct Registry(Arc<Vec<ToolSpec>>);

impl Registry {
    /// The built-in tools.
    #[must_use]
    pub fn builtin(_settings: &ToolsConfig) -> Self {
        todo!()
    }

    /// A tool by its name or an alias, in any case.
    #[must_use]
    pub fn get(&self, _name: &str) -> Option<&ToolSpec> {
        todo!()
    }

    /// All specs, in the order in which models are told of them.
    #[must_use]
    pub fn specs(&self) -> &[ToolSpec] {
        &self.0
    }

    /// Checks a call and says what it is about; the error is the call's result, written for the model.
    ///
    /// # Errors
    /// An unknown tool or bad arguments.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub fn prepare(&self, _name: &str, _input: &Value) -> Result<Prepared, ToolOutcome> {
        todo!()
    }
}
