//! The toolset of one session: the built-in tools, and the tools of tool servers that it may use.
//!
//! Pure. A toolset never changes; between two turns a session may get another one.

use agentd_protocol::{PromptPartKind, RequestItem, SessionCreated};
use agentd_tools::{Offered, REMOTE_PREFIX, Registry, ToolEntry};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The toolset of one session.
#[derive(Debug)]
pub(crate) struct Toolset {
    registry: Registry,
    offered: Vec<String>,
    missing: Vec<(String, String)>,
    agents: Option<String>,
    id: u64,
}

/// The list of custom agents in a session's first event. The folded state no longer has it.
pub(crate) fn agents_of(created: &SessionCreated) -> Option<String> {
    let mut parts = created.prompt.iter().flat_map(|prompt| &prompt.parts);
    let list = parts.find(|part| part.kind == PromptPartKind::Agents)?;
    Some(list.text.clone())
}

impl Toolset {
    /// A toolset whose Task tool lists these custom agents.
    pub(crate) fn telling(
        builtin: &Registry,
        agents: Option<String>,
        chosen: &[String],
        found: Vec<Offered>,
    ) -> Self {
        let mut toolset = match &agents {
            Some(list) => Self::new(&builtin.with_agents(list), chosen, found),
            None => Self::new(builtin, chosen, found),
        };
        toolset.agents = agents;
        toolset
    }

    /// The custom agents that Task lists: the same for the whole life of the session.
    pub(crate) fn agents(&self) -> Option<String> {
        self.agents.clone()
    }

    /// The built-in tools, and those of the found tools that the session selected.
    pub(crate) fn new(builtin: &Registry, chosen: &[String], found: Vec<Offered>) -> Self {
        let (mut tools, mut missing) = (Vec::<ToolEntry>::new(), Vec::new());
        for Offered { server, tools: its } in found {
            match its {
                Ok(its) => tools.extend(
                    its.into_iter()
                        .filter(|tool| is_chosen(chosen, &tool.spec().name)),
                ),
                Err(why) => missing.push((server, why)),
            }
        }
        let mut offered: Vec<String> = chosen
            .iter()
            .filter(|name| !name.starts_with(REMOTE_PREFIX))
            .cloned()
            .collect();
        let mut hasher = DefaultHasher::new();
        for tool in &tools {
            let spec = tool.spec();
            (&spec.name, &spec.description, spec.schema.to_string()).hash(&mut hasher);
            offered.push(spec.name.clone().into_owned());
        }
        Self {
            id: if tools.is_empty() { 0 } else { hasher.finish() },
            registry: builtin.with(tools),
            offered,
            missing,
            agents: None,
        }
    }

    /// The registry that looks up its tools. It knows more tools than are offered.
    pub(crate) const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The names of the tools that the model is offered.
    pub(crate) fn offered(&self) -> &[String] {
        &self.offered
    }

    /// The offered tools in the order of a request, for a provider may refuse one of them.
    pub(crate) fn items(&self) -> Vec<RequestItem> {
        let names = self.registry.entries().map(|tool| tool.spec().name.clone());
        names
            .filter(|name| self.offered.iter().any(|offered| offered == name))
            .map(|name| RequestItem::Tool {
                name: name.into_owned(),
            })
            .collect()
    }

    /// Identifies its server tools: the same number means the same bytes in a request.
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    /// The servers that are unavailable, and why.
    pub(crate) fn missing(&self) -> &[(String, String)] {
        &self.missing
    }

    /// Why a server's tool cannot be called now, worded for the model; `None` when its server is available.
    pub(crate) fn why_not(&self, name: &str) -> Option<String> {
        let (server, _) = name.strip_prefix(REMOTE_PREFIX)?.split_once("__")?;
        let (_, why) = self.missing.iter().find(|(missing, _)| missing == server)?;
        Some(format!(
            "{name} cannot be called now: {why}. Continue without it. agentd tries the server again after this turn."
        ))
    }
}

