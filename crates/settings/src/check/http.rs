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
