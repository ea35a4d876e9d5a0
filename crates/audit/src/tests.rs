//! Every manipulation of a chain is detected at its first affected line.

use crate::{Broken, Chain, Link, Stop, links_of, seal};

fn chain(count: usize) -> Vec<String> {
    let mut prev = Link::START;
    let mut line = |n: usize| {
        let (line, own) = seal(&format!("{{\"n\":{n},\"why\":\"a \\\"}} b\"}}"), prev).unwrap();
        prev = own;
        line
    };
    (1..=count).map(&mut line).collect()
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The first broken line, or the number of intact lines.
fn verdict(text: &str) -> Result<u64, (u64, Broken)> {
    let mut chain = Chain::default();
    match chain.read(text.as_bytes()) {
        Ok(()) => Ok(chain.lines()),
        Err(Stop::Broken(line, broken)) => Err((line, broken)),
        Err(Stop::Io(error)) => panic!("{error}"),
    }
}

#[test]
fn a_sealed_line_keeps_its_content_and_names_the_previous_line() {
    let (line, own) = seal("{\"a\":1}", Link::START).unwrap();
    let zeros = "0".repeat(64);
    assert_eq!(
        line,
        format!("{{\"a\":1,\"prev\":\"{zeros}\",\"hash\":\"{own}\"}}")
    );
    assert_eq!(links_of(&line), Some((Link::START, own, true)));
    assert_eq!(own.to_string().parse(), Ok(own));
    let (empty, own) = seal("{}", own).unwrap();
    assert_eq!(
        links_of(&empty).map(|(_, own, right)| (own, right)),
        Some((own, true))
    );
}

#[test]
fn only_one_object_on_one_line_is_sealed() {
    for text in ["", "[]", "1", "{", "}", "{\"a\":\n1}"] {
        assert_eq!(seal(text, Link::START), None, "{text:?}");
    }
}

#[test]
fn an_intact_chain_is_reported_with_its_head() {
    let lines = chain(3);
    let mut read = Chain::default();
    read.read(text(&lines).as_bytes()).unwrap();
    let head = links_of(&lines[2]).map(|(_, own, _)| own);
    assert_eq!((read.lines(), read.head(), read.is_whole()), (3, head, true));
    assert_eq!(verdict(""), Ok(0));
}

#[test]
fn an_edited_line_is_found() {
    let mut lines = chain(5);
    lines[2] = lines[2].replace("\"n\":3", "\"n\":9");
    assert_eq!(verdict(&text(&lines)), Err((3, Broken::Changed)));
}

#[test]
fn a_line_edited_and_sealed_again_breaks_the_next() {
    let mut lines = chain(5);
    let (prev, ..) = links_of(&lines[2]).unwrap();
    lines[2] = seal("{\"n\":9}", prev).unwrap().0;
    assert_eq!(verdict(&text(&lines)), Err((4, Broken::Moved)));
}

#[test]
fn removed_added_and_reordered_lines_are_found() {
    let mut lines = chain(5);
    lines.remove(1);
    assert_eq!(verdict(&text(&lines)), Err((2, Broken::Moved)));
    let mut lines = chain(5);
    lines.swap(1, 2);
    assert_eq!(verdict(&text(&lines)), Err((2, Broken::Moved)));
    let mut lines = chain(5);
    lines.insert(3, lines[2].clone());
    assert_eq!(verdict(&text(&lines)), Err((4, Broken::Moved)));
    let mut lines = chain(5);
    lines.insert(3, "{\"n\":4}".to_owned());
    assert_eq!(verdict(&text(&lines)), Err((4, Broken::Unsealed)));
}

#[test]
fn a_truncated_line_is_found_wherever_it_is_cut() {
    let whole = text(&chain(2));
    let second = whole.find('\n').unwrap() + 1;
    for end in second + 1..whole.len() {
        assert_eq!(verdict(&whole[..end]), Err((2, Broken::Cut)), "{end}");
    }
}

#[test]
fn every_changed_byte_is_found() {
    let whole = text(&chain(2)).into_bytes();
    for at in 0..whole.len() {
        for flip in [1, 0x20, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            let mut read = Chain::default();
            assert!(read.read(bytes.as_slice()).is_err(), "{at} {flip}");
        }
    }
}

#[test]
fn lines_missing_at_the_end_are_found_with_a_stored_head() {
    let lines = chain(5);
    let (_, kept, _) = links_of(&lines[4]).unwrap();
    let with = |lines: &[String]| {
        let mut chain = Chain::with_head(Some(kept));
        chain.read(text(lines).as_bytes()).unwrap();
        chain.missing()
    };
    assert_eq!(with(&lines), None);
    assert_eq!(with(&lines[..4]), Some(kept));
}

#[test]
fn a_chain_continues_over_files_and_may_lack_the_oldest() {
    let lines = chain(6);
    let mut read = Chain::default();
    for part in lines[2..].chunks(2) {
        read.read(text(part).as_bytes()).unwrap();
    }
    assert_eq!((read.lines(), read.is_whole()), (4, false));
    let mut read = Chain::default();
    read.read(text(&lines[..2]).as_bytes()).unwrap();
    let gap = read.read(text(&lines[4..]).as_bytes());
    assert!(matches!(gap, Err(Stop::Broken(1, Broken::Moved))), "{gap:?}");
}

#[test]
fn lines_before_the_chain_are_counted_separately() {
    let before = ["{\"old\":1}".to_owned(), "{\"old\":2}".to_owned()];
    let sealed = chain(3);
    let mut read = Chain::default();
    read.read(text(&[&before[..], &sealed[..]].concat()).as_bytes())
        .unwrap();
    assert_eq!((read.unsealed(), read.lines(), read.is_whole()), (2, 3, true));
    // Only the start of a chain may follow them; otherwise someone removed the seals of its first lines.
    let stripped = [&before[..], &sealed[1..]].concat();
    assert_eq!(verdict(&text(&stripped)), Err((3, Broken::Stripped)));
    let mut read = Chain::default();
    read.read(text(&before).as_bytes()).unwrap();
    assert_eq!((read.unsealed(), read.head()), (2, None));
}

#[test]
fn i1_cursors_that_go_back_break_the_chain_unless_the_loss_was_accepted() {
    let sealed = |lines: &[(u64, &str)]| {
        let mut prev = Link::START;
        let mut text = String::new();
        for (cursor, event) in lines {
            let (line, own) = seal(&format!("{{\"event\":\"{event}\",\"cursor\":{cursor}}}"), prev).unwrap();
            prev = own;
            text.push_str(&line);
            text.push('\n');
        }
        verdict(&text)
    };
    let (other, accepted) = ("tool.started", crate::LOSS_ACCEPTED);
    assert_eq!(sealed(&[(3, other), (3, other), (9, other)]), Ok(3));
    assert_eq!(
        sealed(&[(3, other), (9, other), (4, other)]),
        Err((3, Broken::Backwards))
    );
    assert_eq!(sealed(&[(9, other), (3, accepted), (4, other)]), Ok(3));
    assert_eq!(
        sealed(&[(9, other), (3, accepted), (2, other)]),
        Err((3, Broken::Backwards))
    );
}
