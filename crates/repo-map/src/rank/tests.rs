use super::*;
use crate::tags::{Definition, Kind, Reference};
use proptest::prelude::*;

fn tags(defines: &[&str], uses: &[&str]) -> Tags {
    Tags {
        definitions: (1..)
            .zip(defines)
            .map(|(line, name)| Definition {
                name: (*name).to_owned(),
                kind: Kind::Function,
                line,
            })
            .collect(),
        references: uses
            .iter()
            .map(|name| Reference {
                name: (*name).to_owned(),
                count: 1,
            })
            .collect(),
    }
}

fn order<'a>(files: &'a [(&str, &'a Tags)], focus: &Focus) -> Vec<&'a str> {
    rank(files, focus)
        .iter()
        .map(|ranked| files[ranked.file].1.definitions[ranked.definition].name.as_str())
        .collect()
}

#[test]
fn what_others_use_comes_first() {
    let core = tags(&["lonely", "used_by_all"], &[]);
    let one = tags(&["one"], &["used_by_all"]);
    let two = tags(&["two"], &["used_by_all", "one"]);
    let files = [("core.rs", &core), ("one.rs", &one), ("two.rs", &two)];
    let order = order(&files, &Focus::default());
    assert_eq!(order[..2], ["used_by_all", "one"]);
    assert_eq!(order.len(), 4, "nothing is left out");
}

#[test]
fn names_that_are_mentioned_come_first() {
    let core = tags(&["used_by_all", "rare_thing"], &[]);
    let one = tags(&["one"], &["used_by_all"]);
    let files = [("core.rs", &core), ("one.rs", &one)];
    let focus = Focus {
        names: BTreeSet::from(["rare_thing".to_owned()]),
        ..Focus::default()
    };
    assert_eq!(order(&files, &focus)[0], "rare_thing");
}

#[test]
fn what_a_focused_file_uses_weighs_more() {
    let (one, two) = (tags(&["alpha_part"], &[]), tags(&["gamma_part"], &[]));
    let (uses_one, uses_two) = (tags(&["x"], &["alpha_part"]), tags(&["y"], &["gamma_part"]));
    let files = [
        ("one.rs", &one),
        ("two.rs", &two),
        ("uses_one.rs", &uses_one),
        ("uses_two.rs", &uses_two),
    ];
    let place = |focus: &str| {
        let focus = Focus {
            files: BTreeSet::from([focus.to_owned()]),
            ..Focus::default()
        };
        let order = order(&files, &focus);
        (
            order.iter().position(|name| *name == "alpha_part"),
            order.iter().position(|name| *name == "gamma_part"),
        )
    };
    let (alpha, gamma) = place("uses_one.rs");
    assert!(alpha < gamma);
    let (alpha, gamma) = place("uses_two.rs");
    assert!(gamma < alpha);
}

#[test]
fn a_name_that_everybody_defines_says_little() {
    let new = tags(&["new"], &[]);
    let telling = tags(&["open_session"], &[]);
    let user = tags(&[], &["new", "open_session"]);
    let mut files: Vec<(&str, &Tags)> = ["a", "b", "c", "d", "e", "f", "g"]
        .map(|path| (path, &new))
        .to_vec();
    files.push(("telling", &telling));
    files.push(("user", &user));
    assert_eq!(order(&files, &Focus::default())[0], "open_session");
}

proptest! {
    #[test]
    fn each_definition_is_ranked_once_with_a_weight_that_is_a_number(
        files in prop::collection::vec(
            (prop::collection::vec("[a-d]{1,2}", 0..5), prop::collection::vec("[a-d]{1,2}", 0..5)), 0..8),
    ) {
        let files: Vec<Tags> = files
            .iter()
            .map(|(defines, uses)| {
                let defines: Vec<&str> = defines.iter().map(String::as_str).collect();
                let uses: Vec<&str> = uses.iter().map(String::as_str).collect();
                tags(&defines, &uses)
            })
            .collect();
        let files: Vec<(&str, &Tags)> = files.iter().map(|tags| ("a", tags)).collect();
        let ranked = rank(&files, &Focus::default());
        let all: usize = files.iter().map(|(_, tags)| tags.definitions.len()).sum();
        prop_assert_eq!(ranked.len(), all);
        prop_assert!(ranked.iter().all(|ranked| ranked.weight.is_finite() && ranked.weight >= 0.0));
        prop_assert!(ranked.is_sorted_by(|one, other| one.weight >= other.weight));
    }
}
