//! An approval that waits for an answer, as lists and the inbox show it.

use crate::binding::About;
use crate::call::Choice;
use crate::ids::{ApprovalId, SessionId, ToolCallId};
use crate::payload_turn::ApprovalAsked;
use crate::stamp::Timestamp;
use crate::summary::is_zero;
use crate::vocabulary::{ApprovalKind, Scope};
use serde::{Deserialize, Serialize};

/// An approval that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenApproval {
    /// Its id.
    pub approval: ApprovalId,
    /// What about.
    pub kind: ApprovalKind,
    /// Whose.
    pub session: SessionId,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<ToolCallId>,
    /// The tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// One line.
    pub title: String,
    /// What exactly will happen.
    pub detail: String,
    /// Possible answers.
    pub choices: Vec<Choice>,
    /// Possible scopes of an allow.
    pub scopes: Vec<Scope>,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The rule that session or always would add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// The hash of the tool and its arguments: questions about the same call have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// How often nobody answered in time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub level: u32,
    /// A sub-agent asks: the session at the top of its tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<SessionId>,
    /// The titles from the root down to the sub-agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// What a person should know besides.
    #[serde(default, skip_serializing_if = "About::is_empty")]
    pub about: About,
}

impl OpenApproval {
    /// A question that says nothing yet but whose it is and when it was asked.
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

    /// The question as its event asks it. The rest comes from the session: the tool's name, its place in the tree.
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
