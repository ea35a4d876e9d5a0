//! The parts of a session's log that decide about its calls: mode, directory, its own rules, and granted rules.

use crate::failure::Failure;
use crate::verbs::logs::Pages;
use crate::verbs::policy::read;
use agentd_client::Client;
use agentd_policy::{Policy, Source};
use agentd_protocol::{ApprovalId, Decision, Event, EventBody, PermissionMode, Scope};
use std::collections::BTreeMap;

/// A session's state as the gate sees it at one moment.
#[derive(Debug, Default)]
pub(super) struct Case {
    mode: Option<PermissionMode>,
    workdir: String,
    rules: Vec<String>,
    grants: Vec<String>,
    offered: BTreeMap<ApprovalId, String>,
}

impl Case {
    /// Applies one event.
    pub(super) fn learn(&mut self, event: &Event) {
        match &event.body {
            EventBody::SessionCreated(created) => {
                self.mode = Some(created.mode);
                self.workdir.clone_from(&created.workdir);
                self.rules.clone_from(&created.rules);
                let lineage = created.lineage.as_ref();
                let granted = lineage.iter().flat_map(|lineage| &lineage.grants);
                self.grants = granted.map(|grant| grant.rule.clone()).collect();
            }
            EventBody::SessionUpdated(updated) => self.mode = updated.mode.or(self.mode),
            EventBody::ApprovalAsked(asked) => {
                if let Some(grant) = &asked.grant {
                    self.offered.insert(asked.approval, grant.clone());
                }
            }
            EventBody::ApprovalDecided(decided) => {
                let grant = self.offered.remove(&decided.approval);
                let grant = match decided.decision {
                    Decision::Allow => grant,
                    Decision::Deny => {
                        grant.map(|grant| format!("deny {}", grant.trim_start_matches("allow ")))
                    }
                    Decision::Answer | Decision::Expired | Decision::Withdrawn => None,
                };
                let lasting = decided.scope != Scope::Once;
                if let Some(grant) = grant.filter(|grant| lasting && !self.grants.contains(grant)) {
                    self.grants.push(grant);
                }
            }
            _ => {}
        }
    }

    pub(super) fn mode(&self) -> PermissionMode {
        self.mode.unwrap_or(PermissionMode::Default)
    }

    pub(super) fn workdir(&self) -> &str {
        &self.workdir
    }

    /// The given rules combined with the session's.
    pub(super) fn policy(&self, base: &Policy) -> Result<Policy, Failure> {
        let rules = self.rules.iter().map(|rule| read(rule, Source::Session));
        let grants = self.grants.iter().map(|rule| read(rule, Source::Grant));
        Ok(base.with(rules.chain(grants).collect::<Result<_, _>>()?))
    }
}

/// A session's log from its beginning, in pages. Skips lines of a newer version.
#[derive(Debug)]
pub(super) struct Events(Pages);

impl Events {
    pub(super) fn of(session: &str) -> Self {
        Self(Pages::new(session, 0))
    }

    /// The next page; `None` at the current end of the log.
    pub(super) async fn next(&mut self, client: &Client) -> Result<Option<Vec<Event>>, Failure> {
        let lines = self.0.next(client).await?;
        let read = |line: &String| serde_json::from_str(line).ok();
        Ok(lines.map(|lines| lines.iter().filter_map(read).collect()))
    }
}
