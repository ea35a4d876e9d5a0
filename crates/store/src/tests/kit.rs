//! Shared test helpers of the store: a backend with a manual clock, and appends.

use agentd_protocol::{
    Budget, EVENT_VERSION, Event, LoopLimits, PermissionMode, Principal, RunState, Seq, SessionCreated,
    SessionId, SessionPaused, Stamp, Status, Summary, Timestamp,
};
use agentd_store::{
    Append, Backend, Clock, EncodedEvent, Filter, IdempotencyKey, MemoryStore, Outcome, Range,
};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

const START: u64 = 1_763_629_200_000;

#[derive(Clone)]
pub(crate) struct Kit {
    pub(crate) log: Arc<dyn Backend>,
    now: Arc<AtomicU64>,
    stamp: Arc<Mutex<Stamp>>,
    dir: Arc<TempDir>,
}

pub(crate) fn moving_clock() -> (Clock, Arc<AtomicU64>) {
    let now = Arc::new(AtomicU64::new(START));
    let read = Arc::clone(&now);
    (Clock::new(move || Timestamp(read.load(Ordering::SeqCst))), now)
}

impl Kit {
    /// A kit over an open backend, whose clock is that of [`moving_clock`].
    pub(crate) fn new(dir: TempDir, log: Arc<dyn Backend>, now: Arc<AtomicU64>) -> Self {
        Self {
            log,
            now,
            stamp: Arc::new(Mutex::new(Stamp::new(Timestamp(START), 1))),
            dir: Arc::new(dir),
        }
    }

    pub(crate) fn memory() -> Self {
        let (clock, now) = moving_clock();
        let log = Arc::new(MemoryStore::new(clock));
        Self::new(tempfile::tempdir().unwrap(), log, now)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.now.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(self.now(), self.stamp.lock().unwrap().next_u64())
    }

    /// A new id; later ids sort later.
    pub(crate) fn session(&self) -> SessionId {
        self.pass(1);
        self.stamp().session()
    }

    pub(crate) fn append(&self, session: SessionId, epoch: u64, head: Seq, events: u64) -> Append {
        let mut append = Append::new(session, epoch, head, self.stamp().append());
        append.events = (head + 1..=head + events)
            .map(|seq| event(session, seq))
            .collect();
        append
    }

    /// The first append of a session: a `session.created` and a few more events.
    pub(crate) fn create(&self, session: SessionId, name: &str, events: u64) -> Append {
        Append {
            summary: Some(summary(session, name)),
            ..self.append(session, 1, 0, events)
        }
    }

    pub(crate) fn more(&self, session: SessionId, epoch: u64, head: Seq, events: u64) -> Append {
        self.append(session, epoch, head, events)
    }

    pub(crate) async fn commits(&self, append: Append) -> bool {
        matches!(self.log.append(append).await, Outcome::Committed { .. })
    }

    pub(crate) async fn created(&self, events: u64) -> SessionId {
        let session = self.session();
        assert!(self.commits(self.create(session, "created", events)).await);
        session
    }

    pub(crate) async fn seqs(&self, session: SessionId) -> Vec<Seq> {
        let page = self.log.load(session, Range::default()).await.unwrap();
        page.events.into_iter().map(|(seq, _)| seq).collect()
    }

    pub(crate) async fn listed(&self, filter: Filter) -> Vec<SessionId> {
        let rows = self.log.list(filter).await.unwrap();
        rows.into_iter().map(|row| row.summary.session).collect()
    }
}

pub(crate) fn event(session: SessionId, seq: Seq) -> EncodedEvent {
    let body = if seq == 1 {
        SessionCreated {
            title: "t".to_owned(),
            project: "p".to_owned(),
            workdir: "/w".to_owned(),
            model: "m".to_owned(),
            mode: PermissionMode::Default,
            agent: None,
            labels: [].into(),
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
        .into()
    } else {
        SessionPaused {
            reason: format!("nr. {seq}, with ünïcode and a \"quote\"\n"),
        }
        .into()
    };
    let by = Principal::user("ana");
    let event = Event {
        v: EVENT_VERSION,
        session,
        seq,
        at: Timestamp(START + seq),
        by,
        turn: None,
        body,
    };
    EncodedEvent::encode(&event).unwrap()
}

pub(crate) fn summary(session: SessionId, name: &str) -> Summary {
    let since = Timestamp(START);
    Summary {
        name: name.to_owned(),
        model: "m".to_owned(),
        workdir: "/w".to_owned(),
        seq: 1,
        ..Summary::new(session, Status::new(RunState::Idle, "", since))
    }
}

/// Ana's key "k1" for this request; the answer names the request.
pub(crate) fn key(hash: u8) -> IdempotencyKey {
    IdempotencyKey {
        principal: Principal::user("ana"),
        key: "k1".to_owned(),
        method: "input.send".to_owned(),
        body_hash: [hash; 32],
        answer: format!("{{\"hash\":{hash}}}"),
    }
}
