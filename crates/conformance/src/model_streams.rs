//! The suite of recorded model traffic.

use crate::cassette::{Exchange, exchanges, files};
use crate::error::ConformanceError;
use crate::report::{Report, Verdict};
use crate::route::{Route, route};
use crate::{answer, request};
use std::path::Path;

/// The name of the suite and of its directory.
pub(crate) const NAME: &str = "model-streams";

/// Checks every exchange below a directory: one check for the answer, one for the request.
pub(crate) fn run(dir: &Path) -> Result<Report, ConformanceError> {
    let mut report = Report::of(NAME);
    for path in files(dir, &["yaml", "yml"])? {
        let name = path.strip_prefix(dir).unwrap_or(&path).display().to_string();
        for (number, found) in exchanges(&path)?.into_iter().enumerate() {
            match found {
                Ok(exchange) => check(&mut report, &format!("{name} #{number}"), &exchange),
                Err(error) => report.add(&format!("{name} #{number}"), Verdict::Failed(error)),
            }
        }
    }
    Ok(report)
}

fn check(report: &mut Report, place: &str, exchange: &Exchange) {
    match route(&exchange.when) {
        Route::Dialect(dialect) => {
            report.add(&format!("{place} answer"), answer::check(dialect, exchange));
            report.add(&format!("{place} request"), request::check(dialect, exchange));
        }
        // An error answer is checked whatever the path is.
        Route::Skip(_) if exchange.then.status >= 400 => {
            report.add(&format!("{place} answer"), answer::check_error(&exchange.then));
        }
        Route::Skip(reason) => report.add(place, Verdict::Skipped(reason)),
    }
}
