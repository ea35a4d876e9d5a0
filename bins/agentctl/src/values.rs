//! Parsers for flag values: labels, durations, times, rules, texts from files.

mod budgets;

pub(crate) use budgets::{budget, budget_over};

use crate::clock::now;
use crate::failure::Failure;
use crate::images;
use agentd_protocol::{Block, EVENT_KINDS, Labels, Selector, Timestamp};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Larger than any daemon accepts; keeps a wrong file from exhausting memory.
const MAX_INPUT_BYTES: u64 = 64 << 20;

/// `k=v`.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected KEY=VALUE, such as team=infra".to_owned()),
    }
}

pub(crate) fn labels(pairs: &[(String, String)]) -> Labels {
    pairs.iter().cloned().collect()
}

/// Combines all selectors of a command line: a session must match each of them.
pub(crate) fn selector(all: &[Selector]) -> Selector {
    all.iter().cloned().fold(Selector::default(), Selector::and)
}

/// `30s`, `5m`, `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; expected a duration such as 30s or 5m"))
}

/// A duration that is not 0.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than 0".to_owned()),
        time => Ok(time),
    }
}

/// A duration before now, or an RFC 3339 time.
pub(crate) fn since(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    let ago = duration(text.trim_end_matches(" ago")).map_err(|_| {
        format!("{text:?} is neither a duration such as 10m nor a timestamp such as 2026-11-20T09:00:00Z")
    })?;
    Ok(Timestamp(now.0.saturating_sub(
        u64::try_from(ago.as_millis()).unwrap_or(u64::MAX),
    )))
}

/// The value of an optional `--since`; `example` shows how to type it.
pub(crate) fn since_flag(text: Option<&str>, example: &str) -> Result<Option<Timestamp>, Failure> {
    let moment = text.map(|text| since(text, now())).transpose();
    moment.map_err(|why| Failure::invalid(why, example))
}

/// Checks event types and families of types: a misspelt one would silently match nothing.
pub(crate) fn kinds(asked: &[String]) -> Result<(), Failure> {
    let families: BTreeSet<&str> = EVENT_KINDS.iter().filter_map(|kind| family(kind)).collect();
    let known = |kind: &str| EVENT_KINDS.contains(&kind) || families.contains(kind) || kind == "unknown";
    let Some(bad) = asked.iter().find(|kind| !known(kind)) else {
        return Ok(());
    };
    let of_family = family(bad).filter(|family| families.contains(family));
    let hint = match of_family {
        Some(of) => {
            let types = EVENT_KINDS.iter().filter(|kind| family(kind) == Some(of));
            format!(
                "event types of {of}: {}",
                Vec::from_iter(types.copied()).join(", ")
            )
        }
        None => format!(
            "families of event types: {}; or one type, such as tool.finished",
            Vec::from_iter(families).join(", ")
        ),
    };
    Err(Failure::invalid(format!("unknown event type {bad:?}"), &hint))
}

/// The family of a type: `tool` for `tool.finished`.
fn family(kind: &str) -> Option<&str> {
    kind.split_once('.').map(|(family, _)| family)
}

/// The text of a file, or of stdin for `-`.
pub(crate) fn text_of(path: &Path) -> Result<String, Failure> {
    let bytes = bytes_of(path)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::invalid(
            format!("{} is not UTF-8: invalid byte at {at}", path.display()),
            "convert it first, for example with iconv",
        )
    })
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin()
            .lock()
            .take(MAX_INPUT_BYTES + 1)
            .read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::file(path, &error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_INPUT_BYTES {
        return Err(Failure::invalid(
            format!("{} is larger than {} MiB", path.display(), MAX_INPUT_BYTES >> 20),
            "give the agent the path in the prompt and let it read the file",
        ));
    }
    Ok(bytes)
}

/// The prompt, from the argument (`-`: stdin) or the file, and images. It must not be empty.
pub(crate) fn prompt(
    text: Option<&str>,
    file: Option<&Path>,
    images: &[PathBuf],
    usage: &str,
) -> Result<Vec<Block>, Failure> {
    let mut blocks = vec![Block::text(words(text, file, usage)?)];
    for path in images {
        blocks.push(images::read(path)?);
    }
    Ok(blocks)
}

fn words(text: Option<&str>, file: Option<&Path>, usage: &str) -> Result<String, Failure> {
    let text = match (text, file) {
        (Some("-"), _) => text_of(Path::new("-"))?,
        (Some(text), _) => text.to_owned(),
        (None, Some(file)) => text_of(file)?,
        (None, None) => return Err(Failure::invalid("no prompt given", usage)),
    };
    if text.trim().is_empty() {
        return Err(Failure::invalid("the prompt is empty", usage));
    }
    Ok(text)
}

