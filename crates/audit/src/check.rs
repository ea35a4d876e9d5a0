//! Checks the files of a chain from the first to the last.

use crate::{Chain, Link, Stop, open};
use agentd_protocol::{AuditBroken, AuditCheck};
use std::io;
use std::path::{Path, PathBuf};

/// Checks these files, oldest first, and that the line with the hash `head` is among theirs, if one is given.
///
/// # Errors
/// The file that cannot be read.
pub fn check(files: &[PathBuf], head: Option<Link>) -> Result<AuditCheck, (PathBuf, io::Error)> {
    let mut chain = Chain::with_head(head);
    let shown = |path: &Path| path.display().to_string();
    let mut broken = None;
    for path in files {
        let file = open(path).map_err(|error| (path.clone(), error))?;
        match chain.read(file) {
            Ok(()) => {}
            Err(Stop::Broken(line, what)) => {
                broken = Some(AuditBroken {
                    file: shown(path),
                    line: Some(line),
                    what: what.to_string(),
                });
                break;
            }
            Err(Stop::Io(error)) => return Err((path.clone(), error)),
        }
    }
    if let (None, Some(head), Some(last)) = (&broken, chain.missing(), files.last()) {
        broken = Some(AuditBroken {
            file: shown(last),
            line: None,
            what: format!(
                "the line with hash {head} is missing: lines were cut off, or the file was rewritten"
            ),
        });
    }
    if let (None, None, Some(first)) = (&broken, chain.head(), files.first())
        && chain.unsealed() > 0
    {
        broken = Some(AuditBroken {
            file: shown(first),
            line: Some(1),
            what: "no line is sealed: the lines were written before the chain existed, or not by agentd"
                .to_owned(),
        });
    }
    Ok(AuditCheck {
        unsealed: Some(chain.unsealed()).filter(|unsealed| *unsealed > 0),
        intact: broken.is_none(),
        files: files.iter().map(|path| shown(path)).collect(),
        lines: chain.lines(),
        head: chain.head().map(|head| head.to_string()),
        whole: chain.is_whole(),
        deletion_recorded: chain.deletion_is_recorded(),
        broken,
    })
}
