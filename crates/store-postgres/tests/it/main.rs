//! The suite of all backends over PostgreSQL, and what only a server can do wrong.

/// Runs each function over a database of its own.
#[cfg(test)]
macro_rules! conformance {
    ($($name:ident),* $(,)?) => {
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(database) = crate::server::Database::create(stringify!($name)) {
                    super::$name(database.kit().await).await;
                }
            })*
        }
    };
}

/// Runs each function over a migration into PostgreSQL, and over one out of it.
#[cfg(test)]
macro_rules! migrations {
    ($($name:ident),* $(,)?) => {
        mod sqlite_to_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(database) = crate::server::Database::create(stringify!($name)) {
                    super::$name(super::DatabaseFile::default(), database).await;
                }
            })*
        }
        mod postgres_to_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(database) = crate::server::Database::create(stringify!($name)) {
                    super::$name(database, super::DatabaseFile::default()).await;
                }
            })*
        }
    };
}

#[cfg(test)]
mod batches;
#[cfg(test)]
#[path = "../../../store/src/tests/conformance.rs"]
mod conformance;
#[cfg(test)]
mod fleet;
#[cfg(test)]
mod keys;
#[cfg(test)]
#[expect(
    dead_code,
    reason = "shared with the tests of the other backends, which use more of it"
)]
#[path = "../../../store/src/tests/kit.rs"]
mod kit;
#[cfg(test)]
mod migrating;
#[cfg(test)]
#[path = "../../../store-migrate/src/tests/migrations.rs"]
mod migrations;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod others;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod server;
#[cfg(test)]
mod sums;
#[cfg(test)]
#[path = "../../../store/src/tests/tokens.rs"]
mod tokens;
