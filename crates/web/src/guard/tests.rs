//! The red-team table of addresses, each with a positive control.

use super::*;

fn guard(allow_private: &[&str]) -> Guard {
    Guard::new(&WebConfig {
        allow_private: allow_private.iter().map(|&text| text.to_owned()).collect(),
        ..WebConfig::default()
    })
    .unwrap()
}

fn target(text: &str) -> Target {
    Target::parse(text).unwrap()
}

/// Checks whether a guard with these places opened accepts an address.
#[track_caller]
fn check(open: &[&str], url: &str, expected: bool) {
    assert_eq!(
        guard(open).check(&target(url)).is_ok(),
        expected,
        "{url} with {open:?}"
    );
}

#[test]
fn redteam_34_inner_addresses_are_refused_in_every_spelling() {
    for (url, open) in [
        ("http://127.0.0.1/", "127.0.0.0/8"),
        ("http://0x7f.1/", "127.0.0.0/8"),
        ("http://2130706433/", "127.0.0.0/8"),
        ("http://017700000001/", "127.0.0.0/8"),
        ("http://0/", "0.0.0.0/8"),
        ("http://[::ffff:127.0.0.1]/", "::ffff:0:0/96"),
        ("http://[::127.0.0.1]/", "::/96"),
        ("http://[::1]/", "::1"),
        ("http://[::]/", "::"),
        ("http://[64:ff9b::7f00:1]/", "64:ff9b::/96"),
        ("http://[64:ff9b:1::7f00:1]/", "64:ff9b:1::/48"),
        ("http://[2002:7f00:1::]/", "2002::/16"),
        ("http://[2001::7f00:1]/", "2001::/32"),
        ("http://169.254.169.254/latest/meta-data/", "169.254.0.0/16"),
        ("http://0xa9fea9fe/", "169.254.0.0/16"),
        ("http://metadata.google.internal./", "metadata.google.internal"),
        ("http://metadata.goog/", "metadata.goog"),
        ("http://metadata/", "metadata"),
        ("http://localhost/", "localhost"),
        ("http://LOCALHOST./", "localhost"),
        ("http://app.localhost/", "app.localhost"),
        ("http://printer.local/", "printer.local"),
        ("http://10.1.2.3/", "10.0.0.0/8"),
        ("http://172.31.0.1/", "172.16.0.0/12"),
        ("http://192.168.1.1/", "192.168.1.1"),
        ("http://100.64.0.1/", "100.64.0.0/10"),
        ("http://100.100.100.200/", "100.100.100.200"),
        ("http://168.63.129.16/", "168.63.129.16"),
        ("http://192.0.0.192/", "192.0.0.0/24"),
        ("http://192.0.2.1/", "192.0.2.0/24"),
        ("http://198.18.0.1/", "198.18.0.0/15"),
        ("http://203.0.113.9/", "203.0.113.0/24"),
        ("http://224.0.0.1/", "224.0.0.0/4"),
        ("http://255.255.255.255/", "240.0.0.0/4"),
        ("http://[fe80::1]/", "fe80::/10"),
        ("http://[fd00:ec2::254]/", "fd00::/8"),
        ("http://[fc00::1]/", "fc00::/7"),
        ("http://[ff02::1]/", "ff00::/8"),
        ("http://[2001:db8::1]/", "2001:db8::/32"),
        ("http://[3fff::1]/", "3fff::/20"),
        ("http://[5f00::1]/", "5f00::/16"),
    ] {
        check(&[], url, false);
        check(&[open], url, true);
    }
}

#[test]
fn public_addresses_are_reachable_on_the_usual_ports() {
    for url in [
        "https://docs.rs/",
        "http://docs.rs/",
        "http://docs.rs:443/",
        "https://93.184.215.14/",
        "https://172.32.0.1/",
        "https://100.128.0.1/",
        "https://[2606:4700::1111]/",
        "https://localhost.example/",
    ] {
        check(&[], url, true);
    }
    for url in [
        "https://docs.rs:8443/",
        "http://93.184.215.14:22/",
        "http://docs.rs:6379/",
    ] {
        check(&[], url, false);
    }
}

#[test]
fn a_port_is_opened_only_for_its_own_entry() {
    let open = ["127.0.0.1:8080", "wiki.example:8443"];
    check(&open, "http://127.0.0.1:8080/", true);
    check(&open, "http://127.0.0.1/", false);
    check(&open, "http://127.0.0.1:8443/", false);
    check(&open, "http://127.0.0.2:8080/", false);
    let address = |url: &str, ip: &str| {
        guard(&open)
            .check_address(&target(url), ip.parse().unwrap())
            .is_ok()
    };
    assert!(address("https://wiki.example:8443/", "93.184.215.14"));
    assert!(!address("https://docs.rs:8443/", "93.184.215.14"));
    assert!(!address("https://wiki.example:8080/", "93.184.215.14"));
}

#[test]
fn resolved_addresses_are_judged_too() {
    let at = |open: &[&str], ip: &str| {
        guard(open)
            .check_address(&target("https://wiki.example/"), ip.parse().unwrap())
            .map_err(|error| error.to_string())
    };
    assert_eq!(at(&[], "93.184.215.14"), Ok(()));
    assert_eq!(
        at(&[], "10.0.0.7"),
        Err("access to wiki.example (10.0.0.7) is not allowed: it is a private address".to_owned())
    );
    assert_eq!(at(&["wiki.example"], "10.0.0.7"), Ok(()));
    assert!(at(&["other.example"], "10.0.0.7").is_err());
    assert_eq!(at(&["10.0.0.0/24"], "10.0.0.7"), Ok(()));
}

#[test]
fn a_name_never_opens_a_metadata_service() {
    for ip in ["169.254.169.254", "fd00:ec2::254", "168.63.129.16", "fe80::1"] {
        let ip: IpAddr = ip.parse().unwrap();
        let wiki = target("https://wiki.example/");
        assert!(guard(&["wiki.example"]).check_address(&wiki, ip).is_err(), "{ip}");
        assert!(guard(&[&ip.to_string()]).check_address(&wiki, ip).is_ok(), "{ip}");
    }
}

#[test]
fn a_guard_with_an_invalid_entry_is_refused() {
    let config = WebConfig {
        allow_private: vec!["http://x".to_owned()],
        ..WebConfig::default()
    };
    assert!(matches!(Guard::new(&config), Err(WebError::Config(entry)) if entry == "http://x"));
}
