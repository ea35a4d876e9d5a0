//! Answers of requests with an `Idempotency-Key` whose methods store no key: kept in memory, so that a repetition gets the
//! same answer. Only the answers of requests that succeeded are kept: one that failed may be tried again with its key.

use agentd_api::{key_busy, key_reused};
use agentd_protocol::{Fault, Principal};
use agentd_settings::HttpConfig;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as Gate;
use tokio::time::{Instant, timeout};

/// The most bytes of one token's answers; the newest one may exceed it.
const BYTES: usize = 1 << 20;

/// A method and its parameters, hashed.
type Request = [u8; 32];

/// The answers of each principal, the oldest first.
#[derive(Debug)]
pub(crate) struct Replays {
    most: usize,
    keep: Duration,
    wait: Duration,
    kept: Mutex<BTreeMap<Principal, VecDeque<Kept>>>,
}

#[derive(Debug)]
struct Kept {
    key: String,
    request: Request,
    since: Instant,
    /// The answer, once there is one. The request that runs holds the lock.
    answer: Arc<Gate<Option<String>>>,
}

impl Kept {
    fn runs(&self) -> bool {
        Arc::strong_count(&self.answer) > 1
    }

    fn bytes(&self) -> usize {
        let answer = self.answer.try_lock();
        answer.map_or(0, |answer| answer.as_ref().map_or(0, String::len))
    }
}

