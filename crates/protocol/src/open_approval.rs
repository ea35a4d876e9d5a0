//! An open approval, as lists and the inbox show it.

use crate::binding::About;
use crate::call::Choice;
use crate::ids::{ApprovalId, SessionId, ToolCallId};
use crate::payload_turn::ApprovalAsked;
use crate::stamp::Timestamp;
use crate::summary::is_zero;
use crate::vocabulary::{ApprovalKind, Scope};
use serde::{Deserialize, Serialize};

/// An approval that no one has answered yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OpenApproval {
    /// Its id.
    pub approval: ApprovalId,
    /// The subject of the question.
    pub kind: ApprovalKind,
    /// The session that asks.
    pub session: SessionId,
    /// The tool call in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<ToolCallId>,
    /// The tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// A summary in one line.
    pub title: String,
    /// Exactly what will happen.
    pub detail: String,
    /// Possible answers.
    pub choices: Vec<Choice>,
    /// The scopes that an `allow` may have.
    pub scopes: Vec<Scope>,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The rule that the scopes `session` and `always` would add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// The hash of the tool and its arguments: questions about the same call have the same hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// How many times no one answered in time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub level: u32,
    /// If a sub-agent asks: the session at the top of its tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<SessionId>,
    /// The titles from the root down to the sub-agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Further information for the person.
    #[serde(default, skip_serializing_if = "About::is_empty")]
    pub about: About,
}

impl OpenApproval {
    /// A question with only its session and the time when it was asked.
    #[must_use]
    pub fn new(approval: ApprovalId, kind: ApprovalKind, session: SessionId, asked_at: Timestamp) -> Self {
        Self {
            approval,
            kind,
            session,
            tool_call: None,
            tool: None,
            title: String::new(),
            detail: String::new(),
            choices: Vec::new(),
            scopes: Vec::new(),
            asked_at,
            expires_at: None,
            grant: None,
            input: None,
            level: 0,
            root: None,
            path: Vec::new(),
            about: About::default(),
        }
    }

    /// Whether an allow may have this scope.
    #[must_use]
    pub fn offers(&self, scope: Scope) -> bool {
        let widest = self.scopes.contains(&Scope::Always) && self.grant.is_some();
        match scope {
            Scope::Once => true,
            Scope::Everywhere => widest,
            // Without a reach, which questions of an earlier version lack, a narrow answer would be a wide one.
            Scope::Session | Scope::Always => {
                self.scopes.contains(&scope) && self.grant.is_some() && self.about.reach.is_some()
            }
        }
    }

    /// The question from its event. The session adds the rest: the tool's name, its place in the tree.
    #[must_use]
    pub fn asked(asked: &ApprovalAsked, session: SessionId, at: Timestamp) -> Self {
        Self {
            tool_call: asked.tool_call,
            title: asked.title.clone(),
            detail: asked.detail.clone(),
            choices: asked.choices.clone(),
            scopes: asked.scopes.clone(),
            expires_at: asked.expires_at,
            grant: asked.grant.clone(),
            input: asked.binding.as_ref().map(|binding| binding.input.clone()),
            about: asked.about.clone(),
            ..Self::new(asked.approval, asked.kind, session, at)
        }
    }
}
