//! Tool specifications, and the registry of all tools.

use crate::arguments;
use crate::catalog;
use crate::declared;
use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::tool::Tool;
use agentd_protocol::{EffectClass, ToolOutcome, nearest};
use agentd_settings::ToolsConfig;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The specification of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The canonical name.
    pub name: Cow<'static, str>,
    /// Other names that models use for it.
    pub aliases: &'static [&'static str],
    /// A few words for people.
    pub title: Cow<'static, str>,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    /// Valid arguments, for error texts.
    pub example: Value,
    /// Its effect class.
    pub effect: EffectClass,
    /// Whether it may be run again after a crash.
    pub idempotent: bool,
    /// The tool server that runs it; `None` if it is built in.
    pub server: Option<String>,
}

/// The limits of texts and lists: checked at a call, and no help to a model that writes one.
const LIMITS: [&str; 4] = ["minLength", "maxLength", "minItems", "maxItems"];

fn strip(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, value| !(LIMITS.contains(&name.as_str()) && value.is_number()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An entry of the registry; clones share it.
#[derive(Clone)]
pub struct ToolEntry(Arc<Entry>);

struct Entry {
    /// The built-in tool; `None` if a server runs it.
    tool: Option<&'static dyn Tool>,
    spec: ToolSpec,
    /// Compiled at the first call. For a built-in tool, a schema that does not compile refuses every call; a server
    /// checks the arguments itself.
    validator: OnceLock<Result<Validator, String>>,
    /// Computed at the first call, for tools of servers.
    version: OnceLock<String>,
    /// Computed for the first request.
    sent: OnceLock<Arc<Value>>,
}

impl ToolEntry {
    /// A tool that a server runs.
    #[must_use]
    pub fn new(spec: ToolSpec) -> Self {
        Self::of(None, spec)
    }

    pub(crate) fn builtin(tool: &'static dyn Tool, spec: ToolSpec) -> Self {
        Self::of(Some(tool), spec)
    }

    fn of(tool: Option<&'static dyn Tool>, spec: ToolSpec) -> Self {
        Self(Arc::new(Entry {
            tool,
            spec,
            validator: OnceLock::new(),
            version: OnceLock::new(),
            sent: OnceLock::new(),
        }))
    }

    /// Its specification.
    #[must_use]
    pub fn spec(&self) -> &ToolSpec {
        &self.0.spec
    }

    /// The schema as models see it: that of a built-in tool without limits of texts and lists, since every request
    /// repeats it.
    #[must_use]
    pub fn sent_schema(&self) -> Arc<Value> {
        let sent = self.0.sent.get_or_init(|| {
            let mut schema = self.spec().schema.clone();
            if self.spec().server.is_none() {
                strip(&mut schema);
            }
            schema.into()
        });
        Arc::clone(sent)
    }

    pub(crate) fn tool(&self) -> Option<&'static dyn Tool> {
        self.0.tool
    }

    /// A hash of what its server declares: if it differs, it is another tool.
    pub(crate) fn version(&self) -> &str {
        let spec = self.spec();
        self.0
            .version
            .get_or_init(|| declared::version(&spec.description, &spec.schema))
    }

    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    fn checked(&self, input: &Value) -> Result<Value, ToolOutcome> {
        let spec = self.spec();
        let validator = self.0.validator.get_or_init(|| {
            // A server's schema is untrusted: its patterns must run in linear time.
            let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
            options.build(&spec.schema).map_err(|error| error.to_string())
        });
        match validator {
            Ok(validator) => arguments::checked(self.tool(), spec, validator, input),
            Err(_) if spec.server.is_some() && input.is_object() => Ok(input.clone()),
            Err(why) => Err(refuse(
                Code::Tool,
                format!("{} cannot be used: {why}.", spec.name),
            )),
        }
    }
}

impl PartialEq for ToolEntry {
    fn eq(&self, other: &Self) -> bool {
        self.spec() == other.spec()
    }
}

impl fmt::Debug for ToolEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec().name.fmt(f)
    }
}

