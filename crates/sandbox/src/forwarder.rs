//! The only address that an isolated session's network can reach: a forwarder to the socket at which the daemon judges
//! connections. It runs in the warden, outside of the commands' sandbox.

use crate::network::{INSIDE, SOCKET};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

/// The port that it listens on, in the session's own network namespace.
pub(crate) const PORT: u16 = 3128;
/// The maximum number of concurrent connections; more are closed at once.
pub(crate) const CONNECTIONS: usize = 64;
/// Copying needs little; but the allocator sets itself up in each thread, and an unoptimised one needs more than 64 KiB.
const STACK: usize = 256 << 10;

/// Starts listening.
pub(crate) fn start() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
    let places = Arc::new(());
    thread(move || {
        for stream in listener.incoming() {
            // Ignores a connection that broke before it was accepted.
            let Ok(stream) = stream else { continue };
            if Arc::strong_count(&places) > CONNECTIONS {
                continue;
            }
            let place = Arc::clone(&places);
            // If no thread can be started, the connection is closed.
            let _ = thread(move || {
                let _place = place;
                // Either side may close at any time; the other side sees it.
                let _ = connect(&stream);
            });
        }
    })
}

fn thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = std::thread::Builder::new()
        .name("network".to_owned())
        .stack_size(STACK);
    builder.spawn(work).map(drop)
}

fn connect(inside: &TcpStream) -> io::Result<()> {
    let outside = UnixStream::connect(Path::new(INSIDE).join(SOCKET))?;
    let (mut from, mut to) = (inside.try_clone()?, outside.try_clone()?);
    let there = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        let copied = copy(&mut from, &mut to);
        // The other direction ends on its own.
        let _ = to.shutdown(Shutdown::Write);
        copied
    })?;
    let copied = copy(&mut &outside, &mut &*inside);
    let _ = inside.shutdown(if copied.is_ok() {
        Shutdown::Write
    } else {
        Shutdown::Both
    });
    let _ = there.join();
    copied
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = [0; 8 << 10];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(buffer.get(..count).unwrap_or_default())?;
    }
}
