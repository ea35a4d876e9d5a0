//! Opens the store in a PostgreSQL database, with the password from where the settings say.

use crate::error::NodeError;
use agentd_settings::StoreConfig;
use agentd_store::{Backend, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Connections for reads and small changes.
const READERS: usize = 8;

/// Opens the database that `store.url` names.
///
/// # Errors
/// There is no password where the settings say; the database cannot be reached or used.
pub(crate) async fn open(
    store: &StoreConfig,
    environment: &BTreeMap<String, String>,
    options: Options,
) -> Result<Arc<dyn Backend>, NodeError> {
    let password = password(store, environment)?;
    let options = Options {
        readers: READERS,
        ..options
    };
    Ok(agentd_store_postgres::open(&store.url, password.as_deref(), options).await?)
}

fn password(
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
