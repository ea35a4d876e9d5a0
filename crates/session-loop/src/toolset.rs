//! The toolset of one session: the built-in tools, and the tools of tool servers that it may use.
//!
//! Pure. A toolset never changes; between two turns a session may get another one.

use agentd_protocol::{PromptPartKind, RequestItem, SessionCreated, ToolOutcome, ToolStatus};
use agentd_tools::{Offered, REMOTE_PREFIX, Registry, ToolEntry};
use serde_json::json;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The most unusable tools that a warning names.
const MAX_NAMED: usize = 8;

/// The toolset of one session.
#[derive(Debug)]
pub(crate) struct Toolset {
    registry: Registry,
    offered: Vec<String>,
    missing: Vec<(String, String)>,
    unusable: Vec<(String, String)>,
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
        let mut unusable = Vec::new();
        for found in found {
            let server = found.server;
            unusable.extend(unusable_of(&server, &found.left_out, chosen));
            match found.tools {
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
            unusable,
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

    /// What people are warned of: each server with missing tools, and the warning.
    pub(crate) fn warnings(&self) -> Vec<(String, String)> {
        let gone = |(server, why): &(String, String)| {
            let message = format!("the tools of the server {server} are missing: {why}");
            (server.clone(), message)
        };
        let gone = self.missing.iter().map(gone);
        gone.chain(self.unusable.iter().cloned()).collect()
    }

    /// The result of a call of a tool that this session cannot call, worded for the model.
    pub(crate) fn refusal(&self, name: &str) -> Option<ToolOutcome> {
        let offered = |name: &str| self.offered.iter().any(|tool| tool == name);
        let known = self.registry.get(name);
        if known.is_some_and(|spec| offered(&spec.name)) {
            return None;
        }
        if known.is_some() {
            let text = format!(
                "This session has no tool {name:?}. The tools are: {}.",
                self.offered.join(", ")
            );
            return Some(refused("E_TOOL_DISABLED", text));
        }
        let why_not = self.why_not(name).map(|why| refused("E_TOOL", why));
        why_not.or_else(|| Some(self.registry.unknown(name, offered)))
    }

    /// Why a server's tool cannot be called now, worded for the model; `None` when its server is available.
    fn why_not(&self, name: &str) -> Option<String> {
        let (server, _) = name.strip_prefix(REMOTE_PREFIX)?.split_once("__")?;
        let (_, why) = self.missing.iter().find(|(missing, _)| missing == server)?;
        Some(format!(
            "{name} cannot be called now: {why}. Continue without it. agentd tries the server again after this turn."
        ))
    }
}

fn refused(code: &str, text: String) -> ToolOutcome {
    ToolOutcome {
        details: Some(json!({ "code": code })),
        ..ToolOutcome::text(ToolStatus::Error, text)
    }
}

/// The warning about the selected tools of a server that cannot be used, with a key that changes with them.
fn unusable_of(server: &str, left_out: &[(String, String)], chosen: &[String]) -> Option<(String, String)> {
    let wanted = left_out.iter().filter(|(name, _)| is_chosen(chosen, name));
    let named: Vec<String> = wanted.map(|(name, why)| format!("{name} ({why})")).collect();
    let shown = named
        .get(..named.len().min(MAX_NAMED))
        .unwrap_or_default()
        .join(", ");
    let more = match named.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!("tools of the server {server} cannot be used and are left out: {shown}{more}");
    (!named.is_empty()).then(|| (message.clone(), message))
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
    use serde_json::Value;

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
            left_out: Vec::new(),
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
            left_out: Vec::new(),
        };
        let toolset = toolset(&["mcp__*"], vec![down, offer("mail", &["send"])]);
        let why = toolset.refusal("mcp__files__read").unwrap().llm_text;
        assert!(
            why.contains("it does not start") && why.contains("Continue without it"),
            "{why}"
        );
        assert_eq!(toolset.refusal("mcp__mail__send"), None);
        assert_eq!(
            toolset.warnings(),
            [(
                "files".to_owned(),
                "the tools of the server files are missing: it does not start".to_owned()
            )]
        );
    }

    #[test]
    fn an_unknown_tool_is_answered_with_the_tools_of_the_session() {
        let toolset = toolset(&["Read", "Grep", "mcp__*"], vec![offer("mail", &["send"])]);
        let told = |name: &str| toolset.refusal(name).map(|refused| refused.llm_text);
        for name in ["Read", "read_file", "grep", "mcp__mail__send"] {
            assert_eq!(told(name), None, "{name}");
        }
        for (name, expected) in [
            (
                "Reed",
                "Unknown tool: `Reed`. Did you mean `Read`? The tools are: Read, Grep, mcp__mail__send.",
            ),
            // The nearest known name, Bash, is not offered.
            (
                "Bsh",
                "Unknown tool: `Bsh`. The tools are: Read, Grep, mcp__mail__send.",
            ),
            (
                "Bash",
                "This session has no tool \"Bash\". The tools are: Read, Grep, mcp__mail__send.",
            ),
        ] {
            assert_eq!(told(name).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_warning_names_the_tools_that_cannot_be_used_if_the_session_wants_them() {
        let odd = |count: usize| Offered {
            left_out: (0..count)
                .map(|number| {
                    (
                        format!("mcp__files__odd{number}"),
                        "it has no `inputSchema`".to_owned(),
                    )
                })
                .collect(),
            ..offer("files", &["read"])
        };
        let of = |chosen: &str, count: usize| toolset(&[chosen], vec![odd(count)]);
        assert_eq!(of("mcp__*", 1).offered(), ["mcp__files__read"]);
        let warnings = of("mcp__*", 1).warnings();
        let expected = "tools of the server files cannot be used and are left out: mcp__files__odd0 (it has no `inputSchema`)";
        assert_eq!(warnings, [(expected.to_owned(), expected.to_owned())]);
        let many = of("mcp__*", MAX_NAMED + 1).warnings();
        assert!(
            many[0].1.ends_with("odd7 (it has no `inputSchema`) and 1 more"),
            "{many:?}"
        );
        assert_eq!(of("mcp__files__read", 1).warnings(), []);
        assert_eq!(of("mcp__*", 0).warnings(), []);
    }
}
