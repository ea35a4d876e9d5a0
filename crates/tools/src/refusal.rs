//! Failed results: a text for the model, and error codes for programs.

use agentd_protocol::{ToolOutcome, ToolStatus};
use agentd_sandbox::SandboxError;
use serde_json::json;

/// A stable code for the reason of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidArgs,
    UnknownTool,
    NotFound,
    NotUnique,
    NotFile,
    Exists,
    Denied,
    NotRead,
    Changed,
    TooLarge,
    Binary,
    Exec,
    FuzzyFailed,
    Validation,
    UndoNotFound,
    UndoLost,
    UndoConflict,
    RagDisabled,
    Timeout,
    Tool,
}

impl Code {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgs => "E_INVALID_ARGS",
            Self::UnknownTool => "E_UNKNOWN_TOOL",
            Self::NotFound => "E_NOT_FOUND",
            Self::NotUnique => "E_NOT_UNIQUE",
            Self::NotFile => "E_NOT_FILE",
            Self::Exists => "E_EXISTS",
            Self::Denied => "E_DENIED",
            Self::NotRead => "E_NOT_READ",
            Self::Changed => "E_CHANGED",
            Self::TooLarge => "E_TOO_LARGE",
            Self::Binary => "E_BINARY",
            Self::Exec => "E_EXEC",
            Self::FuzzyFailed => "E_FUZZY_FAILED",
            Self::Validation => "E_VALIDATION_FAILED",
            Self::UndoNotFound => "E_UNDO_NOT_FOUND",
            Self::UndoLost => "E_UNDO_BAK_MISSING",
            Self::UndoConflict => "E_UNDO_CONFLICT",
            Self::RagDisabled => "E_RAG_DISABLED",
            Self::Timeout => "E_TIMEOUT",
            Self::Tool => "E_TOOL",
        }
    }
}

/// A call that failed, with the reason for the model.
pub(crate) fn refuse(code: Code, text: impl Into<String>) -> ToolOutcome {
    let status = if code == Code::Timeout {
        ToolStatus::Timeout
    } else {
        ToolStatus::Error
    };
    ToolOutcome {
        details: Some(json!({ "code": code.as_str() })),
        ..ToolOutcome::text(status, text)
    }
}

/// A sandbox error as a result.
pub(crate) fn from_sandbox(error: &SandboxError) -> ToolOutcome {
    let code = match error {
        SandboxError::NotFound { .. } => Code::NotFound,
        SandboxError::Exists { .. } => Code::Exists,
        SandboxError::WrongKind { .. } => Code::NotFile,
        SandboxError::Outside { .. }
        | SandboxError::Replaced { .. }
        | SandboxError::Symlink { .. }
        | SandboxError::Unjudged { .. }
        | SandboxError::Protected { .. }
        | SandboxError::Linked { .. } => Code::Denied,
        SandboxError::BadPath { .. } | SandboxError::CommandTooLong { .. } => Code::InvalidArgs,
        SandboxError::TooBig { .. } => Code::TooLarge,
        SandboxError::Changed { .. } => Code::Changed,
        SandboxError::CommandStart { .. } => Code::Exec,
        SandboxError::WardenSlow { .. } => Code::Timeout,
        SandboxError::Unsupported { .. }
        | SandboxError::WardenStart { .. }
        | SandboxError::WardenGone
        | SandboxError::Message(_)
        | SandboxError::Workdir { .. }
        | SandboxError::Io { .. } => Code::Tool,
    };
    refuse(code, format!("{error}."))
}
