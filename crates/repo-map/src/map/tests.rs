use super::*;
use crate::tags::{Definition, Kind};

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

fn source() -> Option<Vec<u8>> {
    Some(b"fn f() {}".to_vec())
}

fn again(map: &SourceMap) -> SourceMap {
    SourceMap::new(Cache::read(&map.cache().bytes(true).unwrap().unwrap()).unwrap())
}

#[test]
fn a_file_on_which_the_parser_fails_is_left_out_until_it_changes() {
    for error in [MapError::Failed, MapError::TooHard] {
        let mut map = SourceMap::default();
        map.add("a.rs", Stamp(1), source, |_, _| Err(error));
        map.add("b.rs", Stamp(1), source, |_, _| Ok(tags("b")));
        assert_eq!((map.failed(), map.places(&Focus::default(), 9).len()), (1, 1));
        let mut map = again(&map);
        map.add("a.rs", Stamp(2), source, |_, _| panic!("it has the same content"));
        map.add(
            "a.rs",
            Stamp(2),
            || Some(b"fn g() {}".to_vec()),
            |_, _| Ok(tags("g")),
        );
        assert_eq!((map.failed(), map.files()), (0, 1));
    }
}

#[test]
fn a_file_that_was_stopped_is_tried_again() {
    let mut map = SourceMap::default();
    map.add("a.rs", Stamp(1), source, |_, _| Err(MapError::Stopped));
    assert_eq!(
        (map.failed(), map.postponed(), map.files(), map.cache().parsed()),
        (0, 1, 0, 0)
    );
    let mut map = again(&map);
    map.add("a.rs", Stamp(1), source, |_, _| Ok(tags("f")));
    assert_eq!(map.files(), 1);
}

#[test]
fn without_a_parser_the_map_says_why_and_reads_nothing_more() {
    let mut map = SourceMap::default();
    map.add("old.rs", Stamp(1), source, |_, _| Ok(tags("old")));
    let mut map = again(&map);
    map.add("a.rs", Stamp(1), source, |_, _| {
        Err(MapError::Unavailable("it is missing".to_owned()))
    });
    map.add(
        "b.rs",
        Stamp(1),
        || panic!("nothing could parse it"),
        |_, _| Ok(tags("b")),
    );
    map.add("old.rs", Stamp(1), || panic!("it is known"), |_, _| Ok(tags("b")));
    assert_eq!(
        (map.unavailable(), map.files(), map.failed()),
        (Some("it is missing"), 1, 0)
    );
}
