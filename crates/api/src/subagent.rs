//! The first event of a sub-agent: its parent's permissions, narrowed by the custom agent that it runs (I7).

use crate::api::Api;
use crate::prompting::{fitting, telling};
use crate::validate;
use agentd_actor_kit::{NewSubagent, SubagentSource};
use agentd_prompt::{AgentDefinition, stricter};
use agentd_protocol::{Block, Fault, LoopLimits, PermissionMode, Preset, SessionCreated, ToolProtocol};
use agentd_tools::{LoopCall, Runs, Tool, builtin};
use async_trait::async_trait;
use std::sync::Arc;

/// The instructions that a sub-agent gets in addition to its parent's.
const WORDS: &str = "You are a sub-agent: another agent gave you one task and waits for the result. It reads only your last message, so put \
                     everything that it needs there. Do only this task.";

/// Creates the sub-agents of a node.
#[derive(Debug)]
pub struct SubagentApi(pub Arc<Api>);

#[async_trait]
impl SubagentSource for SubagentApi {
    async fn first_event(&self, new: NewSubagent) -> Result<SessionCreated, Fault> {
        self.0.sub_agent(new).await
    }
}

impl Api {
    async fn sub_agent(&self, new: NewSubagent) -> Result<SessionCreated, Fault> {
        let parent = new.settings;
        let definition = self.definition(new.agent.as_deref(), &parent.workdir).await?;
        let definition = definition.as_ref();
        let model = match definition.and_then(|it| it.model.as_deref()) {
            Some(named) => self.model(Some(named)).await?,
            None => new.model,
        };
        let limits = limits_of(&parent.limits, definition);
        let preset = (limits.tool_protocol == Some(ToolProtocol::JsonText)).then_some(Preset::React);
        let prompt = self
            .sources(&parent.workdir, &parent.rules, &model, preset, definition)
            .await?;
        let deepest = new.lineage.depth >= self.loaded().settings.agents.max_depth;
        let tools = self.narrowed(parent.tools, definition)?;
        let tools = allowed(fitting(tools, &limits, &prompt), deepest);
        let prompt = telling(prompt, &tools);
        Ok(SessionCreated {
            title: validate::title_from(&[Block::text(new.purpose.as_str())])
                .unwrap_or_else(|| parent.project.clone()),
            project: parent.project,
            workdir: parent.workdir,
            model,
            mode: mode_of(parent.mode, definition),
            agent: new.agent,
            labels: parent.labels,
            requires: parent.requires,
            parent: Some(new.parent),
            limits,
            budget: new.budget,
            tools,
            system_prompt: parent.system_prompt,
            append_system_prompt: Some(with_words(parent.append_system_prompt)),
            rules: parent.rules,
            lineage: Some(Box::new(new.lineage)),
            prompt: Some(Box::new(prompt)),
            derived_title: false,
            workspace: None,
        })
    }
}

/// Regardless of who wrote it, the agent can only make the parent's mode stricter.
fn mode_of(parent: PermissionMode, definition: Option<&AgentDefinition>) -> PermissionMode {
    definition
        .and_then(|it| it.mode)
        .map_or(parent, |mode| stricter(parent, mode))
}

fn limits_of(parent: &LoopLimits, definition: Option<&AgentDefinition>) -> LoopLimits {
    let mut limits = parent.clone();
    if let Some((agent, turns)) = definition.and_then(|it| Some((it, it.max_turns?)))
        && let (Ok(steps), Some(cap)) = (u32::try_from(turns), parent.step_cap())
        && steps < cap
    {
        limits.max_turns = turns;
        let from = format!("agent {}", agent.name);
        limits.from.insert("max_turns".to_owned(), from);
    }
    limits
}

/// Removes the tools for sub-agents at the maximum depth, and the tool that would leave the parent's plan mode.
fn allowed(mut tools: Vec<String>, deepest: bool) -> Vec<String> {
    tools.retain(|tool| match builtin(tool).map(Tool::runs) {
        Some(Runs::SubAgent) => !deepest,
        Some(Runs::Loop(LoopCall::LeavePlanMode)) => false,
        _ => true,
    });
    tools
}

fn with_words(parents: Option<String>) -> String {
    match parents {
        Some(words) if words.ends_with(WORDS) => words,
        Some(words) => format!("{words}\n\n{WORDS}"),
        None => WORDS.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_prompt::Origin;

    fn agent(mode: Option<PermissionMode>, max_turns: Option<i32>) -> AgentDefinition {
        AgentDefinition {
            name: "a".into(),
            description: String::new(),
            tools: None,
            model: None,
            mode,
            max_turns,
            prompt: "x".into(),
            origin: Origin::Operator,
            path: "a.md".into(),
        }
    }

    #[test]
    fn i7_a_sub_agent_never_has_more_rights_than_its_parent() {
        use PermissionMode::{Default, Plan, Yolo};
        for (parent, of_agent, expected) in [
            (Default, None, Default),
            (Default, Some(Yolo), Default),
            (Yolo, Some(Plan), Plan),
            (Plan, Some(Default), Plan),
        ] {
            assert_eq!(mode_of(parent, Some(&agent(of_agent, None))), expected);
        }
        let parent = LoopLimits {
            max_turns: 10,
            ..LoopLimits::default()
        };
        for (of_agent, expected) in [(None, 10), (Some(500), 10), (Some(-1), 10), (Some(3), 3)] {
            assert_eq!(
                limits_of(&parent, Some(&agent(None, of_agent))).max_turns,
                expected
            );
        }
        let tools = || ["Read", "Task", "ExitPlanMode"].map(str::to_owned).to_vec();
        assert_eq!(allowed(tools(), false), ["Read", "Task"]);
        assert_eq!(allowed(tools(), true), ["Read"]);
    }

    #[test]
    fn the_instructions_for_sub_agents_appear_once() {
        let once = with_words(Some("Be kind.".to_owned()));
        assert_eq!(with_words(Some(once.clone())), once);
        assert!(once.starts_with("Be kind.\n\nYou are a sub-agent"));
    }
}
