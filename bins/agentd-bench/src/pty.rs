//! A program in a pseudo-terminal: what it writes, and when; what is typed.

use anyhow::{Context as _, Result, bail};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// How long something may take to appear on the screen.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program; killed when dropped.
#[derive(Debug)]
pub(crate) struct Pty {
    /// Its process id.
    pub(crate) pid: u32,
    keys: File,
    output: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
    child: Child,
}

impl Pty {
    /// Starts a program in a terminal of this size.
    #[expect(clippy::disallowed_methods, reason = "the load tool starts what it measures")]
    pub(crate) fn start(
        program: &Path,
        arguments: &[&str],
        home: &Path,
        columns: u16,
        rows: u16,
    ) -> Result<Self> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?.into_string()?;
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&ours, size)?;
        let theirs = OpenOptions::new().read(true).write(true).open(name)?;
        let stdio = || anyhow::Ok(Stdio::from(theirs.try_clone()?));
        // A session of its own, whose terminal this is: otherwise the program would find the terminal of this one.
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(program)
            .args(arguments)
            .env("TERM", "xterm-256color")
            .env("HOME", home)
            .env_remove("NO_COLOR")
            .stdin(stdio()?)
            .stdout(stdio()?)
            .stderr(stdio()?)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start setsid (util-linux)")?;
        let pid = child.id().context("it has no process id")?;
        let keys = File::from(ours.try_clone()?);
        Ok(Self {
            pid,
            keys,
            output: read(ours),
            child,
        })
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &str) -> Result<Instant> {
        self.keys.write_all(keys.as_bytes())?;
        Ok(Instant::now())
    }

    /// Forgets what was written so far. Returns the number of bytes.
    pub(crate) fn skip(&mut self) -> usize {
        let mut bytes = 0;
        while let Ok((_, piece)) = self.output.try_recv() {
            bytes += piece.len();
        }
        bytes
    }

    /// Waits until the program writes this. Returns when.
    pub(crate) async fn until(&mut self, text: &str) -> Result<Instant> {
        let wanted = text.as_bytes();
        let found = async {
            let mut seen: Vec<u8> = Vec::new();
            while let Some((at, piece)) = self.output.recv().await {
                seen.extend(piece);
                if memchr::memmem::find(&seen, wanted).is_some() {
                    return Ok(at);
                }
                let kept = seen.len().saturating_sub(wanted.len());
                seen.drain(..kept);
            }
            bail!("the program ended")
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.with_context(|| format!("it does not write {text:?}"))?
    }

    /// Ends the program.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.child.kill().await.context("cannot end it")
    }
}

/// Reads in a thread of its own, so that the time of a piece is when it came.
fn read(terminal: OwnedFd) -> mpsc::UnboundedReceiver<(Instant, Vec<u8>)> {
    let (send, receive) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut terminal = File::from(terminal);
        let mut piece = vec![0; 64 << 10];
        // The end of the program is an error here.
        while let Ok(length) = terminal.read(&mut piece) {
            let bytes = piece.get(..length).unwrap_or_default().to_vec();
            if length == 0 || send.send((Instant::now(), bytes)).is_err() {
                return;
            }
        }
    });
    receive
}
