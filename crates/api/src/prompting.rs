//! Reads the sources of a new session's prompt off the runtime's threads: the custom agent, instruction files and skills;
//! and implements `session.prompt`, which shows it.

use crate::api::{Api, READ};
use crate::sight::Caller;
use agentd_actor_kit::{GateMsg, JudgeRequest};
use agentd_file_work::FileWork;
use agentd_policy::{Here, Subject};
use agentd_prompt::{
    AgentDefinition, Origin, Places, ReadJudge, agent, session_prompt, sources, stricter, template_of,
};
use agentd_protocol::{
    CreateParams, EffectClass, Fault, LoopLimits, PermissionMode, Preset, PromptPart, PromptPartKind,
    PromptShown, PromptSources, SessionParams, ToolProtocol, VerdictKind,
};
use agentd_settings::CLIENT;
use agentd_tools::{LoopCall, Runs, SKILL, Tool, builtin, delegates};
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// Runs work on the files of a working directory, within the time limit of a read.
pub(crate) async fn reading<T: Send + 'static>(
    what: &'static str,
    workdir: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let done = FileWork::of_directory(workdir).run(workdir, READ, work).await;
    done.map_err(|failed| {
        let message = format!("could not read {what}: {failed}");
        Fault::unavailable("workdir_unavailable", message)
            .hint("check that the working directory's file system responds; `agentctl doctor` names those that do not")
    })
}

impl Api {
    /// The requested custom agent.
    pub(crate) async fn definition(
        &self,
        name: Option<&str>,
        workdir: &str,
    ) -> Result<Option<AgentDefinition>, Fault> {
        let Some(name) = name else { return Ok(None) };
        let (places, workdir, name) = (self.places(workdir, &[]), PathBuf::from(workdir), name.to_owned());
        let dir = workdir.clone();
        let found = reading("the agent's file", &dir, move || agent(&places, &workdir, &name)).await?;
        let found = found.map_err(|why| {
            Fault::invalid("unknown_agent", why).hint("agents are Markdown files; see `agentctl help agents`")
        })?;
        Ok(Some(found))
    }

    /// Everything that a new session reads from files.
    pub(crate) async fn sources(
        &self,
        workdir: &str,
        rules: &[String],
        model: &str,
        preset: Option<Preset>,
        definition: Option<&AgentDefinition>,
    ) -> Result<PromptSources, Fault> {
        let template = self.template(model, preset);
        let words = definition.map(|definition| PromptPart {
            kind: PromptPartKind::Agent,
            source: definition.path.clone(),
            text: definition.prompt.clone(),
            note: (definition.origin == Origin::Project).then(|| "from the project".to_owned()),
        });
        let (places, workdir) = (self.places(workdir, rules), PathBuf::from(workdir));
        let dir = workdir.clone();
        reading(
            "the instruction files of the working directory",
            &dir,
            move || sources(&places, &workdir, template, words),
        )
        .await
    }

    /// The directories searched for prompt files. A file that a rule forbids or asks about is not read under any name or
    /// link. The judge blocks, so call it only from threads that may block.
    pub(crate) fn places(&self, workdir: &str, rules: &[String]) -> Places {
        let request = JudgeRequest {
            session: self.parts.clock.stamp().session(),
            tool: agentd_policy::READ.to_owned(),
            subject: Subject::Nothing,
            effect: EffectClass::Read,
            mode: PermissionMode::Default,
            workdir: workdir.to_owned(),
            rules: rules.to_vec(),
            here: Here::default(),
            grants: Vec::new(),
            always: Vec::new(),
        };
        let (gate, runtime) = (self.parts.gate.clone(), Handle::current());
        let judge = move |real: &Path| {
            let path = real.to_str().ok_or("its path is not UTF-8")?.to_owned();
            let subject = Subject::Path { write: false, path };
            let request = Box::new(JudgeRequest {
                subject,
                ..request.clone()
            });
            let judged = runtime.block_on(gate.call(READ, |done| GateMsg::Judge { request, done }));
            let verdict = judged.map_err(|error| error.to_string())?.verdict;
            // A mode asks about paths outside the working directory; but the operator chose these places.
            let free = verdict.kind == VerdictKind::Ask && verdict.rule.starts_with("mode:");
            if free || verdict.kind == VerdictKind::Allow {
                Ok(())
            } else {
                Err(verdict.reason)
            }
        };
        Places {
            judge: ReadJudge::new(judge),
            ..self.parts.places.clone()
        }
    }

    fn template(&self, model: &str, preset: Option<Preset>) -> &'static str {
        let loaded = self.loaded();
        let settings = &loaded.settings;
        let Some(model) = settings.models.get(model) else {
            return "";
        };
        let Some(provider) = settings.providers.get(&model.provider) else {
            return "";
        };
        let protocol = match preset.unwrap_or(settings.r#loop.preset) {
            Preset::React => ToolProtocol::JsonText,
            _ => model.tool_protocol,
        };
        template_of(provider.dialect, protocol, &model.model)
    }

    /// The tools of a custom agent, limited to those that the session may have.
    pub(crate) fn narrowed(
        &self,
        tools: Vec<String>,
        definition: Option<&AgentDefinition>,
    ) -> Result<Vec<String>, Fault> {
        let Some((definition, only)) = definition.and_then(|it| Some((it, it.tools.as_ref()?))) else {
            return Ok(tools);
        };
        let named = only
            .iter()
            .map(|name| self.tool(name))
            .collect::<Result<Vec<_>, _>>();
        let named = named.map_err(|fault| Fault {
            message: format!(
                "the agent {} in {}: {}",
                definition.name, definition.path, fault.message
            ),
            ..fault
        })?;
        let covered = |tool: &String, by: &[String]| by.iter().any(|pattern| covers(pattern, tool));
        let narrower = named
            .iter()
            .filter(|name| !tools.contains(name) && covered(name, &tools));
        let narrower: Vec<String> = narrower.cloned().collect();
        let kept = tools.into_iter().filter(|tool| covered(tool, &named));
        Ok(kept.chain(narrower).collect())
    }

    /// The system prompt of a session and its sources.
    pub(crate) async fn prompt(&self, who: &Caller, params: SessionParams) -> Result<PromptShown, Fault> {
        let session = self.session(who, &params.session).await?;
        let (created, at) = self.first(session).await?;
        Ok(session_prompt(&created, at).shown)
    }
}

