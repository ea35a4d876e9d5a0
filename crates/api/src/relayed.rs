//! Requests that other nodes pass on. A request comes as a [`Verified`], which only the verifier of signatures makes, with a
//! proof of its caller: this node itself looks up the caller's rights.
//!
//! Invariant I7: what is not proved is refused.

use crate::api::Api;
use crate::methods::{Reach, Scope, method};
use crate::peers::{FRAGMENTS, Fragments, PeerCall, PeerFollow, Peers};
use crate::replay::{FeedSubscription, Wish};
use crate::sight::{Caller, Kind, Visitor};
use crate::tokens::{Held, bad_token};
use agentd_node_keys::{Arrived, Proof, Verified, Vouched};
use agentd_protocol::{Fault, FaultClass, PermissionMode, Principal, TokenRights};
use serde_json::{Value, json};
use std::sync::Arc;

/// The longest name of a local user.
const LONGEST: usize = 256;

impl Caller {
    /// What proves this caller to another node.
    pub(crate) fn proof(&self) -> Result<Proof, Fault> {
        match (self.kind(), self.as_user()) {
            (Kind::Token(held), _) => Ok(Proof::Token {
                name: held.name.clone(),
                hash: held.hash(),
            }),
            (Kind::User, Some(name)) => Ok(Proof::User(name.to_owned())),
            (Kind::User | Kind::UserOfNode(_), _) => Err(no_proof()),
        }
    }
}

fn no_proof() -> Fault {
    Fault::denied(
        "no_proof",
        "the request cannot be passed on: nothing proves who sent it",
    )
}

impl Api {
    fn peers(&self) -> Result<&dyn Peers, Fault> {
        let alone = || Fault::denied("no_fleet", "this node is alone: no other node may call it");
        self.parts.peers.as_deref().ok_or_else(alone)
    }

    /// Verifies the head of a request of another node.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn vouch(&self, arrived: &Arrived<'_>) -> Result<Vouched, Fault> {
        self.peers()?.vouch(arrived).await
    }

    /// The text that proves an answer to a request of another node.
    #[must_use]
    pub fn prove_answer(&self, request: &Verified, body: &[u8]) -> Option<String> {
        Some(self.parts.peers.as_ref()?.prove_answer(request, body))
    }

    /// Runs a request that another node passes on.
    ///
    /// # Errors
    /// The fault that the client gets.
    pub async fn peer_call(self: &Arc<Self>, request: &Verified) -> Result<Value, Fault> {
        let call: PeerCall = request.read()?;
        let who = self.caller_of(request, &call.method).await?;
        self.note_relayed(&who, request, &call);
        let done = self.here(&who, &call.method, call.params).await;
        done.map_err(|fault| match who.kind() {
            Kind::UserOfNode(_) if fault.class == FaultClass::Denied => self.explained(fault),
            _ => fault,
        })
    }

    /// Follows a session for a viewer at another node, which checked what it may see: that node reads the events of every
    /// session in the store, too.
    ///
    /// # Errors
    /// The request is for another node, or the feed does not answer.
    pub async fn peer_follow(&self, request: &Verified) -> Result<Fragments, Fault> {
        if request.by() != &Proof::Node {
            return Err(no_proof());
        }
        let follow: PeerFollow = request.read()?;
        let wish = Wish {
            session: follow.session,
            viewer: self.next_viewer(),
            deltas: follow.deltas,
            decides: follow.decides,
            queue: FRAGMENTS,
        };
        let subscription = FeedSubscription::take(&self.parts.feed, wish, 0).await?;
        Ok(Fragments(subscription))
    }

    /// The caller that a request proves, if it may call this method. Only methods about sessions are passed on.
    async fn caller_of(&self, request: &Verified, name: &str) -> Result<Caller, Fault> {
        let (_, reach) = method(name)?;
        if reach == Reach::Node {
            let message = format!("{name} is about one node and is not passed on");
            return Err(Fault::denied("beyond_node", message).hint("call it at the node itself"));
        }
        match request.by() {
            Proof::Token { name: token, hash } => {
                let held = self.proved(token, hash).await?;
                Caller::new(Principal::token(token), Kind::Token(held), name)
            }
            Proof::User(user) => {
                let node = &request.from().name;
                let visitor = Kind::UserOfNode(Arc::new(self.visitor(user)?));
                Caller::new(Principal::user_of_node(node, user), visitor, name)
            }
            Proof::Node => Err(no_proof()),
        }
    }

    /// The live token of this name and hash, as the store of this node has it.
    async fn proved(&self, name: &str, hash: &[u8; 32]) -> Result<Arc<Held>, Fault> {
        self.tokens_read().await?;
        let who = Principal::token(name);
        let live = || self.tokens.of(&who).filter(|held| &held.hash() == hash);
        if live().is_none() {
            // It may be newer than what was read last.
            self.reread_tokens().await?;
        }
        live().ok_or_else(bad_token)
    }

    /// The rights of a local user of another node.
    fn visitor(&self, user: &str) -> Result<Visitor, Fault> {
        if user.is_empty() || user.len() > LONGEST || user.chars().any(char::is_control) {
            return Err(no_proof());
        }
        let settings = &self.loaded().settings;
        let users = &settings.fleet.local_users;
        let dirs = settings.node.shared_paths.iter().chain(&users.dirs);
        Ok(Visitor {
            name: user.to_owned(),
            scopes: users
                .scopes
                .iter()
                .filter_map(|scope| Scope::parse(scope))
                .collect(),
            rights: TokenRights {
                dirs: dirs.cloned().collect(),
                sources: Vec::new(),
                mode: looser(users.mode, settings.permission.mode),
            },
        })
    }

    /// Records who changes something here through another node.
    fn note_relayed(&self, who: &Caller, request: &Verified, call: &PeerCall) {
        if !matches!(method(&call.method), Ok((Scope::Read, _))) {
            let what = json!({"node": request.from().name, "method": call.method,
                "session": call.params.get("session")});
            self.record(who.principal(), "node.relayed", &what);
        }
    }

    fn explained(&self, fault: Fault) -> Fault {
        let node = &self.parts.facts.node;
        let hint = format!(
            "node {node} gives local users of other nodes the rights of fleet.local_users; use {node} itself, or a token"
        );
        fault.hint(hint)
    }
}

fn looser(one: PermissionMode, other: PermissionMode) -> PermissionMode {
    match one.stricter(other) == one {
        true => other,
        false => one,
    }
}
