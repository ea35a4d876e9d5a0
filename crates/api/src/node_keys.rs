//! `node.rotate_key`, `node.remove_key`, `node.admit_key`: with which keys the nodes of the fleet sign.

use crate::api::Api;
use crate::placing::no_fleet;
use crate::sight::Caller;
use agentd_protocol::{Fault, NodeKeyParams, NodeKeyRow};
use serde_json::{Value, json};

impl Api {
    /// Replaces the key of this node.
    pub(crate) async fn rotate_key(&self, who: &Caller) -> Result<NodeKeyRow, Fault> {
        let peers = self.parts.peers.as_ref().ok_or_else(no_fleet)?;
        let key = peers.rotate_key().await?;
        let row = NodeKeyRow {
            node: self.parts.facts.node.clone(),
            key: key.to_string(),
        };
        tracing::info!(key = row.key, by = %who, "replaced the key of this node");
        self.record(who.principal(), "node.key_rotated", &json!(row));
        Ok(row)
    }

    /// Removes the keys of another node for good.
    pub(crate) async fn remove_key(&self, who: &Caller, params: NodeKeyParams) -> Result<Value, Fault> {
        let peers = self.parts.peers.as_ref().ok_or_else(no_fleet)?;
        let node = params.node;
        if node == self.parts.facts.node {
            let message = format!("node {node:?} cannot remove its own key");
            let hint = "remove it at another node; `agentctl node key rotate` gives this one a new key";
            return Err(Fault::invalid("own_key", message).hint(hint));
        }
        if !peers.remove_key(&node).await? {
            let message = format!("no node named {node:?} has a key");
            return Err(Fault::not_found("unknown_node", message).hint("`agentctl nodes` lists the nodes"));
        }
        tracing::warn!(node, by = %who, "removed the keys of a node");
        self.record(who.principal(), "node.key_removed", &json!({"node": node}));
        Ok(json!({}))
    }

    /// Lets a node whose key was removed join with a new one.
    pub(crate) async fn admit_key(&self, who: &Caller, params: NodeKeyParams) -> Result<Value, Fault> {
        let peers = self.parts.peers.as_ref().ok_or_else(no_fleet)?;
        let node = params.node;
        if !peers.admit_key(&node).await? {
            let message = format!("the keys of node {node:?} were not removed");
            return Err(Fault::not_found("unknown_node", message).hint("it needs no admission"));
        }
        tracing::info!(node, by = %who, "admitted a node again");
        self.record(who.principal(), "node.key_admitted", &json!({"node": node}));
        Ok(json!({}))
    }
}
