//! The map of the source tree in a new session's prompt.

use crate::api::{Api, READ, fault_of};
use crate::prompting::reading;
use agentd_actor_kit::{GateMsg, JudgeRequest};
use agentd_policy::{Here, Subject};
use agentd_protocol::{EffectClass, Fault, Preset, PromptPart, PromptPartKind, SessionCreated, VerdictKind};
use agentd_settings::MapInPrompt;
use agentd_tools::{PromptMap, REPO_MAP, map_dir};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the walk may take; a person waits for the session.
const WITHIN: Duration = Duration::from_secs(3);
/// Its name in the list of a prompt's sources.
const SOURCE: &str = "map of the source tree";

impl Api {
    /// The map for a session, if it gets one: only sessions that have the tool for the same map do.
    pub(crate) async fn map_part(
        &self,
        created: &SessionCreated,
        preset: Option<Preset>,
    ) -> Result<Option<PromptPart>, Fault> {
        let loaded = self.loaded();
        let settings = &loaded.settings;
        let wanted = match settings.agents.map {
            MapInPrompt::Never => false,
            MapInPrompt::React => preset.unwrap_or(settings.r#loop.preset) == Preset::React,
            MapInPrompt::Always => true,
        };
        if !wanted || !created.tools.iter().any(|tool| tool == REPO_MAP) {
            return Ok(None);
        }
        let (workdir, tokens) = (PathBuf::from(&created.workdir), settings.agents.map_tokens);
        let maps = map_dir(Path::new(&self.parts.facts.data_dir));
        let dir = workdir.clone();
        let parsers = self.parts.parsers.clone();
        let made = reading("the source tree", &dir, move || {
            PromptMap::of(&workdir, maps, WITHIN, parsers.as_deref())
        })
        .await;
        let Some(mut map) = made.ok().and_then(Result::ok) else {
            return Ok(Some(part(String::new(), Some("could not read the source tree"))));
        };
        map.without(&self.hidden(created, map.files()).await?);
        let (complete, unavailable) = (map.is_complete(), map.unavailable().map(str::to_owned));
        let text = reading("the source tree", &dir, move || map.text(tokens)).await?;
        let note = match (complete, text.is_empty()) {
            _ if unavailable.is_some() => unavailable.as_deref(),
            (true, false) => None,
            (true, true) => Some("no definitions were found"),
            (false, _) => Some("the map does not cover every file: there are too many, or it took too long"),
        };
        Ok(Some(part(text, note)))
    }

    /// The files that the agent could not read without an approval.
    async fn hidden(
        &self,
        created: &SessionCreated,
        files: BTreeSet<String>,
    ) -> Result<BTreeSet<String>, Fault> {
        let session = self.parts.clock.stamp().session();
        let mut hidden = BTreeSet::new();
        for path in files {
            let request = JudgeRequest {
                session,
                tool: agentd_policy::READ.to_owned(),
                subject: Subject::Path {
                    write: false,
                    path: path.clone(),
                },
                effect: EffectClass::Read,
                mode: created.mode,
                workdir: created.workdir.clone(),
                rules: created.rules.clone(),
                here: Here {
                    place: created.place().to_owned(),
                    files: None,
                },
                grants: Vec::new(),
                always: Vec::new(),
            };
            let judge = |done| GateMsg::Judge {
                request: Box::new(request),
                done,
            };
            let judgement = self.parts.gate.call(READ, judge).await.map_err(fault_of)?;
            if judgement.verdict.kind != VerdictKind::Allow {
                hidden.insert(path);
            }
        }
        Ok(hidden)
    }
}

fn part(text: String, note: Option<&str>) -> PromptPart {
    PromptPart {
        kind: PromptPartKind::Map,
        source: SOURCE.to_owned(),
        text,
        note: note.map(str::to_owned),
    }
}
