//! Runs a program and keeps what it prints.

use anyhow::{Context as _, Result, bail};
use std::io::{Read as _, Write as _};
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long to wait for more output of a program that has ended: one that it started may hold its output open.
const AFTER_THE_END: Duration = Duration::from_secs(10);

enum Heard {
    Bytes(Vec<u8>),
    EndOfOutput,
    Exit(std::io::Result<ExitStatus>),
}

/// Runs a program; its output and its errors come through one pipe, so they keep their order. If `show` is set, they are
/// passed on as they come.
pub(crate) fn relay(mut command: Command, show: bool) -> Result<(ExitStatus, String)> {
    let (mut from, to) = std::io::pipe()?;
    command.stdout(to.try_clone()?).stderr(to);
    let mut child = command.spawn().context("cannot start the command")?;
    // Our ends of the pipe for writing would keep it open.
    drop(command);
    let (tell, hear) = mpsc::channel();
    let output = tell.clone();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let bytes = buffer.get(..count).unwrap_or_default().to_vec();
            if output.send(Heard::Bytes(bytes)).is_err() {
                return;
            }
        }
        // After the wait for the end, this message has no reader.
        let _ = output.send(Heard::EndOfOutput);
    });
    thread::spawn(move || tell.send(Heard::Exit(child.wait())));
    let (status, bytes) = collect(&hear, show)?;
    Ok((status?, String::from_utf8_lossy(&bytes).into_owned()))
}

fn collect(hear: &mpsc::Receiver<Heard>, show: bool) -> Result<(std::io::Result<ExitStatus>, Vec<u8>)> {
    let (mut status, mut open, mut kept) = (None, true, Vec::new());
    let mut out = std::io::stdout();
    loop {
        let heard = match status {
            Some(_) if !open => break,
            Some(_) => hear.recv_timeout(AFTER_THE_END).ok(),
            None => hear.recv().ok(),
        };
        match heard {
            Some(Heard::Bytes(bytes)) => {
                if show {
                    out.write_all(&bytes)?;
                    out.flush()?;
                }
                kept.extend(bytes);
            }
            Some(Heard::EndOfOutput) => open = false,
            Some(Heard::Exit(ended)) => status = Some(ended),
            None => break,
        }
    }
    match status {
        Some(status) => Ok((status, kept)),
        None => bail!("the end of the command was not seen"),
    }
}
