//! One table of what follows a failed attempt, by failure class. Both the decision and the documentation use it.

use agentd_protocol::{EndReason, FailureClass};

/// Whether the same request is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It would fail again.
    No,
    /// One retry.
    Once,
    /// Retries after growing waits, as many as configured.
    BackOff,
}

/// Whether another model is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elsewhere {
    /// It would fail there as well, or the model is not at fault.
    No,
    /// The next fallback is tried.
    Yes,
    /// Only if the provider does not know the model.
    IfUnknownModel,
}

/// Whether the session may be parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parking {
    /// Waiting does not help.
    No,
    /// If the provider asks for a wait too long to hold the call open.
    IfAsked,
    /// Until the provider, or a person, has fixed the problem.
    Yes,
}

/// The remedies for a failure of one class. Columns are tried from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The class.
    pub class: FailureClass,
    /// The name of the class in errors.
    pub name: &'static str,
    /// The conversation is made shorter.
    pub shrink: bool,
    /// Another credential of the same provider is used.
    pub rotate: bool,
    /// The same request is tried again.
    pub again: Again,
    /// Another model is tried.
    pub elsewhere: Elsewhere,
    /// The session is parked.
    pub parking: Parking,
    /// How the turn ends if none of this helps.
    pub end: EndReason,
    /// The options of a person then.
    pub fix: &'static str,
}

const RATE_LIMITED: Row = Row {
    class: FailureClass::RateLimited,
    name: "rate_limited",
    shrink: false,
    rotate: true,
    again: Again::BackOff,
    elsewhere: Elsewhere::Yes,
    parking: Parking::IfAsked,
    end: EndReason::ModelError,
    fix: "the provider did not recover in time; try again later",
};
const OVERLOADED: Row = Row {
    class: FailureClass::Overloaded,
    name: "overloaded",
    rotate: false,
    ..RATE_LIMITED
};
const TRANSIENT: Row = Row {
    class: FailureClass::Transient,
    name: "transient",
    fix: "the provider failed, or the connection to it, too often; check its state and its address, then try again",
    ..OVERLOADED
};
const QUOTA_EXHAUSTED: Row = Row {
    class: FailureClass::QuotaExhausted,
    name: "quota_exhausted",
    again: Again::No,
    parking: Parking::Yes,
    fix: "the account has no credit or quota left; add some or use another model",
    ..RATE_LIMITED
};
const AUTH: Row = Row {
    class: FailureClass::Auth,
    name: "auth",
    fix: "the provider refused the credential; correct its key, start agentd again and send the message again",
    ..QUOTA_EXHAUSTED
};
const INVALID_REQUEST: Row = Row {
    class: FailureClass::InvalidRequest,
    name: "invalid_request",
    shrink: false,
    rotate: false,
    again: Again::No,
    elsewhere: Elsewhere::IfUnknownModel,
    parking: Parking::No,
    end: EndReason::ModelError,
    fix: "the provider did not understand the request; check the model's settings",
};
const CONTEXT_OVERFLOW: Row = Row {
    class: FailureClass::ContextOverflow,
    name: "context_overflow",
    shrink: true,
    elsewhere: Elsewhere::No,
    end: EndReason::ContextOverflow,
    fix: "start a new session, or use a model with a larger window",
    ..INVALID_REQUEST
};
const CONTENT_FILTER: Row = Row {
    class: FailureClass::ContentFilter,
    name: "content_filter",
    elsewhere: Elsewhere::Yes,
    end: EndReason::Refused,
    fix: "the provider's policy forbids it; rephrase the request",
    ..INVALID_REQUEST
};
const INTERNAL: Row = Row {
    class: FailureClass::Internal,
    name: "internal",
    again: Again::Once,
    elsewhere: Elsewhere::No,
    fix: "this is a bug of agentd; its log says more",
    ..INVALID_REQUEST
};
const CANCELLED: Row = Row {
    class: FailureClass::Cancelled,
    name: "cancelled",
    elsewhere: Elsewhere::No,
    end: EndReason::Cancelled,
    fix: "it was cancelled",
    ..INVALID_REQUEST
};

/// The rows of all classes.
pub const TABLE: [Row; 10] = [
    RATE_LIMITED,
    OVERLOADED,
    TRANSIENT,
    QUOTA_EXHAUSTED,
    AUTH,
    CONTEXT_OVERFLOW,
    CONTENT_FILTER,
    INVALID_REQUEST,
    INTERNAL,
    CANCELLED,
];

/// The row of a class.
#[must_use]
pub const fn row(class: FailureClass) -> &'static Row {
    match class {
        FailureClass::RateLimited => &RATE_LIMITED,
        FailureClass::Overloaded => &OVERLOADED,
        FailureClass::Transient => &TRANSIENT,
        FailureClass::QuotaExhausted => &QUOTA_EXHAUSTED,
        FailureClass::Auth => &AUTH,
        FailureClass::ContextOverflow => &CONTEXT_OVERFLOW,
        FailureClass::ContentFilter => &CONTENT_FILTER,
        FailureClass::InvalidRequest => &INVALID_REQUEST,
        FailureClass::Internal => &INTERNAL,
        FailureClass::Cancelled => &CANCELLED,
    }
}

/// The table as Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut out =
        "| class | shorter request | other credential | retry | other model | park | else the turn ends with |\n\
                   |---|---|---|---|---|---|---|\n"
            .to_owned();
    let yes = |is: bool| if is { "yes" } else { "" };
    for row in &TABLE {
        let again = match row.again {
            Again::No => "",
            Again::Once => "once",
            Again::BackOff => "with back-off",
        };
        let elsewhere = match row.elsewhere {
            Elsewhere::No => "",
            Elsewhere::Yes => "yes",
            Elsewhere::IfUnknownModel => "if the model is unknown there",
        };
        let parking = match row.parking {
            Parking::No => "",
            Parking::IfAsked => "if asked to wait long",
            Parking::Yes => "yes",
        };
        let cells = [
            row.name,
            yes(row.shrink),
            yes(row.rotate),
            again,
            elsewhere,
            parking,
            reason_name(row.end),
        ];
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out
}

const fn reason_name(reason: EndReason) -> &'static str {
    match reason {
        EndReason::ContextOverflow => "context_overflow",
        EndReason::Refused => "refused",
        EndReason::Cancelled => "cancelled",
        _ => "model_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_own_row() {
        for expected in &TABLE {
            assert_eq!(row(expected.class), expected);
            assert_eq!(
                serde_json::to_value(expected.class).unwrap(),
                expected.name,
                "the name is the one on the wire"
            );
        }
    }

    #[test]
    fn the_architecture_notes_show_this_table() {
        let notes = include_str!("../../../../ARCHITECTURE.md");
        assert!(
            notes.contains(&markdown()),
            "put this into ARCHITECTURE.md:\n{}",
            markdown()
        );
    }

    #[test]
    fn the_table_is_printed_as_it_is() {
        let lines: Vec<String> = markdown().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 2 + TABLE.len());
        assert_eq!(
            lines[2],
            "| rate_limited |  | yes | with back-off | yes | if asked to wait long | model_error |"
        );
        assert_eq!(
            lines[7],
            "| context_overflow | yes |  |  |  |  | context_overflow |"
        );
    }
}
