use super::*;

fn allows(pattern: &str, url: &str) -> bool {
    UrlPattern::parse(pattern, false)
        .unwrap_or_else(|error| panic!("{pattern}: {error}"))
        .matches(&Address::read(url))
}

fn forbids(pattern: &str, url: &str) -> bool {
    UrlPattern::parse(pattern, true)
        .unwrap_or_else(|error| panic!("{pattern}: {error}"))
        .matches(&Address::read(url))
}

#[test]
fn hosts_are_compared_as_hosts() {
    for (pattern, url, expected) in [
        ("domain:docs.rs", "https://docs.rs/x", true),
        ("docs.rs", "http://docs.rs/x", true),
        ("domain:docs.rs", "https://docs.rs.evil/x", false),
        ("domain:docs.rs", "https://docs.rs@evil/x", false),
        ("domain:docs.rs.", "https://docs.rs./", true),
        ("domain:bücher.example", "https://xn--bcher-kva.example/", true),
        (
            "domain:*.bücher.example",
            "https://a.xn--bcher-kva.example/",
            true,
        ),
        ("domain:0x7f.1", "http://127.0.0.1/", true),
        ("domain:10.0.0.*", "http://10.0.0.7/", true),
        ("domain:10.0.0.*", "http://10.0.0.7.evil.example/", false),
        ("domain:[::1]", "http://[0:0::1]/", true),
        ("*.rs", "https://DOCS.rs:443/", true),
        ("*.docs.rs", "https://docs.rs/", false),
        ("*.docs.rs", "https://a.b.docs.rs/", true),
        ("*.docs.rs", "https://.docs.rs/", false),
        ("api.*.docs.rs", "https://api.eu.docs.rs/", true),
        ("api.*.docs.rs", "https://api.eu.west.docs.rs/", false),
        ("https://docs.rs/**", "https://docs.rs/a/b?c", true),
        ("*", "https://anything", true),
    ] {
        assert_eq!(allows(pattern, url), expected, "{pattern} {url}");
    }
}

/// A pattern, an address that it allows, and addresses that it must not.
type Row = (&'static str, &'static str, &'static [&'static str]);

const CROSSINGS: &[Row] = &[
    (
        "https://*.docs.rs/**",
        "https://a.docs.rs/x?y",
        &[
            // The report: the wildcard of the host extended into the path.
            "https://evil2.com/.docs.rs/?q=x",
            "https://evil2.com/a.docs.rs/x",
            "https://evil2.com?.docs.rs/",
            "https://evil2.com#.docs.rs/",
            "https://evil2.com:443/.docs.rs/",
            // PortSwigger, URL validation bypass cheat sheet: credentials, backslash, suffix, encoded separator.
            "https://evil2.com\\.docs.rs/",
            "https://a.docs.rs@evil2.com/",
            "https://a.docs.rs\\@evil2.com/",
            "https://a.docs.rs.evil2.com/",
            "https://evildocs.rs/",
            "https://evil2.com%2f.docs.rs/",
            "https://evil2.com%00.docs.rs/",
            // Claude Code CVE-2026-24052 (a trusted domain compared with startsWith), and variants for port and scheme.
            "https://docs.rs.evil2.com/x",
            "https://a.docs.rs:8443/x",
            "http://a.docs.rs/x",
            // Orange Tsai, "A New Era of SSRF": full-width dots and slashes.
            "https://evil2.com\u{ff0f}.docs.rs/",
        ],
    ),
    (
        "https://docs.rs/api/*",
        "https://docs.rs/api/x",
        &[
            "https://docs.rs/api/x/y",
            "https://docs.rs/api/x?y",
            "https://docs.rs/api/..%2fprivate",
            "https://docs.rs/api/%2e%2e/private",
            "https://docs.rs/api/..%5cprivate",
            "https://docs.rs/API/x",
            "https://docs.rs:444/api/x",
        ],
    ),
    (
        "domain:10.0.0.1",
        "http://10.0.0.1/",
        &[
            "http://10.0.0.1.nip.io/",
            "http://10.0.0.1:8080/",
            "http://10.0.1.1/x@10.0.0.1",
            "http://10.0.0.11/",
        ],
    ),
    (
        "https://docs.rs:*/x",
        "https://docs.rs:81/x",
        &["https://docs.rs:81@evil/x", "https://evil/docs.rs:81/x"],
    ),
    (
        "https://docs.rs/a?b=*",
        "https://docs.rs/a?b=c",
        &[
            "https://docs.rs/a",
            "https://docs.rs/a/x?b=c",
            "https://evil/docs.rs/a?b=c",
        ],
    ),
    (
        "*://docs.rs/**",
        "http://docs.rs/x",
        &["ftp://evil/docs.rs/x", "https://evil?://docs.rs/x"],
    ),
];

