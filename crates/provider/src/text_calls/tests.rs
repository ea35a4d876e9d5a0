mod hostile;
mod live;
mod template;
mod told;

use super::*;
use serde_json::Value;

fn tools() -> Vec<String> {
    ["Read", "Bash", "WebFetch", "Write"].map(str::to_owned).to_vec()
}

fn lift_text(text: &str, mode: Mode) -> Lifted {
    lift(vec![Block::text(text)], StopReason::EndTurn, mode, &tools())
}

/// What an answer is: words and calls, or a problem.
type Read = Result<(String, Vec<(String, Value)>), (Unmade, String)>;

fn read(text: &str, mode: Mode) -> Read {
    let lifted = lift_text(text, mode);
    if let Some(unmade) = lifted.reading.unmade {
        assert_eq!(
            (&lifted.content[..], lifted.stop),
            (&[Block::text(text)][..], StopReason::EndTurn),
            "{text}"
        );
        return Err((unmade.kind, unmade.problem));
    }
    let (mut words, mut calls) = (String::new(), Vec::new());
    for block in lifted.content {
        match block {
            Block::Text { text } => words.push_str(&text),
            Block::ToolUse { name, input, .. } => calls.push((name, input)),
            Block::Thinking { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(calls.is_empty(), lifted.stop == StopReason::EndTurn, "{text}");
    Ok((words, calls))
}

#[track_caller]
fn calls(mode: Mode, text: &str, words: &str, expected: &[(&str, Value)]) {
    let calls = expected
        .iter()
        .map(|(name, input)| ((*name).to_owned(), input.clone()))
        .collect();
    assert_eq!(read(text, mode), Ok((words.to_owned(), calls)), "{text}");
}

#[track_caller]
fn stays_text(mode: Mode, text: &str) {
    assert_eq!(read(text, mode), Ok((text.to_owned(), Vec::new())), "{text}");
}

#[track_caller]
fn asks(mode: Mode, text: &str, kind: Unmade, problem: &str) {
    assert_eq!(read(text, mode), Err((kind, problem.to_owned())), "{text}");
}
