//! The address of a socket, as a process passes it to the kernel.

use rustix::io::Errno;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::ffi::OsStringExt as _;

/// The kernel accepts no longer one of any family.
pub(super) const MOST_BYTES: u32 = 128;
/// The length of a Unix address.
const UNIX: usize = 110;

/// A decoded address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// A Unix socket in the file system.
    Path(OsString),
    /// A Unix socket in the network namespace, which is the session's own.
    Abstract(Vec<u8>),
    /// A Unix socket gets a name from the kernel.
    Unnamed,
    /// TCP.
    Inet(SocketAddrV4),
    /// A netlink socket, by the number that it asks for.
    Netlink(u32),
    /// No address: a connection ends.
    Unspecified,
}

impl Address {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Errno> {
        let (family, rest) = bytes.split_first_chunk::<2>().ok_or(Errno::INVAL)?;
        match i32::from(u16::from_ne_bytes(*family)) {
            libc::AF_UNSPEC => Ok(Self::Unspecified),
            libc::AF_UNIX if bytes.len() > UNIX => Err(Errno::INVAL),
            libc::AF_UNIX => Ok(match rest.split_first() {
                None => Self::Unnamed,
                Some((0, name)) => Self::Abstract(name.to_owned()),
                Some(_) => {
                    let path = rest.split(|byte| *byte == 0).next().unwrap_or_default();
                    Self::Path(OsString::from_vec(path.to_owned()))
                }
            }),
            libc::AF_INET if bytes.len() < size_of::<libc::sockaddr_in>() => Err(Errno::INVAL),
            libc::AF_INET => {
                let (port, rest) = rest.split_first_chunk::<2>().ok_or(Errno::INVAL)?;
                let host = rest.first_chunk::<4>().ok_or(Errno::INVAL)?;
                Ok(Self::Inet(SocketAddrV4::new(
                    Ipv4Addr::from(*host),
                    u16::from_be_bytes(*port),
                )))
            }
            libc::AF_NETLINK => netlink(rest),
            _ => Err(Errno::AFNOSUPPORT),
        }
    }
}

/// An address after its family: two bytes of padding, the number, and the groups that it listens to, which must be none.
fn netlink(rest: &[u8]) -> Result<Address, Errno> {
    let (numbers, _) = rest.get(2..).unwrap_or_default().as_chunks::<4>();
    match numbers {
        [number, [0, 0, 0, 0], ..] => Ok(Address::Netlink(u32::from_ne_bytes(*number))),
        [_, _, ..] => Err(Errno::PERM),
        _ => Err(Errno::INVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(rest: &[u8]) -> Result<Address, Errno> {
        let family = u16::try_from(libc::AF_UNIX).unwrap().to_ne_bytes();
        Address::parse(&[&family, rest].concat())
    }

    #[test]
    fn a_path_ends_at_its_zero_or_at_the_end() {
        let path = |text: &str| Ok(Address::Path(text.into()));
        assert_eq!(unix(b"a/b"), path("a/b"));
        assert_eq!(unix(b"a/b\0rest"), path("a/b"));
        assert_eq!(unix(&[b'x'; 108]), path(&"x".repeat(108)));
        assert_eq!(unix(&[b'x'; 109]), Err(Errno::INVAL));
    }

    #[test]
    fn names_that_are_no_paths_are_told_apart() {
        assert_eq!(unix(b""), Ok(Address::Unnamed));
        assert_eq!(unix(b"\0a\0b"), Ok(Address::Abstract(b"a\0b".to_vec())));
        assert_eq!(unix(b"\0"), Ok(Address::Abstract(Vec::new())));
    }

    #[test]
    fn other_families_are_tcp_nothing_or_an_error() {
        let family = |family: i32| u16::try_from(family).unwrap().to_ne_bytes();
        let inet = [&family(libc::AF_INET)[..], &[0x0c, 0x38, 127, 0, 0, 1], &[0; 8]].concat();
        let expected = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 3128);
        assert_eq!(Address::parse(&inet), Ok(Address::Inet(expected)));
        assert_eq!(Address::parse(&inet[..15]), Err(Errno::INVAL));
        assert_eq!(Address::parse(&[0; 16]), Ok(Address::Unspecified));
        assert_eq!(Address::parse(&[1]), Err(Errno::INVAL));
        assert_eq!(Address::parse(&family(libc::AF_INET6)), Err(Errno::AFNOSUPPORT));
    }

    #[test]
    fn a_netlink_socket_listens_to_no_group() {
        let netlink = |rest: &[u8]| {
            let family = u16::try_from(libc::AF_NETLINK).unwrap().to_ne_bytes();
            Address::parse(&[&family, rest].concat())
        };
        assert_eq!(netlink(&[0; 10]), Ok(Address::Netlink(0)));
        assert_eq!(
            netlink(&[&[0; 2], &7_u32.to_ne_bytes()[..], &[0; 4]].concat()),
            Ok(Address::Netlink(7))
        );
        assert_eq!(netlink(&[0, 0, 0, 0, 0, 0, 1, 0, 0, 0]), Err(Errno::PERM));
        assert_eq!(netlink(&[0; 9]), Err(Errno::INVAL));
        assert_eq!(netlink(&[]), Err(Errno::INVAL));
    }
}
