//! The tools of a new session: those that it asks for or usually has, without those that rules deny entirely.

use crate::api::{Api, READ, fault_of};
use agentd_actor_kit::GateMsg;
use agentd_protocol::{CreateParams, Fault, PermissionMode, SessionCreated, nearest};
use agentd_tools::{LoopCall, REMOTE_PREFIX, Runs, Tool, builtin, delegates};

/// Longest tool name that every provider accepts.
const MAX_REMOTE: usize = 64;

impl Api {
    /// The tools of the session: the requested ones, otherwise all, without those that rules deny entirely.
    pub(crate) async fn offered(&self, params: &CreateParams) -> Result<Vec<String>, Fault> {
        let specs = || self.parts.registry.specs();
        let every = (!self.parts.view.server_names().is_empty()).then(|| format!("{REMOTE_PREFIX}*"));
        let names = specs().map(|spec| spec.name.clone().into_owned());
        let all = || names.chain(every).collect();
        let mut tools: Vec<String> = match &params.tools {
            None => all(),
            Some(asked) => asked
                .iter()
                .map(|name| self.tool(name))
                .collect::<Result<_, _>>()?,
        };
        let mut seen = std::collections::BTreeSet::new();
        tools.retain(|tool| seen.insert(tool.clone()));
        let denied = self.wholly_denied(tools.clone(), params.rules.clone()).await?;
        tools.retain(|tool| !denied.contains(tool));
        Ok(tools)
    }

    /// Those of these tools that rules deny entirely.
    async fn wholly_denied(&self, tools: Vec<String>, rules: Vec<String>) -> Result<Vec<String>, Fault> {
        let denied = |done| GateMsg::WhollyDenied { tools, rules, done };
        self.parts.gate.call(READ, denied).await.map_err(fault_of)
    }

    /// A session in plan mode always has the tool that shows the plan, whatever tools were named, unless a rule denies it:
    /// without the tool, the agent could not ask for the end of the mode.
    pub(crate) async fn offer_way_out_of_plan_mode(&self, created: &mut SessionCreated) -> Result<(), Fault> {
        let leaves = |name: &&str| {
            let runs = builtin(name).map(Tool::runs);
            matches!(runs, Some(Runs::Loop(LoopCall::LeavePlanMode)))
        };
        let names = self.parts.registry.specs().map(|spec| spec.name.as_ref());
        let missing: Vec<String> = names
            .filter(leaves)
            .filter(|name| {
                created.mode == PermissionMode::Plan && created.tools.iter().all(|tool| tool != name)
            })
            .map(str::to_owned)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let denied = self.wholly_denied(missing.clone(), created.rules.clone()).await?;
        let allowed = missing.into_iter().filter(|tool| !denied.contains(tool));
        created.tools.extend(allowed);
        Ok(())
    }

    /// The tools that the configuration adds to the usual ones.
    pub(crate) fn more(&self) -> Result<Vec<String>, Fault> {
        let loaded = self.loaded();
        let names = loaded.settings.tools.more.iter();
        let named = names.map(|name| self.tool(name)).collect::<Result<_, _>>();
        named.map_err(|fault| Fault {
            message: format!("tools.more in the configuration: {}", fault.message),
            ..fault
        })
    }

    pub(crate) fn tool(&self, name: &str) -> Result<String, Fault> {
        if let Some(rest) = name.strip_prefix(REMOTE_PREFIX) {
            return self.remote_tool(name, rest);
        }
        if let Some(spec) = self.parts.registry.get(name) {
            return Ok(spec.name.clone().into_owned());
        }
        let known = || self.parts.registry.specs().map(|spec| spec.name.as_ref());
        let message = format!("there is no tool {:?}", crate::words::cut(name));
        let hint = match nearest(name, known()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("the tools are {}", known().collect::<Vec<_>>().join(", ")),
        };
        Err(Fault::invalid("unknown_tool", message).hint(hint))
    }

    /// Refuses a rule about a tool that does not exist: it would guard nothing. Tools of servers may come later.
    pub(crate) fn rule_names_a_tool(&self, rule: &agentd_policy::Rule) -> Result<(), Fault> {
        let name = rule.tool();
        let known = || {
            self.parts
                .registry
                .specs()
                .any(|spec| spec.name.eq_ignore_ascii_case(name))
        };
        if name.contains('*') || name.to_ascii_lowercase().starts_with(REMOTE_PREFIX) || known() {
            return Ok(());
        }
        self.tool(name).map(drop)
    }

    /// Checks a name or pattern of server tools. A server's tools are known only when it runs, its existence is known now.
    fn remote_tool(&self, name: &str, rest: &str) -> Result<String, Fault> {
        let servers = self.parts.view.server_names();
        let known = match rest.split_once("__") {
            Some((server, tool)) => !tool.is_empty() && servers.iter().any(|known| known == server),
            None => rest == "*" && !servers.is_empty(),
        };
        let body = rest.strip_suffix('*').unwrap_or(rest);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if known && name.len() <= MAX_REMOTE && body.chars().all(plain) {
            return Ok(name.to_owned());
        }
        let message = format!("no tool server provides {:?}", crate::words::cut(name));
        let hint = if servers.is_empty() {
            "no tool server is configured: see [mcp] in the configuration".to_owned()
        } else {
            let names = servers.join(", ");
            format!("write mcp__SERVER__TOOL, mcp__SERVER__* or mcp__*; the servers are {names}")
        };
        Err(Fault::invalid("unknown_tool", message).hint(hint))
    }
}

/// Removes the delegation tools where sub-agents are disabled, so that the model does not hear of them.
pub(crate) fn with_depth(mut tools: Vec<String>, max_depth: u32) -> Vec<String> {
    tools.retain(|tool| max_depth > 0 || !delegates(tool));
    tools
}
