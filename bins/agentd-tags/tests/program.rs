//! The program itself, through its standard input and output.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests; the lints' own exception for tests does not reach their support functions"
)]

use agentd_repo_map::{BACKGROUND, Language, MAX_FILE_BYTES, Reply, Request, is_greeting};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Program {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test starts the program that it tests"
    )]
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_agentd-tags"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    fn ask(&mut self, language: Language, source: &[u8]) -> Reply {
        let request = Request {
            language,
            bytes: source.len(),
        };
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(request.line().as_bytes()).unwrap();
        stdin.write_all(source).unwrap();
        let line = self.line();
        Reply::read(&line).unwrap_or_else(|| panic!("{line}"))
    }

    fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

#[test]
fn it_answers_for_every_language_and_ends_with_its_input() {
    let mut program = Program::start(&[]);
    assert!(is_greeting(&program.line()));
    let greeter = |language| match language {
        Language::Bash => "greet_all() { :; }\n",
        Language::C | Language::Cpp => "int greet_all(void) { return 0; }\n",
        Language::CSharp | Language::Java => "class A { void greet_all() {} }\n",
        Language::Go => "package a\nfunc greet_all() {}\n",
        Language::JavaScript | Language::Tsx | Language::TypeScript => "function greet_all() {}\n",
        Language::Python => "def greet_all(): pass\n",
        Language::Ruby => "def greet_all; end\n",
        Language::Rust => "fn greet_all() {}\n",
    };
    for language in Language::ALL {
        let Reply::Tags(tags) = program.ask(language, greeter(language).as_bytes()) else {
            panic!("{}", language.name());
        };
        assert!(
            tags.definitions.iter().any(|it| it.name == "greet_all"),
            "{}: {tags:?}",
            language.name()
        );
    }
    assert_eq!(program.end(), Some(0));
}

#[test]
fn i6_after_a_file_that_is_too_hard_it_goes_on() {
    let mut program = Program::start(&[BACKGROUND]);
    assert!(is_greeting(&program.line()));
    assert_eq!(
        program.ask(Language::Rust, "(".repeat(5_000).as_bytes()),
        Reply::TooHard
    );
    let large = vec![b'\n'; MAX_FILE_BYTES];
    assert!(matches!(program.ask(Language::Rust, &large), Reply::Tags(_)));
    assert_eq!(program.end(), Some(0));
}

#[test]
fn it_refuses_what_is_no_request_and_no_argument() {
    let mut program = Program::start(&[]);
    program.stdin.as_mut().unwrap().write_all(b"fn a() {}\n").unwrap();
    assert_eq!(program.end(), Some(1));
    assert_eq!(Program::start(&["src/main.rs"]).end(), Some(2));
}
