//! Maps a method's name to its function.

use crate::api::Api;
use crate::claims::Claims;
use crate::params::read_params;
use crate::sight::Caller;
use agentd_protocol::{Fault, Principal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

impl Api {
    /// Runs a method with a single answer. Subscriptions have separate functions.
    ///
    /// # Errors
    /// The fault that the client gets.
    pub async fn call(
        self: &Arc<Self>,
        who: &Principal,
        method: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        let who = self.allow(who, method)?;
        self.anywhere(&who, method, params).await
    }

    /// Refuses a method whose subject, a parameter of this name, is out of the principal's sight. A transport asks before it
    /// reads the other parameters.
    ///
    /// # Errors
    /// The fault that the method itself gives.
    pub async fn may_name(
        &self,
        who: &Principal,
        method: &str,
        (name, word): (&str, &str),
    ) -> Result<(), Fault> {
        let who = self.allow(who, method)?;
        match name {
            _ if who.limits().is_none() => Ok(()),
            "session" => self.session(&who, word).await.map(drop),
            "approval" => self.approval(&who, word).await.map(drop),
            _ => Ok(()),
        }
    }

    /// Runs a method on this node.
    pub(crate) async fn here(
        self: &Arc<Self>,
        who: &Caller,
        method: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        let (family, verb) = method.split_once('.').unwrap_or((method, ""));
        match family {
            "session" => self.session_method(who, verb, params).await,
            "workspace" => match verb {
                "list" => answer(&self.list_workspaces(self.params(who, params)?).await?),
                "prune" => answer(&self.prune_workspaces(who, self.params(who, params)?).await?),
                _ => Err(needs_connection(method)),
            },
            "node" | "model" | "tool" | "mcp" | "usage" | "token" | "audit" => {
                self.node_method(who, method, params).await
            }
            _ => self.work_method(who, method, params).await,
        }
    }

    async fn session_method(
        self: &Arc<Self>,
        who: &Caller,
        verb: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        match verb {
            "create" => self.create(who, self.params(who, params)?).await,
            "get" => answer(&self.get(who, self.params(who, params)?).await?),
            "list" => answer(&self.list(who, &self.params(who, params)?).await?),
            "commands" => answer(&self.commands(who, self.params(who, params)?).await?),
            "context" => answer(&self.context(who, self.params(who, params)?).await?),
            "prompt" => answer(&self.prompt(who, self.params(who, params)?).await?),
            "update" => answer(&self.update(who, self.params(who, params)?).await?),
            "close" => answer(&self.close(who, self.params(who, params)?).await?),
            "delete" => answer(&self.delete(who, self.params(who, params)?).await?),
            "bulk" => answer(&self.bulk(who, self.params(who, params)?).await?),
            "pause" => answer(&self.pause(who, self.params(who, params)?).await?),
            "compact" => answer(&self.compact(who, self.params(who, params)?).await?),
            "summarize" => answer(&self.summarize(who, self.params(who, params)?).await?),
            "resume" => answer(&self.resume(who, self.params(who, params)?).await?),
            "export" => answer(&self.export(who, self.params(who, params)?).await?),
            "blob" => answer(&self.blob(who, self.params(who, params)?).await?),
            "import" => self.import(who, self.params(who, params)?).await,
            "fork" => self.fork(who, self.params(who, params)?).await,
            _ => self.changes_method(who, verb, params).await,
        }
    }

    /// The parameters of a method, if they claim no more than the caller may have.
    fn params<P: Claims + Serialize + DeserializeOwned>(
        &self,
        who: &Caller,
        params: Value,
    ) -> Result<P, Fault> {
        self.granted(who, read_params(params)?)
    }

    /// The methods that show a session's changes of files, revert them, or bring them elsewhere.
    async fn changes_method(
        self: &Arc<Self>,
        who: &Caller,
        verb: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        match verb {
            "diff" => answer(&self.diff(who, self.params(who, params)?).await?),
            "files" => answer(&self.files(who, self.params(who, params)?).await?),
            "undo" => answer(&self.undo(who, self.params(who, params)?).await?),
            "rewind" => answer(&self.rewind(who, self.params(who, params)?).await?),
            "apply" => answer(&self.apply(who, self.params(who, params)?).await?),
            "branch" => answer(&self.branch(who, self.params(who, params)?).await?),
            "patch" => answer(&self.patch(who, self.params(who, params)?).await?),
            _ => Err(needs_connection(verb)),
        }
    }

    async fn work_method(&self, who: &Caller, method: &str, params: Value) -> Result<Value, Fault> {
        match method {
            "input.send" => self.send(who, self.params(who, params)?).await,
            "input.cancel" => answer(&self.cancel_input(who, self.params(who, params)?).await?),
            "input.list" => answer(&self.list_inputs(who, self.params(who, params)?).await?),
            "turn.cancel" => answer(&self.cancel_turn(who, self.params(who, params)?).await?),
            "approval.list" => answer(&self.approvals(who, &self.params(who, params)?).await?),
            "approval.changes" => answer(&self.approval_changes(who, self.params(who, params)?).await?),
            "approval.question" => answer(&self.question(who, &self.params(who, params)?).await?),
            "fleet.history" => {
                let NoParams {} = read_params(params)?;
                answer(&self.fleet_history(who).await?)
            }
            "rule.list" => answer(&self.rules().await?),
            "rule.remove" => answer(&self.remove_rule(who, self.params(who, params)?).await?),
            "approval.decide" => answer(&self.decide(who, self.params(who, params)?).await?),
            _ => Err(needs_connection(method)),
        }
    }

    async fn node_method(&self, who: &Caller, method: &str, params: Value) -> Result<Value, Fault> {
        match method {
            "token.create" => return self.create_token(who, self.params(who, params)?).await,
            "token.link" => return self.link_token(who, self.params(who, params)?).await,
            "token.revoke" => return answer(&self.revoke_token(who, self.params(who, params)?).await?),
            "usage.query" => return answer(&self.usage(who, &self.params(who, params)?).await?),
            "usage.daily" => return answer(&self.usage_daily(who, &self.params(who, params)?).await?),
            "audit.query" => return answer(&self.audit_query(self.params(who, params)?).await?),
            "node.place" => return self.place(who, self.params(who, params)?).await,
            "node.remove_key" => return self.remove_key(who, self.params(who, params)?).await,
            "node.admit_key" => return self.admit_key(who, self.params(who, params)?).await,
            "node.log" => return answer(&self.node_log(self.params(who, params)?).await?),
            "node.backup_part" => return answer(&self.backup_part(self.params(who, params)?).await?),
            "node.backup_end" => {
                self.backup_end(&self.params(who, params)?);
                return answer(&serde_json::json!({}));
            }
            _ => {}
        }
        let NoParams {} = read_params(params)?;
        match method {
            "node.status" => answer(&self.status(who).await?),
            "node.list" => answer(&self.nodes().await?),
            "node.diagnostics" => self.diagnostics(who).await,
            "node.config" => self.config(),
            "node.reload" => self.reload(who).await,
            "node.backup" => answer(&self.backup(who).await?),
            "node.rotate_key" => answer(&self.rotate_key(who).await?),
            "node.check" => self.check_store().await,
            "token.list" => answer(&self.list_tokens().await?),
            "node.drain" => self.stop(who, crate::StopRequest::Drain),
            "node.stop" => self.stop(who, crate::StopRequest::Stop),
            "audit.verify" => answer(&self.audit_verify().await?),
            "mcp.list" => answer(&self.servers(who)),
            "model.list" => answer(&self.parts.view.models().await),
            _ => answer(&self.tools()),
        }
    }
}

/// A method without parameters.
#[derive(serde::Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct NoParams {}

fn needs_connection(what: &str) -> Fault {
    Fault::invalid(
        "needs_connection",
        format!("{what} requires a connection that accepts pushed frames"),
    )
}

/// Serializes an answer for the wire.
pub(crate) fn answer<A: Serialize>(answer: &A) -> Result<Value, Fault> {
    serde_json::to_value(answer)
        .map_err(|error| Fault::internal("bad_answer", format!("could not encode the answer: {error}")))
}
