//! Fetching from local servers, which the tests' configuration opens.

use super::*;
use agentd_settings::WebConfig;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A server that gives one prepared answer per connection, and records the requests.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Replaces `PORT` in an answer with the server's own port.
    async fn start(answers: &[&str]) -> Self {
        Self::with(
            answers
                .iter()
                .map(|answer| (answer.as_bytes().to_vec(), true))
                .collect(),
        )
        .await
    }

    /// Takes answers, each with whether the connection closes after it.
    async fn with(answers: Vec<(Vec<u8>, bool)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut open = Vec::new();
            for (answer, close) in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = request(&mut stream).await;
                noted.lock().unwrap().push(request);
                let answer = replace(&answer, b"PORT", port.to_string().as_bytes());
                // A client that has read enough disconnects.
                let _ = stream.write_all(&answer).await;
                if close {
                    let _ = stream.shutdown().await;
                } else {
                    open.push(stream);
                }
            }
            std::future::pending::<()>().await;
        });
        Self { port, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The paths of the requests, without the headers.
    fn paths(&self) -> Vec<String> {
        let first = |request: &String| request.lines().next().unwrap().to_owned();
        self.asked().iter().map(first).collect()
    }

    async fn fetch(&self, path: &str) -> Result<Fetch, WebError> {
        self.fetch_with(path, |_| {}).await
    }

    async fn fetch_with(&self, path: &str, change: impl FnOnce(&mut WebConfig)) -> Result<Fetch, WebError> {
        let mut config = WebConfig {
            allow_private: vec![format!("127.0.0.1:{}", self.port)],
            ..WebConfig::default()
        };
        change(&mut config);
        let target = Target::parse(&format!("http://127.0.0.1:{}{path}", self.port)).unwrap();
        Fetcher::new(&config).unwrap().fetch(&target, false).await
    }

    async fn page(&self, path: &str) -> Page {
        match self.fetch(path).await.unwrap() {
            Fetch::Page(page) => page,
            Fetch::Elsewhere(elsewhere) => panic!("{elsewhere:?}"),
        }
    }
}

fn replace(text: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(what.len()).position(|window| window == what) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(with);
        rest = &rest[at + what.len()..];
    }
    out.extend_from_slice(rest);
    out
}

async fn request(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    let mut chunk = [0; 1024];
    while !seen.ends_with(b"\r\n\r\n") {
        let read = stream.read(&mut chunk).await.unwrap();
        if read == 0 {
            // The client disconnected.
            break;
        }
        seen.extend_from_slice(&chunk[..read]);
    }
    String::from_utf8(seen).unwrap()
}

fn ok(content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn moved(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
}

/// Gives each look-up its own answer.
#[derive(Debug)]
struct Rebinding(Mutex<VecDeque<Vec<IpAddr>>>);

impl Rebinding {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(answers.iter().map(parse).collect())))
    }

    fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Resolver for Rebinding {
    fn look_up<'a>(&'a self, _: &'a str) -> Looking<'a> {
        let answer = self.0.lock().unwrap().pop_front();
        Box::pin(async move { answer.ok_or_else(|| std::io::Error::other("unknown")) })
    }

    fn apart(&self) -> Arc<dyn Resolver> {
        unreachable!("one session asks")
    }
}

#[tokio::test]
async fn a_page_is_read_as_markdown() {
    let html = "<title>Hi &amp; ho</title><h1>Hello</h1><p>See <a href=/b>that</a>.";
    let server = Server::start(&[&ok("text/html; charset=utf-8", html)]).await;
    let page = server.page("/a?b=c").await;
    let expected = Page {
        url: format!("http://127.0.0.1:{}/a?b=c", server.port),
        status: 200,
        content_type: "text/html; charset=utf-8".into(),
        title: Some("Hi & ho".into()),
        text: format!("# Hello\n\nSee [that](http://127.0.0.1:{}/b).", server.port),
        bytes: html.len() as u64,
        cut: false,
    };
    assert_eq!(page, expected);
}

#[tokio::test]
async fn i8_a_request_carries_no_secret() {
    let server = Server::start(&[&moved("/b"), &ok("text/plain", "x")]).await;
    server.page("/a").await;
    let names = |request: &String| {
        let mut names: Vec<String> = request
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .map(|(name, _)| name.to_ascii_lowercase())
            .collect();
        names.sort();
        names
    };
    for request in server.asked() {
        let expected = [
            "accept",
            "accept-encoding",
            "accept-language",
            "host",
            "user-agent",
        ];
        assert_eq!(names(&request), expected);
        assert!(request.contains("accept-encoding: identity"), "{request}");
    }
}

#[tokio::test]
async fn text_is_returned_verbatim_and_an_error_page_with_its_status() {
    let server = Server::start(&[
        &ok("application/json", "{\"a\": [1]}\n"),
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\nno page",
        "HTTP/1.1 200 OK\r\n\r\n<!doctype html><b>x",
    ])
    .await;
    let json = server.page("/").await;
    assert_eq!((json.status, json.text.as_str()), (200, "{\"a\": [1]}\n"));
    let missing = server.page("/").await;
    assert_eq!((missing.status, missing.text.as_str()), (404, "no page"));
    assert_eq!(server.page("/").await.text, "**x**", "a page of no type");
}