/// Whether a name, or a pattern of server tools, covers another name or pattern.
fn covers(pattern: &str, name: &str) -> bool {
    let begins = pattern.strip_suffix('*');
    pattern == name || begins.is_some_and(|begin| name.starts_with(begin))
}

/// The mode: the requested one, otherwise that of an operator's agent, otherwise the node's; a project's agent can only
/// make it stricter.
pub(crate) fn mode_of(
    params: &CreateParams,
    definition: Option<&AgentDefinition>,
    node: PermissionMode,
) -> PermissionMode {
    let of = |origin| definition.filter(|it| it.origin == origin).and_then(|it| it.mode);
    let mode = params.mode.or_else(|| of(Origin::Operator)).unwrap_or(node);
    of(Origin::Project).map_or(mode, |narrower| stricter(mode, narrower))
}

/// The step limit and who set it: the requested one, otherwise the agent's; a project's agent can only lower it.
pub(crate) fn turns_of(
    params: &CreateParams,
    definition: Option<&AgentDefinition>,
    limits: &LoopLimits,
) -> Option<(i32, String)> {
    let asked = params.max_turns.map(|turns| (turns, CLIENT.to_owned()));
    let Some((agent, turns)) = definition.and_then(|it| Some((it, it.max_turns?))) else {
        return asked;
    };
    let of_agent = Some((turns, format!("agent {}", agent.name)));
    match agent.origin {
        Origin::Operator => asked.or(of_agent),
        Origin::Project => {
            let cap = limits.step_cap().and_then(|cap| i32::try_from(cap).ok());
            let fewer = |asked: i32| asked < 0 || turns < asked;
            let narrows = cap.is_some_and(|cap| turns < cap) && params.max_turns.is_none_or(fewer);
            if narrows { of_agent } else { asked }
        }
    }
}

/// Removes tools that would have no use: plan tools without planning, skill tools without skills.
pub(crate) fn fitting(mut tools: Vec<String>, limits: &LoopLimits, prompt: &PromptSources) -> Vec<String> {
    let skills = prompt
        .parts
        .iter()
        .any(|part| part.kind == PromptPartKind::Skills && !part.text.is_empty());
    tools.retain(|tool| match builtin(tool).map(Tool::runs) {
        Some(Runs::Loop(LoopCall::Plan)) => limits.planning.enabled,
        _ => skills || tool != SKILL,
    });
    tools
}

/// Removes the list of agents where there is no Task tool to start one.
pub(crate) fn telling(mut prompt: PromptSources, tools: &[String]) -> PromptSources {
    let tasks = tools.iter().any(|tool| delegates(tool));
    prompt
        .parts
        .retain(|part| tasks || part.kind != PromptPartKind::Agents);
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(origin: Origin, mode: PermissionMode, max_turns: i32) -> AgentDefinition {
        AgentDefinition {
            name: "a".into(),
            description: String::new(),
            tools: None,
            model: None,
            mode: Some(mode),
            max_turns: Some(max_turns),
            prompt: "x".into(),
            origin,
            path: "a.md".into(),
        }
    }

    #[test]
    fn i7_a_projects_agent_only_narrows_the_mode() {
        use PermissionMode::{Default, Plan, Yolo};
        let asked = |mode| CreateParams {
            mode,
            ..CreateParams::default()
        };
        let rows = [
            (None, Origin::Operator, Yolo, Yolo),
            (Some(Plan), Origin::Operator, Yolo, Plan),
            (None, Origin::Project, Yolo, Default),
            (Some(Yolo), Origin::Project, Plan, Plan),
            (Some(Plan), Origin::Project, Yolo, Plan),
        ];
        for (mode, origin, of_agent, expected) in rows {
            let agent = definition(origin, of_agent, 1);
            assert_eq!(
                mode_of(&asked(mode), Some(&agent), Default),
                expected,
                "{mode:?} {origin:?} {of_agent:?}"
            );
        }
    }

    #[test]
    fn i7_a_projects_agent_can_only_lower_the_steps() {
        let limits = LoopLimits::default();
        let rows = [
            (None, Origin::Operator, 500, Some(500)),
            (Some(7), Origin::Operator, 500, Some(7)),
            (None, Origin::Project, 500, None),
            (None, Origin::Project, 5, Some(5)),
            (Some(-1), Origin::Project, 5, Some(5)),
            (Some(3), Origin::Project, 5, Some(3)),
        ];
        for (asked, origin, turns, expected) in rows {
            let params = CreateParams {
                max_turns: asked,
                ..CreateParams::default()
            };
            let agent = definition(origin, PermissionMode::Default, turns);
            assert_eq!(
                turns_of(&params, Some(&agent), &limits).map(|(turns, _)| turns),
                expected,
                "{asked:?} {origin:?} {turns}"
            );
        }
    }
}
