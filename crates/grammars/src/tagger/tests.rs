use super::*;
use proptest::prelude::*;

fn found(language: Language, source: &str) -> Tags {
    Tagger::new(language)
        .unwrap()
        .tags(source.as_bytes(), &|| false)
        .unwrap()
}

use Kind::{Function, Macro, Method, Module, Type, Value};

type Row = (
    Language,
    &'static str,
    &'static [(&'static str, Kind, u32)],
    &'static [&'static str],
);

/// The expected result for each language: definitions with kinds and lines, and some used names.
const ROWS: [Row; 12] = [
    (
        Language::Rust,
        "const MOST: u8 = 3;\nstruct Moon;\nimpl Moon {\n fn rise(&self) { glow(); }\n}\nfn tide(m: Moon) {}\nmacro_rules! star { () => {} }\nmod sky {}\n",
        &[
            ("MOST", Value, 1),
            ("Moon", Type, 2),
            ("rise", Method, 4),
            ("tide", Function, 6),
            ("star", Macro, 7),
            ("sky", Module, 8),
        ],
        &["glow", "Moon"],
    ),
    (
        Language::Python,
        "class Moon:\n    def rise(self):\n        glow()\n\ndef tide(): pass\n",
        &[("Moon", Type, 1), ("rise", Function, 2), ("tide", Function, 5)],
        &["glow"],
    ),
    (
        Language::JavaScript,
        "class Moon { rise() { glow(); } }\nfunction tide() {}\n",
        &[("Moon", Type, 1), ("rise", Method, 1), ("tide", Function, 2)],
        &["glow"],
    ),
    (
        Language::TypeScript,
        "interface Sky { a: number }\ntype Tint = string;\nclass Moon { rise(): void { glow(); } }\nfunction tide(): Sky { return new Moon(); }\nenum Phase { New }\n",
        &[
            ("Sky", Type, 1),
            ("Tint", Type, 2),
            ("Moon", Type, 3),
            ("rise", Method, 3),
            ("tide", Function, 4),
            ("Phase", Type, 5),
        ],
        &["glow", "Moon"],
    ),
    (
        Language::Tsx,
        "function Moon() { return <Sky a={glow()} />; }\n",
        &[("Moon", Function, 1)],
        &["glow"],
    ),
    (
        Language::Go,
        "package sky\ntype Moon struct{}\nfunc (m Moon) Rise() { glow() }\nfunc Tide() {}\n",
        &[("Moon", Type, 2), ("Rise", Method, 3), ("Tide", Function, 4)],
        &["glow"],
    ),
    (
        Language::Java,
        "class Moon extends Sky {\n void rise() { glow(); }\n}\ninterface Tide {}\n",
        &[("Moon", Type, 1), ("rise", Method, 2), ("Tide", Type, 4)],
        &["glow"],
    ),
    (
        Language::C,
        "#define STAR(x) x\nstruct moon { int a; };\nint tide(void) { return glow(); }\n",
        &[("STAR", Macro, 1), ("moon", Type, 2), ("tide", Function, 3)],
        &["glow"],
    ),
    (
        Language::Cpp,
        "namespace sky {\nclass Moon { public: void rise(); };\n}\nint tide() { return glow(); }\n",
        &[("sky", Module, 1), ("Moon", Type, 2), ("tide", Function, 4)],
        &["glow"],
    ),
    (
        Language::Ruby,
        "module Sky\n class Moon\n  def rise; glow(); end\n end\nend\n",
        &[("Sky", Module, 1), ("Moon", Type, 2), ("rise", Method, 3)],
        &["glow"],
    ),
    (
        Language::CSharp,
        "namespace Sky {\nclass Moon {\n void Rise() { Glow(); }\n}\ninterface ITide {}\n}\n",
        &[
            ("Sky", Module, 1),
            ("Moon", Type, 2),
            ("Rise", Method, 3),
            ("ITide", Type, 5),
        ],
        &["Glow"],
    ),
    (
        Language::Bash,
        "tide() {\n  glow now\n}\n",
        &[("tide", Function, 1)],
        &["glow"],
    ),
];

