//! Directories that only we can look into, and whose names survive a loss of power.

use crate::StoreError;
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes a directory that only we can look into, with its parents.
pub(crate) fn private_dir(path: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| StoreError::io(path, error))
}

/// The same, and on disk when this returns: a log is worth nothing in a directory that nothing leads to.
pub(crate) fn durable_dir(path: &Path) -> Result<(), StoreError> {
    let missing: Vec<&Path> = path.ancestors().take_while(|dir| !dir.exists()).collect();
    private_dir(path)?;
    // One that was there may have been made right before the power went.
    let newest = if missing.is_empty() { vec![path] } else { missing };
    let mut above = newest.iter().filter_map(|dir| dir.parent());
    above.try_for_each(sync_names)
}

/// The names in a directory are on disk when this returns. A directory that we may not read was not made by us.
pub(crate) fn sync_names(dir: &Path) -> Result<(), StoreError> {
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
        // Some file systems cannot, and some need not.
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
