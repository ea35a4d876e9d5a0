//! Connections that break.

use super::{DIALECTS, PATIENT, ask, ask_through, at_every_frame, heard, in_each_dialect, say, server, spec};
use agentd_provider::http_client;
use agentd_tests::fault_server::{Act, FaultServer, Speech, status_line};
use bytes::Bytes;

/// A cut answer is never taken for a complete one, and a complete one is not lost because of what follows.
fn cut(dialect: agentd_provider::Dialect, came: usize, needed: usize, heard: &super::Heard) {
    if came < needed {
        heard.is_transient((dialect, came));
    } else if heard.answer.is_err() {
        // A reset can overtake data sent before it.
        heard.is_transient((dialect, came));
    } else {
        heard.is_whole(&say(), (dialect, came));
    }
}

#[tokio::test]
async fn a_reset_after_any_number_of_events_is_transient() {
    at_every_frame(PATIENT, &[Act::Reset], cut).await;
}

#[tokio::test]
async fn an_end_after_any_number_of_events_is_transient_unless_the_answer_was_complete() {
    at_every_frame(PATIENT, &[], |dialect, came, needed, heard| {
        cut(dialect, came, needed, heard);
        assert_eq!(
            heard.answer.is_ok(),
            came >= needed,
            "{dialect:?} {came}: {:?}",
            heard.answer
        );
    })
    .await;
}

#[tokio::test]
async fn a_half_closed_socket_after_any_number_of_events_is_an_end() {
    at_every_frame(PATIENT, &[Act::HalfClose], |dialect, came, needed, heard| {
        cut(dialect, came, needed, heard);
        assert_eq!(
            heard.answer.is_ok(),
            came >= needed,
            "{dialect:?} {came}: {:?}",
            heard.answer
        );
    })
    .await;
}

#[tokio::test]
async fn a_cut_inside_any_event_is_transient() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let frames = speech.frames(&say());
        for cut in 0..speech.complete_after(&frames) {
            for end in [Act::Reset, Act::HalfClose] {
                let mut acts = vec![speech.head()];
                acts.extend(frames.iter().take(cut).cloned().map(Act::Say));
                acts.push(Act::Say(frames[cut].slice(..frames[cut].len() / 2)));
                acts.push(end);
                heard(dialect, acts, PATIENT).await.is_transient((dialect, cut));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_reset_before_the_request_is_read_is_transient() {
    in_each_dialect(async |dialect| {
        let server = FaultServer::deaf(vec![Act::Reset]).await;
        ask(dialect, &server.url(), PATIENT).await.is_transient(dialect);
    })
    .await;
}

#[tokio::test]
async fn an_end_without_a_word_is_transient() {
    in_each_dialect(async |dialect| {
        for end in [vec![], vec![Act::Reset], vec![Act::HalfClose]] {
            heard(dialect, end.clone(), PATIENT)
                .await
                .is_transient((dialect, &end));
        }
    })
    .await;
}

#[tokio::test]
async fn a_reset_inside_the_headers_is_transient() {
    in_each_dialect(async |dialect| {
        for line in ["HTTP", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\ncontent-ty"] {
            for end in [Act::Reset, Act::HalfClose] {
                let acts = vec![Act::say(line), end];
                heard(dialect, acts, PATIENT).await.is_transient((dialect, line));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_transient() {
    for dialect in DIALECTS {
        let server = FaultServer::deaf(Vec::new()).await;
        let url = server.url();
        drop(server);
        // The port is free again once the listener is gone; no other process takes it that fast.
        tokio::task::yield_now().await;
        ask(dialect, &url, PATIENT).await.is_transient(dialect);
    }
}

#[tokio::test]
async fn a_length_that_promises_more_than_comes_is_transient_or_forgiven_after_the_end() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let body = speech.frames(&say()).concat();
        let head = format!(
            "{}content-type: {}\r\ncontent-length: {}\r\n\r\n",
            status_line(200),
            speech.content_type(),
            body.len() + 10
        );
        let half = body[..body.len() / 2].to_vec();
        let acts = vec![Act::say(head.clone()), Act::say(half)];
        heard(dialect, acts, PATIENT).await.is_transient(dialect);
        let acts = vec![Act::say(head), Act::say(body)];
        let heard = heard(dialect, acts, PATIENT).await;
        if heard.answer.is_err() {
            heard.is_transient(dialect);
        } else {
            heard.is_whole(&say(), dialect);
        }
    })
    .await;
}

#[tokio::test]
async fn a_length_that_cuts_the_answer_is_transient() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let frames = speech.frames(&say());
        let body = frames.concat();
        // Up to the middle of the second frame.
        let length = frames[0].len() + frames[1].len() / 2;
        let head = format!(
            "{}content-type: {}\r\ncontent-length: {length}\r\n\r\n",
            status_line(200),
            speech.content_type()
        );
        let acts = vec![Act::say(head), Act::say(body)];
        heard(dialect, acts, PATIENT).await.is_transient(dialect);
    })
    .await;
}

fn chunked(speech: Speech, body: &[u8], end: &'static str) -> Vec<Act> {
    let head = format!(
        "{}content-type: {}\r\ntransfer-encoding: chunked\r\n\r\n",
        status_line(200),
        speech.content_type()
    );
    let size = format!("{:x}\r\n", body.len());
    vec![
        Act::say(head + &size),
        Act::say(Bytes::copy_from_slice(body)),
        Act::say(end),
    ]
}

#[tokio::test]
async fn a_broken_chunk_is_transient_before_the_end_of_the_answer() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let frames = speech.frames(&say());
        let half = frames[..2].concat();
        for end in [
            "",
            "\r\nnot a size\r\n",
            "\r\nffffffffffffffffff\r\n",
            "\r\n-1\r\n",
        ] {
            let acts = chunked(speech, &half, end);
            heard(dialect, acts, PATIENT).await.is_transient((dialect, end));
        }
        let acts = chunked(speech, &frames.concat(), "\r\n0\r\n\r\n");
        heard(dialect, acts, PATIENT).await.is_whole(&say(), dialect);
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_is_reset_when_it_is_used_again_is_transient_and_the_next_attempt_succeeds() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let body = String::from_utf8(speech.frames(&say()).concat()).unwrap();
        let head = format!(
            "{}content-type: {}\r\ncontent-length: {}\r\n\r\n",
            status_line(200),
            speech.content_type(),
            body.len()
        );
        let good = vec![Act::say(head + &body), Act::Next];
        let refused = std::sync::atomic::AtomicU64::new(0);
        let server = server(dialect, move |_| {
            let n = refused.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if n == 1 { vec![Act::Reset] } else { good.clone() }
        })
        .await;
        let spec = spec(dialect, &server.url(), PATIENT);
        let client = http_client(spec.deadlines.connect).unwrap();
        ask_through(&client, &spec, "hello")
            .await
            .is_whole(&say(), dialect);
        let second = ask_through(&client, &spec, "hello").await;
        if second.answer.is_err() {
            second.is_transient(dialect);
        }
        ask_through(&client, &spec, "hello")
            .await
            .is_whole(&say(), dialect);
    })
    .await;
}

#[tokio::test]
async fn an_interim_answer_before_the_real_one_is_skipped() {
    in_each_dialect(async |dialect| {
        let mut acts = vec![Act::say(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
        )];
        acts.extend(Speech(dialect).answer(&say()));
        heard(dialect, acts, PATIENT).await.is_whole(&say(), dialect);
    })
    .await;
}
