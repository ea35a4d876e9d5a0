//! The web page: its files are part of the program, below a path that changes with them, compressed once.

mod join;

use crate::router::App;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;

/// A debug build reads the files from the checkout when the daemon starts.
#[derive(rust_embed::Embed)]
#[folder = "ui/"]
struct Files;

/// The placeholder in `index.html` for the path of the files.
const ASSETS: &str = "@assets";

/// Only the page's own files and this server: model and tool output cannot load or run anything.
const POLICY: &str = "default-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; object-src 'none'";

/// A file as it is sent.
#[derive(Debug)]
struct Asset {
    kind: &'static str,
    plain: Bytes,
    gzip: Bytes,
}

impl Asset {
    fn new(name: &str, plain: Vec<u8>) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing to memory does not fail.
        let _ = encoder.write_all(&plain);
        Self {
            kind: kind(name),
            gzip: encoder.finish().unwrap_or_default().into(),
            plain: plain.into(),
        }
    }

    fn response(&self, accepted: &HeaderMap, caching: &'static str) -> Response {
        let gzip = accepted
            .get(header::ACCEPT_ENCODING)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.split(',').any(|coding| coding.trim() == "gzip"));
        let body = if gzip { &self.gzip } else { &self.plain };
        let mut response = body.clone().into_response();
        let fixed = [
            (header::CONTENT_TYPE, self.kind),
            (header::CACHE_CONTROL, caching),
            (header::VARY, "accept-encoding"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (
                HeaderName::from_static("cross-origin-opener-policy"),
                "same-origin",
            ),
        ];
        let headers = response.headers_mut();
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json" | "webmanifest") => "application/json",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    }
}

/// All files of the page.
#[derive(Debug)]
pub(crate) struct Page {
    index: Asset,
    /// The hash of all files, in hex.
    version: String,
    assets: HashMap<String, Asset>,
}

impl Page {
    /// Reads and compresses the files.
    pub(crate) fn load() -> Self {
        let mut names: Vec<_> = Files::iter().collect();
        names.sort_unstable();
        let mut hash = Sha256::new();
        let mut files = HashMap::new();
        for name in names {
            let Some(file) = Files::get(&name) else { continue };
            hash.update(name.as_bytes());
            hash.update([0]);
            hash.update(file.metadata.sha256_hash());
            files.insert(name.into_owned(), file.data.into_owned());
        }
        let digest = hash.finalize();
        let version: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let index = files.remove("index.html").unwrap_or_default();
        let index = join::style_sheets(&String::from_utf8_lossy(&index), &mut files);
        let index = join::modules(&index, &mut files);
        let index = index.replace(ASSETS, &format!("/ui/{version}"));
        let assets = files.into_iter().map(|(name, data)| {
            let asset = Asset::new(&name, data);
            (name, asset)
        });
        Self {
            index: Asset::new("index.html", index.into_bytes()),
            assets: assets.collect(),
            version,
        }
    }
}

/// The routes of the page.
pub(crate) fn routes() -> Router<Arc<App>> {
    let to_page = || get(async || Redirect::temporary("/ui/"));
    Router::new()
        .route("/", to_page())
        .route("/ui", to_page())
        .route("/ui/", get(index))
        .route("/ui/{version}/{*path}", get(asset))
}

async fn index(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    app.page().await.index.response(&headers, "no-cache")
}

/// A file of this version; a page of another version gets 404 and must be loaded again.
async fn asset(
    State(app): State<Arc<App>>,
    Path((version, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let page = app.page().await;
    match page.assets.get(&path).filter(|_| version == page.version) {
        Some(asset) => asset.response(&headers, "public, max-age=31536000, immutable"),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound of the whole page on the wire.
    const MAX_PAGE: usize = 200_000;

    #[test]
    fn the_page_is_small_and_loads_nothing_from_other_hosts() {
        let page = Page::load();
        let sent: usize = page.assets.values().map(|asset| asset.gzip.len()).sum();
        assert!(sent + page.index.gzip.len() <= MAX_PAGE, "{sent} bytes");
        let index = String::from_utf8_lossy(&page.index.plain);
        assert!(!index.contains(ASSETS) && !index.contains("://"), "{index}");
        for found in index.split(&format!("/ui/{}/", page.version)).skip(1) {
            let name = found.split('"').next().unwrap_or_default();
            assert!(page.assets.contains_key(name), "{name} is missing");
        }
    }

    #[test]
    fn the_first_view_is_one_style_sheet_and_one_module() {
        let page = Page::load();
        let sheets: Vec<_> = page.assets.keys().filter(|name| name.ends_with(".css")).collect();
        assert_eq!(sheets, [join::STYLES], "index.html names every other one");
        let index = String::from_utf8_lossy(&page.index.plain);
        assert_eq!(index.matches("stylesheet").count(), 1, "{index}");
        assert_eq!(index.matches("<script").count(), 2, "{index}");
        assert!(!index.contains("fleet"), "{index}");
        let joined = page
            .assets
            .get(join::MODULES)
            .map(|asset| asset.plain.clone())
            .unwrap_or_default();
        let joined = String::from_utf8_lossy(&joined);
        assert!(
            joined.contains("modules['js/views/fleet.js'] ="),
            "a module of the first view is outside of what ui/join.rs understands"
        );
        let left: Vec<_> = joined
            .lines()
            .skip(1)
            .filter(|line| line.starts_with("import {") || line.starts_with("export "))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn every_file_has_a_known_type() {
        for (name, asset) in &Page::load().assets {
            assert_ne!(asset.kind, "application/octet-stream", "{name}");
        }
    }
}
