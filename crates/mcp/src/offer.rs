//! The tools of a server, as models see them.

use crate::cleaning;
use crate::name::tool_name;
use crate::spec::ServerSpec;
use agentd_protocol::EffectClass;
use agentd_tools::ToolEntry;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The most tools of one server.
pub(crate) const MAX_TOOLS: usize = 128;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The name for models.
    pub name: String,
    /// The server.
    pub server: String,
    /// The server's own name for it.
    pub tool: String,
    /// A few words for people.
    pub title: String,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    /// Its effect class, which the operator sets.
    pub effect: EffectClass,
}

/// Why a tool is not offered if the operator wants it so.
pub(crate) const EXCLUDED: &str = "the configuration excludes it";
/// The most tools that a log line names.
const MAX_NAMED: usize = 8;

/// A tool that is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The server's name for it, cleaned.
    pub tool: String,
    /// The reason.
    pub why: &'static str,
}

impl LeftOut {
    /// Whether the operator may not know that it is left out.
    pub(crate) fn is_news(&self) -> bool {
        self.why != EXCLUDED
    }
}

/// A page of a server's list of tools, as far as it can be read.
#[derive(Debug, PartialEq)]
pub(crate) struct Page {
    pub(crate) tools: Vec<Value>,
    /// The cursor of the next page.
    pub(crate) next: Option<String>,
}

impl Page {
    /// Reads a page. Some servers write an empty list as null.
    pub(crate) fn of(mut sent: Value) -> Result<Self, &'static str> {
        let next = sent.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        let tools = match sent.get_mut("tools").map(Value::take) {
            Some(Value::Array(tools)) => tools,
            Some(Value::Null) => Vec::new(),
            Some(_) => return Err("its list of tools is not a list"),
            None => return Err("its list of tools has no `tools`"),
        };
        Ok(Self { tools, next })
    }
}

/// All tools of a server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Offers {
    /// The tools, in the server's order.
    pub tools: Vec<Offer>,
    /// The tools that are not offered.
    pub left_out: Vec<LeftOut>,
    /// The same tools as registry entries.
    pub(crate) made: Vec<ToolEntry>,
}

impl Offers {
    /// The tools of a server's list that can be offered. Each tool stands alone; a warning names those that are left out.
    pub(crate) fn of(spec: &ServerSpec, said: Vec<Value>) -> Self {
        let mut offers = Self::default();
        let mut names = BTreeSet::new();
        for (number, tool) in (1_usize..).zip(said) {
            let remote = tool.get("name").and_then(Value::as_str);
            let remote = remote.map_or_else(|| format!("#{number}"), str::to_owned);
            let made = if offers.tools.len() >= MAX_TOOLS {
                Err("the server offers too many tools")
            } else {
                offer(spec, tool)
            };
            match made {
                Ok(offer) if names.insert(offer.name.clone()) => offers.tools.push(offer),
                Ok(_) => offers.leave_out(&remote, "another tool has the same name"),
                Err(why) => offers.leave_out(&remote, why),
            }
        }
        offers.made = offers.tools.iter().map(crate::remote::tool).collect();
        // A stable order, whatever the server's: equal requests of a session must have equal bytes.
        offers.made.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        offers.warn(&spec.name);
        offers
    }

    fn warn(&self, server: &str) {
        let news: Vec<&LeftOut> = self.left_out.iter().filter(|tool| tool.is_news()).collect();
        for LeftOut { tool, why } in news.iter().take(MAX_NAMED) {
            tracing::warn!(server, tool, "a tool of a tool server is left out: {why}");
        }
        if let Some(more @ 1..) = news.len().checked_sub(MAX_NAMED) {
            tracing::warn!(server, "{more} more tools of a tool server are left out");
        }
    }

    pub(crate) fn leave_out(&mut self, tool: &str, why: &'static str) {
        if self.left_out.len() < MAX_TOOLS {
            self.left_out.push(LeftOut {
                tool: agentd_text::one_line(tool, 64),
                why,
            });
        }
    }
}

fn offer(spec: &ServerSpec, tool: Value) -> Result<Offer, &'static str> {
    let Value::Object(mut tool) = tool else {
        return Err("it is not an object");
    };
    let Some(Value::String(remote)) = tool.remove("name") else {
        return Err("it has no name");
    };
    if remote.is_empty() || remote.len() > 256 {
        return Err("its name is empty or too long");
    }
    if !spec.wants(&remote) {
        return Err(EXCLUDED);
    }
    let schema = match tool.remove("inputSchema") {
        None | Some(Value::Null) => return Err("it has no `inputSchema`"),
        Some(schema) => cleaning::schema(schema)?,
    };
    let title = text_of(&tool, "title").unwrap_or(&remote);
    Ok(Offer {
        name: tool_name(&spec.name, &remote),
        server: spec.name.clone(),
        title: format!("{}: {}", spec.name, agentd_text::one_line(title, 80)),
        description: cleaning::description(text_of(&tool, "description").unwrap_or_default()),
        schema,
        effect: spec.effect_of(&remote),
        tool: remote,
    })
}

/// A text that is only for people or models: without it, the tool can still be called.
fn text_of<'a>(tool: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    tool.get(name).and_then(Value::as_str)
}
