//! Recorded exchanges: multi-document YAML, each document one request (`when`) and its answer (`then`).

use crate::error::ConformanceError;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// One recorded request and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Exchange {
    /// The request.
    pub when: When,
    /// The answer.
    pub then: Then,
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct When {
    /// The path of the URL.
    #[serde(default)]
    pub path: String,
    /// The HTTP method.
    #[serde(default)]
    pub method: String,
    /// The raw body.
    #[serde(default)]
    pub body: Option<String>,
}

/// A recorded answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Then {
    /// The HTTP status.
    pub status: u16,
    /// The headers that were recorded.
    #[serde(default)]
    pub header: Option<Vec<Header>>,
    /// The raw body.
    #[serde(default)]
    pub body: Option<String>,
}

/// One recorded header.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    #[serde(default)]
    pub value: String,
}

impl Then {
    /// The body's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default().as_bytes()
    }

    /// The headers as the classifier expects them; invalid ones are left out.
    #[must_use]
    pub fn headers(&self) -> HeaderMap {
        let pair = |header: &Header| {
            Some((
                HeaderName::try_from(&header.name).ok()?,
                HeaderValue::try_from(&header.value).ok()?,
            ))
        };
        self.header.iter().flatten().filter_map(pair).collect()
    }

    /// Whether the answer was streamed, according to the header or, if it was not recorded, to the form of the body.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        let said = self
            .header
            .iter()
            .flatten()
            .find(|header| header.name.eq_ignore_ascii_case("content-type"))
            .map(|header| header.value.to_ascii_lowercase());
        let looks = |marks: &[&str]| {
            let body = self.body.as_deref().unwrap_or_default().trim_start();
            marks.iter().any(|mark| body.starts_with(mark))
        };
        match said {
            Some(said) if said.contains("event-stream") || said.contains("ndjson") => true,
            Some(said) if said.contains("json") => looks(&["data:", "event:"]),
            Some(_) | None => looks(&["data:", "event:", "id:", ":"]),
        }
    }
}

/// The exchanges of one file; a document that is no exchange is reported, never skipped.
///
/// # Errors
/// The file cannot be read.
pub fn exchanges(path: &Path) -> Result<Vec<Result<Exchange, String>>, ConformanceError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConformanceError::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(parse(&text))
}

fn parse(text: &str) -> Vec<Result<Exchange, String>> {
    let mut found = Vec::new();
    for document in serde_norway::Deserializer::from_str(text) {
        match Option::<Exchange>::deserialize(document) {
            Ok(Some(exchange)) => found.push(Ok(exchange)),
            Ok(None) => {}
            Err(error) => {
                found.push(Err(format!("the document is no recorded exchange: {error}")));
                // After a syntax error, the parser cannot find the next document.
                break;
            }
        }
    }
    found
}

/// All files below a directory that end in one of these extensions, sorted.
///
/// # Errors
/// A directory cannot be read.
pub fn files(dir: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, ConformanceError> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        let failed = |source| ConformanceError::Read {
            path: dir.clone(),
            source,
        };
        for entry in std::fs::read_dir(&dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path
                .extension()
                .and_then(|extension| extension.to_str())
                .is_some_and(|extension| extensions.contains(&extension))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_exchanges_and_others_are_reported() {
        let text =
            "when:\n  path: /v1/models\n  method: GET\nthen:\n  status: 401\n  body: 'no'\n---\nwhen: 3\n";
        let found = parse(text);
        let first = found.first().unwrap().as_ref().unwrap();
        assert_eq!((first.when.path.as_str(), first.then.status), ("/v1/models", 401));
        assert!(found.get(1).unwrap().is_err());
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_stream_is_recognized_by_its_header_or_its_content() {
        let then = |kind: Option<&str>, body: &str| Then {
            status: 200,
            header: kind.map(|kind| {
                vec![Header {
                    name: "Content-Type".into(),
                    value: kind.into(),
                }]
            }),
            body: Some(body.into()),
        };
        assert!(then(Some("text/event-stream; charset=utf-8"), "").is_stream());
        assert!(then(None, "\ndata: {}\n\n").is_stream());
        assert!(!then(Some("application/json"), "{}").is_stream());
        assert!(!then(None, "{}").is_stream());
    }
}
