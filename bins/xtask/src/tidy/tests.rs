use super::dependencies::{acceptable, heavy};
use super::documents::{replaced, undocumented};
use super::layers::{Member, upward};
use super::redteam::{ROWS, covered, rows};
use super::sources::{file_sizes, honest_tests, invariants, lib_files, names, one_machine, words};
use super::targets::{Package, has_example, several_test_programs, wrong_doctests};
use super::tree::{Source, Tree};
use serde_json::{Value, json};

fn tree(files: &[(&str, &str)]) -> Tree {
    let sources = files.iter().map(|(path, text)| Source {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    });
    Tree {
        sources: sources.collect(),
        ..Tree::default()
    }
}

fn member(name: &str, layer: u64, dependencies: &[(&str, bool)]) -> Member {
    Member {
        name: name.to_owned(),
        folder: name.to_owned(),
        layer: Some(layer),
        description: String::new(),
        dependencies: dependencies
            .iter()
            .map(|(d, dev)| ((*d).to_owned(), *dev))
            .collect(),
    }
}

#[test]
fn a_planted_upward_dependency_is_found() {
    let members = [
        member("low", 1, &[("high", false)]),
        member("high", 2, &[("low", false)]),
        member("same", 2, &[("high", true)]),
    ];
    assert_eq!(upward(&members), ["low (layer 1) depends on high (layer 2)"]);
}

#[test]
fn a_heavy_dependency_of_agentctl_is_found_wherever_it_comes_from() {
    let package = |name: &str| json!({ "id": format!("{name}-id"), "name": name });
    let node = |name: &str, needs: &[(&str, Option<&str>)]| {
        let need = |(name, kind): &(&str, Option<&str>)| json!({ "pkg": format!("{name}-id"), "dep_kinds": [{ "kind": kind }] });
        let deps: Vec<Value> = needs.iter().map(need).collect();
        json!({ "id": format!("{name}-id"), "deps": deps })
    };
    let names = [
        "agentctl",
        "agentd",
        "agentd-viewer",
        "agentd-tools",
        "jsonschema",
    ];
    let found = |viewer: &[(&str, Option<&str>)]| {
        heavy(&json!({
            "packages": names.map(package),
            "resolve": { "nodes": [
                node("agentctl", &[("agentd-viewer", None), ("agentd-tools", Some("dev"))]),
                node("agentd", &[("agentd-tools", None)]),
                node("agentd-viewer", viewer),
                node("agentd-tools", &[("jsonschema", None)]),
            ] }
        }))
    };
    assert_eq!(found(&[]), [""; 0]);
    assert_eq!(found(&[("jsonschema", Some("build"))]), [""; 0]);
    assert_eq!(
        found(&[("agentd-tools", None)]),
        ["agentctl links agentd-tools, which agentd-viewer needs"]
    );
}

#[test]
fn a_library_whose_examples_and_doctests_differ_is_found() {
    let library = |name: &str, doctest| Package {
        name: name.to_owned(),
        folder: format!("crates/{name}"),
        doctest,
        ..Package::default()
    };
    let packages = [
        library("plain", Some(true)),
        library("shown", Some(false)),
        library("plain-well", Some(false)),
        library("shown-well", Some(true)),
        library("program", None),
    ];
    let example = "//! Docs.\n//!\n//! ```\n//! assert!(true);\n//! ```\n";
    let sources = tree(&[
        ("crates/plain/src/lib.rs", "//! Docs.\n"),
        ("crates/shown/src/a.rs", example),
        ("crates/shown-well/src/a.rs", example),
        ("crates/plain-well/tests/it/main.rs", example),
        ("crates/program/src/main.rs", example),
    ]);
    assert_eq!(
        wrong_doctests(&packages, &sources.sources),
        [
            "plain: no documentation has an example: add `doctest = false` to [lib]",
            "shown: the example in crates/shown/src/a.rs does not run: remove `doctest = false`",
        ]
    );
}

#[test]
fn an_example_is_what_rustdoc_compiles() {
    for good in [
        "```",
        "```rust",
        "```no_run",
        "```compile_fail,E0046",
        "``` should_panic",
    ] {
        assert!(
            has_example(&format!("    /// {good}\n    /// f();\n    /// ```\n")),
            "{good}"
        );
    }
    for bad in ["```text", "```toml", "```ignore", "```rust,ignore"] {
        assert!(
            !has_example(&format!("/// {bad}\n/// f();\n/// ```\nfn f() {{}}\n")),
            "{bad}"
        );
    }
    assert!(!has_example("// ```\n// f();\n// ```\n"));
}

#[test]
fn a_second_program_of_integration_tests_is_found() {
    let package = |tests: &[&str]| Package {
        name: "a".to_owned(),
        tests: tests.iter().map(|name| (*name).to_owned()).collect(),
        ..Package::default()
    };
    assert_eq!(several_test_programs(&[package(&["it"]), package(&[])]), [""; 0]);
    assert_eq!(
        several_test_programs(&[package(&["it", "kill"])]),
        ["a: 2 programs of integration tests (it, kill): make them modules of tests/it/main.rs"]
    );
}

#[test]
fn a_long_file_is_found_but_its_tests_do_not_count() {
    let long = "x\n".repeat(401);
    let tested = format!(
        "{}\n#[cfg(test)]\nmod tests {{}}\n{}",
        "x\n".repeat(300),
        "x\n".repeat(300)
    );
    let found = file_sizes(&tree(&[
        ("crates/a/src/a.rs", &long),
        ("crates/a/src/b.rs", &tested),
        ("crates/a/src/tests.rs", &long),
    ]));
    assert_eq!(
        found.unwrap(),
        ["crates/a/src/a.rs: 401 lines, at most 400: split it"]
    );
}

