//! The requirements that a model call states to its provider's scheduler: its group, its urgency, and its estimated usage.

use agentd_actor_kit::{Ask, Lane};
use agentd_protocol::{SessionCreated, SessionId};
use agentd_provider::ModelSpec;
use agentd_settings::SchedulerConfig;

/// The labels that decide how sessions share a provider and which go first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sharing {
    /// The label whose values share a provider by weight; empty: all sessions are one group.
    pub share_by: String,
    /// The label that says `interactive` or `background`.
    pub lane_by: String,
}

impl From<&SchedulerConfig> for Sharing {
    fn from(config: &SchedulerConfig) -> Self {
        Self {
            share_by: config.share_by.clone(),
            lane_by: config.lane_by.clone(),
        }
    }
}

impl Sharing {
    fn group(&self, created: &SessionCreated) -> String {
        created.labels.get(&self.share_by).cloned().unwrap_or_default()
    }

    /// The label decides. Without one, a headless session, or one that another program started, is background work.
    fn lane(&self, created: &SessionCreated) -> Lane {
        match created.labels.get(&self.lane_by).map(String::as_str) {
            Some("background") => Lane::Background,
            Some("interactive") => Lane::Interactive,
            // A sub-agent is as urgent as its parent session.
            _ if created.limits.headless => Lane::Background,
            _ if created.parent.is_some() && created.lineage.is_none() => Lane::Background,
            _ => Lane::Interactive,
        }
    }

    /// The request of a call of this session.
    pub(crate) fn ask(
        &self,
        session: SessionId,
        created: Option<&SessionCreated>,
        spec: &ModelSpec,
        (credential, insists): (Option<String>, bool),
        input_tokens: u64,
    ) -> Ask {
        Ask {
            session,
            model: spec.model.clone(),
            credential,
            group: created.map(|created| self.group(created)).unwrap_or_default(),
            lane: created.map_or(Lane::Interactive, |created| self.lane(created)),
            input_tokens,
            output_tokens: spec.max_output.into(),
            insists,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{Budget, Labels, LoopLimits, PermissionMode};

    fn created(labels: &[(&str, &str)], headless: bool) -> SessionCreated {
        let labels: Labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        SessionCreated {
            title: String::new(),
            project: String::new(),
            workdir: "/".to_owned(),
            model: "m".to_owned(),
            mode: PermissionMode::Default,
            agent: None,
            labels,
            requires: [].into(),
            parent: None,
            limits: LoopLimits {
                headless,
                ..LoopLimits::default()
            },
            budget: Budget::default(),
            tools: Vec::new(),
            system_prompt: None,
            append_system_prompt: None,
            rules: Vec::new(),
            lineage: None,
            prompt: None,
            derived_title: false,
            workspace: None,
        }
    }

    #[test]
    fn labels_say_who_shares_and_who_goes_first() {
        let sharing = Sharing::from(&SchedulerConfig::default());
        let check = |labels: &[(&str, &str)], headless, group: &str, lane| {
            let created = created(labels, headless);
            assert_eq!(
                (sharing.group(&created).as_str(), sharing.lane(&created)),
                (group, lane)
            );
        };
        check(&[], false, "", Lane::Interactive);
        check(&[("team", "red")], true, "red", Lane::Background);
        check(&[("lane", "interactive")], true, "", Lane::Interactive);
        check(&[("lane", "background")], false, "", Lane::Background);
        check(&[("lane", "sometimes")], false, "", Lane::Interactive);
    }
}
