//! Servers that send garbage.

use super::{Dialect, PATIENT, ask, heard, in_each_dialect, say, server};
use agentd_protocol::FailureClass;
use agentd_tests::fault_server::{Act, FaultServer, Say, Speech, html, http, stream_head};
use bytes::Bytes;

#[tokio::test]
async fn garbage_instead_of_http_is_transient() {
    let garbage: [&'static [u8]; 6] = [
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"\x15\x03\x03\x00\x02\x02\x46",
        b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"\xff\xfe\xfd\xfc\n\n\n\n",
    ];
    in_each_dialect(async |dialect| {
        for bytes in garbage {
            let acts = vec![Act::Say(Bytes::from_static(bytes))];
            heard(dialect, acts, PATIENT).await.is_transient((dialect, bytes));
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_speaks_before_it_is_asked_is_transient() {
    in_each_dialect(async |dialect| {
        let server = FaultServer::deaf(vec![Act::say("220 mail.example ESMTP\r\n")]).await;
        ask(dialect, &server.url(), PATIENT).await.is_transient(dialect);
    })
    .await;
}

#[tokio::test]
async fn garbage_between_two_events_is_transient_and_nothing_of_it_is_shown() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        for garbage in ["{\"half\":", "not json", "[1,2", "\u{0}\u{1}", "<html>"] {
            let mut acts = speech.answer(&say());
            acts.insert(4, Act::Say(speech.frame(garbage)));
            let heard = heard(dialect, acts, PATIENT).await;
            heard.is_transient((dialect, garbage));
            assert!(!heard.shown.contains(garbage), "{dialect:?}: {}", heard.shown);
        }
    })
    .await;
}

#[tokio::test]
async fn binary_bytes_inside_a_stream_do_no_harm() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let noise: Vec<u8> = (0..=255).cycle().take(64 << 10).collect();
        let mut acts = speech.answer(&say());
        acts.insert(3, Act::Say(noise.into()));
        // Noise may look like fields without meaning; then the answer is complete, or void.
        let heard = heard(dialect, acts, PATIENT).await;
        if heard.answer.is_err() {
            heard.is_transient(dialect);
        } else {
            let text = heard.text().unwrap();
            assert!(
                say().text.concat().contains("four") && text.contains("four"),
                "{dialect:?}: {text}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn json_of_the_wrong_shape_is_no_answer() {
    let shapes = [
        "null",
        "[]",
        "{}",
        "0",
        "\"text\"",
        "{\"choices\":7,\"type\":7,\"candidates\":7,\"message\":7,\"content\":7}",
        "{\"choices\":[null],\"candidates\":[null],\"type\":null,\"response\":null}",
        "{\"type\":\"content_block_delta\",\"index\":99,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}",
        "{\"type\":\"response.output_item.done\",\"output_index\":-1}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":{\"index\":\"a\"}}}]}",
    ];
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        for shape in shapes {
            let acts = vec![speech.head(), Act::Say(speech.frame(shape))];
            heard(dialect, acts, PATIENT).await.is_transient((dialect, shape));
        }
    })
    .await;
}

#[tokio::test]
async fn a_page_for_people_with_status_200_is_transient() {
    in_each_dialect(async |dialect| {
        heard(dialect, vec![html(200)], PATIENT)
            .await
            .is_transient(dialect);
        // The same, sent as if it were a stream.
        let page = "<html>\n<body>\n\nSign in to the guest network\n\n</body></html>\n";
        let acts = vec![Speech(dialect).head(), Act::say(page)];
        heard(dialect, acts, PATIENT).await.is_transient(dialect);
    })
    .await;
}

#[tokio::test]
async fn an_empty_answer_with_status_200_is_transient() {
    in_each_dialect(async |dialect| {
        for kind in ["application/json", "text/event-stream", "text/plain"] {
            let acts = vec![http(200, &[("content-type", kind)], "")];
            heard(dialect, acts, PATIENT).await.is_transient((dialect, kind));
        }
        heard(dialect, vec![http(204, &[], "")], PATIENT)
            .await
            .is_transient((dialect, 204));
    })
    .await;
}

#[tokio::test]
async fn a_text_that_is_no_utf_8_is_shown_with_marks_in_its_place() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let frames = speech.frames(&Say::text("good B@D good"));
        let mut acts = vec![speech.head()];
        for frame in frames {
            let broken = frame
                .iter()
                .map(|byte| if *byte == b'@' { 0xff } else { *byte })
                .collect::<Vec<u8>>();
            acts.push(Act::Say(broken.into()));
        }
        let heard = heard(dialect, acts, PATIENT).await;
        assert_eq!(
            heard.text().as_deref(),
            Some("good B\u{fffd}D good"),
            "{dialect:?}: {:?}",
            heard.answer
        );
    })
    .await;
}

