use super::*;
use crate::chunk::Chunk;
use crate::words::Wanted;
use proptest::prelude::*;

const NO_LIMIT: u64 = 1 << 40;

fn chunk(last: u32, names: &[&str]) -> Chunk {
    Chunk {
        first: 1,
        last,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn put(writer: &mut Writer, path: &str, line: &str, names: &[&str]) {
    writer
        .put(path, (7, 1, b"hash"), &[line], &[chunk(1, names)])
        .unwrap();
    writer.commit().unwrap();
}

fn found(file: &Path, question: &str, below: &str) -> Vec<String> {
    let reader = Reader::open(file).unwrap().unwrap();
    let ids = reader.matching(question, below, 10).unwrap();
    ids.iter()
        .map(|id| reader.place(*id).unwrap().unwrap().path)
        .collect()
}

#[test]
fn stored_chunks_are_found_and_removed_ones_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.db");
    let mut writer = open(&file, NO_LIMIT, "boot").unwrap();
    put(&mut writer, "a.rs", "openSession();", &[]);
    put(&mut writer, "b.rs", "fn openSession() {}", &["openSession"]);
    assert_eq!(found(&file, "\"session\"", ""), ["b.rs", "a.rs"]);
    assert_eq!(found(&file, "names : \"opensession\"", ""), ["b.rs"]);
    let known = writer.known("b.rs").unwrap().unwrap();
    writer.forget(known.id).unwrap();
    writer.commit().unwrap();
    assert_eq!(found(&file, "\"session\"", ""), ["a.rs"]);
    put(&mut writer, "a.rs", "nothing", &[]);
    assert!(found(&file, "\"session\"", "").is_empty(), "it was replaced");
}

#[test]
fn directories_with_a_common_name_prefix_are_distinct() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.db");
    let mut writer = open(&file, NO_LIMIT, "boot").unwrap();
    for path in ["src/a.rs", "src-more/b.rs", "src.rs", "src", "other/src/c.rs"] {
        put(&mut writer, path, "word", &[]);
    }
    let mut below = found(&file, "\"word\"", "src");
    below.sort();
    assert_eq!(below, ["src", "src/a.rs"]);
}

#[test]
fn a_broken_index_is_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.db");
    std::fs::write(&file, "this is no database, but it is long enough to look at").unwrap();
    let mut writer = open(&file, NO_LIMIT, "boot").unwrap();
    put(&mut writer, "a.rs", "word", &[]);
    assert_eq!(found(&file, "\"word\"", ""), ["a.rs"]);
}

#[test]
fn an_index_of_another_version_is_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.db");
    let mut writer = open(&file, NO_LIMIT, "boot").unwrap();
    put(&mut writer, "a.rs", "word", &[]);
    writer.complete().unwrap();
    drop(writer);
    let other = Connection::open(&file).unwrap();
    other.execute_batch("PRAGMA user_version=99").unwrap();
    drop(other);
    assert!(Reader::open(&file).unwrap().is_none());
    let writer = open(&file, NO_LIMIT, "boot").unwrap();
    assert_eq!(writer.known("a.rs").unwrap(), None);
}

#[test]
fn an_index_left_incomplete_by_a_power_loss_is_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.db");
    let mut writer = open(&file, NO_LIMIT, "first boot").unwrap();
    put(&mut writer, "a.rs", "word", &[]);
    drop(writer);
    let same = open(&file, NO_LIMIT, "first boot").unwrap();
    assert!(same.known("a.rs").unwrap().is_some(), "only the daemon went down");
    drop(same);
    let mut later = open(&file, NO_LIMIT, "second boot").unwrap();
    assert_eq!(later.known("a.rs").unwrap(), None);
    put(&mut later, "a.rs", "word", &[]);
    later.complete().unwrap();
    drop(later);
    let third = open(&file, NO_LIMIT, "third boot").unwrap();
    assert!(third.known("a.rs").unwrap().is_some(), "it was complete");
}

#[test]
fn vectors_of_another_model_are_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.db");
    let mut writer = open(&file, NO_LIMIT, "boot").unwrap();
    put(&mut writer, "a.rs", "word", &[]);
    writer.embedded_by("one").unwrap();
    let waiting = writer.without_vector(i64::MIN, 10).unwrap();
    writer.put_vectors(&[(waiting[0].chunk, vec![0; 8])]).unwrap();
    writer.embedded_by("one").unwrap();
    assert!(writer.without_vector(i64::MIN, 10).unwrap().is_empty());
    writer.embedded_by("two").unwrap();
    assert_eq!(writer.without_vector(i64::MIN, 10).unwrap(), waiting);
}

proptest! {
    #[test]
    fn i6_no_query_makes_the_index_fail(query in "\\PC{0,60}", odd in "[\"'*()^:{}+ANDORNOT a-z_-]{0,40}") {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        drop(open(&file, NO_LIMIT, "boot").unwrap());
        let reader = Reader::open(&file).unwrap().unwrap();
        for query in [query, odd] {
            for question in Wanted::read(&query).asked() {
                prop_assert!(reader.matching(&question, "", 10).is_ok(), "{question}");
            }
        }
    }
}
