//! Creates private directories whose names survive a power loss.

use crate::StoreError;
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Creates a directory and its parents, accessible only to the current user.
///
/// # Errors
/// A directory cannot be created.
pub fn private_dir(path: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| StoreError::io(path, error))
}

/// Like the above, and synced to disk: a log is worthless in a directory that is lost itself.
///
/// # Errors
/// A directory cannot be created or synced.
pub fn durable_dir(path: &Path) -> Result<(), StoreError> {
    let missing: Vec<&Path> = path.ancestors().take_while(|dir| !dir.exists()).collect();
    private_dir(path)?;
    // An existing directory may have been created right before a power loss.
    let newest = if missing.is_empty() { vec![path] } else { missing };
    let mut above = newest.iter().filter_map(|dir| dir.parent());
    above.try_for_each(sync_names)
}

/// Syncs a directory, so that its entries survive. Skips directories that we may not read: others created those.
///
/// # Errors
/// The directory cannot be synced.
pub fn sync_names(dir: &Path) -> Result<(), StoreError> {
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };
    let synced = match File::open(dir) {
        Ok(open) => open.sync_all(),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
        Err(error) => Err(error),
    };
    match synced {
        // Some file systems cannot sync a directory, and some need not.
        Err(error)
            if !matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Err(StoreError::io(dir, error))
        }
        _ => Ok(()),
    }
}