/// Rules in the daemon's syntax.
pub(crate) fn rules(allow: &[String], deny: &[String]) -> Vec<String> {
    let allow = allow.iter().map(|rule| format!("allow {rule}"));
    allow
        .chain(deny.iter().map(|rule| format!("deny {rule}")))
        .collect()
}

/// The absolute path of the directory; the daemon has no notion of the client's current directory.
pub(crate) fn workdir(asked: Option<&Path>) -> Result<String, Failure> {
    let path = asked.map_or_else(|| PathBuf::from("."), Path::to_owned);
    let bad = |what: String| Failure::invalid(what, "specify a directory with -C DIR");
    let mut absolute = std::env::current_dir()
        .map(|here| here.join(&path).components().collect::<PathBuf>())
        .map_err(|error| bad(format!("cannot use the current directory: {error}")))?;
    // The daemon rejects `..`, and only the file system can resolve it behind a symbolic link.
    if absolute.components().any(|part| part == Component::ParentDir) {
        absolute = absolute.canonicalize().map_err(|error| {
            bad(format!(
                "cannot use the working directory {}: {error}",
                absolute.display()
            ))
        })?;
    }
    let meta = std::fs::metadata(&absolute).map_err(|error| {
        bad(format!(
            "cannot use the working directory {}: {error}",
            absolute.display()
        ))
    })?;
    if !meta.is_dir() {
        return Err(bad(format!("{} is not a directory", absolute.display())));
    }
    absolute
        .to_str()
        .map(str::to_owned)
        .ok_or_else(|| bad(format!("the path {} is not UTF-8", absolute.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_duration_or_a_timestamp() {
        let now = Timestamp(1_763_629_200_123);
        assert_eq!(since("10m", now), Ok(Timestamp(now.0 - 600_000)));
        assert_eq!(since("1h ago", now), Ok(Timestamp(now.0 - 3_600_000)));
        assert_eq!(since("2025-11-20T09:00:00.123Z", now), Ok(now));
        assert!(since("yesterday", now).is_err());
    }

    #[test]
    fn kinds_are_types_or_families_of_types() {
        let asked = |kinds: &[&str]| kinds_of(kinds).map_err(|failure| failure.fault());
        assert!(asked(&[]).is_ok() && asked(&["tool", "turn.finished", "side_call"]).is_ok());
        let fault = asked(&["tool", "bogus"]).unwrap_err();
        assert_eq!(fault.message, "unknown event type \"bogus\"");
        let hint = fault.hint.unwrap();
        assert!(hint.contains("model") && hint.contains("tool,"), "{hint}");
        let hint = asked(&["tool.finish"]).unwrap_err().hint.unwrap();
        assert_eq!(
            hint,
            "event types of tool: tool.proposed, tool.started, tool.finished"
        );
        assert!(asked(&[""]).is_err());
    }

    fn kinds_of(asked: &[&str]) -> Result<(), Failure> {
        kinds(&asked.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn labels_need_a_key() {
        assert_eq!(label("team=infra=x"), Ok(("team".into(), "infra=x".into())));
        assert!(label("team").is_err());
        assert!(label("=x").is_err());
    }

    #[test]
    fn a_working_directory_above_this_one_is_normalized() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        let above = workdir(Some(Path::new(".."))).unwrap();
        assert_eq!(Path::new(&above), here.parent().unwrap());
        // Behind a symbolic link, `..` is the parent of the link's target.
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::os::unix::fs::symlink(&deep, dir.path().join("link")).unwrap();
        let behind = workdir(Some(&dir.path().join("link/.."))).unwrap();
        assert_eq!(Path::new(&behind), deep.parent().unwrap().canonicalize().unwrap());
        assert!(workdir(Some(Path::new("../no such directory"))).is_err());
    }

    #[test]
    fn a_missing_empty_or_invalid_prompt_is_refused() {
        assert_eq!(
            prompt(Some("go"), None, &[], "u").unwrap(),
            vec![Block::text("go")]
        );
        assert_eq!(
            prompt(None, None, &[], "u").unwrap_err().fault().message,
            "no prompt given"
        );
        assert_eq!(prompt(Some(" \n"), None, &[], "u").unwrap_err().exit().0, 2);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("p");
        std::fs::write(&file, b"ab\xff").unwrap();
        let failure = prompt(None, Some(&file), &[], "u").unwrap_err();
        assert!(
            failure.to_string().ends_with("is not UTF-8: invalid byte at 2"),
            "{failure}"
        );
        assert_eq!(
            prompt(None, Some(&dir.path().join("none")), &[], "u")
                .unwrap_err()
                .exit()
                .0,
            3
        );
    }
}
