use super::*;

fn event(name: &str, data: &str) -> SseItem {
    SseItem::Event(SseEvent {
        name: name.into(),
        data: data.into(),
    })
}

fn decode(chunks: &[&[u8]], limit: usize) -> Result<Vec<SseItem>, TooLong> {
    let mut decoder = SseDecoder::new(limit);
    let mut items = Vec::new();
    for chunk in chunks {
        decoder.feed(chunk, &mut items)?;
    }
    decoder.finish(&mut items)?;
    Ok(items)
}

/// The same items must result wherever the input is split.
fn check(bytes: &[u8], expected: &[SseItem]) {
    assert_eq!(decode(&[bytes], 1 << 20).as_deref(), Ok(expected), "in one piece");
    for at in 0..=bytes.len() {
        let (head, tail) = bytes.split_at(at);
        assert_eq!(
            decode(&[head, tail], 1 << 20).as_deref(),
            Ok(expected),
            "cut at {at}"
        );
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decode(&single, 1 << 20).as_deref(), Ok(expected), "byte by byte");
}

#[test]
fn lines_end_in_lf_crlf_or_cr() {
    let expected = [event("a", "1"), event("", "2")];
    check(b"event: a\ndata: 1\n\ndata: 2\n\n", &expected);
    check(b"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", &expected);
    check(b"event: a\rdata: 1\r\rdata: 2\r\r", &expected);
}

#[test]
fn data_lines_are_joined_and_one_space_is_dropped() {
    check(b"data:  x\ndata:y\ndata\n\n", &[event("", " x\ny\n")]);
}

#[test]
fn a_byte_order_mark_at_the_start_is_dropped() {
    check(
        b"\xEF\xBB\xBFdata: 1\n\n\xEF\xBB\xBFdata: 2\n\n",
        &[event("", "1")],
    );
}

#[test]
fn characters_may_be_cut_anywhere() {
    check("data: 你好 🦀\n\n".as_bytes(), &[event("", "你好 🦀")]);
}

#[test]
fn bad_utf8_spoils_one_character_not_the_stream() {
    check(
        b"data: a\xFFb\n\ndata: c\n\n",
        &[event("", "a\u{FFFD}b"), event("", "c")],
    );
}

#[test]
fn comments_are_seen_and_are_no_events() {
    check(
        b": keep-alive\n\n:\ndata: 1\n\n",
        &[SseItem::Comment, SseItem::Comment, event("", "1")],
    );
}

#[test]
fn other_fields_and_events_without_data_are_skipped() {
    check(
        b"id: 7\nretry: 10\nevent: lonely\n\ndata: 1\n\n",
        &[event("", "1")],
    );
}

#[test]
fn the_last_event_counts_without_its_blank_line() {
    check(b"data: 1\n\ndata: 2", &[event("", "1"), event("", "2")]);
    check(b"data: 1\n\ndata: 2\n", &[event("", "1"), event("", "2")]);
}

#[test]
fn a_line_and_an_event_have_a_limit() {
    assert_eq!(decode(&[b"data: 12345678901234567"], 16), Err(TooLong));
    assert_eq!(
        decode(&[b"data: 12345\ndata: 12345\ndata: 1234567\n"], 16),
        Err(TooLong)
    );
    assert_eq!(
        decode(&[b"data: 1234567890\n\n"], 16),
        Ok(vec![event("", "1234567890")])
    );
}
