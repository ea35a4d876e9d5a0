use super::*;
use serde_json::json;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn selects(selector: &str, pairs: &[(&str, &str)]) -> bool {
    let selector: Selector = selector.parse().unwrap();
    let again: Selector = selector.to_string().parse().unwrap();
    assert_eq!(selector, again, "its text means the same");
    selector.matches(&labels(pairs))
}

#[test]
fn conditions_that_no_labels_meet_are_found() {
    let key = |text: &str| {
        let selector: Selector = text.parse().unwrap();
        selector.contradiction().map(str::to_owned)
    };
    for text in [
        "team=a,team=b",
        "x,team in (a,b),team notin (a,b,c)",
        "team=a,!team",
        "team,!team",
        "team in (a,b),team in (c)",
        "team=a,team!=a",
    ] {
        assert_eq!(key(text).as_deref(), Some("team"), "{text}");
    }
    for text in [
        "team=a,team=a",
        "team in (a,b),team in (b,c)",
        "team=a,other=b",
        "team!=a,!team",
        "team,team!=a",
        "team in (a,b),team!=a,team",
    ] {
        assert_eq!(key(text), None, "{text}");
    }
}

#[test]
fn each_condition_means_what_it_means_to_kubectl() {
    let (a, b, none) = (&[("team", "a"), ("x", "")][..], &[("team", "b")][..], &[][..]);
    for (selector, expected) in [
        ("team=a", [true, false, false]),
        (" team == a ", [true, false, false]),
        ("team!=a", [false, true, true]),
        ("team in (a, c)", [true, false, false]),
        ("team in(b)", [false, true, false]),
        ("team notin (a,c)", [false, true, true]),
        ("team", [true, true, false]),
        ("!team", [false, false, true]),
        ("! team", [false, false, true]),
        ("team,x", [true, false, false]),
        ("x=", [true, false, false]),
        ("team in (a,b),!x", [false, true, false]),
        ("team!=a,team!=b", [false, false, true]),
        ("in=in,team", [false, false, false]),
    ] {
        assert_eq!(
            [a, b, none].map(|pairs| selects(selector, pairs)),
            expected,
            "{selector}"
        );
    }
}

#[test]
fn anything_else_is_refused_with_the_way_out() {
    for text in [
        "",
        " ",
        ",",
        "a,",
        "=b",
        "!",
        "a=b=c",
        "a<b",
        "a in",
        "a in b",
        "a in (b",
        "a (b)",
        "a b",
        "a=b c=d",
        "!a=b",
        "a=(b)",
        "a~b",
        "a in (b))",
        "a=!b",
        "ä=b",
    ] {
        let error = text.parse::<Selector>().map(|_| ()).expect_err(text).to_string();
        assert!(error.contains("KEY notin (A,B)"), "{error}");
    }
    let many = vec!["a"; 65].join(",");
    assert!(many.parse::<Selector>().is_err());
}

#[test]
fn the_wire_takes_a_map_and_a_text() {
    let read = |value| serde_json::from_value::<Selector>(value);
    let map = read(json!({"team": "a"})).unwrap();
    assert_eq!(map, "team=a".parse().unwrap());
    assert_eq!(
        serde_json::to_value(&map).unwrap(),
        json!({"team": "a"}),
        "as it was before"
    );
    let text = read(json!("team!=a,x")).unwrap();
    assert_eq!(serde_json::to_value(&text).unwrap(), json!("team notin (a),x"));
    assert_eq!(
        (text.carried(), map.carried()),
        (Labels::new(), labels(&[("team", "a")]))
    );
    for bad in [json!("team!"), json!(3), json!(["a"]), json!({"a": 1})] {
        assert!(read(bad.clone()).is_err(), "{bad}");
    }
    assert_eq!(serde_json::to_value(Selector::default()).unwrap(), json!({}));
}