impl Replays {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        Self {
            most: usize::try_from(config.keys_per_token).unwrap_or(usize::MAX),
            keep: Duration::from_secs(config.key_seconds),
            wait: Duration::from_millis(config.key_wait_ms),
            kept: Mutex::default(),
        }
    }

    /// Carries out a request once for its key. It runs to its end also if its client goes away: the client comes back for
    /// the answer.
    pub(crate) async fn once(
        &self,
        who: &Principal,
        key: &str,
        request: Request,
        work: impl Future<Output = Result<Value, Fault>> + Send + 'static,
    ) -> Result<Value, Fault> {
        let answer = self.enter(who, key, request)?;
        let held = timeout(self.wait, answer.lock_owned()).await;
        let mut held = held.map_err(|_| key_busy())?;
        if let Some(answer) = held.as_deref() {
            return serde_json::from_str(answer).map_err(|error| unreadable(&error));
        }
        let task = tokio::spawn(async move {
            let answer = work.await?;
            *held = Some(answer.to_string());
            Ok(answer)
        });
        task.await.unwrap_or_else(|_| {
            Err(Fault::internal(
                "request_panicked",
                "the request failed inside agentd",
            ))
        })
    }

    /// The place of a request's answer.
    fn enter(
        &self,
        who: &Principal,
        key: &str,
        request: Request,
    ) -> Result<Arc<Gate<Option<String>>>, Fault> {
        let mut all = self.lock();
        let now = Instant::now();
        let keep = self.keep;
        for kept in all.values_mut() {
            kept.retain(|kept| kept.runs() || now.duration_since(kept.since) < keep);
        }
        all.retain(|_, kept| !kept.is_empty());
        let own = all.entry(who.clone()).or_default();
        if let Some(at) = own.iter().position(|kept| kept.key == key)
            && let Some(known) = own.get(at)
        {
            if known.request == request {
                return Ok(Arc::clone(&known.answer));
            }
            if known.runs() || known.bytes() > 0 {
                return Err(key_reused(key));
            }
            // It failed, so its key is free.
            own.remove(at);
        }
        make_room(own, self.most)?;
        let answer = Arc::default();
        own.push_back(Kept {
            key: key.to_owned(),
            request,
            since: now,
            answer: Arc::clone(&answer),
        });
        Ok(answer)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Principal, VecDeque<Kept>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the oldest answers until there is room for one more.
fn make_room(own: &mut VecDeque<Kept>, most: usize) -> Result<(), Fault> {
    let mut bytes: usize = own.iter().map(Kept::bytes).sum();
    while own.len() >= most || bytes > BYTES {
        let idle = own.iter().position(|kept| !kept.runs());
        let Some(oldest) = idle.and_then(|at| own.remove(at)) else {
            let message = format!(
                "{most} requests with an Idempotency-Key are running, the most that http.keys_per_token allows"
            );
            return Err(Fault::busy("too_many_keys", message).hint("try again when one of them is done"));
        };
        bytes -= oldest.bytes();
    }
    Ok(())
}

/// The request that a key stands for; the order of its parameters does not count.
pub(crate) fn request_of(method: &str, mut params: Value) -> Request {
    params.sort_all_objects();
    Sha256::digest(format!("{method} {params}")).into()
}

fn unreadable(error: &serde_json::Error) -> Fault {
    Fault::internal("bad_stored_answer", format!("cannot read a kept answer: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::future::{pending, ready};
    use tokio::sync::oneshot;

    fn replays(most: u32) -> Replays {
        Replays::new(&HttpConfig {
            keys_per_token: most,
            key_seconds: 60,
            ..HttpConfig::default()
        })
    }

    fn ana() -> Principal {
        Principal("token:ana".to_owned())
    }

    /// Sends a request whose method answers with a number.
    async fn ask(replays: &Replays, key: &str, request: u8, answer: u64) -> Result<Value, Fault> {
        let work = ready(Ok(json!({"seq": answer})));
        replays.once(&ana(), key, [request; 32], work).await
    }

    async fn seq(replays: &Replays, key: &str, request: u8, answer: u64) -> u64 {
        let answer = ask(replays, key, request, answer).await.unwrap();
        answer["seq"].as_u64().unwrap()
    }

    #[tokio::test]
    async fn a_repetition_gets_the_first_answer_and_another_request_is_refused() {
        let replays = replays(9);
        assert_eq!(seq(&replays, "k", 1, 7).await, 7);
        assert_eq!(seq(&replays, "k", 1, 8).await, 7);
        assert_eq!(ask(&replays, "k", 2, 9).await.unwrap_err().code, "key_reused");
        let bob = Principal("token:bob".to_owned());
        let other = replays.once(&bob, "k", [3; 32], ready(Ok(json!(1)))).await;
        assert_eq!(other.unwrap(), json!(1));
    }

    #[test]
    fn a_request_is_its_method_and_its_parameters_in_any_order() {
        let one = request_of("session.pause", json!({"session": "s", "reason": "r"}));
        assert_eq!(
            one,
            request_of("session.pause", json!({"reason": "r", "session": "s"}))
        );
        assert_ne!(
            one,
            request_of("session.close", json!({"session": "s", "reason": "r"}))
        );
        assert_ne!(one, request_of("session.pause", json!({"session": "s"})));
    }

    #[tokio::test]
    async fn a_failed_request_can_be_repeated_with_another_body() {
        let replays = replays(9);
        for request in [1, 2] {
            let work = ready(Err(Fault::busy("no", "not now")));
            let failed = replays.once(&ana(), "k", [request; 32], work).await;
            assert_eq!(failed.unwrap_err().code, "no");
        }
        assert_eq!(seq(&replays, "k", 2, 7).await, 7);
    }

    #[tokio::test]
    async fn a_repetition_waits_for_the_running_request_even_if_its_client_is_gone() {
        let replays = replays(9);
        let (open, opened) = oneshot::channel();
        let (started, running) = oneshot::channel();
        let work = async {
            started.send(()).unwrap();
            opened.await.unwrap();
            Ok(json!({"seq": 7}))
        };
        let who = ana();
        tokio::select! {
            _ = replays.once(&who, "k", [1; 32], work) => panic!("it cannot end yet"),
            _ = running => {}
        }
        let (again, ()) = tokio::join!(seq(&replays, "k", 1, 8), async { open.send(()).unwrap() });
        assert_eq!(again, 7);
    }

    #[tokio::test(start_paused = true)]
    async fn i6_a_repetition_waits_no_longer_than_its_limit() {
        let replays = replays(1);
        let who = ana();
        let first = replays.once(&who, "k", [1; 32], pending());
        let second = async {
            let busy = ask(&replays, "k", 1, 8).await.unwrap_err();
            // All places are taken by requests that run.
            let full = ask(&replays, "other", 1, 8).await.unwrap_err();
            (busy.code, full.code)
        };
        tokio::select! {
            biased;
            _ = first => panic!("it never ends"),
            codes = second => assert_eq!(codes, ("key_busy".into(), "too_many_keys".into())),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn i6_kept_answers_are_bounded_in_number_bytes_and_age() {
        let replays = replays(2);
        for (key, answer) in [("a", 1), ("b", 2), ("c", 3)] {
            seq(&replays, key, 1, answer).await;
        }
        assert_eq!(seq(&replays, "b", 1, 8).await, 2, "it is one of the two newest");
        assert_eq!(seq(&replays, "a", 1, 9).await, 9, "it was the oldest of three");
        let large = ready(Ok(json!("x".repeat(BYTES))));
        replays.once(&ana(), "large", [1; 32], large).await.unwrap();
        assert_eq!(seq(&replays, "d", 1, 4).await, 4);
        assert_eq!(
            replays.lock()[&ana()].len(),
            1,
            "the large one took the room of all"
        );
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(seq(&replays, "d", 1, 5).await, 4);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(seq(&replays, "d", 1, 5).await, 5);
    }
}