#[tokio::test]
async fn a_byte_order_mark_and_carriage_returns_are_understood() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let body = String::from_utf8(speech.frames(&say()).concat()).unwrap();
        for ends in ["\r\n", "\r"] {
            if dialect == Dialect::Ollama && ends == "\r" {
                continue;
            }
            // Lines of JSON may not begin with a mark; events may.
            let mark = if dialect == Dialect::Ollama {
                ""
            } else {
                "\u{feff}"
            };
            let acts = vec![
                speech.head(),
                Act::say(format!("{mark}{}", body.replace('\n', ends))),
            ];
            heard(dialect, acts, PATIENT)
                .await
                .is_whole(&say(), (dialect, ends));
        }
    })
    .await;
}

#[tokio::test]
async fn a_stream_under_another_content_type_is_understood() {
    in_each_dialect(async |dialect| {
        for kind in [
            "text/plain",
            "application/octet-stream",
            "text/event-stream; charset=utf-8",
        ] {
            let mut acts = Speech(dialect).answer(&say());
            acts[0] = stream_head(kind);
            heard(dialect, acts, PATIENT)
                .await
                .is_whole(&say(), (dialect, kind));
        }
    })
    .await;
}

#[tokio::test]
async fn two_generations_in_one_body_are_never_mixed() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let (first, second) = (say().named("gen-1"), Say::text("Five six seven.").named("gen-2"));
        let frames = speech.frames(&first);
        // The second begins after the first is over.
        let mut acts = speech.answer(&first);
        acts.extend(speech.frames(&second).into_iter().map(Act::Say));
        let after = heard(dialect, acts, PATIENT).await;
        if after.answer.is_err() {
            after.is_transient(dialect);
        } else {
            after.is_whole(&first, dialect);
        }
        // The second begins in the middle of the first, where the dialect says where one begins.
        if matches!(dialect, Dialect::Anthropic | Dialect::OpenaiResponses) {
            let mut acts = vec![speech.head()];
            acts.extend(frames.into_iter().take(4).map(Act::Say));
            acts.extend(speech.frames(&second).into_iter().map(Act::Say));
            heard(dialect, acts, PATIENT).await.is_transient(dialect);
        }
    })
    .await;
}

#[tokio::test]
async fn a_repeated_beginning_of_the_same_generation_does_no_harm() {
    for dialect in [Dialect::Anthropic, Dialect::OpenaiChat, Dialect::OpenaiResponses] {
        let speech = Speech(dialect);
        let mut acts = speech.answer(&say());
        let first = acts[1].clone();
        acts.insert(2, first);
        heard(dialect, acts, PATIENT).await.is_whole(&say(), dialect);
    }
}

#[tokio::test]
async fn events_of_the_future_are_passed_over() {
    let future = [
        (
            Dialect::Anthropic,
            "event: message\ndata: {\"type\":\"future_event\",\"x\":1}\n\n",
        ),
        (
            Dialect::OpenaiResponses,
            "event: response.future\ndata: {\"type\":\"response.future.done\"}\n\n",
        ),
        (
            Dialect::OpenaiChat,
            "event: future\ndata: {\"id\":\"gen-1\",\"future\":true}\n\n",
        ),
        (
            Dialect::Gemini,
            "data: {\"responseId\":\"gen-1\",\"future\":true}\n\n",
        ),
    ];
    for (dialect, event) in future {
        let mut acts = Speech(dialect).answer(&say());
        acts.insert(3, Act::say(event));
        heard(dialect, acts, PATIENT).await.is_whole(&say(), dialect);
    }
}

#[tokio::test]
async fn an_unfinished_tool_call_never_comes_out_of_a_cut_stream() {
    let call = Say::call("Bash", serde_json::json!({"command": "rm -rf build"}));
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let frames = speech.frames(&call);
        for came in 0..speech.complete_after(&frames) {
            let mut acts = vec![speech.head()];
            acts.extend(frames.iter().take(came).cloned().map(Act::Say));
            heard(dialect, acts, PATIENT).await.is_transient((dialect, came));
        }
    })
    .await;
}

#[tokio::test]
async fn a_tool_call_whose_arguments_are_no_json_is_still_an_answer() {
    let frame = "{\"id\":\"gen-1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\
                 \"function\":{\"name\":\"Bash\",\"arguments\":\"{\\\"command\\\": \"}}]},\"finish_reason\":\"tool_calls\"}]}";
    let speech = Speech(Dialect::OpenaiChat);
    let acts = vec![
        speech.head(),
        Act::Say(speech.frame(frame)),
        Act::Say(speech.frame("[DONE]")),
    ];
    let server = server(Dialect::OpenaiChat, move |_| acts.clone()).await;
    let heard = ask(Dialect::OpenaiChat, &server.url(), PATIENT).await;
    assert_ne!(heard.class(), Some(FailureClass::InvalidRequest));
    let reply = heard.answer.unwrap();
    assert_eq!(reply.stop_reason, agentd_protocol::StopReason::ToolUse);
}
