//! Named fault points: places where a test can kill, panic or fail the process, exactly there and not after a delay.
//!
//! Without the cargo feature `fault-points` a point is an empty inline function.

use crate::StoreError;

/// Before an append is queued.
pub const BEFORE_APPEND: &str = "store.before_append";
/// In the transaction, before COMMIT.
pub const IN_BATCH: &str = "store.in_batch";
/// After COMMIT, before the answer.
pub const AFTER_COMMIT: &str = "store.after_commit";
/// After the intent of a tool call is durable, before its effect starts.
pub const BEFORE_SPAWN: &str = "tool.before_spawn";
/// After the effect started.
pub const AFTER_SPAWN: &str = "tool.after_spawn";
/// After the effect ended, before its result is stored.
pub const BEFORE_STORE: &str = "tool.before_store";

/// Every point that there is.
pub const POINTS: [&str; 6] = [
    BEFORE_APPEND,
    IN_BATCH,
    AFTER_COMMIT,
    BEFORE_SPAWN,
    AFTER_SPAWN,
    BEFORE_STORE,
];

/// A fault point was told to fail here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("fault point {0}")]
pub struct Injected(pub &'static str);

/// Passes a fault point.
///
/// # Errors
/// This hit of the point was armed with `error`.
#[inline]
pub fn point(name: &'static str) -> Result<(), Injected> {
    #[cfg(feature = "fault-points")]
    return armed::hit(name);
    #[cfg(not(feature = "fault-points"))]
    {
        let _ = name;
        Ok(())
    }
}

/// Arms fault points, once for the process: `NAME=ACTION[@HIT]`, separated by commas. ACTION is `kill`, `panic` or
/// `error`; HIT counts from 1 and is 1 unless given.
///
/// # Errors
/// The text is wrong, points are armed already, or this build has no fault points.
pub fn arm(spec: &str) -> Result<(), StoreError> {
    #[cfg(feature = "fault-points")]
    return armed::arm(spec);
    #[cfg(not(feature = "fault-points"))]
    {
        let _ = spec;
        Err(StoreError::BadFaultPoint(
            "this build has none (cargo feature fault-points)".to_owned(),
        ))
    }
}

#[cfg(feature = "fault-points")]
mod armed {
    use super::{Injected, POINTS};
    use crate::StoreError;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, Clone, Copy)]
    enum Action {
        Kill,
        Panic,
        Error,
    }

    #[derive(Debug)]
    struct Armed {
        point: &'static str,
        action: Action,
        at: u64,
        hits: AtomicU64,
    }

    static ARMED: OnceLock<Vec<Armed>> = OnceLock::new();

    fn bad(text: &str, why: &str) -> StoreError {
        StoreError::BadFaultPoint(format!("{text:?}: {why}"))
    }

    fn parse(text: &str) -> Result<Armed, StoreError> {
        let (name, rest) = text
            .split_once('=')
            .ok_or_else(|| bad(text, "expected NAME=ACTION[@HIT]"))?;
        let point = POINTS.into_iter().find(|point| *point == name.trim());
        let (action, at) = rest.split_once('@').unwrap_or((rest, "1"));
        let action = match action.trim() {
            "kill" => Action::Kill,
            "panic" => Action::Panic,
            "error" => Action::Error,
            _ => return Err(bad(text, "the action is kill, panic or error")),
        };
        Ok(Armed {
            point: point.ok_or_else(|| bad(text, "no such point"))?,
            action,
            at: at
                .trim()
                .parse()
                .map_err(|_| bad(text, "the hit is a number from 1"))?,
            hits: AtomicU64::new(0),
        })
    }

    pub(super) fn arm(spec: &str) -> Result<(), StoreError> {
        let parts = spec.split(',').map(str::trim).filter(|part| !part.is_empty());
        let armed = parts.map(parse).collect::<Result<Vec<_>, _>>()?;
        ARMED
            .set(armed)
            .map_err(|_| bad(spec, "points are armed already"))
    }

    #[expect(clippy::panic, reason = "a test asked for a panic here")]
    pub(super) fn hit(name: &'static str) -> Result<(), Injected> {
        for armed in ARMED
            .get()
            .into_iter()
            .flatten()
            .filter(|armed| armed.point == name)
        {
            if armed.hits.fetch_add(1, Ordering::SeqCst) + 1 != armed.at {
                continue;
            }
            match armed.action {
                Action::Kill => {
                    let _ = rustix::process::kill_process(
                        rustix::process::getpid(),
                        rustix::process::Signal::KILL,
                    );
                }
                Action::Panic => panic!("fault point {name}"),
                Action::Error => return Err(Injected(name)),
            }
        }
        Ok(())
    }
}
