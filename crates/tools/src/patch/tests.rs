use super::*;
use crate::seen::Seen;
use std::collections::BTreeMap;

fn envelope(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

fn patch(body: &str) -> Patch {
    parse(&envelope(body)).unwrap_or_else(|malformed| panic!("{malformed:?}"))
}

#[track_caller]
fn wrong(text: &str, at: usize, part: &str) {
    match parse(text) {
        Err(Malformed::Line { at: line, why }) => {
            assert!((line, why.contains(part)) == (at, true), "{line}: {why}");
        }
        other => panic!("{text:?}: {other:?}"),
    }
}

/// The file after an update with these hunks.
fn updated(content: &str, hunks: &str, seen: Seen) -> Result<String, Misfit> {
    let patch = patch(&format!("*** Update File: f\n{hunks}"));
    let known = Known {
        content: content.as_bytes(),
        seen,
    };
    let files = BTreeMap::from([(PathBuf::from("f"), Some(known))]);
    match plan(&patch, &files) {
        Ok(plan) => Ok(String::from_utf8(plan.files[0].1.clone().unwrap()).unwrap()),
        Err(Refused::Misfit { misfit, .. }) => Err(misfit),
        Err(other) => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(content: &str, hunks: &str, expected: &str) {
    assert_eq!(
        updated(content, hunks, Seen::Same).as_deref(),
        Ok(expected),
        "{hunks}"
    );
}

#[test]
fn a_patch_is_parsed_into_its_changes() {
    let body = "*** Add File: a/b\n+one\n+\n*** Delete File: ./c//d\n\n*** Update File: e/../f\n*** Move to: g\n first\n-gone\n+come\n\n@@ fn x() {\n@@ -1,2 +3 @@ if y {\n last\n*** End of File\n";
    let text = |text: &str| text.to_owned();
    let expected = Patch {
        sections: vec![
            Section::Add {
                path: "a/b".into(),
                content: text("one\n\n"),
            },
            Section::Delete { path: "c/d".into() },
            Section::Update {
                path: "f".into(),
                to: Some("g".into()),
                hunks: vec![
                    Hunk {
                        at: 9,
                        contexts: vec![],
                        lines: vec![
                            Line::Keep(text("first")),
                            Line::Remove(text("gone")),
                            Line::Add(text("come")),
                            Line::Keep(text("")),
                        ],
                        at_end: false,
                    },
                    Hunk {
                        at: 13,
                        contexts: vec![text("fn x() {"), text("if y {")],
                        lines: vec![Line::Keep(text("last"))],
                        at_end: true,
                    },
                ],
            },
        ],
    };
    assert_eq!(patch(body), expected);
    assert_eq!(expected.paths(), ["a/b", "c/d", "f", "g"].map(PathBuf::from));
}

#[test]
fn padded_marks_crlf_and_wrappers_are_accepted() {
    let plain = patch("*** Delete File: a\n");
    for text in [
        "\n  *** Begin Patch  \n  *** Delete File: a  \n *** End Patch \n\n",
        "*** Begin Patch\r\n*** Delete File: a\r\n*** End Patch\r\n",
        "```diff\n*** Begin Patch\n*** Delete File: a\n*** End Patch\n```",
        "<<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF",
        "apply_patch <<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF\n",
    ] {
        assert_eq!(parse(text).as_ref(), Ok(&plain), "{text}");
    }
}

#[test]
fn an_invalid_patch_is_refused_with_its_line() {
    wrong("", 1, "first line must be");
    wrong("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", 1, "`*** Begin Patch`");
    wrong("*** Begin Patch\n*** Delete File: a\n", 2, "`*** End Patch`");
    wrong("*** Begin Patch", 1, "`*** End Patch`");
    wrong(&envelope(""), 2, "the patch is empty");
    wrong(&envelope("*** Frobnicate File: a\n"), 2, "is none of");
    wrong(&envelope("*** Delete File:\n"), 2, "the path is missing");
    wrong(&envelope("*** Delete File: a/\n"), 2, "not the path of a file");
    wrong(&envelope("*** Delete File: a\u{0}b\n"), 2, "control character");
    wrong(&envelope("*** Update File: a\n"), 3, "has no hunk");
    wrong(
        &envelope("*** Update File: a\n@@\n"),
        4,
        "begins in line 3 is empty",
    );
    wrong(
        &envelope("*** Update File: a\n@@\n x\nfoo\n"),
        5,
        "must begin with",
    );
    wrong(&envelope("*** Add File: a\nno plus\n"), 3, "is none of");
    wrong(
        &format!("{}more\n", envelope("*** Delete File: a\n")),
        4,
        "last line",
    );
}

#[test]
fn redteam_25_modes_of_links_and_submodules_are_refused() {
    for mode in ["120000", "160000"] {
        for line in ["new file mode", "old mode", "new mode", "deleted file mode"] {
            wrong(
                &envelope(&format!("*** Add File: l\n{line} {mode}\n+/etc/passwd\n")),
                3,
                "symbolic links",
            );
            wrong(
                &envelope(&format!("*** Update File: l\n{line} {mode}\n@@\n-a\n+b\n")),
                3,
                "symbolic links",
            );
        }
    }
    wrong(&envelope("diff --git a/l b/l\n"), 2, "symbolic links");
}

#[test]
fn redteam_24_paths_that_lead_out_are_refused_whole() {
    for path in ["../x", "/etc/passwd", "a/../../x", "..", "a/../.."] {
        for body in [
            format!("*** Add File: {path}\n+x\n"),
            format!("*** Delete File: {path}\n"),
            format!("*** Update File: {path}\n-x\n+y\n"),
            format!("*** Update File: a\n*** Move to: {path}\n-x\n+y\n"),
            format!("*** Add File: fine\n+x\n*** Delete File: {path}\n"),
        ] {
            let path = path.to_owned();
            assert_eq!(
                parse(&envelope(&body)),
                Err(Malformed::Outside { path }),
                "{body}"
            );
        }
    }
}

#[test]
fn files_hunks_and_bytes_are_limited_exactly() {
    let files = |count: usize| envelope(&"*** Delete File: a\n".repeat(count));
    assert_eq!(parse(&files(MAX_FILES)).unwrap().sections.len(), MAX_FILES);
    let too_much = |what, found, max| Err(Malformed::TooMuch { what, found, max });
    assert_eq!(
        parse(&files(MAX_FILES + 1)),
        too_much("files", MAX_FILES + 1, MAX_FILES)
    );
    let hunks = |count: usize| envelope(&format!("*** Update File: a\n{}", "@@\n-x\n".repeat(count)));
    assert!(parse(&hunks(MAX_HUNKS)).is_ok());
    assert_eq!(
        parse(&hunks(MAX_HUNKS + 1)),
        too_much("hunks", MAX_HUNKS + 1, MAX_HUNKS)
    );
    let sized = |bytes: usize| {
        let empty = envelope("*** Add File: a\n+\n").len();
        envelope(&format!("*** Add File: a\n+{}\n", "x".repeat(bytes - empty)))
    };
    assert!(parse(&sized(MAX_BYTES)).is_ok());
    assert_eq!(
        parse(&sized(MAX_BYTES + 1)),
        too_much("bytes", MAX_BYTES + 1, MAX_BYTES)
    );
}

#[test]
fn hunks_find_their_places_in_order() {
    check("a\nb\na\nb\n", "@@\n-a\n+1\n@@\n-a\n+2\n", "1\nb\n2\nb\n");
    check(
        "fn a\n x\nfn b\n x\n",
        "@@ fn b\n- x\n+ y\n",
        "fn a\n x\nfn b\n y\n",
    );
    check(
        "c\nf\n x\nc\ng\n x\nf\n x\n",
        "@@ g\n@@ f\n- x\n+ y\n",
        "c\nf\n x\nc\ng\n x\nf\n y\n",
    );
    check("x\ny\nx\n", "@@\n-x\n+z\n*** End of File\n", "x\ny\nz\n");
    check("a\nb\nc\n", " a\n-b\n c\n", "a\nc\n");
    check("a\nb\n", "@@\n+c\n+d\n", "a\nb\nc\nd\n");
    check("a\nb\n", "@@ a\n+x\n", "a\nx\nb\n");
    check("a\n", "@@\n-a\n", "");
    check("", "@@\n+a\n", "a\n");
    check("a\nb\n", "@@\n-a\n+1\n\n@@\n-b\n+2\n", "1\n2\n");
}

#[test]
fn context_may_differ_in_white_space_and_is_preserved() {
    check("  a \n\tb\nc\n", "@@\n a\n-b\n+B\n", "  a \nB\nc\n");
    check(
        "say \u{201c}hi\u{201d} \u{2013} now\nx\n",
        "@@\n say \"hi\" - now\n-x\n+y\n",
        "say \u{201c}hi\u{201d} \u{2013} now\ny\n",
    );
    check(" x\nx\n", "@@\n-x\n+y\n", " x\ny\n");
}

#[test]
fn line_ends_are_preserved_and_the_last_line_gets_one() {
    check(
        "\u{feff}a\r\nb\r\n",
        "@@\n-a\n+1\n+2\n",
        "\u{feff}1\r\n2\r\nb\r\n",
    );
    check("a\nb", "@@\n-b\n+c\n", "a\nc\n");
    let content = b"\xff\nx\n";
    let patch = patch("*** Update File: f\n@@\n-x\n+y\n");
    let known = Known {
        content,
        seen: Seen::Same,
    };
    let plan = plan(&patch, &BTreeMap::from([(PathBuf::from("f"), Some(known))])).unwrap();
    assert_eq!(plan.files, [(PathBuf::from("f"), Some(b"\xff\ny\n".to_vec()))]);
}

#[test]
fn a_hunk_without_a_match_reports_the_nearest_one() {
    let differs = Some((2, "b".to_owned(), "x".to_owned()));
    assert_eq!(
        updated("a\nb\nc\n", "@@\n a\n-x\n", Seen::Same),
        Err(Misfit::Lines {
            at: 3,
            differs,
            at_end: false
        })
    );
    assert_eq!(
        updated("a\n", "@@ fn b\n-a\n", Seen::Same),
        Err(Misfit::Context {
            at: 3,
            line: "fn b".to_owned()
        })
    );
    let at_end = updated("a\nb\n", "@@\n-a\n*** End of File\n", Seen::Same);
    assert!(
        matches!(at_end, Err(Misfit::Lines { at_end: true, .. })),
        "{at_end:?}"
    );
}

#[test]
fn in_an_unread_file_a_hunk_must_match_once() {
    for seen in [Seen::Never, Seen::Changed] {
        assert_eq!(updated("a\nb\n", "@@\n-a\n+x\n", seen).as_deref(), Ok("x\nb\n"));
        assert_eq!(
            updated("a\nb\na\n", "@@\n-a\n+x\n", seen),
            Err(Misfit::Several {
                at: 3,
                lines: vec![1, 3]
            })
        );
        assert_eq!(updated("a\n", "@@\n+x\n", seen), Err(Misfit::Nowhere { at: 3 }));
    }
}

fn planned(body: &str, files: &[(&str, Option<(&str, Seen)>)]) -> Result<Plan, Refused> {
    let mut known = BTreeMap::new();
    for (path, file) in files {
        let file = file.map(|(content, seen)| Known {
            content: content.as_bytes(),
            seen,
        });
        known.insert(PathBuf::from(path), file);
    }
    plan(&patch(body), &known)
}

#[test]
fn later_parts_see_earlier_changes() {
    let plan = planned(
        "*** Add File: n\n+a\n*** Update File: n\n@@\n-a\n+b\n*** Update File: o\n*** Move to: p\n@@\n-x\n+y\n*** Delete File: p\n*** Add File: p\n+z\n",
        &[("n", None), ("o", Some(("x\n", Seen::Never))), ("p", None)],
    )
    .unwrap();
    let file = |path: &str, content: Option<&str>| {
        (PathBuf::from(path), content.map(|text| text.as_bytes().to_vec()))
    };
    assert_eq!(
        plan.files,
        [file("n", Some("b\n")), file("p", Some("z\n")), file("o", None)]
    );
}

#[test]
fn an_existing_file_is_replaced_only_after_a_read() {
    let known = |seen| [("a", Some(("x\n", Seen::Same))), ("b", Some(("old\n", seen)))];
    for body in [
        "*** Add File: b\n+new\n",
        "*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n",
    ] {
        assert!(planned(body, &known(Seen::Same)).is_ok(), "{body}");
        for seen in [Seen::Never, Seen::Changed] {
            let path = PathBuf::from("b");
            assert_eq!(
                planned(body, &known(seen)),
                Err(Refused::Unknown { path, seen }),
                "{body}"
            );
        }
    }
}

#[test]
fn missing_binary_and_unchanged_files_are_refused() {
    let missing = Err(Refused::Missing("a".into()));
    assert_eq!(planned("*** Delete File: a\n", &[("a", None)]), missing);
    assert_eq!(
        planned("*** Update File: a\n@@\n-x\n+y\n", &[("a", None)]),
        missing
    );
    let twice = planned(
        "*** Delete File: a\n*** Delete File: a\n",
        &[("a", Some(("x", Seen::Never)))],
    );
    assert_eq!(twice, missing);
    let binary = planned(
        "*** Update File: a\n@@\n-x\n+y\n",
        &[("a", Some(("x\n\0", Seen::Same)))],
    );
    assert_eq!(binary, Err(Refused::Binary("a".into())));
    let same = planned(
        "*** Update File: a\n@@\n x\n",
        &[("a", Some(("x\n", Seen::Same)))],
    );
    assert_eq!(same, Err(Refused::Same));
}

#[test]
fn a_file_is_moved_without_a_change() {
    let plan = planned(
        "*** Update File: a\n*** Move to: b/c\n",
        &[("a", Some(("x", Seen::Never))), ("b/c", None)],
    )
    .unwrap();
    let expected = [
        (PathBuf::from("b/c"), Some(b"x".to_vec())),
        (PathBuf::from("a"), None),
    ];
    assert_eq!(plan.files, expected);
    assert_eq!(plan.moved_from, BTreeMap::from([("b/c".into(), "a".into())]));
}
