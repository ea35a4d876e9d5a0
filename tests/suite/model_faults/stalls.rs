//! Servers that are slow or silent.

use super::{
    DIALECTS, HASTY, PATIENT, ask, ask_with, at_every_frame, heard, in_each_dialect, say, server, spec,
};
use agentd_protocol::FailureClass;
use agentd_provider::{Deadlines, Dialect};
use agentd_tests::fault_server::{Act, FaultServer, Speech, http, status_line};
use std::time::Duration;

const MOMENT: Duration = Duration::from_millis(20);

#[tokio::test]
async fn a_server_that_takes_the_request_and_says_nothing_is_given_up_at_the_first_byte_deadline() {
    in_each_dialect(async |dialect| {
        let heard = heard(dialect, vec![Act::Stall], HASTY).await;
        heard.is_given_up(dialect);
        assert_eq!(heard.message(), "no answer within 400 ms", "{dialect:?}");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_never_reads_the_request_is_given_up() {
    in_each_dialect(async |dialect| {
        let server = FaultServer::deaf(vec![Act::Pause(Duration::from_secs(60))]).await;
        let spec = spec(dialect, &server.url(), HASTY);
        let heard = ask_with(&spec, &"long ".repeat(1 << 21)).await;
        heard.is_given_up(dialect);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stalls_in_its_headers_is_given_up() {
    in_each_dialect(async |dialect| {
        let acts = vec![Act::say(status_line(200)), Act::Stall];
        heard(dialect, acts, HASTY).await.is_transient(dialect);
    })
    .await;
}

#[tokio::test]
async fn headers_that_drip_for_ever_are_given_up() {
    in_each_dialect(async |dialect| {
        let line = Act::say(format!("{}x: ", status_line(200)));
        let acts = vec![line, Act::ForEver("y".into(), MOMENT)];
        let heard = heard(dialect, acts, HASTY).await;
        heard.is_given_up(dialect);
    })
    .await;
}

#[tokio::test]
async fn a_stall_after_any_number_of_events_is_transient_unless_the_answer_was_complete() {
    at_every_frame(HASTY, &[Act::Stall], |dialect, came, needed, heard| {
        if heard.answer.is_ok() {
            assert!(came >= needed, "{dialect:?}: complete after {came} of {needed}");
            heard.is_whole(&say(), (dialect, came));
        } else {
            heard.is_transient((dialect, came));
        }
    })
    .await;
}

#[tokio::test]
async fn a_complete_answer_is_taken_though_its_connection_stays_open() {
    in_each_dialect(async |dialect| {
        // Google's streams have no marker except the end of the bytes.
        let mut acts = Speech(dialect).answer(&say());
        acts.push(Act::Stall);
        // Only the stall may last as long as a deadline, also where answers come slowly.
        let deadlines = Deadlines {
            idle: Duration::from_secs(15),
            ..PATIENT
        };
        let heard = heard(dialect, acts, deadlines).await;
        if dialect == Dialect::Gemini && heard.answer.is_err() {
            heard.is_transient(dialect);
        } else {
            heard.is_whole(&say(), dialect);
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_comes_byte_by_byte_is_whole() {
    in_each_dialect(async |dialect| {
        let mut bytes = Vec::new();
        for act in Speech(dialect).answer(&say()) {
            if let Act::Say(said) = act {
                bytes.extend_from_slice(&said);
            }
        }
        let acts = vec![Act::Drip(bytes.into(), Duration::ZERO)];
        let heard = heard(dialect, acts, PATIENT).await;
        heard.is_whole(&say(), dialect);
        assert_eq!(heard.shown, say().text.concat(), "{dialect:?}");
    })
    .await;
}

#[tokio::test]
async fn bytes_that_never_make_an_event_are_no_progress() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let first = speech.frames(&say()).swap_remove(0);
        let acts = vec![
            speech.head(),
            Act::Say(first),
            Act::say("data: "),
            Act::ForEver("x".into(), MOMENT),
        ];
        let heard = heard(dialect, acts, HASTY).await;
        heard.is_given_up(dialect);
    })
    .await;
}

#[tokio::test]
async fn comments_alone_do_not_keep_an_attempt_alive_for_ever() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        for said in [0, 2] {
            let mut acts = vec![speech.head()];
            acts.extend(speech.frames(&say()).into_iter().take(said).map(Act::Say));
            acts.push(Act::ForEver(speech.comment().into(), MOMENT));
            let heard = heard(dialect, acts, HASTY).await;
            heard.is_given_up((dialect, said));
        }
    })
    .await;
}

#[tokio::test]
async fn pings_alone_do_not_keep_an_attempt_alive_for_ever() {
    let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
    let speech = Speech(Dialect::Anthropic);
    let acts = vec![speech.head(), Act::ForEver(ping.into(), MOMENT)];
    let heard = heard(Dialect::Anthropic, acts, HASTY).await;
    heard.is_given_up("pings");
}

#[tokio::test]
async fn empty_events_alone_do_not_keep_an_attempt_alive_for_ever() {
    let empty = [
        (
            Dialect::OpenaiChat,
            "data: {\"id\":\"gen-1\",\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n",
        ),
        (Dialect::Anthropic, "data: {\"type\":\"future_event\"}\n\n"),
        (
            Dialect::OpenaiResponses,
            "data: {\"type\":\"response.queued\"}\n\n",
        ),
    ];
    for (dialect, event) in empty {
        let deadlines = Deadlines {
            total: Duration::from_secs(4),
            ..HASTY
        };
        let acts = vec![Speech(dialect).head(), Act::ForEver(event.into(), MOMENT)];
        let heard = heard(dialect, acts, deadlines).await;
        heard.is_transient(dialect);
    }
}

#[tokio::test]
async fn an_answer_that_always_grows_and_never_ends_has_its_total_deadline() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let frames = speech.frames(&say());
        let deadlines = Deadlines {
            total: Duration::from_secs(10),
            ..PATIENT
        };
        // The last piece of the text, again and again.
        let piece = frames
            .iter()
            .rfind(|frame| frame.windows(5).any(|bytes| bytes == b"four."));
        let (piece, before) = match dialect {
            Dialect::OpenaiResponses => (frames[3].clone(), 3),
            Dialect::Anthropic => (frames[2].clone(), 2),
            _ => (piece.unwrap().clone(), 1),
        };
        let mut acts = vec![speech.head()];
        acts.extend(frames.into_iter().take(before).map(Act::Say));
        acts.push(Act::ForEver(piece, MOMENT));
        let heard = heard(dialect, acts, deadlines).await;
        heard.is_transient(dialect);
        assert_eq!(
            heard.message(),
            "no complete answer within 10000 ms",
            "{dialect:?}"
        );
        assert!(!heard.shown.is_empty(), "{dialect:?}: it was shown as it came");
    })
    .await;
}

#[tokio::test]
async fn a_body_of_an_error_that_stalls_does_not_outlive_the_attempt() {
    in_each_dialect(async |dialect| {
        let head = format!("{}content-length: 1000\r\n\r\n", status_line(500));
        let acts = vec![Act::say(head + "half of"), Act::Stall];
        let deadlines = Deadlines {
            total: Duration::from_secs(15),
            ..PATIENT
        };
        let heard = heard(dialect, acts, deadlines).await;
        heard.is_transient(dialect);
        assert_eq!(
            heard.answer.unwrap_err().status,
            Some(500),
            "{dialect:?}: the status tells enough"
        );
    })
    .await;
}

#[tokio::test]
async fn a_template_that_never_comes_is_given_up_and_one_that_is_refused_is_told() {
    let dialect = Dialect::LlamaCompletion;
    let stalling = FaultServer::start(|_| vec![Act::Stall]).await;
    let heard = ask(dialect, &stalling.url(), HASTY).await;
    heard.is_given_up("stall");
    let body = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
    let loading = FaultServer::start(move |_| vec![http(503, &[], body)]).await;
    let heard = ask(dialect, &loading.url(), PATIENT).await;
    heard.is(FailureClass::Overloaded, "loading");
}

#[tokio::test]
async fn an_attempt_that_is_given_up_leaves_its_connection() {
    for dialect in DIALECTS {
        let server = server(dialect, |_| vec![Act::Stall]).await;
        ask(dialect, &server.url(), HASTY).await.is_transient(dialect);
        server
            .until("the connection is gone", |seen| seen.open == 0)
            .await;
    }
}
