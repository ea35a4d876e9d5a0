//! Shared parts for backends in crates of their own: encodings, checksums, limits, directories, the words of a check.

pub use crate::access::{MAX_TOKEN_NAME, damaged_token};
pub use crate::blob::{ROW_LIMIT, digits, is_name, name_of};
pub use crate::cell_sum::{CellSum, OwnColumns, Summed, head_sum};
pub use crate::directory::{durable_dir, private_dir, sync_names};
pub use crate::metrics::Counters;
pub use crate::problem;
pub use crate::read::{ID_DIGITS, PageBuilder, WatchedBuilder, clamp, id_part};
pub use crate::row_sum::{Column, RowColumns, RowSum};
pub use crate::values::{column, hex, size};

/// How long an idempotency key is kept.
pub const KEY_LIFE_MS: u64 = 24 * 60 * 60 * 1000;
