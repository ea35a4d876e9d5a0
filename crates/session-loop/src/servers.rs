//! The tools that servers offer to a session: requested when it is loaded and after each turn, never in a handler. Changes
//! take effect between two turns, so that the requests of a turn begin with the same bytes.

use crate::services::Services;
use crate::shell::Shell;
use crate::toolset::{Toolset, may_mean};
use crate::work::Task;
use agentd_actor_kit::{Done, GateMsg, SessionMsg};
use agentd_protocol::SessionCreated;
use agentd_tools::Offered;
use agentd_turn::Input;
use std::path::Path;
use std::sync::Arc;

/// The server tools that a session may use, except those that rules deny entirely. Ends in bounded time.
pub(crate) async fn gather(services: &Services, created: &SessionCreated) -> Vec<Offered> {
    let Some(remote) = &services.remote else {
        return Vec::new();
    };
    let mut servers = remote.servers();
    servers.retain(|server| may_mean(&created.tools, server));
    if servers.is_empty() {
        return Vec::new();
    }
    let mut found = remote.offered(Path::new(&created.workdir), &servers).await;
    let tools = found
        .iter()
        .flat_map(|one| one.tools.iter().flatten())
        .map(|tool| tool.spec().name.clone().into_owned())
        .collect();
    let rules = created.rules.clone();
    let denied = |done| GateMsg::WhollyDenied { tools, rules, done };
    // Without an answer from the gate the tools are offered: each call is judged anyway.
    let denied = services
        .gate
        .call(services.timing.load, denied)
        .await
        .unwrap_or_default();
    for tools in found.iter_mut().filter_map(|one| one.tools.as_mut().ok()) {
        tools.retain(|tool| denied.iter().all(|name| *name != tool.spec().name));
    }
    found
}

impl Shell {
    /// A turn ended: the servers' last offers take effect, and the loop asks the servers again.
    pub(crate) fn between_turns(&mut self) {
        if let Some(toolset) = self.next_kit.take() {
            self.toolset = toolset;
        }
        let Some(created) = self.core.agent.durable().settings.clone() else {
            return;
        };
        if self.asking || self.services.remote.is_none() {
            return;
        }
        self.asking = true;
        let done = Done::cast(&self.me, |found| SessionMsg::Offered { found });
        let services = Arc::clone(&self.services);
        tokio::spawn(async move { done.answer(gather(&services, &created).await) });
    }

    /// The servers reported their current offers; without an answer nothing changes.
    pub(crate) fn servers_said(&mut self, found: Option<Vec<Offered>>) {
        self.asking = false;
        let durable = self.core.agent.durable();
        let (Some(found), Some(created)) = (found, &durable.settings) else {
            return;
        };
        let toolset = Toolset::telling(
            &self.services.registry,
            self.toolset.agents(),
            &created.tools,
            found,
        );
        if durable.turn.is_some() {
            self.next_kit = Some(toolset);
        } else {
            self.toolset = toolset;
        }
    }

    /// A turn begins: warns a person once about each server whose tools are missing or cannot be used.
    pub(crate) fn warn_of_servers(&mut self) {
        let warnings = self.toolset.warnings();
        self.warned
            .retain(|key| warnings.iter().any(|(known, _)| known == key));
        for (key, message) in warnings {
            if self.warned.insert(key) {
                self.core.push(Task::of(Input::Warned {
                    code: "tool_server",
                    message,
                }));
            }
        }
    }
}