#[test]
fn logic_in_lib_rs_is_found() {
    let good = "//! Docs.\n\nmod a;\n\npub use a::{B, C};\npub use d::{\n    E, F, G,\n    H,\n};\n\n#[cfg(test)]\nmod tests;\n";
    assert_eq!(
        lib_files(&tree(&[("crates/a/src/lib.rs", good)])).unwrap(),
        Vec::<String>::new()
    );
    let bad = "//! Docs.\n\npub fn run() {}\n";
    assert_eq!(
        lib_files(&tree(&[("crates/a/src/lib.rs", bad)])).unwrap().len(),
        1
    );
}

#[test]
fn a_second_loop_or_supervisor_and_an_impure_machine_are_found() {
    let found = |path, text| one_machine(&tree(&[(path, text)])).unwrap();
    let scene = "fn decide() { agent.step(input, Scene { stamp }) }";
    let second = found("crates/simulator/src/hot.rs", scene);
    assert_eq!(
        second,
        ["crates/simulator/src/hot.rs: `Scene {`: a second loop; use `Machine`"]
    );
    let machine = "crates/session-loop/src/machine/commit.rs";
    assert_eq!(found(machine, scene), [""; 0]);
    assert_eq!(found(machine, "use tokio::time;").len(), 1);
    assert_eq!(found("crates/turn/src/agent.rs", "pub struct Scene {"), [""; 0]);
    let slots = "fn heat() { slots.insert(session, Slot::Hot(hot)) }";
    assert_eq!(
        found("crates/simulator/src/node.rs", slots),
        ["crates/simulator/src/node.rs: `Slot::Hot`: a second supervisor; use `Supervisor`"]
    );
    let supervisor = "crates/loop-supervisor/src/machine.rs";
    assert_eq!(found(supervisor, slots), [""; 0]);
    assert_eq!(found(supervisor, "use ractor::ActorRef;").len(), 1);
}

#[test]
fn empty_names_are_found() {
    assert_eq!(words("ToolFinished"), ["tool", "finished"]);
    let found = names(&tree(&[(
        "crates/a/src/file_utils.rs",
        "struct Good;\npub struct TaskManager;\n",
    )]))
    .unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(
        names(&tree(&[("crates/a/src/database.rs", "enum Database {}\n")])).unwrap(),
        Vec::<String>::new()
    );
}

#[test]
fn dishonest_tests_are_found() {
    let ignored = format!("#[test]\n#[{}]\nfn x() {{}}\n", "ignore");
    let sleeping = format!(
        "fn x() {{}}\n\n#[cfg(test)]\nmod tests {{ fn y() {{ std::thread::{}(d); }} }}\n",
        "sleep"
    );
    assert_eq!(
        honest_tests(&tree(&[
            ("tests/src/a.rs", &ignored),
            ("crates/a/src/a.rs", &sleeping)
        ]))
        .unwrap()
        .len(),
        2
    );
}

#[test]
fn an_invariant_without_a_test_is_found() {
    let nine: String = (1..=8)
        .map(|id| format!("#[test]\nfn i{id}_holds() {{}}\n"))
        .collect();
    assert_eq!(
        invariants(&tree(&[("tests/src/a.rs", &nine)])).unwrap(),
        ["I9: no test is called i9_…"]
    );
}

#[test]
fn a_replaced_sql_function_is_found() {
    let schema = [
        "CREATE FUNCTION claim_1(a text)",
        "CREATE OR REPLACE FUNCTION claim_2(a text)\nCREATE FUNCTION join_1()",
    ];
    let found = replaced(
        "`claim_1`, `claim_2`, `join_1`, `other_1`",
        &schema.map(str::to_owned),
    )
    .unwrap();
    assert_eq!(found, ["`claim_2` has replaced `claim_1`"]);
}

#[test]
fn an_undocumented_key_is_found() {
    assert_eq!(
        undocumented("# Words.\na = 1\nb = 2\nc = 3 # Words.\n\n[s]\nd = 4\n"),
        ["b", "d"]
    );
}

#[test]
fn a_licence_that_is_not_listed_is_found() {
    let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned).into();
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "Apache-2.0/MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
    ] {
        assert!(acceptable(good, &allowed), "{good}");
    }
    for bad in [
        "GPL-3.0",
        "",
        "MIT AND GPL-3.0",
        "(MIT OR Apache-2.0) AND GPL-3.0",
    ] {
        assert!(!acceptable(bad, &allowed), "{bad}");
    }
}

#[test]
fn a_row_of_the_red_team_list_needs_a_test_or_a_reason() {
    let named = |skip: u8| -> String {
        let rows = ROWS.iter().filter(|(row, _)| *row != skip);
        rows.map(|(row, _)| format!("fn redteam_{row:02}_x() {{}}\n"))
            .collect()
    };
    assert_eq!(
        rows(&tree(&[("tests/a.rs", &named(0))])).unwrap(),
        Vec::<String>::new()
    );
    let found = rows(&tree(&[("tests/a.rs", &named(7))])).unwrap();
    assert_eq!(found.len(), 1);
    assert!(
        found.iter().any(|finding| finding.contains("redteam_07_")),
        "{found:?}"
    );
    let several = covered(&tree(&[("tests/a.rs", "fn redteam_21_and_23_links() {}")])).unwrap();
    let proved: Vec<u8> = several
        .iter()
        .filter(|row| !row.tests.is_empty())
        .map(|row| row.row)
        .collect();
    assert_eq!(proved, [21, 23]);
    assert!(ROWS.iter().map(|(row, _)| *row).eq(1..=54));
}
