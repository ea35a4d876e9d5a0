//! Complete passes and searches on real files.

mod acting;
mod vectors;

use crate::{Job, Limits, Pace, Progress, ReadRule, ask, bring_up_to_date};
use agentd_grammars::InProcess;
use agentd_repo_map::{Language, MapError, Priority, TagFinder, Tags};
use agentd_tools::{SearchFound, SearchQuery, TagFinders};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::watch;

struct World {
    dir: TempDir,
    limits: Limits,
    rule: ReadRule,
    parsers: Option<Arc<dyn TagFinders>>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        Self {
            dir,
            limits: Limits {
                share: 100,
                ..Limits::default()
            },
            rule: ReadRule::new(|_, _| true),
            parsers: Some(Arc::new(InProcess)),
        }
    }

    fn workdir(&self) -> PathBuf {
        self.dir.path().join("work").canonicalize().unwrap()
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.workdir().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn job(&self) -> Job {
        Job {
            workdir: self.workdir(),
            file: self.dir.path().join("index.db"),
            limits: self.limits,
            rule: self.rule.clone(),
            parsers: self.parsers.clone(),
            boot: "boot".into(),
        }
    }

    fn index(&self) -> Progress {
        let (tell, heard) = watch::channel(Progress::default());
        let (mut pace, leash) = Pace::new(self.limits.share);
        bring_up_to_date(&self.job(), &mut pace, &tell, None).unwrap();
        drop(leash);
        heard.borrow().clone()
    }

    fn ask(&self, text: &str, below: &str) -> SearchFound {
        let query = SearchQuery {
            text: text.into(),
            limit: 5,
            below: below.into(),
        };
        let job = self.job();
        ask((&job.file, &job.workdir), &query, None, 2_000_000, |_| {}).unwrap()
    }

    fn paths(&self, text: &str) -> Vec<String> {
        let found = self.ask(text, "");
        found.hits.into_iter().map(|hit| hit.path).collect()
    }
}

#[test]
fn the_definition_is_the_first_hit_with_its_lines() {
    let world = World::new();
    let uses = "open_session(1);\n".repeat(30);
    world
        .put("src/uses.rs", format!("fn main() {{\n{uses}}}\n"))
        .put(
            "src/core.rs",
            "// Nothing.\n\n/// Opens.\npub fn open_session(n: u8) {}\n",
        )
        .put("notes.md", "How an open_session call works.\n");
    let progress = world.index();
    assert_eq!(
        (progress.files, progress.written, progress.complete),
        (3, 3, true)
    );
    let found = world.ask("where is open_session defined?", "");
    let first = &found.hits[0];
    assert_eq!(
        (first.path.as_str(), first.start_line, first.end_line),
        ("src/core.rs", 1, 4)
    );
    assert!(
        first.text.contains("\n4\tpub fn open_session(n: u8) {}\n"),
        "{}",
        first.text
    );
    assert_eq!((found.files, found.complete), (3, true));
    assert_eq!(world.paths("opening sessions")[0], "src/core.rs");
}

#[test]
fn without_a_parser_a_search_finds_places_by_their_words() {
    let mut world = World::new();
    let body = "    nothing();\n".repeat(10);
    let functions = (0..9).map(|n| format!("fn number_{n}() {{\n{body}}}\n"));
    world.put("src/core.rs", functions.collect::<String>());
    world.parsers = None;
    assert_eq!(world.index().files, 1);
    let found = world.ask("number_7", "");
    let first = &found.hits[0];
    assert!(first.text.contains("fn number_7()"), "{}", first.text);
    assert!(found.complete);
}

#[test]
fn a_file_that_cannot_be_parsed_is_indexed_by_its_words() {
    #[derive(Debug)]
    struct Failing;

    impl TagFinders for Failing {
        fn finder(&self, priority: Priority) -> Box<dyn TagFinder> {
            assert_eq!(priority, Priority::Background);
            Box::new(Self)
        }
    }

    impl TagFinder for Failing {
        fn tags(&mut self, _: Language, _: &[u8], _: &dyn Fn() -> bool) -> Result<Tags, MapError> {
            Err(MapError::Failed)
        }
    }

    let mut world = World::new();
    world.parsers = Some(Arc::new(Failing));
    world.put("a.rs", "fn alpha_beast() {}");
    assert!(world.index().complete);
    assert_eq!(world.paths("alpha_beast"), ["a.rs"]);
}

#[test]
fn a_search_can_be_limited_to_a_directory() {
    let world = World::new();
    world
        .put("a/x.rs", "fn needle_one() {}")
        .put("b/x.rs", "fn needle_two() {}");
    world.index();
    let found = world.ask("needle", "b");
    let paths: Vec<&str> = found.hits.iter().map(|hit| hit.path.as_str()).collect();
    assert_eq!(paths, ["b/x.rs"]);
}

