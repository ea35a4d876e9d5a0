use super::*;
use agentd_protocol::{
    Delta, Fault, Lagged, Principal, RunState, SessionId, Status, Synced, Timestamp, ToolCallId,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fmt::Debug;

const LIMITS: FrameLimits = FrameLimits::of_requests(8 << 20);

fn request(id: u64, params: Value) -> ClientFrame {
    ClientFrame::Request(Request {
        id,
        method: "session.create".to_owned(),
        params,
    })
}

fn hello() -> ClientFrame {
    ClientFrame::Hello(Hello {
        protocol: VersionRange::OURS,
        client: "test/1".to_owned(),
        token: None,
    })
}

fn body_of<T: serde::Serialize>(frame: &T) -> Vec<u8> {
    encode(frame, LIMITS.max_frame_bytes).unwrap()[4..].to_vec()
}

fn check_round_trip<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug>(frame: &T) {
    let mut decoder = Decoder::new(LIMITS);
    decoder.feed(&encode(frame, LIMITS.max_frame_bytes).unwrap());
    let body = decoder.next_frame().unwrap().unwrap();
    assert_eq!(&decode::<T>(&body, LIMITS).unwrap(), frame);
    assert!(!decoder.mid_frame());
}

fn status() -> Status {
    Status {
        state: RunState::RunningModel,
        reason: "model sonnet".to_owned(),
        since: Timestamp(1_763_629_200_123),
        until: None,
        attempt: Some(2),
        position: None,
    }
}

#[test]
fn a_parameter_that_occurs_twice_is_refused() {
    // {"id": 1, "method": "m", "params": {"a": {"b": 1, "b": 2}}}
    let twice = b"\x83\xa2id\x01\xa6method\xa1m\xa6params\x81\xa1a\x82\xa1b\x01\xa1b\x02";
    let WireError::Malformed(why) = decode_client(twice, LIMITS).unwrap_err() else {
        panic!("another error");
    };
    assert!(why.contains("the key \"b\" occurs twice"), "{why}");
}

#[test]
fn every_client_frame_survives_the_wire() {
    let big = json!({"a": [1, -1, 2.5, null, true, "x"], "b": {"c": u64::MAX}});
    for frame in [hello(), request(u64::MAX, big)] {
        assert_eq!(decode_client(&body_of(&frame), LIMITS).unwrap(), frame);
    }
    let bare = body_of(&json!({"id": 1, "method": "node.status", "later": {"field": 1}}));
    assert_eq!(
        decode_client(&bare, LIMITS).unwrap(),
        ClientFrame::Request(Request {
            id: 1,
            method: "node.status".to_owned(),
            params: json!({})
        })
    );
}

#[test]
fn every_server_frame_survives_the_wire() {
    let push = |push| ServerFrame::Push { sub: 7, push };
    let welcome = Welcome {
        protocol: 1,
        node: "a1".to_owned(),
        principal: Principal::user("ana"),
        scopes: vec!["read".to_owned()],
        limits: Limits {
            max_frame_bytes: 1,
            max_input_bytes: 2,
            max_in_flight: 3,
        },
    };
    let synced = Synced {
        seq: 3,
        status: status(),
        approvals: Vec::new(),
        partial: Some("so f".to_owned()),
    };
    let fault = Fault::conflict("approval_decided", "too late").hint("look again");
    let output = Delta::ToolOutput {
        tool_call: ToolCallId::from_parts(5, [7; 10]),
        offset: 1,
        text: "out".to_owned(),
    };
    check_round_trip(&ServerFrame::Welcome(welcome));
    check_round_trip(&ServerFrame::Ok {
        id: 1,
        ok: json!({"seq": 3}),
    });
    check_round_trip(&ServerFrame::Ok {
        id: 1,
        ok: Value::Null,
    });
    check_round_trip(&ServerFrame::Fault {
        id: Some(1),
        fault: fault.clone(),
    });
    check_round_trip(&ServerFrame::Fault { id: None, fault });
    check_round_trip(&push(Push::Event(StoredEvent {
        json: "{\"seq\":1}".into(),
        cursor: Some(9),
    })));
    check_round_trip(&push(Push::Delta(output)));
    check_round_trip(&push(Push::Delta(Delta::Status(status()))));
    check_round_trip(&push(Push::Synced(synced)));
    check_round_trip(&push(Push::Lagged(Lagged { after_seq: 4 })));
    check_round_trip(&push(Push::Ended(Ended {
        code: "end".to_owned(),
        message: "all there is".to_owned(),
        cursor: Some(3),
    })));
}

#[test]
fn frames_of_a_newer_daemon_are_unknown_and_not_errors() {
    let newer = body_of(&json!({"sub": 1, "hologram": {}}));
    assert_eq!(
        decode::<ServerFrame>(&newer, LIMITS).unwrap(),
        ServerFrame::Push {
            sub: 1,
            push: Push::Unknown
        }
    );
    let stranger = body_of(&json!({"weather": "fine"}));
    assert_eq!(
        decode::<ServerFrame>(&stranger, LIMITS).unwrap(),
        ServerFrame::Unknown
    );
}

#[test]
fn i2_an_event_travels_as_its_stored_bytes() {
    let stored = "{\"v\":1,  \"seq\":1,\"x\":1.0,\"y\":\"\\u00e9\"}";
    let frame = ServerFrame::Push {
        sub: 1,
        push: Push::Event(StoredEvent {
            json: stored.into(),
            cursor: None,
        }),
    };
    let bytes = body_of(&frame);
    assert!(
        bytes
            .windows(stored.len())
            .any(|window| window == stored.as_bytes())
    );
    assert_eq!(decode::<ServerFrame>(&bytes, LIMITS).unwrap(), frame);
}

#[test]
fn ids_and_times_are_text_on_the_wire() {
    let id = SessionId::from_parts(5, [9; 10]);
    let bytes = encode(&id.to_string(), 100).unwrap();
    assert_eq!(encode(&id, 100).unwrap(), bytes);
}

#[test]
fn every_truncation_waits_for_more_or_is_malformed() {
    let bytes = encode(
        &request(1, json!({"prompt": [{"type": "text", "text": "hi"}]})),
        1_000,
    )
    .unwrap();
    for cut in 0..bytes.len() {
        let mut decoder = Decoder::new(LIMITS);
        decoder.feed(&bytes[..cut]);
        assert_eq!(decoder.next_frame(), Ok(None), "cut at {cut}");
        assert_eq!(decoder.mid_frame(), cut > 0);
        if cut >= 4 {
            let error = decode_client(&bytes[4..cut], LIMITS).unwrap_err();
            assert!(matches!(error, WireError::Malformed(_)), "cut at {cut}: {error}");
        }
    }
}

#[test]
fn an_oversized_length_is_refused_before_its_body_and_ends_the_stream() {
    let mut decoder = Decoder::new(LIMITS);
    decoder.feed(&[0xff; 4]);
    let expected = Err(WireError::TooLarge {
        length: 0xffff_ffff,
        limit: 8 << 20,
    });
    assert_eq!(decoder.next_frame(), expected);
    decoder.feed(&encode(&hello(), 1_000).unwrap());
    assert_eq!(decoder.next_frame(), expected);
}

#[test]
fn frames_are_concatenated_and_a_failed_one_leaves_nothing() {
    let delta = Delta::Status(status());
    let mut bytes = Vec::new();
    encode_after(
        &mut bytes,
        &DeltaFrame {
            sub: 7,
            delta: &delta,
        },
        1_000,
    )
    .unwrap();
    let push = ServerFrame::Push {
        sub: 7,
        push: Push::Delta(delta),
    };
    let alone = encode(&push, 1_000).unwrap();
    assert_eq!(bytes, alone);
    encode_after(&mut bytes, &"x".repeat(100), 50).unwrap_err();
    encode_after(&mut bytes, &push, 1_000).unwrap();
    assert_eq!(bytes, alone.repeat(2));
}

#[test]
fn a_frame_over_the_limit_is_not_encoded() {
    let error = encode(&"x".repeat(100), 50).unwrap_err();
    assert_eq!(
        error,
        WireError::TooLarge {
            length: 102,
            limit: 50
        }
    );
}

#[test]
fn a_depth_bomb_is_refused() {
    let mut bomb = vec![0x81, 0xa1, b'a'];
    bomb.extend(std::iter::repeat_n(0x91, 100_000));
    bomb.push(0xc0);
    assert_eq!(
        decode_client(&bomb, LIMITS),
        Err(WireError::TooDeep { limit: 128 })
    );
    let mut nested = Value::Null;
    for _ in 0..120 {
        nested = json!([nested]);
    }
    let deep = request(1, json!({ "deep": nested }));
    assert_eq!(decode_client(&body_of(&deep), LIMITS).unwrap(), deep);
}

#[test]
fn announced_children_cost_nothing_until_they_arrive() {
    let array = [0x81, 0xa1, b'a', 0xdd, 0xff, 0xff, 0xff, 0xff];
    assert!(matches!(
        decode_client(&array, LIMITS),
        Err(WireError::Malformed(_))
    ));
    let map = [0xdf, 0xff, 0xff, 0xff, 0xff];
    assert!(matches!(
        decode_client(&map, LIMITS),
        Err(WireError::Malformed(_))
    ));
    let mut many = vec![0x81, 0xa1, b'a', 0xdd, 0x00, 0x10, 0x00, 0x00];
    many.extend(std::iter::repeat_n(0xc0, 1 << 20));
    assert_eq!(
        decode_client(&many, LIMITS),
        Err(WireError::TooManyItems { limit: 65_536 })
    );
}

#[test]
fn junk_is_malformed() {
    let junk: [&[u8]; 8] = [
        b"",
        b"GET / HTTP/1.1\r\n",
        &[0x90],
        &[0xc0],
        &[0x80, 0x80],
        &[0x81, 0xa1, 0xff, 0xc0],
        &[0x81, 0xa1, b'a', 0xc1],
        &[0x81, 0xa1, b'a', 0xd4, 0x01, 0x00],
    ];
    for bytes in junk {
        let error = decode_client(bytes, LIMITS).unwrap_err();
        assert!(matches!(error, WireError::Malformed(_)), "{bytes:?}: {error}");
    }
    let twice = [0x82, 0xa2, b'i', b'd', 0x01, 0xa2, b'i', b'd', 0x02];
    assert!(matches!(
        decode_client(&twice, LIMITS),
        Err(WireError::Malformed(_))
    ));
    let bytes_as_value = [
        0x83, 0xa2, b'i', b'd', 0x01, 0xa6, b'm', b'e', b't', b'h', b'o', b'd', 0xa1, b'x',
    ]
    .into_iter()
    .chain([0xa6, b'p', b'a', b'r', b'a', b'm', b's', 0xc4, 0x01, 0x00])
    .collect::<Vec<u8>>();
    assert!(matches!(
        decode_client(&bytes_as_value, LIMITS),
        Err(WireError::Malformed(_))
    ));
}

/// A map that is not a valid frame gets an answer that names the field, and the connection stays open.
#[test]
fn a_map_that_is_not_a_frame_is_refused_with_the_field() {
    let range = json!({"min": 1, "max": 1});
    let neither = "it is neither {hello} nor {id, method, params}";
    for (frame, id, why) in [
        (json!({}), None, neither),
        (json!({"id": 7}), Some(7), neither),
        (
            json!({"hello": {"protocol": range, "client": "x"}, "id": 1}),
            Some(1),
            neither,
        ),
        (
            json!({"id": "a", "method": "session.list"}),
            None,
            "id: expected an unsigned 64-bit integer, not a string",
        ),
        (
            json!({"id": -1, "method": "session.list"}),
            None,
            "id: expected an unsigned 64-bit integer, not -1",
        ),
        (
            json!({"id": 3, "method": null}),
            Some(3),
            "method: expected a string, not null",
        ),
        (
            json!({"hello": [range, "x"]}),
            None,
            "hello: expected a map with named keys, not a list",
        ),
        (
            json!({"hello": {"protocol": [1, 1], "client": "x"}}),
            None,
            "hello: protocol: expected a map with named keys, not a list",
        ),
    ] {
        let why = why.to_owned();
        assert_eq!(
            decode_client(&body_of(&frame), LIMITS),
            Err(WireError::Unfit { id, why }),
            "{frame}"
        );
    }
    let null = body_of(&json!({"id": 1, "method": "session.create", "params": null}));
    assert_eq!(decode_client(&null, LIMITS).unwrap(), request(1, Value::Null));
}

#[test]
fn versions_are_negotiated() {
    assert_eq!(negotiate(VersionRange { min: 1, max: 9 }), Ok(1));
    assert_eq!(negotiate(VersionRange { min: 0, max: 1 }), Ok(1));
    let fault = negotiate(VersionRange { min: 2, max: 9 }).unwrap_err();
    assert_eq!(
        fault,
        Fault::version(
            "protocol_version",
            "the client supports protocol versions 2 to 9, agentd supports 1 to 1"
        )
        .hint("upgrade agentd")
    );
    assert_eq!(
        negotiate(VersionRange { min: 0, max: 0 })
            .unwrap_err()
            .hint
            .unwrap(),
        "upgrade the client"
    );
    assert!(negotiate(VersionRange { min: 3, max: 1 }).is_err());
}

#[test]
fn i8_a_token_is_not_in_the_debug_form() {
    let hello = Hello {
        protocol: VersionRange::OURS,
        client: "x".to_owned(),
        token: Some("s3cret".to_owned()),
    };
    assert!(!format!("{hello:?}").contains("s3cret"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,20}", inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn frames_are_decoded_however_the_bytes_are_split(
        values in prop::collection::vec(any_json(), 1..6),
        cuts in prop::collection::vec(1_usize..50, 1..40),
    ) {
        let frames: Vec<ClientFrame> = (1..).zip(values).map(|(id, v)| request(id, json!({ "v": v }))).collect();
        let stream: Vec<u8> = frames.iter().flat_map(|frame| encode(frame, 1 << 20).unwrap()).collect();
        let mut decoder = Decoder::new(LIMITS);
        let mut seen = Vec::new();
        let mut rest = stream.as_slice();
        for size in cuts.iter().cycle() {
            let (chunk, tail) = rest.split_at((*size).min(rest.len()));
            decoder.feed(chunk);
            while let Some(body) = decoder.next_frame().unwrap() {
                seen.push(decode_client(&body, LIMITS).unwrap());
            }
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(seen, frames);
        prop_assert!(!decoder.mid_frame());
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode_client(&bytes, LIMITS);
        let _ = decode::<ServerFrame>(&bytes, LIMITS);
        let mut map = vec![0x82];
        map.extend(&bytes);
        let _ = decode_client(&map, LIMITS);
        let _ = decode::<ServerFrame>(&map, LIMITS);
    }
}
