//! Unix sockets: commands reach only listeners of their own session. Who listens is decided before anything reaches the
//! listener: the broker gives sockets their names, and connects only to the files that it made this way.

use super::Broker;
use super::address::{Address, MOST_BYTES};
use super::held::Held;
use super::judge::Act;
use super::resolve::{Named, Object, Start, bare};
use super::target::{Target, magic};
use agentd_seccomp_notify::Listener;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fstat, openat};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::socket_domain;
use rustix::net::{AddressFamily, SocketAddrUnix, bind, connect, connect_unspec};
use rustix::process::{fchdir, umask};
use std::ffi::OsStr;
use std::net::SocketAddrV4;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The maximum number of socket files to know.
const MOST: usize = 512;
/// The maximum number of connections that wait for their listener.
const MOST_WAITING: usize = 64;

/// The sockets of a session.
#[derive(Debug)]
pub(super) struct Sockets {
    bound: Held,
    waiting: Vec<JoinHandle<()>>,
}

impl Default for Sockets {
    fn default() -> Self {
        Self {
            bound: Held::new(MOST),
            waiting: Vec::new(),
        }
    }
}

/// Where a socket connects to.
#[derive(Debug)]
enum Peer {
    /// A socket file that the session made.
    Own(Object),
    Abstract(SocketAddrUnix),
    Inet(SocketAddrV4),
    Nobody,
}

impl Peer {
    fn connect(&self, socket: impl AsFd) -> Result<(), Errno> {
        match self {
            Self::Own(object) => connect(socket, &SocketAddrUnix::new(magic(&object.file))?),
            Self::Abstract(name) => connect(socket, name),
            Self::Inet(address) => connect(socket, address),
            Self::Nobody => connect_unspec(socket),
        }
    }
}

impl Broker {
    /// Connects a socket. `None`: another thread answers as soon as the listener accepts.
    pub(super) fn connect(
        &mut self,
        listener: &Arc<Listener>,
        target: Target<'_>,
        (socket, address): (i32, (u64, u32)),
    ) -> Option<Result<(), Errno>> {
        let prepared = self.peer(target, socket, address);
        let (socket, peer) = match prepared {
            Ok(prepared) => prepared,
            Err(errno) => return Some(Err(errno)),
        };
        // Landlock confines this thread as it confines commands: to the same port and to their own abstract names.
        match fcntl_getfl(&socket) {
            Ok(flags) if flags.contains(OFlags::NONBLOCK) => Some(peer.connect(&socket)),
            Ok(_) => {
                let waits = self.sockets.wait(Arc::clone(listener), target.id, socket, peer);
                waits.err().map(Err)
            }
            Err(errno) => Some(Err(errno)),
        }
    }

    fn peer(
        &self,
        target: Target<'_>,
        socket: i32,
        (address, length): (u64, u32),
    ) -> Result<(OwnedFd, Peer), Errno> {
        let socket = target.descriptor(socket)?;
        let address = read(target, address, length)?;
        let peer = match (socket_domain(&socket)?, address) {
            (AddressFamily::UNIX, Address::Path(path)) => Peer::Own(self.own(target, path.as_os_str())?),
            (AddressFamily::UNIX, Address::Abstract(name)) => {
                Peer::Abstract(SocketAddrUnix::new_abstract_name(&name)?)
            }
            (AddressFamily::INET, Address::Inet(address)) => Peer::Inet(address),
            (AddressFamily::INET, Address::Unspecified) => Peer::Nobody,
            (AddressFamily::UNIX, _) => return Err(Errno::INVAL),
            _ => return Err(Errno::AFNOSUPPORT),
        };
        Ok((socket, peer))
    }

    /// The socket file at a path, if the session made it.
    fn own(&self, target: Target<'_>, path: &OsStr) -> Result<Object, Errno> {
        let object = Start::of(target, libc::AT_FDCWD, path.to_owned())?.object(true, false)?;
        match object.kind() {
            FileType::Socket if self.sockets.bound.has(&object.stat) => Ok(object),
            FileType::Socket => Err(Errno::ACCESS),
            _ => Err(Errno::CONNREFUSED),
        }
    }

    /// Names a socket.
    pub(super) fn bind(
        &mut self,
        target: Target<'_>,
        (socket, (address, length)): (i32, (u64, u32)),
    ) -> Result<(), Errno> {
        let socket = target.descriptor(socket)?;
        let address = read(target, address, length)?;
        match (socket_domain(&socket)?, address) {
            (AddressFamily::UNIX, Address::Path(path)) => self.bind_file(target, &socket, &path),
            (AddressFamily::UNIX, Address::Abstract(name)) => {
                bind(socket, &SocketAddrUnix::new_abstract_name(&name)?)
            }
            (AddressFamily::UNIX, Address::Unnamed) => bind(socket, &SocketAddrUnix::new_unnamed()),
            (AddressFamily::INET, Address::Inet(address)) => bind(socket, &address),
            (AddressFamily::NETLINK, Address::Netlink(number)) => {
                bind(socket, &SocketAddrNetlink::new(number, 0))
            }
            (AddressFamily::UNIX, _) => Err(Errno::INVAL),
            _ => Err(Errno::AFNOSUPPORT),
        }
    }

    fn bind_file(&mut self, target: Target<'_>, socket: &OwnedFd, path: &OsStr) -> Result<(), Errno> {
        let start = Start::of(target, libc::AT_FDCWD, path.to_owned())?;
        let by_descriptor = start.is_by_descriptor();
        let named = start.named(Errno::ADDRINUSE)?;
        let used = |errno| {
            if errno == Errno::EXIST {
                Errno::ADDRINUSE
            } else {
                errno
            }
        };
        self.may_name(Act::Make, &named).map_err(used)?;
        if named.stat().is_ok() {
            return Err(Errno::ADDRINUSE);
        }
        // The kernel keeps the path as it is written, and programs ask for it. To this thread it means the same as long as it
        // is in the caller's directory, unless it names a descriptor. The session's other calls that change names wait.
        let (dir, path) = if by_descriptor {
            (None, bare(&named.name))
        } else {
            (Some(target.base(libc::AT_FDCWD)?), path)
        };
        fchdir(dir.as_ref().unwrap_or(&named.dir))?;
        let mask = umask(target.umask());
        let bound = bind(socket, &SocketAddrUnix::new(path.as_bytes())?);
        umask(mask);
        bound?;
        self.sockets.note(&named)
    }
}

impl Sockets {
    /// Notes a socket file that was just made.
    fn note(&mut self, named: &Named) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&named.dir, bare(&named.name), flags, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::Socket => self.bound.keep(file),
            // Another process replaced it.
            _ => Ok(()),
        }
    }

    /// Connects in another thread, and answers the call: a listener may take its time.
    fn wait(&mut self, listener: Arc<Listener>, id: u64, socket: OwnedFd, peer: Peer) -> Result<(), Errno> {
        self.waiting.retain(|thread| !thread.is_finished());
        if self.waiting.len() >= MOST_WAITING {
            return Err(Errno::AGAIN);
        }
        let connects = move || {
            let done = peer.connect(&socket);
            listener.answer(id, done.map(|()| 0).map_err(Errno::raw_os_error));
        };
        let thread = std::thread::Builder::new()
            .name("connect".to_owned())
            .spawn(connects);
        self.waiting.push(thread.map_err(|_| Errno::AGAIN)?);
        Ok(())
    }
}

fn read(target: Target<'_>, address: u64, length: u32) -> Result<Address, Errno> {
    if length > MOST_BYTES {
        return Err(Errno::INVAL);
    }
    Address::parse(&target.bytes(address, length.into())?)
}
