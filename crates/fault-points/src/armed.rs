//! Fault points in a build with the feature.

use crate::point::{BadFaults, Injected, Kinds};
use crate::points::{FACT_AFTER, FACT_BEFORE, POINTS};
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a delayed hit blocks its thread.
const DELAY: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy)]
enum Action {
    Kill,
    Panic,
    Error,
    Delay,
}

#[derive(Debug)]
struct Armed {
    point: &'static str,
    kind: Option<String>,
    action: Action,
    at: u64,
    hits: AtomicU64,
}

impl Armed {
    /// Whether it is armed for this point and, if it has a kind, for one of these kinds.
    fn is(&self, name: &str, kinds: &Kinds) -> bool {
        self.point == name && self.kind.as_ref().is_none_or(|kind| kinds.has(kind))
    }
}

static ARMED: OnceLock<Vec<Armed>> = OnceLock::new();

fn bad(text: &str, why: &str) -> BadFaults {
    BadFaults(format!("{text:?}: {why}"))
}

fn parse(text: &str) -> Result<Armed, BadFaults> {
    let (name, rest) = text
        .split_once('=')
        .ok_or_else(|| bad(text, "expected NAME[:KIND]=ACTION[@HIT]"))?;
    let (name, kind) = match name.trim().split_once(':') {
        Some((name, kind)) => (name, Some(kind.to_owned())),
        None => (name.trim(), None),
    };
    let point = POINTS.into_iter().find(|point| *point == name);
    let point = point.ok_or_else(|| bad(text, "no such point"))?;
    if kind.is_some() && ![FACT_BEFORE, FACT_AFTER].contains(&point) {
        return Err(bad(text, "only the points of facts have kinds"));
    }
    let (action, at) = rest.split_once('@').unwrap_or((rest, "1"));
    let action = match action.trim() {
        "kill" => Action::Kill,
        "panic" => Action::Panic,
        "error" => Action::Error,
        "delay" => Action::Delay,
        _ => return Err(bad(text, "the action is kill, panic, error or delay")),
    };
    let at = at.trim().parse().ok().filter(|at| *at > 0);
    Ok(Armed {
        point,
        kind,
        action,
        at: at.ok_or_else(|| bad(text, "the hit is a number from 1"))?,
        hits: AtomicU64::new(0),
    })
}

pub(crate) fn arm(spec: &str) -> Result<(), BadFaults> {
    let parts = spec.split(',').map(str::trim).filter(|part| !part.is_empty());
    let armed = parts.map(parse).collect::<Result<Vec<_>, _>>()?;
    ARMED
        .set(armed)
        .map_err(|_| bad(spec, "points are armed already"))
}

pub(crate) fn hit(name: &'static str, kinds: &Kinds) -> Result<(), Injected> {
    for armed in ARMED.get().into_iter().flatten() {
        if armed.is(name, kinds) && armed.hits.fetch_add(1, Ordering::SeqCst) + 1 == armed.at {
            strike(armed)?;
        }
    }
    Ok(())
}

/// Reports the hit, since no one else can tell whether the point was reached, and performs the action.
#[expect(clippy::panic, reason = "a test asked for a panic here")]
#[expect(
    clippy::disallowed_methods,
    reason = "a test asked for a thread that hangs here"
)]
fn strike(armed: &Armed) -> Result<(), Injected> {
    let name = armed.point;
    // Without stderr no one reads the report.
    let _ = writeln!(
        std::io::stderr(),
        "fault point {name} strikes: {:?}",
        armed.action
    );
    match armed.action {
        Action::Kill => {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
        Action::Panic => panic!("fault point {name}"),
        Action::Error => return Err(Injected(name)),
        Action::Delay => std::thread::sleep(DELAY),
    }
    Ok(())
}