/// A wildcard stays in its part wherever it is; each row has an address that the same pattern allows.
#[test]
fn i7_redteam_a_wildcard_never_crosses_a_part_of_an_address() {
    for (pattern, control, attacks) in CROSSINGS {
        assert!(allows(pattern, control), "positive control: {pattern} {control}");
        for attack in *attacks {
            assert!(!allows(pattern, attack), "{pattern} {attack}");
        }
    }
}

#[test]
fn i7_a_rule_that_forbids_is_read_broadly() {
    for (pattern, url) in [
        ("*.evil", "https://docs.rs@a.evil/x"),
        ("*tracker*", "https://a.tracker.example/"),
        ("evil.example", "https://evil.example:8443/"),
        ("evil.example", "https://EVIL.example./"),
        ("evil.example", "https://docs.rs\\@evil.example/"),
        ("evil.example", "http://ev%69l.example/"),
        ("127.0.0.1", "http://2130706433/"),
        ("127.0.0.1", "http://0177.1/"),
        ("https://docs.rs/admin/**", "https://docs.rs/%61dmin/x"),
        ("https://docs.rs/admin/**", "https://docs.rs/x/../ADMIN/x"),
        ("https://docs.rs/admin", "https://docs.rs/admin?x"),
        // An address that cannot be parsed is forbidden.
        ("evil.example", "https://[fe80::1%25eth0]/"),
        ("evil.example", "https://docs.rs:99999/"),
    ] {
        assert!(forbids(pattern, url), "{pattern} {url}");
        assert!(!forbids("other.example", "https://docs.rs/"), "control");
    }
    assert!(!forbids(
        "https://evil.example/**",
        "https://docs.rs/?u=https://evil.example/"
    ));
    assert!(!forbids("*.evil.example", "https://docs.rs/.evil.example/"));
}

#[test]
fn i7_a_pattern_that_cannot_be_parsed_is_refused_and_says_how_to_write_it() {
    for pattern in [
        "https://",
        "https:///x",
        "ftp://docs.rs/**",
        "https://ana@docs.rs/**",
        "https://docs.rs\\x",
        "https://docs.rs/#x",
        "https://docs.rs:http/",
        "https://docs.rs:0/",
        "https://::1/",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://docs%2frs/",
        "docs.rs/**",
        "https://docs.rs/../x",
        "domain:",
        "domain:docs.rs/x",
        "https://docs.rs/[",
    ] {
        for broad in [false, true] {
            let Err(error) = UrlPattern::parse(pattern, broad) else {
                panic!("{pattern} was read")
            };
            assert!(error.ends_with(FORMS), "{pattern}: {error}");
        }
    }
    for pattern in [
        "*docs.rs",
        "docs.*",
        "10.*",
        "*.10",
        "domain:d?cs.rs",
        "https://{a,b}.rs/",
    ] {
        assert!(UrlPattern::parse(pattern, false).is_err(), "{pattern}");
    }
}

#[test]
fn the_place_of_an_address_is_its_host() {
    for (url, expected) in [
        ("https://docs.rs/x?y", Some("domain:docs.rs")),
        ("http://docs.rs:80/", Some("domain:docs.rs")),
        ("http://docs.rs:8080/a", Some("http://docs.rs:8080/**")),
        ("https://ana@docs.rs/", None),
        ("https://*/", None),
        ("https:///x", None),
    ] {
        assert_eq!(site(url).as_deref(), expected, "{url}");
        assert!(expected.is_none_or(|pattern| allows(pattern, url)), "{url}");
    }
}

#[test]
fn odd_addresses_are_not_plain() {
    assert!(is_plain("https://docs.rs/a?b=c"));
    for url in [
        "https://a@b/",
        "https://a\0b/",
        "file:///etc/passwd",
        "https://a\\b",
        "https:// a",
        "https://x/../y",
    ] {
        assert!(!is_plain(url), "{url:?}");
    }
}