#[test]
fn each_language_finds_what_a_file_defines_and_uses() {
    assert_eq!(ROWS.len(), Language::ALL.len());
    for (language, source, defines, uses) in ROWS {
        let tags = found(language, source);
        for (name, kind, line) in defines {
            let definition = Definition {
                name: (*name).to_owned(),
                kind: *kind,
                line: *line,
            };
            assert!(
                tags.definitions.contains(&definition),
                "{}: {definition:?} in {tags:?}",
                language.name()
            );
        }
        for name in uses {
            assert!(
                tags.references.iter().any(|reference| reference.name == *name),
                "{}: {name} in {tags:?}",
                language.name()
            );
        }
    }
}

#[test]
fn names_beyond_ascii_are_found_where_they_are() {
    let tags = found(
        Language::Python,
        "# Gezeiten: 潮\ndef größe(): pass\nclass Mönd: pass\n",
    );
    let names: Vec<(&str, u32)> = tags
        .definitions
        .iter()
        .map(|definition| (definition.name.as_str(), definition.line))
        .collect();
    assert_eq!(names, [("größe", 2), ("Mönd", 3)]);
}

#[test]
fn i6_a_file_beyond_the_limit_is_refused_and_one_at_it_is_not() {
    let mut tagger = Tagger::new(Language::C).unwrap();
    let mut source = b"int a;\n".to_vec();
    source.resize(MAX_FILE_BYTES, b' ');
    assert!(tagger.tags(&source, &|| false).is_ok());
    source.push(b' ');
    assert!(matches!(
        tagger.tags(&source, &|| false),
        Err(MapError::TooLarge { .. })
    ));
}

#[test]
fn i6_hostile_files_end_in_bounded_work() {
    let deep = |open: &str| open.repeat(100_000);
    for (language, source) in [
        (Language::Rust, deep("(")),
        (Language::Rust, "(".repeat(999)),
        (Language::JavaScript, "[{(".repeat(999)),
        (Language::Rust, deep("fn f() {")),
        (Language::JavaScript, deep("[")),
        (Language::Cpp, deep("a<")),
        (Language::Python, deep("if a:\n ")),
        (Language::Ruby, deep("<<A ")),
        (Language::Bash, deep("$(")),
        (Language::C, "\0\u{1}\u{fffd}".repeat(50_000)),
    ] {
        // Either an answer or a refusal; the tagger must work for the next file.
        let mut tagger = Tagger::new(language).unwrap();
        if let Ok(tags) = tagger.tags(source.as_bytes(), &|| false) {
            assert!(tags.definitions.len() <= MAX_TAGS && tags.references.len() <= MAX_TAGS);
        }
        assert!(tagger.tags(b"", &|| false).is_ok(), "{}", language.name());
    }
}

#[test]
fn i6_brackets_may_nest_up_to_the_limit() {
    let nested = |depth: usize| format!("fn f() {{ {}{} }}", "(".repeat(depth), ")".repeat(depth));
    let most = usize::try_from(MAX_OPEN).unwrap();
    let mut tagger = Tagger::new(Language::Rust).unwrap();
    assert!(tagger.tags(nested(most).as_bytes(), &|| false).is_ok());
    let refused = tagger.tags(nested(most + 1).as_bytes(), &|| false);
    assert!(matches!(refused, Err(MapError::TooHard)));
}

#[test]
fn i6_a_parse_can_be_stopped() {
    let source = "fn f() { g(); }\n".repeat(50_000);
    let mut tagger = Tagger::new(Language::Rust).unwrap();
    assert!(matches!(
        tagger.tags(source.as_bytes(), &|| true),
        Err(MapError::TooHard)
    ));
    assert_eq!(tagger.tags(b"fn f() {}", &|| false).unwrap().definitions.len(), 1);
}

#[test]
fn more_tags_than_the_limit_are_cut_off() {
    let source: String = (0..MAX_TAGS + 5).map(|n| format!("fn f{n}() {{}}\n")).collect();
    assert_eq!(found(Language::Rust, &source).definitions.len(), MAX_TAGS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_the_bytes_names_are_text_and_lines_exist(
        at in 0..Language::ALL.len(),
        source in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'('), Just(b'"'), 0x20..0x7f_u8, any::<u8>()], 0..400),
    ) {
        let mut tagger = Tagger::new(Language::ALL[at]).unwrap();
        if let Ok(tags) = tagger.tags(&source, &|| false) {
            let lines = u32::try_from(source.split(|byte| *byte == b'\n').count()).unwrap();
            for definition in &tags.definitions {
                prop_assert!(!definition.name.is_empty() && (1..=lines).contains(&definition.line));
            }
        }
    }
}
