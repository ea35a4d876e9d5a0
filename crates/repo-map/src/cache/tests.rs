use super::*;
use crate::tags::Definition;
use crate::tags::Kind;

fn tags(name: &str) -> Tags {
    Tags {
        definitions: vec![Definition {
            name: name.to_owned(),
            kind: Kind::Function,
            line: 1,
        }],
        references: Vec::new(),
    }
}

fn again(cache: &Cache) -> Cache {
    Cache::read(&cache.bytes(true).unwrap().unwrap()).unwrap()
}

#[test]
fn a_file_is_parsed_again_only_when_its_content_changed() {
    let mut cache = Cache::default();
    cache.add("a.rs", Stamp(1), b"one", |_| Ok(tags("one"))).unwrap();
    assert_eq!((cache.parsed(), cache.is_new()), (1, true));

    let mut cache = again(&cache);
    assert!(cache.known("a.rs", Stamp(1)), "neither read nor parsed");
    assert_eq!((cache.parsed(), cache.is_new()), (0, false));

    let mut cache = again(&cache);
    assert!(!cache.known("a.rs", Stamp(2)), "it was touched");
    cache
        .add("a.rs", Stamp(2), b"one", |_| panic!("it has the same content"))
        .unwrap();
    assert_eq!(cache.files().collect::<Vec<_>>(), [("a.rs", &tags("one"))]);

    let mut cache = again(&cache);
    cache.add("a.rs", Stamp(3), b"two", |_| Ok(tags("two"))).unwrap();
    assert_eq!(cache.files().collect::<Vec<_>>(), [("a.rs", &tags("two"))]);
}

#[test]
fn a_file_that_is_gone_is_forgotten() {
    let mut cache = Cache::default();
    cache.add("a.rs", Stamp(1), b"one", |_| Ok(tags("one"))).unwrap();
    cache.add("b.rs", Stamp(1), b"two", |_| Ok(tags("two"))).unwrap();
    let mut cache = again(&cache);
    assert!(cache.known("b.rs", Stamp(1)));
    assert!(cache.is_new(), "one less is a change");
    assert_eq!(again(&cache).old.len(), 1);
}

#[test]
fn a_file_that_cannot_be_parsed_is_not_tried_until_it_changes() {
    let mut cache = Cache::default();
    let result = cache.add("a.rs", Stamp(1), b"one", |_| Err(MapError::TooHard));
    assert!(matches!(result, Err(MapError::TooHard)));
    assert!(again(&cache).known("a.rs", Stamp(1)));
}

#[test]
fn what_is_no_cache_of_this_version_is_refused() {
    let bytes = Cache::default().bytes(true).unwrap().unwrap();
    assert!(Cache::read(&bytes).is_ok());
    let mut other = bytes;
    other[1] = 99;
    assert!(Cache::read(&other).is_err());
    assert!(Cache::read(b"").is_err() && Cache::read(&[0x93; 64]).is_err());
}

#[test]
fn a_map_that_stopped_early_keeps_the_files_that_it_did_not_reach() {
    let mut cache = Cache::default();
    cache.add("a.rs", Stamp(1), b"one", |_| Ok(tags("one"))).unwrap();
    cache.add("b.rs", Stamp(1), b"two", |_| Ok(tags("two"))).unwrap();
    let mut cache = again(&cache);
    cache.add("a.rs", Stamp(2), b"new", |_| Ok(tags("new"))).unwrap();
    let read = |whole| Cache::read(&cache.bytes(whole).unwrap().unwrap()).unwrap();
    assert_eq!(read(true).old.len(), 1);
    let mut cache = read(false);
    assert!(cache.known("a.rs", Stamp(2)) && cache.known("b.rs", Stamp(1)));
}