/// Whether a name is in a list of names and patterns, such as `mcp__files__*`.
fn is_chosen(chosen: &[String], name: &str) -> bool {
    chosen.iter().any(|one| match one.strip_suffix('*') {
        Some(head) => name.starts_with(head),
        None => one == name,
    })
}

/// Whether a list of names and patterns can match a tool of this server.
pub(crate) fn may_mean(chosen: &[String], server: &str) -> bool {
    let head = format!("{REMOTE_PREFIX}{server}__");
    chosen.iter().any(|one| match one.strip_suffix('*') {
        Some(start) => {
            start.starts_with(REMOTE_PREFIX) && (start.starts_with(&head) || head.starts_with(start))
        }
        None => one.starts_with(&head),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::EffectClass;
    use agentd_tools::{ToolLimits, ToolSpec};
    use serde_json::{Value, json};

    fn offer(server: &str, tools: &[&str]) -> Offered {
        let tool = |name: &&str| {
            ToolEntry::new(ToolSpec {
                name: format!("mcp__{server}__{name}").into(),
                aliases: &[],
                title: "".into(),
                description: String::new(),
                schema: json!({ "type": "object" }),
                example: Value::Null,
                effect: EffectClass::Exec,
                idempotent: false,
                server: Some(server.to_owned()),
            })
        };
        Offered {
            server: server.to_owned(),
            tools: Ok(tools.iter().map(tool).collect()),
        }
    }

    fn toolset(chosen: &[&str], found: Vec<Offered>) -> Toolset {
        let chosen: Vec<String> = chosen.iter().map(|&name| name.to_owned()).collect();
        Toolset::new(&Registry::builtin(&ToolLimits::default()), &chosen, found)
    }

    #[test]
    fn a_session_has_what_it_chose() {
        let found = || vec![offer("files", &["read", "write"]), offer("mail", &["send"])];
        for (chosen, offered) in [
            (
                &["Read", "mcp__*"][..],
                &["Read", "mcp__files__read", "mcp__files__write", "mcp__mail__send"][..],
            ),
            (&["mcp__files__*"], &["mcp__files__read", "mcp__files__write"]),
            (&["mcp__files__read", "Ls"], &["Ls", "mcp__files__read"]),
            (&["Read"], &["Read"]),
        ] {
            assert_eq!(toolset(chosen, found()).offered(), offered, "{chosen:?}");
        }
        let (one, same) = (toolset(&["mcp__*"], found()), toolset(&["mcp__*"], found()));
        assert_eq!(one.id(), same.id());
        assert_ne!(one.id(), toolset(&["mcp__files__*"], found()).id());
        assert_eq!(toolset(&["Read"], found()).id(), 0);
    }

    #[test]
    fn only_servers_that_can_be_meant_are_asked() {
        let means = |chosen: &str, server: &str| may_mean(&[chosen.to_owned()], server);
        assert!(
            means("mcp__*", "files") && means("mcp__files__*", "files") && means("mcp__files__read", "files")
        );
        assert!(means("mcp__f*", "files") && means("mcp__files__re*", "files"));
        assert!(
            !means("mcp__mail__*", "files") && !means("Read", "files") && !means("mcp__file__x", "files")
        );
    }

    #[test]
    fn a_tool_of_a_server_that_is_not_there_says_why() {
        let down = Offered {
            server: "files".to_owned(),
            tools: Err("it does not start".to_owned()),
        };
        let toolset = toolset(&["mcp__*"], vec![down, offer("mail", &["send"])]);
        let why = toolset.why_not("mcp__files__read").unwrap();
        assert!(
            why.contains("it does not start") && why.contains("Continue without it"),
            "{why}"
        );
        assert_eq!(toolset.why_not("mcp__mail__read"), None);
        assert_eq!(toolset.why_not("Read"), None);
        assert_eq!(toolset.missing().len(), 1);
    }
}
