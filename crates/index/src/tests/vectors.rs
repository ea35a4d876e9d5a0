//! Tests of vectors with an embedder that uses a table: they test the mechanism, not the quality of a model.

use super::World;
use crate::{Embedder, Pace, Progress, Unembedded, ask, bring_up_to_date};
use agentd_tools::SearchQuery;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Words with the same meaning have the same direction.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) asked: AtomicU32,
    /// This many requests fail first.
    pub(super) failing: u32,
    pub(super) for_good: bool,
    pub(super) texts: std::sync::Mutex<Vec<String>>,
}

#[async_trait]
impl Embedder for Table {
    fn name(&self) -> String {
        "table".into()
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Unembedded> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if asked < self.failing {
            return Err(Unembedded {
                why: "not now".into(),
                again: !self.for_good,
            });
        }
        let cats = ["cat", "feline", "purr"];
        let about =
            |text: &str, words: &[&str]| f32::from(u8::from(words.iter().any(|word| text.contains(word))));
        let vectors = texts
            .iter()
            .map(|text| vec![about(text, &cats), about(text, &["dog", "canine"]), 0.1])
            .collect();
        self.texts.lock().unwrap().extend(texts);
        Ok(vectors)
    }
}

#[expect(clippy::disallowed_methods, reason = "a pass of a test")]
async fn index(world: &World, table: &Arc<Table>) -> Progress {
    let (tell, heard) = watch::channel(Progress::default());
    let (job, table, runtime) = (world.job(), Arc::clone(table), Handle::current());
    let pass = move || {
        let (mut pace, _leash) = Pace::new(100);
        bring_up_to_date(&job, &mut pace, &tell, Some((table.as_ref(), &runtime)))
    };
    tokio::task::spawn_blocking(pass).await.unwrap().unwrap();
    heard.borrow().clone()
}

fn first(world: &World, text: &str, vector: &[f32]) -> Option<String> {
    let query = SearchQuery {
        text: text.into(),
        limit: 5,
        below: "".into(),
    };
    let job = world.job();
    let vector = ("table".to_owned(), vector.to_vec());
    let found = ask(
        (&job.file, &job.workdir),
        &query,
        Some(&vector),
        2_000_000,
        |_| {},
    )
    .unwrap();
    found.hits.into_iter().next().map(|hit| hit.path)
}

fn pets() -> World {
    let world = World::new();
    world
        .put("a.txt", "The cat sleeps.\n")
        .put("b.txt", "The dog barks.\n");
    world
}

#[tokio::test]
async fn vectors_find_text_in_other_words() {
    let world = pets();
    let table = Arc::new(Table::default());
    assert_eq!(index(&world, &table).await.embedded, 2);
    assert_eq!(
        first(&world, "feline", &[1.0, 0.0, 0.1]).as_deref(),
        Some("a.txt")
    );
    assert_eq!(
        first(&world, "canine", &[0.0, 1.0, 0.1]).as_deref(),
        Some("b.txt")
    );
    assert!(world.paths("feline").is_empty(), "not by words");
    assert_eq!(first(&world, "feline", &[1.0]), None, "of another length");
    assert_eq!(index(&world, &table).await.embedded, 0, "each piece once");
}

#[tokio::test(start_paused = true)]
async fn i6_a_failing_embedder_is_retried_within_its_budget_and_words_still_work() {
    let mut world = pets();
    world.limits.retries = 1;
    let table = Arc::new(Table {
        failing: 2,
        ..Table::default()
    });
    let progress = index(&world, &table).await;
    assert_eq!((progress.complete, progress.embedded), (true, 0));
    assert_eq!(progress.unembedded.as_deref(), Some("not now"));
    assert_eq!(table.asked.load(Ordering::Relaxed), 2);
    assert_eq!(world.paths("cat"), ["a.txt"]);
    assert_eq!(index(&world, &table).await.embedded, 2, "the next pass goes on");
}

#[tokio::test]
async fn i6_a_permanent_failure_is_not_retried() {
    let world = pets();
    let table = Arc::new(Table {
        failing: 10,
        for_good: true,
        ..Table::default()
    });
    index(&world, &table).await;
    assert_eq!(table.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn i8_text_that_looks_like_a_key_is_not_sent() {
    let world = World::new();
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
    world.put("a.txt", format!("the cat has {key}\n"));
    let table = Arc::new(Table::default());
    index(&world, &table).await;
    let sent = table.texts.lock().unwrap().join("\n");
    assert!(sent.contains("the cat has") && !sent.contains(key), "{sent}");
}
