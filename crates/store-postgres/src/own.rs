//! The cursors of this process's own commits: a reader that learns of them elsewhere need not read them from the database.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// The maximum number of remembered batches. The oldest is forgotten first, and then read like those of others.
const MOST: usize = 4_096;

/// The first cursor of each batch, with its last one.
#[derive(Debug, Default)]
pub(crate) struct Own(Mutex<BTreeMap<u64, u64>>);

impl Own {
    /// Notes a batch of events by the cursors before it and after it.
    pub(crate) fn committed(&self, (before, last): (u64, u64)) {
        if last <= before {
            return;
        }
        let mut batches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        batches.insert(before.saturating_add(1), last);
        if batches.len() > MOST {
            batches.pop_first();
        }
    }

    /// The cursor after which a reader continues that has read up to `read`, and this process's own cursors after that, as a
    /// `multirange` of PostgreSQL. Forgets the cursors that were read.
    pub(crate) fn beyond(&self, read: u64) -> (u64, String) {
        let mut batches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        batches.retain(|_, last| *last > read);
        let (mut at, mut later) = (read, String::from("{"));
        for (first, last) in &*batches {
            if *first <= at.saturating_add(1) {
                at = *last;
            } else {
                let comma = if later.len() > 1 { "," } else { "" };
                let _ = write!(later, "{comma}[{first},{last}]");
            }
        }
        later.push('}');
        (at, later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_at_once_is_skipped_and_the_rest_is_left_out() {
        let own = Own::default();
        assert_eq!(own.beyond(7), (7, "{}".to_owned()));
        for batch in [(8, 10), (7, 8), (17, 20), (29, 30), (30, 30)] {
            own.committed(batch);
        }
        assert_eq!(own.beyond(6), (6, "{[8,8],[9,10],[18,20],[30,30]}".to_owned()));
        assert_eq!(own.beyond(7), (10, "{[18,20],[30,30]}".to_owned()));
        assert_eq!(own.beyond(29), (30, "{}".to_owned()));
        assert_eq!(own.beyond(30), (30, "{}".to_owned()));
    }

    #[test]
    fn i6_the_oldest_batches_are_forgotten_at_the_limit() {
        let own = Own::default();
        let most = MOST as u64;
        (1..=most).for_each(|cursor| own.committed((cursor - 1, cursor)));
        assert_eq!(own.beyond(0).0, most);
        own.committed((most, most + 1));
        let (at, later) = own.beyond(0);
        assert_eq!((at, later.starts_with("{[2,2],[3,3],")), (0, true));
    }
}