/// The tools that exist, or those of one session; immutable and cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<[ToolEntry]>);

impl Registry {
    /// The built-in tools.
    #[must_use]
    pub fn builtin(limits: &ToolsConfig) -> Self {
        let offered = catalog::all().filter(|tool| tool.offered(limits));
        Self(
            offered
                .map(|tool| ToolEntry::builtin(tool, tool.spec(limits)))
                .collect(),
        )
    }

    /// These tools and more. A tool whose name is taken is left out.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = ToolEntry>) -> Self {
        let mut tools = self.0.to_vec();
        for tool in more {
            if tools.iter().all(|other| other.spec().name != tool.spec().name) {
                tools.push(tool);
            }
        }
        Self(tools.into())
    }

    /// These tools, with this one in place of the one with its name.
    #[must_use]
    pub(crate) fn replacing(&self, tool: &ToolEntry) -> Self {
        let same = |old: &ToolEntry| old.spec().name == tool.spec().name;
        let tools = self
            .0
            .iter()
            .map(|old| if same(old) { tool.clone() } else { old.clone() });
        Self(tools.collect())
    }

    /// A tool by its name. Models may write built-in names in any case, or as an alias.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.find(name).map(ToolEntry::spec)
    }

    fn find(&self, name: &str) -> Option<&ToolEntry> {
        let known = |tool: &&ToolEntry| {
            let spec = tool.spec();
            spec.server.is_none()
                && (spec.name.eq_ignore_ascii_case(name)
                    || spec.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name)))
        };
        let exact = self.0.iter().find(|tool| tool.spec().name == name);
        exact.or_else(|| self.0.iter().find(known))
    }

    /// All tools, in the order in which models see them.
    pub fn entries(&self) -> impl Iterator<Item = &ToolEntry> {
        self.0.iter()
    }

    /// Their specs, in the same order.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.entries().map(ToolEntry::spec)
    }

    /// Checks a call and finds its subject; the error is the call's result, written for the model. Pure and quick.
    ///
    /// # Errors
    /// The tool is unknown or the arguments are invalid.
    #[expect(clippy::result_large_err, reason = "the error is the result of the call")]
    pub fn prepare(&self, name: &str, input: &Value) -> Result<Prepared, ToolOutcome> {
        let Some(tool) = self.find(name.trim()) else {
            return Err(self.unknown(name, |_| true));
        };
        let input = tool.checked(input)?;
        match tool.tool() {
            Some(built_in) => match built_in.stands_for(&input) {
                Some((other, input)) => self.prepare(other, &input),
                None => Prepared::of(tool, built_in, input),
            },
            None => Ok(Prepared::remote(tool, input)),
        }
    }

    /// The result of a call of a tool that does not exist. It names only tools that are offered.
    #[must_use]
    pub fn unknown(&self, name: &str, offered: impl Fn(&str) -> bool) -> ToolOutcome {
        let name: String = name.chars().take(64).collect();
        let specs: Vec<&ToolSpec> = self.specs().filter(|spec| offered(&spec.name)).collect();
        let all = specs
            .iter()
            .flat_map(|spec| spec.aliases.iter().copied().chain([spec.name.as_ref()]));
        let meant = nearest(&name, all).and_then(|word| self.get(word));
        let hint = meant
            .map(|spec| format!(" Did you mean `{}`?", spec.name))
            .unwrap_or_default();
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_ref()).collect();
        let tools = match names.as_slice() {
            [] => "This session has no tools.".to_owned(),
            names => format!("The tools are: {}.", names.join(", ")),
        };
        refuse(
            Code::UnknownTool,
            format!("Unknown tool: `{name}`.{hint} {tools}"),
        )
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.specs().map(|spec| &spec.name))
            .finish()
    }
}
