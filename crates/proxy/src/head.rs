//! Parses the head of a proxy request: its destination, and what to forward. Pure.

/// The maximum size of a head in bytes.
pub(crate) const MAX_HEAD: usize = 32 << 10;
const MAX_HEADERS: usize = 128;

/// Headers that apply to a single connection and are not forwarded.
const OF_THE_CONNECTION: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// A parsed request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The host as written, without the brackets around an address.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Forward bytes in both directions.
    Tunnel,
    /// One request: the head to forward, and the length of the body in bytes.
    Request { head: Vec<u8>, body: u64 },
}

/// Parses a head and returns its length; `None` while it is incomplete.
///
/// # Errors
/// Why the request is refused.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Wanted, usize)>, &'static str> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD => return Ok(None),
        Ok(httparse::Status::Partial) => return Err("the request head is too long"),
        Err(_) => return Err("this is not a proxy request"),
    };
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Err("this is not a proxy request");
    };
    if method == "CONNECT" {
        let (host, port) = place(target, None).ok_or("CONNECT needs HOST:PORT")?;
        let kind = Kind::Tunnel;
        return Ok(Some((Wanted { host, port, kind }, length)));
    }
    let rest = target
        .get(..7)
        .filter(|scheme| scheme.eq_ignore_ascii_case("http://"))
        .and_then(|_| target.get(7..))
        .ok_or("a plain request needs an absolute URL (http://...)")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = place(authority, Some(80)).ok_or("the address has no valid host")?;
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    let (head, body) = passed_on(method, &path, authority, request.headers)?;
    let kind = Kind::Request { head, body };
    Ok(Some((Wanted { host, port, kind }, length)))
}

/// Parses a host and a port. Rejects anything ambiguous.
fn place(authority: &str, usual: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            (host, digits.then(|| port.parse().ok()).flatten()?)
        }
        _ => (authority, usual?),
    };
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let good = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.len() <= 253
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        }
    };
    (good && port != 0).then(|| (inner.unwrap_or(host).to_owned(), port))
}

/// The head for the server, and the length of the body.
fn passed_on(
    method: &str,
    path: &str,
    authority: &str,
    headers: &[httparse::Header<'_>],
) -> Result<(Vec<u8>, u64), &'static str> {
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n").into_bytes();
    let mut body = None;
    for header in headers {
        let name = header.name.to_ascii_lowercase();
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        match name.as_str() {
            "host" if value.eq_ignore_ascii_case(authority) => continue,
            "host" => return Err("the header Host differs from the host of the address"),
            "transfer-encoding" => {
                return Err("the proxy does not forward a body without a length: send Content-Length");
            }
            "content-length" => {
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let length = digits.then(|| value.parse::<u64>().ok()).flatten();
                if body.is_some() || length.is_none() {
                    return Err("invalid length of the body");
                }
                body = length;
            }
            name if OF_THE_CONNECTION.contains(&name) => continue,
            _ => {}
        }
        head.extend_from_slice(header.name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(header.value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Ok((head, body.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_and_a_request_are_read() {
        let (wanted, length) = read(b"CONNECT crates.io:443 HTTP/1.1\r\nHost: x\r\n\r\nrest")
            .unwrap()
            .unwrap();
        assert_eq!(
            (wanted.host.as_str(), wanted.port, length),
            ("crates.io", 443, 43)
        );
        assert_eq!(wanted.kind, Kind::Tunnel);
        let text = b"POST http://a.b:81/x?y HTTP/1.1\r\nHost: A.b:81\r\nProxy-Authorization: s\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc";
        let (wanted, _) = read(text).unwrap().unwrap();
        assert_eq!((wanted.host.as_str(), wanted.port), ("a.b", 81));
        let Kind::Request { head, body } = wanted.kind else {
            panic!()
        };
        let expected = "POST /x?y HTTP/1.1\r\nHost: a.b:81\r\nConnection: close\r\nContent-Length: 3\r\n\r\n";
        assert_eq!((String::from_utf8(head).unwrap().as_str(), body), (expected, 3));
        assert_eq!(read(b"GET http://a.b/ HT"), Ok(None));
    }

    #[test]
    fn redteam_36_what_can_be_read_in_two_ways_is_refused() {
        let headers = |text: &str| format!("GET http://a.b/ HTTP/1.1\r\n{text}\r\n\r\n");
        for text in [
            headers("Host: evil.example"),
            headers("Host: a.b:8080"),
            headers("Transfer-Encoding: chunked"),
            headers("Content-Length: 1\r\nContent-Length: 2"),
            headers("Content-Length: +1"),
            "GET / HTTP/1.1\r\nHost: a.b\r\n\r\n".to_owned(),
            "GET https://a.b/ HTTP/1.1\r\n\r\n".to_owned(),
            "GET http://user@a.b/ HTTP/1.1\r\n\r\n".to_owned(),
            "GET http://a.b\0.c/ HTTP/1.1\r\n\r\n".to_owned(),
            "GET http://a.b:0/ HTTP/1.1\r\n\r\n".to_owned(),
            "CONNECT a.b HTTP/1.1\r\n\r\n".to_owned(),
            "CONNECT a.b:44x3 HTTP/1.1\r\n\r\n".to_owned(),
            "CONNECT user@a.b:443 HTTP/1.1\r\n\r\n".to_owned(),
            "CONNECT a.b%2eevil:443 HTTP/1.1\r\n\r\n".to_owned(),
            "CONNECT [::1%25lo]:443 HTTP/1.1\r\n\r\n".to_owned(),
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn i6_a_head_has_an_end() {
        let long = format!("GET http://a.b/ HTTP/1.1\r\nX: {}", "x".repeat(MAX_HEAD));
        assert_eq!(read(long.as_bytes()), Err("the request head is too long"));
    }
}
