//! When to check again for killed processes. The kernel may keep a process for hours, for example on a file system that
//! does not answer, and each check reads the process table.

use std::time::Duration;

/// The pauses between checks. A pause doubles while the same processes remain.
#[derive(Debug)]
pub(crate) struct Recheck {
    first: Duration,
    most: Duration,
    pause: Duration,
    left: Vec<i32>,
}

impl Recheck {
    pub(crate) const fn new(first: Duration, most: Duration) -> Self {
        Self {
            first,
            most,
            pause: first,
            left: Vec::new(),
        }
    }

    /// The pause after a check that found these processes.
    pub(crate) fn pause(&mut self, left: Vec<i32>) -> Duration {
        self.pause = if left.is_empty() || left != self.left {
            self.first
        } else {
            (self.pause * 2).min(self.most)
        };
        self.left = left;
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i6_what_the_kernel_keeps_is_checked_less_and_less_often() {
        let milliseconds = Duration::from_millis;
        let mut recheck = Recheck::new(milliseconds(10), milliseconds(50));
        let mut pauses = |left: &[&[i32]]| -> Vec<u128> {
            let pauses = left.iter().map(|left| recheck.pause(left.to_vec()).as_millis());
            pauses.collect()
        };
        assert_eq!(
            pauses(&[&[7, 8], &[7, 8], &[7, 8], &[7, 8], &[7, 8]]),
            [10, 20, 40, 50, 50]
        );
        assert_eq!(pauses(&[&[8], &[8], &[8, 9], &[], &[]]), [10, 20, 10, 10, 10]);
    }
}
