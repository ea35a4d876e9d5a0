//! The checks of `[http]`.

use super::Check;
use std::net::SocketAddr;

impl Check<'_> {
    pub(super) fn http(&mut self) {
        let http = self.settings().http.clone();
        let what = format!("{:?} is not an address with a port", http.listen);
        let good = http.listen == "off" || http.listen.parse::<SocketAddr>().is_ok();
        self.require(
            good,
            "http.listen",
            &what,
            "write ADDRESS:PORT, such as 127.0.0.1:7433, or off",
        );
        let beyond = http
            .listen
            .parse::<SocketAddr>()
            .is_ok_and(|at| !at.ip().is_loopback());
        self.require(
            !beyond || http.tls.is_on() || http.behind_proxy,
            "http.listen",
            &format!("{} is reachable from other machines, without encryption", http.listen),
            "set http.tls.cert and key, or http.behind_proxy = true behind a proxy with TLS, or listen on 127.0.0.1",
        );
        for origin in http.origins.iter().filter(|origin| !is_origin(origin)) {
            self.require(
                false,
                "http.origins",
                &format!("{origin:?} is not an origin"),
                "write what browsers send: https://HOST or https://HOST:PORT, without a path",
            );
        }
        self.require(
            http.tls.cert.is_empty() == http.tls.key.is_empty(),
            "http.tls",
            "only one of cert and key is set",
            "set both, or none",
        );
        self.require(
            http.tls.nodes.is_empty() || http.tls.is_on(),
            "http.tls.nodes",
            "this node has no certificate to show to other nodes",
            "set cert and key, too",
        );
    }
}

/// Whether a browser could send this as `Origin`.
fn is_origin(text: &str) -> bool {
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    host.is_some_and(|host| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_:[]".contains(c);
        !host.is_empty() && host.chars().all(plain)
    })
}
