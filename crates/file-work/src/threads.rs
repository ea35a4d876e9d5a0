//! The state of a thread, from the kernel.

/// Whether the kernel holds a thread of this process so that no signal reaches it: it waits for a disk, or for the thaw of a
/// frozen file system, which still answers reads and `statfs`.
pub(crate) fn is_held(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.is_ok_and(|stat| state(&stat) == Some("D"))
}

/// The state in a line of `stat`. The name before it can contain anything.
fn state(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_comes_after_the_name_whatever_that_is() {
        assert_eq!(state("7 (a) D (b) S 1 7"), Some("S"));
        assert_eq!(state("7 (blocking-1) D 1 7"), Some("D"));
        assert_eq!((state("7 (a"), state("7 (a)")), (None, None));
        assert!(!is_held(rustix::thread::gettid().as_raw_nonzero().get()));
        assert!(!is_held(-1));
    }
}