#[test]
fn only_changed_files_are_read_again_and_deleted_ones_removed() {
    let world = World::new();
    world
        .put("a.rs", "fn alpha_beast() {}")
        .put("b.rs", "fn second_cat() {}");
    assert_eq!(world.index().written, 2);
    assert_eq!(world.index().written, 0);
    world
        .put("b.rs", "fn third_dog() {}")
        .put("a.rs", "fn alpha_beast() {}");
    assert_eq!(
        world.index().written,
        1,
        "the same content under a new time is the same"
    );
    assert_eq!(world.paths("second_cat").first().map(String::as_str), None);
    assert_eq!(world.paths("third_dog"), ["b.rs"]);
    fs::remove_file(world.workdir().join("b.rs")).unwrap();
    let progress = world.index();
    assert_eq!((progress.files, progress.written), (1, 0));
    assert!(world.paths("third_dog").is_empty());
}

#[test]
fn i7_unreadable_files_are_not_indexed() {
    let mut world = World::new();
    world
        .put("ok.rs", "canary_word ok")
        .put("secret/key.rs", "canary_word secret")
        .put(".hidden.rs", "canary_word hidden")
        .put("ignored.rs", "canary_word ignored")
        .put(".gitignore", "ignored.rs\n")
        .put("binary.rs", b"canary_word \0 binary");
    let outside = world.dir.path().join("outside.rs");
    fs::write(&outside, "canary_word outside").unwrap();
    symlink(&outside, world.workdir().join("link.rs")).unwrap();
    symlink(world.dir.path(), world.workdir().join("linked")).unwrap();
    world.rule = ReadRule::new(|_, path| !path.starts_with("secret"));
    world.index();
    assert_eq!(world.paths("canary_word"), ["ok.rs"]);
    // A rule added later removes indexed files.
    world.rule = ReadRule::new(|_, path| path != "ok.rs" && !path.starts_with("secret"));
    world.index();
    assert!(world.paths("canary_word").is_empty());
}

#[test]
fn i7_a_file_that_became_a_link_is_not_shown() {
    let world = World::new();
    world.put("a.rs", "canary_word inside");
    world.index();
    let outside = world.dir.path().join("outside.rs");
    fs::write(&outside, "canary_word outside").unwrap();
    fs::remove_file(world.workdir().join("a.rs")).unwrap();
    symlink(&outside, world.workdir().join("a.rs")).unwrap();
    assert!(world.paths("canary_word").is_empty());
}

#[test]
fn i6_files_and_bytes_are_bounded_and_the_result_says_so() {
    let mut world = World::new();
    for n in 0..4 {
        world.put(&format!("{n}.rs"), format!("fn number_{n}() {{}}\n"));
    }
    world.limits.max_files = 4;
    let progress = world.index();
    assert_eq!((progress.files, progress.left_out), (4, None));
    world.limits.max_files = 3;
    let progress = world.index();
    assert_eq!(progress.files, 3);
    assert!(progress.left_out.unwrap().contains("index.max_files"));
    world.limits.max_files = 100;
    let all = world.index().bytes;
    world.limits.max_bytes = all;
    assert_eq!(world.index().left_out, None);
    world.limits.max_bytes = all - 1;
    assert!(world.index().left_out.unwrap().contains("index.max_bytes"));
    world.limits.max_bytes = all;
    world.limits.max_file_bytes = all / 4;
    assert_eq!(world.index().files, 4);
    world.limits.max_file_bytes = all / 4 - 1;
    assert_eq!(world.index().files, 0);
}

#[test]
fn i6_a_full_index_answers_with_what_it_has() {
    let mut world = World::new();
    world.limits.max_index_bytes = 400_000;
    for n in 0..200 {
        let words: String = (0..400).map(|w| format!("word_{n}_{w}\n")).collect();
        world.put(&format!("{n:03}.txt"), words);
    }
    let progress = world.index();
    assert!(progress.left_out.unwrap().contains("index.max_index_bytes"));
    assert!(fs::metadata(world.job().file).unwrap().len() <= 400_000);
    assert_eq!(
        world.paths("word_0_1").first().map(String::as_str),
        Some("000.txt")
    );
}

#[test]
fn an_empty_search_finds_nothing() {
    let world = World::new();
    assert_eq!(world.ask("anything", ""), SearchFound::default());
    world.put("a.rs", "fn a_thing() {}");
    world.index();
    assert!(world.paths("?!").is_empty());
}

#[test]
fn i6_a_cancelled_pass_stops_and_the_next_continues_it() {
    let world = World::new();
    world.put("a.rs", "fn a_thing() {}");
    let (tell, heard) = watch::channel(Progress::default());
    let (mut pace, leash) = Pace::new(100);
    drop(leash);
    bring_up_to_date(&world.job(), &mut pace, &tell, None).unwrap();
    assert!(!heard.borrow().complete);
    assert!(world.index().complete);
}
