//! The schedule of retries. Pure.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// The pause before the next try, after this many tries; none after the last.
pub(crate) fn pause(tried: u32, retries: u32) -> Option<Duration> {
    let growth = 1_u32.checked_shl(tried.saturating_sub(1)).unwrap_or(u32::MAX);
    (tried <= retries).then(|| FIRST.saturating_mul(growth).min(LONGEST))
}

/// Whether a receiver that responds with this status may accept the note later.
pub(crate) const fn worth_another_try(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i6_pauses_grow_to_a_limit_and_tries_end() {
        let pauses: Vec<Option<u64>> = (1..=9)
            .map(|tried| pause(tried, 8).map(|pause| pause.as_secs()))
            .collect();
        let seconds = [1, 2, 4, 8, 16, 32, 60, 60].map(Some);
        assert_eq!(pauses, [&seconds[..], &[None]].concat());
        assert_eq!(pause(1, 0), None);
        assert_eq!(pause(40, 100), Some(LONGEST));
    }
}
