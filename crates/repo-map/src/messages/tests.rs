use super::*;
use crate::tags::{Definition, Kind, Reference};
use proptest::prelude::*;

fn tags(definitions: &[(&str, u32)], references: &[(&str, u32)]) -> Tags {
    let definition = |(name, line): &(&str, u32)| Definition {
        name: (*name).to_owned(),
        kind: Kind::Function,
        line: *line,
    };
    let reference = |(name, count): &(&str, u32)| Reference {
        name: (*name).to_owned(),
        count: *count,
    };
    Tags {
        definitions: definitions.iter().map(definition).collect(),
        references: references.iter().map(reference).collect(),
    }
}

#[test]
fn requests_and_replies_survive_their_lines() {
    for language in Language::ALL {
        let request = Request {
            language,
            bytes: MAX_FILE_BYTES,
        };
        let line = request.line();
        assert!(line.len() as u64 <= MAX_REQUEST && line.matches('\n').count() == 1);
        assert_eq!(Request::read(&line), Some(request));
    }
    for reply in [Reply::TooHard, Reply::Tags(tags(&[("größe", 2)], &[("潮", 7)]))] {
        let line = reply.line();
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(Reply::read(&line), Some(reply));
    }
}

#[test]
fn i6_the_largest_file_is_asked_about_and_a_larger_one_is_not() {
    let line = |bytes| {
        Request {
            language: Language::C,
            bytes,
        }
        .line()
    };
    assert!(Request::read(&line(MAX_FILE_BYTES)).is_some());
    assert_eq!(Request::read(&line(MAX_FILE_BYTES + 1)), None);
}

#[test]
fn i6_the_largest_answer_fits_and_a_larger_one_is_no_answer() {
    // Each byte of this name takes two in the line.
    let name = "\"".repeat(MAX_NAME);
    let full = |definitions: usize, references: usize| {
        Reply::Tags(tags(
            &vec![(name.as_str(), u32::MAX); definitions],
            &vec![(name.as_str(), u32::MAX); references],
        ))
        .line()
    };
    let largest = full(MAX_TAGS, MAX_TAGS);
    assert!((largest.len() as u64) < MAX_ANSWER, "{}", largest.len());
    assert!(Reply::read(&largest).is_some());
    assert_eq!(Reply::read(&full(MAX_TAGS + 1, 0)), None);
    assert_eq!(Reply::read(&full(0, MAX_TAGS + 1)), None);
}

#[test]
fn i6_names_and_lines_that_no_file_has_are_no_answer() {
    let longer = "x".repeat(MAX_NAME + 1);
    for (name, line) in [(longer.as_str(), 1), ("", 1), ("a\u{1b}[2J", 1), ("a", 0)] {
        assert_eq!(
            Reply::read(&Reply::Tags(tags(&[(name, line)], &[])).line()),
            None,
            "{name}"
        );
    }
    for name in [longer.as_str(), "", "a\nb"] {
        assert_eq!(
            Reply::read(&Reply::Tags(tags(&[], &[(name, 1)])).line()),
            None,
            "{name}"
        );
    }
    assert!(Reply::read(&Reply::Tags(tags(&[("x".repeat(MAX_NAME).as_str(), 1)], &[])).line()).is_some());
}

#[test]
fn only_this_version_of_the_program_is_meant() {
    assert!(is_greeting(&greeting()));
    for other in [
        r#"{"program": "agentd-tags", "version": 0}"#,
        r#"{"program": "ctags", "version": 1}"#,
        "agentd-tags 1",
        "",
    ] {
        assert!(!is_greeting(other), "{other}");
    }
}

proptest! {
    #[test]
    fn garbage_is_no_message(line in prop_oneof![".{0,80}", r#"\{"(tags|language|bytes)": ?.{0,60}\}"#]) {
        // Neither may panic; whatever is read is within the bounds.
        let _ = Reply::read(&line);
        if let Some(request) = Request::read(&line) {
            prop_assert!(request.bytes <= MAX_FILE_BYTES);
        }
        let _ = is_greeting(&line);
    }
}
