//! The suite of migrations over two files, which the tests of PostgreSQL run in both directions.

/// Runs each function over a migration between two files.
macro_rules! migrations {
    ($($name:ident),* $(,)?) => {
        mod sqlite_to_sqlite {
            $(#[tokio::test] async fn $name() {
                super::$name(super::DatabaseFile::default(), super::DatabaseFile::default()).await;
            })*
        }
    };
}

#[expect(
    dead_code,
    reason = "shared with the tests of the backends, which use more of it"
)]
#[path = "../../store/src/tests/kit.rs"]
mod kit;
mod migrations;
