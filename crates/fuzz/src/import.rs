//! Imported logs: restored as our own, they are exported byte for byte, numbered without gaps; quoted, they have no
//! effect on the session, whatever they say.

use agentd_protocol::{
    Budget, EVENT_VERSION, Event, EventBody, Labels, LoopLimits, PermissionMode, Principal, SessionCreated,
    SessionImported, Stamp, Timestamp,
};
use agentd_store::{EncodedEvent, ForeignLog, MemoryStore, OwnLog, export, restore};
use agentd_transcript::Transcript;
use agentd_turn::{Agent, Config};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
    })
}

pub(crate) fn holds(bytes: &[u8]) {
    let lines: Vec<Bytes> = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(Bytes::copy_from_slice)
        .collect();
    runtime().block_on(async {
        let log = MemoryStore::default();
        let mut stamp = Stamp::new(Timestamp(1), 7);
        quoted(lines.clone());
        let own = OwnLog::vouched(lines.clone());
        let Ok(restored) = restore(&log, &own, &mut stamp, |_, _| Ok(None)).await else {
            return;
        };
        let stored = export(&log, restored.session, 0, 0).await.expect("it is there");
        assert!(stored.len() >= lines.len(), "{} of {}", stored.len(), lines.len());
        let taken = stored.iter().zip(&lines);
        for (place, (stored, line)) in taken.enumerate() {
            assert_eq!(stored, line, "line {place} is as it was");
        }
    });
}

/// Whatever a foreign log says, the session that quotes it keeps the state that it had before.
fn quoted(lines: Vec<Bytes>) {
    let Ok(foreign) = ForeignLog::read(lines, usize::MAX) else {
        return;
    };
    let (session, at) = (Stamp::new(Timestamp(2), 8).session(), Timestamp(2));
    let imported = SessionImported {
        from: foreign.from(),
        source: String::new(),
        sum: foreign.sum(),
        events: foreign.len() as u64,
        closed: Vec::new(),
        blobs: Vec::new(),
    };
    let by = Principal::user("ana");
    let event = |(seq, body)| Event {
        v: EVENT_VERSION,
        session,
        seq,
        at,
        by: by.clone(),
        turn: None,
        body,
    };
    let bodies: [EventBody; 2] = [imported.into(), created().into()];
    let head: Vec<Event> = (1..).zip(bodies).map(event).collect();
    let Ok(own) = foreign.quoted(&head, session, &by, at) else {
        return;
    };
    let mut before = Agent::new(session, Arc::new(Config::default()));
    head.iter()
        .for_each(|event| before.apply(event).expect("the head folds"));
    let (mut after, mut transcript) = (before.clone(), Transcript::new());
    for line in own.lines().iter().skip(head.len()) {
        let event = EncodedEvent::decode(line).expect("a quotation can be read");
        after.apply(&event).expect("a quotation folds");
        transcript.apply(&event);
    }
    let facts = |agent: &Agent| {
        let mut durable = agent.durable().clone();
        (durable.head, durable.updated_at) = (0, at);
        durable
    };
    assert!(facts(&after) == facts(&before), "a quotation changed something");
}

fn created() -> SessionCreated {
    SessionCreated {
        title: "t".into(),
        project: "p".into(),
        workdir: "/w".into(),
        model: "m".into(),
        mode: PermissionMode::Default,
        agent: None,
        labels: Labels::new(),
        requires: [].into(),
        parent: None,
        limits: LoopLimits::default(),
        budget: Budget::default(),
        tools: Vec::new(),
        system_prompt: None,
        append_system_prompt: None,
        rules: Vec::new(),
        lineage: None,
        prompt: None,
        derived_title: false,
        workspace: None,
    }
}
