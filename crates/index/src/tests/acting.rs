//! Tests of the actor.

use super::World;
use super::vectors::Table;
use crate::{IndexHandle, IndexMsg, Indexer, IndexerArgs};
use agentd_actor_kit::{Clock, Handle};
use agentd_settings::{IndexConfig, Indexing};
use agentd_tools::{Search as _, SearchQuery};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

struct Parent;

impl Actor for Parent {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        _: SupervisionEvent,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

struct Running {
    handle: IndexHandle,
    indexer: ActorRef<IndexMsg>,
    parent: ActorRef<()>,
}

impl Running {
    async fn start(world: &World, enabled: Indexing, embedder: Option<Arc<Table>>) -> Self {
        Self::waiting(world, enabled, embedder, Duration::from_secs(60)).await
    }

    /// The first search waits at most this long.
    async fn waiting(world: &World, enabled: Indexing, embedder: Option<Arc<Table>>, wait: Duration) -> Self {
        let (parent, _) = Actor::spawn(None, Parent, ()).await.unwrap();
        let mut limits = world.limits;
        limits.refresh = Duration::ZERO;
        limits.wait = wait;
        let args = IndexerArgs {
            dir: world.dir.path().join("index"),
            limits,
            rule: world.rule.clone(),
            embedder: embedder.map(|table| table as _),
            parsers: world.parsers.clone(),
            clock: Clock::System,
        };
        let indexer = Indexer::start(args, parent.get_cell()).await.unwrap();
        let config = IndexConfig {
            enabled,
            wait_ms: 60_000,
            ..IndexConfig::default()
        };
        let handle = Handle::fixed("the indexer", indexer.clone());
        Self {
            handle: IndexHandle::new(handle, &config).unwrap(),
            indexer,
            parent,
        }
    }

    async fn paths(&self, workdir: &Path, text: &str) -> Result<Vec<String>, String> {
        let query = SearchQuery {
            text: text.into(),
            limit: 5,
            below: "".into(),
        };
        let found = self.handle.search(workdir, query).await?;
        Ok(found.hits.into_iter().map(|hit| hit.path).collect())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.indexer.kill();
        self.parent.kill();
    }
}

#[tokio::test]
async fn the_first_search_makes_the_index_and_later_ones_see_changes() {
    let world = World::new();
    world.put("a.rs", "fn alpha_dog() {}");
    let running = Running::start(&world, Indexing::Auto, None).await;
    let workdir = world.workdir();
    assert_eq!(running.paths(&workdir, "alpha_dog").await.unwrap(), ["a.rs"]);
    world.put("b.rs", "fn beta_cat() {}");
    // A search waits only a moment for changes; on a busy machine only the next search sees them.
    let mut found = Vec::new();
    while found.is_empty() {
        found = running.paths(&workdir, "beta_cat").await.unwrap();
    }
    assert_eq!(found[0], "b.rs");
}

#[tokio::test]
async fn searches_at_the_same_time_in_several_directories_are_all_answered() {
    let world = World::new();
    let dirs: Vec<_> = (0..6).map(|n| world.workdir().join(format!("d{n}"))).collect();
    for n in 0..6 {
        world.put(&format!("d{n}/x.rs"), format!("fn thing_{n}() {{}}"));
    }
    let running = Running::start(&world, Indexing::Auto, None).await;
    let mut found = Vec::new();
    let all = dirs.iter().enumerate().map(|(n, dir)| {
        let running = &running;
        async move { running.paths(dir, &format!("thing_{n}")).await.unwrap() }
    });
    // Joined by hand, because the crate has no futures library.
    let mut all: Vec<_> = all.map(Box::pin).collect();
    for one in &mut all {
        found.push(one.await);
    }
    assert!(found.iter().all(|paths| paths == &["x.rs"]), "{found:?}");
    assert_eq!(
        std::fs::read_dir(world.dir.path().join("index"))
            .unwrap()
            .filter(|entry| {
                entry
                    .as_ref()
                    .unwrap()
                    .path()
                    .extension()
                    .is_some_and(|end| end == "db")
            })
            .count(),
        6
    );
}

#[tokio::test]
async fn a_missing_directory_is_reported() {
    let world = World::new();
    let running = Running::start(&world, Indexing::Auto, None).await;
    let why = running
        .paths(&world.workdir().join("nowhere"), "x")
        .await
        .unwrap_err();
    assert!(why.contains("could not index"), "{why}");
}

#[tokio::test]
async fn with_on_a_directory_is_indexed_before_the_first_search() {
    let world = World::new();
    world.put("a.rs", "fn first_thing() {}");
    let running = Running::start(&world, Indexing::On, None).await;
    running.handle.touched(&world.workdir());
    let index = world.dir.path().join("index");
    let made = || std::fs::read_dir(&index).is_ok_and(|mut dir| dir.next().is_some());
    tokio::time::timeout(Duration::from_secs(60), async {
        while !made() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn with_off_there_is_no_index() {
    let world = World::new();
    let running = Running::start(&world, Indexing::Auto, None).await;
    let handle = Handle::fixed("the indexer", running.indexer.clone());
    let config = IndexConfig {
        enabled: Indexing::Off,
        ..IndexConfig::default()
    };
    assert!(IndexHandle::new(handle, &config).is_none());
}

#[tokio::test]
async fn when_the_embedding_model_fails_a_search_uses_words_and_says_so() {
    let world = World::new();
    world.put("a.rs", "fn first_thing() {}");
    let table = Arc::new(Table {
        failing: u32::MAX,
        for_good: true,
        ..Table::default()
    });
    let running = Running::start(&world, Indexing::Auto, Some(Arc::clone(&table))).await;
    let query = SearchQuery {
        text: "first_thing".into(),
        limit: 5,
        below: "".into(),
    };
    let found = running.handle.search(&world.workdir(), query).await.unwrap();
    assert_eq!(found.hits[0].path, "a.rs");
    assert!(
        found.notes[0].contains("come from word search alone"),
        "{:?}",
        found.notes
    );
}

#[tokio::test]
async fn the_first_search_by_meaning_waits_for_the_vectors() {
    let world = World::new();
    world.put("a.txt", "The cat sleeps.\n");
    let table = Arc::new(Table::default());
    let running = Running::start(&world, Indexing::Auto, Some(Arc::clone(&table))).await;
    let found = running.paths(&world.workdir(), "feline").await.unwrap();
    assert_eq!(found, ["a.txt"]);
    let texts = table.texts.lock().unwrap().clone();
    assert_eq!(
        texts.last().map(String::as_str),
        Some("feline"),
        "pieces first: {texts:?}"
    );
}

#[tokio::test]
async fn a_search_without_finished_vectors_says_so() {
    let world = World::new();
    world.put("a.txt", "The cat sleeps.\n");
    let table = Arc::new(Table::default());
    let running = Running::waiting(&world, Indexing::Auto, Some(table), Duration::ZERO).await;
    let query = SearchQuery {
        text: "feline".into(),
        limit: 5,
        below: "".into(),
    };
    let found = running.handle.search(&world.workdir(), query).await.unwrap();
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("vectors of the index are being computed")),
        "{:?}",
        found.notes
    );
}
