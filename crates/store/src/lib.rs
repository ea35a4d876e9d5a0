//! The durable log of every session, behind three traits: [`SessionLog`] (what happened), [`Placement`] (who may write
//! it), and [`Access`] (the tokens of programs and people). Backends over a database have crates of their own; only
//! [`MemoryStore`], which needs none, is here.
//!
//! Invariants: I1, an [`Outcome::Committed`] is on disk; I2, a log has no gap and no duplicate, and a repeated
//! `append_id` writes once; I6, a bad append of one session does not fail the appends of others; I9, an append whose
//! `(epoch, expected head)` is not current is refused. Stored lines are never parsed or rewritten here.
//!
//! Flow: [`Append`] -> bounded queue -> one writer, one transaction for all waiting appends -> COMMIT -> [`Outcome`].

mod access;
mod append;
pub mod backend;
mod blob;
pub mod cell_sum;
mod clock;
mod directory;
mod encoded;
mod error;
mod fleet;
mod jsonl;
mod lock;
mod log;
mod member;
mod memory;
mod metrics;
mod mirror;
mod options;
mod origin;
pub mod parts;
pub mod problem;
mod read;
mod row_sum;
mod shares;
mod spending;
pub mod testing;
mod values;

// The tests of all backends are also compiled into the tests of backends in other crates.
#[cfg(test)]
extern crate self as agentd_store;
#[cfg(test)]
mod tests;

pub use access::{MAX_TOKENS, StoredToken};
pub use append::{Append, Blob, Charge, IdempotencyKey, Outcome};
pub use clock::Clock;
pub use encoded::{EncodedEvent, EventColumns};
pub use error::{AWAY, DAMAGED, DAMAGED_ROW, ELSEWHERE, Loss, SET_ASIDE, StoreError};
pub use fleet::{Beat, Fleet, Joining, KnownKey, Lease, Orphans, Owner, Stranded};
pub use jsonl::{Restored, export, rebuild, restore};
pub use lock::StoreLock;
pub use log::{Access, Away, Backend, Claim, Copied, Incarnation, Placement, SessionLog};
pub use member::{
    Beaten, Duty, HAND_OVER, Keeper, Load, MemberMutant, Placer, Standing, WORTH_IT, better_elsewhere,
};
pub use memory::MemoryStore;
pub use metrics::StoreMetrics;
pub use mirror::Mirror;
pub use options::{Options, Purpose};
pub use origin::{ForeignLog, OwnLog};
pub use read::{
    Direction, Filter, Integrity, MAX_LIST, MAX_PAGE, MAX_PAGE_BYTES, Page, Range, Row, StoredKey, Watched,
    WatchedEvent,
};
pub use shares::{BACKGROUND_EVERY, Demand, Held, Share, Want, calls, largest, share};
pub use spending::Spending;
