//! Packs for the store.

use super::world;
use crate::{Error, Limits};
use std::fs;

#[test]
fn i6_a_pack_has_what_is_new_within_its_bound_or_is_not_there() {
    let from = world(Limits::default());
    from.write("a", "one\n");
    let first = from.take();
    from.write("b/c", "two\n");
    let second = from.take();
    let (whole, new) = (
        from.work.with_extension("1.pack"),
        from.work.with_extension("2.pack"),
    );
    let bytes = from.archive.pack_to(&first, None, &whole, u64::MAX).unwrap();
    assert_eq!(fs::metadata(&whole).unwrap().len(), bytes);
    let bytes = from
        .archive
        .pack_to(&second, Some(&first), &new, u64::MAX)
        .unwrap();
    fs::remove_file(&new).unwrap();
    let over = from.archive.pack_to(&second, Some(&first), &new, bytes - 1);
    assert!(
        matches!(over, Err(Error::StoreLimit(most)) if most == bytes - 1),
        "{over:?}"
    );
    let left = fs::read_dir(new.parent().unwrap()).unwrap().flatten();
    let left: Vec<_> = left
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.contains("2."))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(
        from.archive.pack_to(&second, Some(&first), &new, bytes).unwrap(),
        bytes
    );

    // Another machine has only the packs.
    let to = world(Limits::default());
    to.archive.unpack_from(&whole).unwrap();
    assert!(to.archive.fill(&second).is_err(), "the second pack is missing");
    to.archive.unpack_from(&new).unwrap();
    to.archive.fill(&second).unwrap();
    for (name, text) in [("a", "one\n"), ("b/c", "two\n")] {
        assert_eq!(fs::read_to_string(to.work.join(name)).unwrap(), text);
    }
    assert_eq!(to.take(), second);
}
