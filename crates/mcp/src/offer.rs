//! The tools of a server, as models see them.

use crate::cleaning;
use crate::name::tool_name;
use crate::spec::ServerSpec;
use agentd_protocol::EffectClass;
use agentd_tools::ToolEntry;
use rmcp::model::Tool as Said;
use serde_json::Value;
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

/// A tool that is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The server's name for it, cleaned.
    pub tool: String,
    /// The reason.
    pub why: &'static str,
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
    /// The tools of a server's list that can be offered.
    pub(crate) fn of(spec: &ServerSpec, said: Vec<Said>) -> Self {
        let mut offers = Self::default();
        let mut names = BTreeSet::new();
        for tool in said {
            let remote = tool.name.clone().into_owned();
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
        offers
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

fn offer(spec: &ServerSpec, tool: Said) -> Result<Offer, &'static str> {
    let remote = tool.name.into_owned();
    if remote.is_empty() || remote.len() > 256 {
        return Err("its name is empty or too long");
    }
    if !spec.wants(&remote) {
        return Err("the configuration excludes it");
    }
    let said = tool.title.unwrap_or_else(|| remote.clone());
    Ok(Offer {
        name: tool_name(&spec.name, &remote),
        server: spec.name.clone(),
        title: format!("{}: {}", spec.name, agentd_text::one_line(&said, 80)),
        description: cleaning::description(tool.description.as_deref().unwrap_or_default()),
        schema: cleaning::schema(Value::Object(tool.input_schema.as_ref().clone()))?,
        effect: spec.effect_of(&remote),
        tool: remote,
    })
}
