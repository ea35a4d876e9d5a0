//! What a tool is, and all of them.

use crate::arguments;
use crate::catalog;
use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::suggest::nearest;
use agentd_protocol::{EffectClass, ToolOutcome};
use agentd_settings::ToolsConfig;
use jsonschema::Validator;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// What a tool is.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The canonical name.
    pub name: Cow<'static, str>,
    /// Other names that models use for it.
    pub aliases: &'static [&'static str],
    /// A few words for people.
    pub title: Cow<'static, str>,
    /// What the model reads.
    pub description: String,
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
#[derive(Clone)]
pub struct Registry(Arc<Tools>);

struct Tools {
    specs: Vec<ToolSpec>,
    /// One for each spec; a schema that does not compile refuses every call.
    validators: Vec<Result<Validator, String>>,
}

impl Registry {
    /// The built-in tools.
    #[must_use]
    pub fn builtin(limits: &ToolsConfig) -> Self {
        let specs = catalog::builtin(limits);
        let compile =
            |spec: &ToolSpec| jsonschema::validator_for(&spec.schema).map_err(|error| error.to_string());
        let validators = specs.iter().map(compile).collect();
        Self(Arc::new(Tools { specs, validators }))
    }

    /// A tool by its name or an alias, in any case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.0.specs.iter().find(|spec| {
            spec.name.eq_ignore_ascii_case(name)
                || spec.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
        })
    }

    /// All specs, in the order in which models are told of them.
    #[must_use]
    pub fn specs(&self) -> &[ToolSpec] {
        &self.0.specs
    }

    /// Checks a call and says what it is about; the error is the call's result, written for the model. Pure and quick.
    ///
    /// # Errors
    /// An unknown tool or bad arguments.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub fn prepare(&self, name: &str, input: &Value) -> Result<Prepared, ToolOutcome> {
        let Some(spec) = self.get(name.trim()) else {
            return Err(self.unknown(name));
        };
        let validator = self.0.specs.iter().position(|other| other.name == spec.name);
        let validator = match validator.and_then(|at| self.0.validators.get(at)) {
            Some(Ok(validator)) => validator,
            Some(Err(why)) => {
                return Err(refuse(
                    Code::Tool,
                    format!("{} cannot be used: {why}.", spec.name),
                ));
            }
            None => return Err(self.unknown(name)),
        };
        let input = arguments::checked(spec, validator, input)?;
        Prepared::of(spec, input)
    }

    fn unknown(&self, name: &str) -> ToolOutcome {
        let name: String = name.chars().take(64).collect();
        let names: Vec<&str> = self.0.specs.iter().map(|spec| spec.name.as_ref()).collect();
        let all = self
            .0
            .specs
            .iter()
            .flat_map(|spec| spec.aliases.iter().copied().chain([spec.name.as_ref()]));
        let meant = nearest(&name, all).and_then(|word| self.get(word));
        let hint = meant
            .map(|spec| format!(" Did you mean `{}`?", spec.name))
            .unwrap_or_default();
        refuse(
            Code::UnknownTool,
            format!(
                "Unknown tool: `{name}`.{hint} The tools are: {}.",
                names.join(", ")
            ),
        )
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.specs.iter().map(|spec| &spec.name))
            .finish()
    }
}
