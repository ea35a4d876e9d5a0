//! Servers that refuse, before a stream or inside it.

use super::{Dialect, KEY, PATIENT, ask, heard, in_each_dialect, say, server, spec};
use agentd_protocol::FailureClass::{
    self, Auth, ContextOverflow, InvalidRequest, Overloaded, QuotaExhausted, RateLimited, Transient,
};
use agentd_tests::fault_server::{Act, FaultServer, Speech, http, redirect};
use futures_util::future::join_all;

#[tokio::test]
async fn each_status_has_its_class_though_nothing_else_is_said() {
    let classes: [(u16, FailureClass); 16] = [
        (400, InvalidRequest),
        (401, Auth),
        (402, QuotaExhausted),
        (403, Auth),
        (404, InvalidRequest),
        (405, InvalidRequest),
        (408, Transient),
        (409, Transient),
        (413, ContextOverflow),
        (422, InvalidRequest),
        (429, RateLimited),
        (500, Transient),
        (502, Transient),
        (503, Overloaded),
        (504, Transient),
        (529, Overloaded),
    ];
    in_each_dialect(async |dialect| {
        for (status, class) in classes {
            // An empty 400 is how one provider says that the conversation is too long.
            let body = if status == 400 { "bad" } else { "" };
            let heard = heard(dialect, vec![http(status, &[], body)], PATIENT).await;
            heard.is(class, (dialect, status));
            assert_eq!(heard.answer.unwrap_err().status, Some(status), "{dialect:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_says_whether_to_retry_is_believed() {
    in_each_dialect(async |dialect| {
        let acts = vec![http(400, &[("x-should-retry", "true")], "not now")];
        heard(dialect, acts, PATIENT).await.is_transient(dialect);
    })
    .await;
}

#[tokio::test]
async fn i8_a_redirect_is_not_followed_and_the_key_goes_nowhere_else() {
    in_each_dialect(async |dialect| {
        for status in [301, 302, 303, 307, 308] {
            let other = FaultServer::start(move |_| Speech(dialect).answer(&say())).await;
            let location = format!("{}/elsewhere", other.url());
            let server = server(dialect, move |_| vec![redirect(status, &location)]).await;
            let heard = ask(dialect, &server.url(), PATIENT).await;
            assert!(heard.answer.is_err(), "{dialect:?} {status}: {:?}", heard.answer);
            assert_eq!(other.seen().connections, 0, "{dialect:?} {status}");
            heard.is(InvalidRequest, (dialect, status));
        }
    })
    .await;
}

#[tokio::test]
async fn i8_a_server_that_echoes_the_key_is_quoted_without_it() {
    in_each_dialect(async |dialect| {
        let echoes = [
            format!(r#"{{"error":{{"message":"bad key {KEY}","type":"invalid_api_key"}}}}"#),
            format!("<html>your key {KEY} is wrong</html>"),
            format!("{{\"detail\":[{{\"msg\":\"Bearer {KEY}\"}}]}}"),
        ];
        for echo in echoes {
            for status in [401, 500] {
                // `ask` itself asserts that no message has the key.
                let heard = heard(dialect, vec![http(status, &[], &echo)], PATIENT).await;
                assert!(heard.answer.is_err());
            }
            let speech = Speech(dialect);
            let acts = vec![speech.head(), Act::Say(speech.frame(&echo))];
            assert!(heard(dialect, acts, PATIENT).await.answer.is_err());
        }
    })
    .await;
}

#[tokio::test]
async fn the_address_of_a_server_with_a_password_is_not_told() {
    in_each_dialect(async |dialect| {
        let server = FaultServer::deaf(vec![Act::Reset]).await;
        let url = server.url().replace("://", "://user:hunter2@");
        let heard = super::ask_with(&spec(dialect, &url, PATIENT), "hello").await;
        assert!(!heard.message().contains("hunter2"), "{}", heard.message());
        assert!(!format!("{:?}", heard.answer).contains("hunter2"));
    })
    .await;
}

/// An error of a dialect inside a stream that had begun well, its class, and the wait.
const LATE_ERRORS: &[(Dialect, &str, FailureClass, Option<u64>)] = &[
    (
        Dialect::Anthropic,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        Overloaded,
        None,
    ),
    (
        Dialect::Anthropic,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"slower, please"}}"#,
        RateLimited,
        None,
    ),
    (
        Dialect::Anthropic,
        r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#,
        Transient,
        None,
    ),
    (
        Dialect::Anthropic,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#,
        ContextOverflow,
        None,
    ),
    (
        Dialect::OpenaiChat,
        r#"{"error":{"message":"Rate limit reached. Please try again in 2s.","type":"requests","code":"rate_limit_exceeded"}}"#,
        RateLimited,
        Some(2_000),
    ),
    (
        Dialect::OpenaiChat,
        r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        QuotaExhausted,
        None,
    ),
    (
        Dialect::OpenaiChat,
        r#"{"error":"the upstream went away"}"#,
        Transient,
        None,
    ),
    (
        Dialect::OpenaiResponses,
        r#"{"type":"error","error":{"type":"server_error","code":"server_error","message":"try later"}}"#,
        Transient,
        None,
    ),
    (
        Dialect::OpenaiResponses,
        r#"{"type":"error","code":"insufficient_quota","message":"You exceeded your current quota","param":null}"#,
        QuotaExhausted,
        None,
    ),
    (
        Dialect::OpenaiResponses,
        r#"{"type":"response.failed","response":{"id":"gen-1","status":"failed","output":[],"error":{"code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 1.3s."}}}"#,
        RateLimited,
        Some(1_300),
    ),
    (
        Dialect::OpenaiResponses,
        r#"{"type":"response.failed","response":{"id":"gen-1","status":"failed","output":[],"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}"#,
        ContextOverflow,
        None,
    ),
    (
        Dialect::Gemini,
        r#"{"error":{"code":503,"status":"UNAVAILABLE","message":"The model is overloaded."}}"#,
        Overloaded,
        None,
    ),
    (
        Dialect::Gemini,
        r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"per minute","details":[{"retryDelay":"34s"}]}}"#,
        RateLimited,
        Some(34_000),
    ),
    (
        Dialect::LlamaCompletion,
        r#"{"error":{"code":500,"message":"decode failed","type":"server_error"}}"#,
        Transient,
        None,
    ),
    (
        Dialect::Ollama,
        r#"{"error":"an error was encountered while running the model: CUDA error"}"#,
        Transient,
        None,
    ),
];

#[tokio::test]
async fn an_error_after_a_good_beginning_has_its_class_wherever_it_comes() {
    let cases = LATE_ERRORS
        .iter()
        .flat_map(|case| [0, 1, 3].map(|before| (case, before)));
    let cases = cases.map(async |((dialect, frame, class, wait), before)| {
        let speech = Speech(*dialect);
        let mut acts = speech.answer(&say());
        acts.truncate(1 + before);
        acts.push(Act::Say(speech.frame(frame)));
        acts.push(Act::Stall);
        let heard = heard(*dialect, acts, PATIENT).await;
        heard.is(*class, (dialect, before, frame));
        assert_eq!(
            heard.answer.unwrap_err().retry_after_ms,
            *wait,
            "{dialect:?} {frame}"
        );
    });
    join_all(cases).await;
}

#[tokio::test]
async fn an_error_that_comes_whole_with_status_200_has_its_class() {
    for (dialect, frame, class, _) in LATE_ERRORS.iter().copied() {
        let acts = vec![http(200, &[("content-type", "application/json")], frame)];
        let heard = heard(dialect, acts, PATIENT).await;
        heard.is(class, (dialect, frame));
    }
}

#[tokio::test]
async fn an_error_after_the_whole_text_but_before_the_end_voids_the_answer() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let frames = speech.frames(&say());
        let mut acts = vec![speech.head()];
        let text_ends = speech.complete_after(&frames) - 1;
        acts.extend(frames.into_iter().take(text_ends).map(Act::Say));
        acts.push(Act::Say(speech.frame(
            r#"{"error":{"message":"boom","type":"server_error","code":"server_error"}}"#,
        )));
        let heard = heard(dialect, acts, PATIENT).await;
        heard.is_transient(dialect);
        assert!(
            say().text.concat().starts_with(&heard.shown),
            "{dialect:?}: {}",
            heard.shown
        );
    })
    .await;
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_told_apart_in_the_words_of_each_server() {
    let words = [
        "prompt is too long: 213462 tokens > 200000 maximum",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
        "Please reduce the length of the messages or completion.",
    ];
    in_each_dialect(async |dialect| {
        for said in words {
            let body = format!(r#"{{"error":{{"message":"{said}","type":"invalid_request_error"}}}}"#);
            heard(dialect, vec![http(400, &[], &body)], PATIENT)
                .await
                .is(ContextOverflow, (dialect, said));
        }
    })
    .await;
}