#[tokio::test]
async fn content_that_is_not_text_is_not_read() {
    let server = Server::start(&[
        &ok("image/png", "x"),
        &ok("application/octet-stream", "x"),
        &ok("", "a\0b"),
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nxyz",
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nxyz",
    ])
    .await;
    for expected in [
        "NotText(\"image/png\")",
        "NotText(\"application/octet-stream\")",
        "NotText(\"unknown\")",
        "Encoded(\"gzip\")",
        "Encoded(\"br\")",
    ] {
        assert_eq!(format!("{:?}", server.fetch("/").await.unwrap_err()), expected);
    }
}

#[tokio::test]
async fn i6_a_huge_page_is_cut_and_the_rest_is_not_read() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    let endless = [head.as_bytes(), &vec![b'x'; 8 << 20]].concat();
    let server = Server::with(vec![(endless, false), (b"x".to_vec(), true)]).await;
    let Ok(Fetch::Page(page)) = server.fetch_with("/", |config| config.max_bytes = 100_000).await else {
        panic!("a page");
    };
    assert_eq!((page.text.len(), page.bytes, page.cut), (100_000, 100_000, true));
}

#[tokio::test]
async fn i6_a_server_that_never_finishes_is_abandoned() {
    let begun = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nx";
    let server = Server::with(vec![(begun.to_vec(), false), (Vec::new(), false)]).await;
    for _ in 0..2 {
        let error = server
            .fetch_with("/", |config| config.timeout_ms = 150)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "the server did not finish within 150 ms");
    }
}

#[tokio::test]
async fn redirects_at_one_server_are_followed_for_a_while() {
    let server = Server::start(&[
        &moved("/b"),
        &moved("http://127.0.0.1:PORT/c#d"),
        &ok("text/plain", "there"),
    ])
    .await;
    let page = server.page("/a").await;
    assert_eq!(page.url, format!("http://127.0.0.1:{}/c", server.port));
    assert_eq!(
        server.paths(),
        ["GET /a HTTP/1.1", "GET /b HTTP/1.1", "GET /c HTTP/1.1"]
    );
    let answer = moved("/again");
    let server = Server::start(&[answer.as_str(); 9]).await;
    let error = server.fetch("/").await.unwrap_err();
    assert_eq!(error.to_string(), "more than 5 redirects in a row");
    assert_eq!(server.paths().len(), 6);
}

#[tokio::test]
async fn redteam_35_a_redirect_is_judged_at_each_hop() {
    let elsewhere = Server::start(&[]).await;
    let server = Server::start(&[
        &moved("http://docs.rs/x"),
        &moved("http://127.0.0.1/"),
        &moved(&format!("http://127.0.0.1:{}/", elsewhere.port)),
        &moved("http://169.254.169.254/latest/meta-data/"),
        &moved("http://[::ffff:127.0.0.1]:PORT/"),
        &moved("http://metadata.google.internal./"),
        &moved("//ana@127.0.0.1:PORT/"),
        &moved("file:///etc/passwd"),
    ])
    .await;
    let given = server.fetch("/").await.unwrap();
    let expected = Elsewhere {
        from: format!("http://127.0.0.1:{}/", server.port),
        to: "http://docs.rs/x".into(),
        status: 302,
    };
    assert_eq!(
        given,
        Fetch::Elsewhere(expected),
        "an address without a verdict is returned"
    );
    for _ in 0..5 {
        let error = server.fetch("/").await.unwrap_err();
        assert!(matches!(error, WebError::Refused { .. }), "{error}");
    }
    for _ in 0..2 {
        let error = server.fetch("/").await.unwrap_err();
        assert!(matches!(error, WebError::Address(..)), "{error}");
    }
    assert_eq!(elsewhere.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn redteam_35_dns_rebinding_reaches_only_the_judged_address() {
    let server = Server::start(&[&ok("text/plain", "one"), &ok("text/plain", "two")]).await;
    let config = WebConfig {
        allow_private: vec![format!("127.0.0.1:{}", server.port)],
        ..WebConfig::default()
    };
    let target = Target::parse(&format!("http://shop.example:{}/", server.port)).unwrap();
    // The first look-up returns the server, a second one would return another address.
    let names = Rebinding::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let mut fetcher = Fetcher::with_resolver(&config, Arc::clone(&names) as Arc<dyn Resolver>).unwrap();
    let answer = fetcher.fetch(&target, false).await.unwrap();
    assert!(matches!(answer, Fetch::Page(page) if page.text == "one"));
    assert_eq!(names.left(), 1, "one look-up for one connection");
    let error = fetcher.fetch(&target, false).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "access to shop.example (127.0.0.2) is not allowed: it is this machine (loopback)"
    );
    assert_eq!(server.paths().len(), 1);
}

#[tokio::test]
async fn redteam_35_a_name_is_judged_again_at_each_hop() {
    let server = Server::start(&[&moved("/b"), &ok("text/plain", "two")]).await;
    let config = WebConfig {
        allow_private: vec![format!("127.0.0.1:{}", server.port)],
        ..WebConfig::default()
    };
    let target = Target::parse(&format!("http://shop.example:{}/", server.port)).unwrap();
    let names = Rebinding::new(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let error = Fetcher::with_resolver(&config, names)
        .unwrap()
        .fetch(&target, false)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "access to shop.example (169.254.169.254) is not allowed: it is a link-local address (cloud metadata)"
    );
    assert_eq!(server.paths(), ["GET / HTTP/1.1"]);
}

#[tokio::test]
async fn i7_one_forbidden_address_among_allowed_ones_refuses_the_fetch() {
    let target = Target::parse("http://shop.example/").unwrap();
    for addresses in [
        ["93.184.215.14", "10.0.0.1"],
        ["93.184.215.14", "::ffff:10.0.0.1"],
    ] {
        let names = Rebinding::new(&[&addresses]);
        let mut fetcher = Fetcher::with_resolver(&WebConfig::default(), names).unwrap();
        let error = fetcher.fetch(&target, false).await.unwrap_err();
        assert!(matches!(error, WebError::Refused { .. }), "{error}");
    }
    let nobody = Rebinding::new(&[&[]]);
    let mut fetcher = Fetcher::with_resolver(&WebConfig::default(), nobody).unwrap();
    for why in ["it has no address", "unknown"] {
        let error = fetcher.fetch(&target, false).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot find the host shop.example: {why}")
        );
    }
}

