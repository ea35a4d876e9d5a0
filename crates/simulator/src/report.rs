//! Runs one seed and reports the result.

use crate::options::Options;
use crate::world::World;
use agentd_turn::Violation;
use std::fmt;

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// The options of the run.
    pub options: Options,
    /// The broken invariant, if any.
    pub violation: Option<Violation>,
    /// The last lines of the trace.
    pub last: Vec<String>,
    /// The whole trace, if requested.
    pub trace: Option<Vec<String>>,
    /// The number of lines in the trace.
    pub lines: u64,
    /// A checksum of the trace: equal runs have equal checksums.
    pub sum: u64,
    /// The number of events in all logs.
    pub events: u64,
    /// The number of answered commands.
    pub answered: u64,
    /// The number of tools that ran.
    pub ran: u64,
    /// The number of appends of earlier owners that were refused.
    pub refused: u64,
    /// The number of takeovers of a session by another node.
    pub moved: u64,
    /// The duration in virtual milliseconds.
    pub took_ms: u64,
}

/// Runs one seed.
///
/// # Errors
/// The world could not be set up; this does not depend on the seed.
pub fn simulate(seed: u64, options: Options, keep_all: bool) -> Result<Report, String> {
    let mut world = World::new(seed, options.clone(), keep_all)?;
    let began = world.clock;
    world.live();
    let heads = world.disk.sessions().map(|session| world.disk.head(session));
    Ok(Report {
        seed,
        options,
        events: heads.sum(),
        answered: world.book.answered,
        ran: world.book.ran(),
        refused: world.disk.refused,
        moved: world.moved,
        took_ms: world.clock - began,
        violation: world.broken.or_else(|| {
            let what = "nothing happens any more, and not all is at rest";
            (!world.done).then(|| Violation::of("I6", what))
        }),
        last: world.trace.last.into(),
        trace: world.trace.all,
        lines: world.trace.lines,
        sum: world.trace.sum,
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(violation) = &self.violation {
            for line in &self.last {
                writeln!(f, "  {line}")?;
            }
            writeln!(f, "broken: {violation}")?;
        }
        write!(
            f,
            "seed={} options={}\n{} events, {} commands answered, {} tools ran, {} takeovers, {} stale appends \
             refused, {} s of virtual time, {} lines with sum {:016x}",
            self.seed,
            self.options,
            self.events,
            self.answered,
            self.ran,
            self.moved,
            self.refused,
            self.took_ms / 1_000,
            self.lines,
            self.sum
        )
    }
}
