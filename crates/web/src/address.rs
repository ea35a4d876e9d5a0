//! Decides which addresses are public. Refuses every address that is not known to be.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// A cloud's metadata service, or a range that contains one: only an entry for its network can open it.
    Metadata(&'static str),
    /// Any other reason.
    Other(&'static str),
}

impl Closed {
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::Metadata(why) | Self::Other(why) => why,
        }
    }
}

type Range4 = ([u8; 4], u32, &'static str);
type Range6 = ([u16; 8], u32, &'static str);

const V4: [Range4; 15] = [
    ([0, 0, 0, 0], 8, "it is the unspecified address"),
    ([10, 0, 0, 0], 8, "it is a private address"),
    ([100, 64, 0, 0], 10, "it is an address of a carrier-grade NAT"),
    ([127, 0, 0, 0], 8, "it is this machine (loopback)"),
    ([172, 16, 0, 0], 12, "it is a private address"),
    ([192, 0, 0, 0], 24, "it is a reserved address"),
    ([192, 0, 2, 0], 24, "it is an address for documentation"),
    ([192, 88, 99, 0], 24, "it is a 6to4 relay"),
    ([192, 168, 0, 0], 16, "it is a private address"),
    ([198, 18, 0, 0], 15, "it is an address for benchmarks"),
    ([198, 51, 100, 0], 24, "it is an address for documentation"),
    ([203, 0, 113, 0], 24, "it is an address for documentation"),
    ([224, 0, 0, 0], 4, "it is a multicast address"),
    ([240, 0, 0, 0], 4, "it is a reserved address"),
    ([255, 255, 255, 255], 32, "it is a broadcast address"),
];

/// The link-local range, and metadata services outside it.
const METADATA4: [Range4; 4] = [
    (
        [169, 254, 0, 0],
        16,
        "it is a link-local address (cloud metadata)",
    ),
    ([100, 100, 100, 200], 32, "it is a cloud's metadata service"),
    ([168, 63, 129, 16], 32, "it is a cloud's metadata service"),
    ([192, 0, 0, 192], 32, "it is a cloud's metadata service"),
];

const V6: [Range6; 14] = [
    ([0; 8], 128, "it is the unspecified address"),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, "it is this machine (loopback)"),
    (
        [0, 0, 0, 0, 0, 0xffff, 0, 0],
        96,
        "it is an IPv4 address inside IPv6",
    ),
    ([0; 8], 96, "it is an IPv4 address inside IPv6"),
    (
        [0x64, 0xff9b, 0, 0, 0, 0, 0, 0],
        96,
        "it is an IPv4 address behind NAT64",
    ),
    (
        [0x64, 0xff9b, 1, 0, 0, 0, 0, 0],
        48,
        "it is an IPv4 address behind NAT64",
    ),
    (
        [0x2001, 0, 0, 0, 0, 0, 0, 0],
        32,
        "it is an IPv4 address inside Teredo",
    ),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "it is a reserved address"),
    (
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0],
        32,
        "it is an address for documentation",
    ),
    (
        [0x2002, 0, 0, 0, 0, 0, 0, 0],
        16,
        "it is an IPv4 address inside 6to4",
    ),
    (
        [0x3fff, 0, 0, 0, 0, 0, 0, 0],
        20,
        "it is an address for documentation",
    ),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "it is a private address"),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "it is a private address"),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "it is a multicast address"),
];

const METADATA6: [Range6; 2] = [
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "it is a link-local address"),
    (
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
        128,
        "it is a cloud's metadata service",
    ),
];

/// All globally routed IPv6 addresses.
const GLOBAL6: Range6 = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, "");

/// Why an address is not public, in words; `None` if it is.
#[must_use]
pub fn not_public(address: IpAddr) -> Option<&'static str> {
    closed(address).map(Closed::why)
}

/// Why an address is not public; `None` if it is.
pub(crate) fn closed(address: IpAddr) -> Option<Closed> {
    match address {
        IpAddr::V4(v4) => {
            let of = |ranges: &[Range4]| ranges.iter().find(|range| in4(v4, range)).map(|range| range.2);
            of(&METADATA4)
                .map(Closed::Metadata)
                .or_else(|| of(&V4).map(Closed::Other))
        }
        IpAddr::V6(v6) => {
            let of = |ranges: &[Range6]| ranges.iter().find(|range| in6(v6, range)).map(|range| range.2);
            of(&METADATA6)
                .map(Closed::Metadata)
                .or_else(|| of(&V6).map(Closed::Other))
                .or_else(|| (!in6(v6, &GLOBAL6)).then_some(Closed::Other("it is a reserved address")))
        }
    }
}

fn in4(address: Ipv4Addr, (base, bits, _): &Range4) -> bool {
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or_default();
    (address.to_bits() ^ Ipv4Addr::from_octets(*base).to_bits()) & mask == 0
}

fn in6(address: Ipv6Addr, (base, bits, _): &Range6) -> bool {
    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or_default();
    (address.to_bits() ^ Ipv6Addr::from_segments(*base).to_bits()) & mask == 0
}

/// Names for internal places: this machine, its network, a cloud's metadata service.
pub(crate) fn closed_name(host: &str) -> Option<&'static str> {
    const NAMES: [&str; 5] = ["metadata", "instance-data", "metadata.goog", "localhost", "local"];
    const SUFFIXES: [&str; 6] = [
        ".localhost",
        ".local",
        ".internal",
        ".localdomain",
        ".home.arpa",
        ".metadata.goog",
    ];
    let named = NAMES.contains(&host) || SUFFIXES.iter().any(|suffix| host.ends_with(suffix));
    named.then_some("it is a name of this machine or of an internal network")
}
