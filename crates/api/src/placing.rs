//! The nodes of the fleet, and which of them gets a new session.

use crate::api::Api;
use crate::peers::{NODE_GONE, NOT_OPEN, PeerCall, Peers};
use crate::sight::Caller;
use agentd_protocol::{CreateParams, Fault, FaultClass, FleetNode, Labels, PlaceParams, Placing, listed};
use serde_json::Value;
use std::path::Path;

/// The fault of a node that has no others.
pub(crate) fn no_fleet() -> Fault {
    let fault = Fault::invalid("no_fleet", "this node is alone: only it can use its store");
    fault.hint("set store.url to a postgres:// URL; agentctl daemon drain drains this node")
}

impl Api {
    /// Creates a session at the node with the least load, if its directory is below a path that both share. `None`: it has to be
    /// created here.
    pub(crate) async fn at_less_busy(
        &self,
        (peers, load): (&dyn Peers, u32),
        who: &Caller,
        params: &Value,
    ) -> Option<Result<Value, Fault>> {
        let new: CreateParams = serde_json::from_value(params.clone()).ok()?;
        let workdir = crate::validate::workdir(&new.workdir).await.ok()?;
        let loaded = self.loaded();
        let mut shared = loaded.settings.node.shared_paths.iter();
        // The files of a workspace of its own are on one machine: that of the person who asks for it.
        let fixed = new.parent.is_some() || new.workspace.is_some();
        if fixed || !shared.any(|path| Path::new(&workdir).starts_with(path)) {
            return None;
        }
        let node = peers
            .open_node(&new.requires, Some((&workdir, load)))
            .await
            .ok()??;
        let call = PeerCall::new("session.create", params);
        match peers.call(&node, who.proof().ok()?, &call).await {
            // It has not run there. The caller may have fewer rights there than here.
            Err(fault) if [NODE_GONE, NOT_OPEN, "draining"].contains(&fault.code.as_str()) => None,
            Err(fault) if fault.class == FaultClass::Denied => None,
            answer => Some(answer),
        }
    }

    /// The nodes of the fleet. A node whose store only it can use is a fleet of one.
    pub(crate) async fn nodes(&self) -> Result<Vec<FleetNode>, Fault> {
        if let Some(peers) = &self.parts.peers {
            return Ok(peers.nodes().await?);
        }
        let facts = &self.parts.facts;
        let open = self.parts.backend.states(None).await?;
        Ok(vec![FleetNode {
            name: facts.node.clone(),
            alive: true,
            placing: Placing::Open,
            sessions: open.values().sum(),
            address: if facts.http == "off" {
                String::new()
            } else {
                facts.http.clone()
            },
            version: facts.version.clone(),
            joined_at: facts.started_at,
            labels: self.loaded().settings.node.labels.clone(),
            load: 0,
        }])
    }

    /// Cordons, opens or drains a node.
    pub(crate) async fn place(&self, who: &Caller, params: PlaceParams) -> Result<Value, Fault> {
        let Some(peers) = &self.parts.peers else {
            return Err(no_fleet());
        };
        tracing::info!(node = params.node, placing = params.placing.as_str(), by = %who, "asked to place");
        if peers.place(&params.node, params.placing).await? {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        let message = format!("there is no live node named {:?}", params.node);
        Err(Fault::not_found("unknown_node", message).hint("`agentctl nodes` lists them"))
    }

    /// The labels that a new session requires of its node, from the parameters of a request for it or from those of the
    /// session that it continues.
    pub(crate) async fn required(&self, who: &Caller, params: &Value) -> Result<Labels, Fault> {
        if let Some(from) = params.get("session").and_then(Value::as_str) {
            let (_, row) = self.row_of(who, from).await?;
            return Ok(row.summary.requires);
        }
        let requires = params.get("requires").cloned().unwrap_or_default();
        Ok(serde_json::from_value(requires).unwrap_or_default())
    }

    /// Refuses a new session if this node takes none, or lacks a label that it requires, with the fault that
    /// [`Self::anywhere`] passes on.
    pub(crate) fn takes_new_sessions(&self, requires: &Labels) -> Result<(), Fault> {
        let node = &self.parts.facts.node;
        if !self.has_labels(requires) {
            let message = format!(
                "no node that takes new sessions has the labels {}",
                listed(requires)
            );
            let hint = "`agentctl nodes -o wide` lists the labels of each node; node.labels sets them";
            return Err(Fault::conflict(NOT_OPEN, message).hint(hint));
        }
        let placing = self.parts.peers.as_ref().map(|peers| peers.placing());
        let Some(placing) = placing.filter(|placing| *placing != Placing::Open) else {
            return Ok(());
        };
        let placing = placing.as_str();
        let message = format!("node {node} is {placing}, and no other node takes new sessions");
        Err(Fault::unavailable(NOT_OPEN, message)
            .hint("`agentctl nodes` lists the nodes; `agentctl node uncordon NODE` opens one"))
    }

    /// Whether this node has all of these labels.
    pub(crate) fn has_labels(&self, required: &Labels) -> bool {
        let loaded = self.loaded();
        let labels = &loaded.settings.node.labels;
        required.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}
