//! Opens the store that `store.url` names: one arm for each backend.

use crate::error::NodeError;
use crate::node::NodeArgs;
use crate::start::joined;
use agentd_settings::{StoreConfig, StoreKind};
use agentd_store::{Backend, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Connections to PostgreSQL for reads and small changes.
const READERS: usize = 8;

/// Opens the store.
///
/// # Errors
/// The store cannot be reached, opened or used; there is no password where the settings say.
#[expect(clippy::disallowed_methods, reason = "no session works yet")]
pub(crate) async fn open(args: &NodeArgs, store: &StoreConfig) -> Result<Arc<dyn Backend>, NodeError> {
    let options = Options {
        accept_loss: args.accept_loss,
        address: args.paths.socket.display().to_string(),
        ..Options::default()
    };
    match store.kind() {
        Some(StoreKind::Postgres) => {
            let password = password(store, &args.environment)?;
            let options = Options {
                readers: READERS,
                ..options
            };
            Ok(agentd_store_postgres::open(&store.url, password.as_deref(), options).await?)
        }
        Some(StoreKind::Sqlite | StoreKind::Memory) | None => {
            let (url, data_dir) = (store.url.clone(), args.paths.data_dir.clone());
            let open = move || agentd_store_sqlite::open(&url, &data_dir, options);
            Ok(joined(tokio::task::spawn_blocking(open).await)??)
        }
    }
}

/// The password of the database, from where the settings say.
pub(crate) fn password(
    store: &StoreConfig,
    environment: &BTreeMap<String, String>,
) -> Result<Option<String>, NodeError> {
    if !store.password_env.is_empty() {
        let name = &store.password_env;
        let found = environment.get(name).filter(|password| !password.is_empty());
        let missing = || NodeError::Unsupported(format!("store.password_env: ${name} is not set"));
        return found.cloned().map(Some).ok_or_else(missing);
    }
    if store.password_file.is_empty() {
        return Ok(None);
    }
    let path = Path::new(&store.password_file);
    let text = std::fs::read_to_string(path).map_err(|error| NodeError::path(path, error))?;
    Ok(Some(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_comes_from_the_named_variable_or_file() {
        let environment = BTreeMap::from([("DB".to_owned(), "hunter2".to_owned())]);
        let read = |store: &StoreConfig| password(store, &environment).map_err(|error| error.to_string());
        let of_env = |name: &str| StoreConfig {
            password_env: name.to_owned(),
            ..StoreConfig::default()
        };
        assert_eq!(read(&StoreConfig::default()), Ok(None));
        assert_eq!(read(&of_env("DB")), Ok(Some("hunter2".to_owned())));
        assert!(read(&of_env("OTHER")).unwrap_err().contains("$OTHER is not set"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hunter3\n").unwrap();
        let of_file = StoreConfig {
            password_file: file.path().display().to_string(),
            ..StoreConfig::default()
        };
        assert_eq!(read(&of_file), Ok(Some("hunter3".to_owned())));
    }
}
