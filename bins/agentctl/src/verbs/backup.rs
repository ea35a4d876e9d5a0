//! `backup`: a copy of the daemon's data directory, fetched over its socket, as a tar file.

use crate::cli::BackupArgs;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use agentd_client::Client;
use agentd_protocol::{
    BACKUP_FORMAT, BACKUP_LIST, Backup, BackupEndParams, BackupFile, BackupList, BackupPartParams, Fault,
    SummedFile,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Tar files consist of blocks of this size.
const BLOCK: [u8; 512] = [0; 512];

pub(crate) async fn backup(ctx: &mut Ctx, args: &BackupArgs) -> Result<Exit, Failure> {
    if args.file.exists() && !args.force {
        return Err(Failure::invalid(
            format!("{} already exists", args.file.display()),
            "choose another name, or use --force to replace it",
        ));
    }
    let client = ctx.connect().await?;
    let draft = Draft::create(&args.file)?;
    let backup = client.backup().await?;
    let fetched = fetch(&client, &backup, &draft).await;
    let end = BackupEndParams {
        backup: backup.backup.clone(),
    };
    // Without this the daemon would remove its copy too, but later.
    let _ = client.backup_end(&end).await;
    fetched?;
    draft.finish(&args.file)?;
    let name = args.file.display().to_string();
    ctx.out.object(&backup.of, &name, |_| {
        format!(
            "{} sessions, {} files: {name}\n",
            backup.of.sessions,
            backup.files.len()
        )
    })?;
    Ok(Exit::OK)
}

/// The output file under a temporary name until it is complete. Dropping it removes the temporary file.
#[derive(Debug)]
struct Draft(PathBuf);

impl Draft {
    fn create(file: &Path) -> Result<Self, Failure> {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let path = PathBuf::from(name);
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        made.map_err(|error| Failure::unwritable(file, &error))?;
        Ok(Self(path))
    }

    fn finish(&self, file: &Path) -> Result<(), Failure> {
        let synced = File::open(&self.0).and_then(|draft| draft.sync_all());
        let renamed = synced.and_then(|()| fs::rename(&self.0, file));
        renamed.map_err(|error| Failure::unwritable(file, &error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

async fn fetch(client: &Client, backup: &Backup, draft: &Draft) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::unwritable(&draft.0, &error);
    let file = OpenOptions::new().write(true).open(&draft.0).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let mut files = Vec::with_capacity(backup.files.len());
    for file in &backup.files {
        write_header(&mut out, &file.path, file.bytes, backup).map_err(failed)?;
        let sha256 = fetch_file(client, backup, file, (&mut out, draft)).await?;
        files.push(SummedFile {
            path: file.path.clone(),
            sha256,
        });
    }
    let list = BackupList {
        format: BACKUP_FORMAT,
        of: backup.of.clone(),
        files,
    };
    let list = serde_json::to_vec(&list).unwrap_or_default();
    let bytes = u64::try_from(list.len()).unwrap_or(u64::MAX);
    write_header(&mut out, BACKUP_LIST, bytes, backup)
        .and_then(|()| out.write_all(&list))
        .and_then(|()| pad(&mut out, bytes))
        // Two empty blocks mark the end of a tar file.
        .and_then(|()| out.write_all(&[BLOCK, BLOCK].concat()))
        .and_then(|()| out.flush())
        .map_err(failed)
}

/// Fetches one file; returns its SHA-256.
async fn fetch_file(
    client: &Client,
    backup: &Backup,
    file: &BackupFile,
    (out, draft): (&mut impl Write, &Draft),
) -> Result<String, Failure> {
    let mut params = BackupPartParams {
        backup: backup.backup.clone(),
        path: file.path.clone(),
        offset: 0,
    };
    let mut sum = Sha256::new();
    while params.offset < file.bytes {
        let part = client.backup_part(&params).await?;
        let bytes = STANDARD.decode(&part.data).unwrap_or_default();
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length == 0 || length > file.bytes - params.offset {
            let what = format!("{} does not have the length that the daemon reported", file.path);
            return Err(Fault::version("bad_backup", what).into());
        }
        sum.update(&bytes);
        out.write_all(&bytes)
            .map_err(|error| Failure::unwritable(&draft.0, &error))?;
        params.offset += length;
    }
    pad(out, file.bytes).map_err(|error| Failure::unwritable(&draft.0, &error))?;
    let hex = |mut text: String, byte: u8| {
        let _ = write!(text, "{byte:02x}");
        text
    };
    Ok(sum.finalize().into_iter().fold(String::new(), hex))
}

fn write_header(out: &mut impl Write, path: &str, bytes: u64, backup: &Backup) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_path(path)?;
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_mtime(backup.of.at.0 / 1_000);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    out.write_all(header.as_bytes())
}

fn pad(out: &mut impl Write, bytes: u64) -> io::Result<()> {
    let over = usize::try_from(bytes % 512).unwrap_or(0);
    let missing = if over == 0 {
        &[]
    } else {
        BLOCK.get(over..).unwrap_or_default()
    };
    out.write_all(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_cannot_be_written_is_named_as_the_person_wrote_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("missing/x.tar");
        let fault = Draft::create(&file).unwrap_err().fault();
        assert!(
            fault
                .message
                .starts_with(&format!("cannot write {}: ", file.display())),
            "{}",
            fault.message
        );
    }
}