#[tokio::test]
async fn i7_the_client_resolves_only_judged_hosts() {
    let pins = crate::pins::Pins::default();
    let resolve = |host: &str| reqwest::dns::Resolve::resolve(&pins, host.parse().unwrap());
    assert!(resolve("localhost").await.is_err());
    pins.set("shop.example", vec![Ipv4Addr::LOCALHOST.into()]);
    assert!(resolve("localhost").await.is_err());
    let found: Vec<_> = resolve("shop.example").await.unwrap().collect();
    assert_eq!(found, ["127.0.0.1:0".parse().unwrap()]);
}

/// Answers each address with the verdict of the first matching row.
#[derive(Debug)]
struct Opinions(Vec<(&'static str, Hop)>);

impl Hops for Opinions {
    fn judge(&self, url: &str) -> std::pin::Pin<Box<dyn Future<Output = Hop> + Send + '_>> {
        let fits = self.0.iter().find(|(end, _)| url.ends_with(end));
        let hop = fits.map_or(Hop::Unjudged, |(_, hop)| hop.clone());
        Box::pin(std::future::ready(hop))
    }
}

async fn fetched(
    server: &Server,
    other: &Server,
    opinions: Vec<(&'static str, Hop)>,
) -> Result<Fetch, WebError> {
    let config = WebConfig {
        allow_private: vec![
            format!("127.0.0.1:{}", server.port),
            format!("127.0.0.1:{}", other.port),
        ],
        ..WebConfig::default()
    };
    let target = Target::parse(&format!("http://127.0.0.1:{}/a", server.port)).unwrap();
    let fetcher = Fetcher::new(&config).unwrap();
    fetcher
        .judged_by(Arc::new(Opinions(opinions)))
        .fetch(&target, false)
        .await
}

#[tokio::test]
async fn redteam_35_i7_the_rules_judge_each_hop() {
    let other = Server::start(&[&ok("text/plain", "there")]).await;
    let leads_off = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{}/there\r\n\r\n",
        other.port
    );
    let stays = "HTTP/1.1 302 Found\r\nLocation: /here\r\n\r\n";
    // Denied at the same server, and at another; asked about at the same server.
    for (answer, opinion) in [
        (stays, ("/here", Hop::Denied("no".into()))),
        (&leads_off, ("/there", Hop::Denied("no".into()))),
    ] {
        let server = Server::start(&[answer]).await;
        let refused = fetched(&server, &other, vec![opinion]).await;
        assert!(matches!(refused, Err(WebError::Forbidden(..))), "{refused:?}");
    }
    for (answer, opinions) in [(stays, vec![("/here", Hop::Asked)]), (leads_off.as_str(), vec![])] {
        let server = Server::start(&[answer]).await;
        let given_back = fetched(&server, &other, opinions).await.unwrap();
        assert!(matches!(given_back, Fetch::Elsewhere(_)), "{given_back:?}");
    }
    assert_eq!(other.asked(), Vec::<String>::new());
    // Positive control: an allowed redirect is followed, even to another server.
    let server = Server::start(&[&leads_off]).await;
    let followed = fetched(&server, &other, vec![("/there", Hop::Allowed)])
        .await
        .unwrap();
    assert!(matches!(followed, Fetch::Page(page) if page.text.contains("there")));
}
