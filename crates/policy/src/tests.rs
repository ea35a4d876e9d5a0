use crate::{Judgement, Policy, PolicyError, Request, Rule, Source, Subject, judge, wholly_denied};
use agentd_protocol::{EffectClass, PermissionMode, Scope, Verdict, VerdictKind};
use proptest::prelude::*;

fn policy(rules: &[&str]) -> Policy {
    Policy::new(Some("/home/ana")).with(
        rules
            .iter()
            .map(|rule| Rule::parse(rule, Source::Operator).unwrap())
            .collect(),
    )
}

fn ask(policy: &Policy, tool: &str, subject: &Subject, mode: PermissionMode) -> Judgement {
    let effect = match subject {
        Subject::Path { write: true, .. } | Subject::Paths { .. } => EffectClass::Write,
        Subject::Path { .. } => EffectClass::Read,
        Subject::Command { .. } | Subject::Remote { .. } => EffectClass::Exec,
        Subject::Url(_) => EffectClass::Network,
        Subject::Nothing => EffectClass::None,
    };
    judge(
        policy,
        &Request {
            tool,
            subject,
            effect,
            mode,
            workdir: "/w",
        },
    )
}

fn path(write: bool, path: &str) -> Subject {
    Subject::Path {
        write,
        path: path.to_owned(),
    }
}

fn command(text: &str) -> Subject {
    Subject::Command {
        command: text.to_owned(),
    }
}

/// Checks the verdicts in the modes default, accept-edits, plan, yolo.
#[track_caller]
fn modes(rules: &[&str], tool: &str, subject: &Subject, expected: &str) {
    use PermissionMode::{AcceptEdits, Default, Plan, Yolo};
    let word = |mode| match ask(&policy(rules), tool, subject, mode).verdict.kind {
        VerdictKind::Allow => "allow",
        VerdictKind::Ask => "ask",
        VerdictKind::Deny => "deny",
    };
    assert_eq!(
        [Default, AcceptEdits, Plan, Yolo].map(word).join(" "),
        expected,
        "{rules:?} {subject:?}"
    );
}

#[test]
fn modes_decide_what_no_rule_decides() {
    modes(&[], "Read", &path(false, "a"), "allow allow allow allow");
    modes(&[], "Read", &path(false, "/etc/hosts"), "ask ask ask allow");
    modes(&[], "Write", &path(true, "a"), "ask allow deny allow");
    modes(&[], "Write", &path(true, "../a"), "ask ask deny allow");
    modes(&[], "Bash", &command("ls"), "ask ask deny allow");
    modes(&[], "Bash", &command("ls $(x)"), "ask ask deny allow");
    modes(
        &[],
        "WebFetch",
        &Subject::Url("https://a/".into()),
        "ask ask deny allow",
    );
    modes(&[], "TodoWrite", &Subject::Nothing, "allow allow allow allow");
}

#[test]
fn deny_beats_ask_beats_allow_in_any_order() {
    modes(
        &["allow Bash(ls:*)", "deny Bash(ls -R)"],
        "Bash",
        &command("ls -R"),
        "deny deny deny deny",
    );
    modes(
        &["deny Bash(ls -R)", "allow Bash(ls:*)"],
        "Bash",
        &command("ls -a"),
        "allow allow deny allow",
    );
    modes(
        &["allow Write", "ask Write(src/**)"],
        "Write",
        &path(true, "src/a"),
        "ask ask deny allow",
    );
    modes(
        &["allow Write", "ask Write(src/**)"],
        "Write",
        &path(true, "/w/doc/a"),
        "allow allow deny allow",
    );
}

#[test]
fn path_rules_see_through_the_ways_to_write_a_path() {
    for write in [
        "/etc/passwd",
        "../etc/passwd",
        "//etc/./x/../passwd",
        "/w/../etc/passwd",
    ] {
        modes(
            &["deny Write(/etc/**)"],
            "Edit",
            &path(true, write),
            "deny deny deny deny",
        );
    }
    modes(
        &["deny Read(**/.env)"],
        "Grep",
        &path(false, "sub/.env"),
        "deny deny deny deny",
    );
    modes(
        &["deny Read(**/.env)"],
        "Read",
        &path(false, ".env"),
        "deny deny deny deny",
    );
    modes(
        &["deny Read(~/.ssh/**)"],
        "Read",
        &path(false, "/home/ana/.ssh/id"),
        "deny deny deny deny",
    );
    modes(
        &["deny Read(~/.ssh/**)"],
        "Read",
        &path(false, "~/.ssh/id"),
        "deny deny deny deny",
    );
    modes(
        &["allow Write(src/**)"],
        "Write",
        &path(true, "src/../x"),
        "ask allow deny allow",
    );
    modes(
        &["allow Write(src/**)"],
        "Edit",
        &path(true, "src/x"),
        "ask allow deny allow",
    );
    modes(
        &["allow Read(/data/**)"],
        "Read",
        &path(false, "/data/x"),
        "allow allow allow allow",
    );
}

#[test]
fn i7_without_a_home_a_home_rule_still_denies_and_never_allows() {
    let rules = |text: &str| Policy::new(None).with(vec![Rule::parse(text, Source::Operator).unwrap()]);
    let subject = path(false, "/home/ana/.ssh/id");
    let kind = |text: &str| {
        ask(&rules(text), "Read", &subject, PermissionMode::Default)
            .verdict
            .kind
    };
    assert_eq!(kind("deny Read(~/.ssh/**)"), VerdictKind::Deny);
    assert_eq!(kind("allow Read(~/.ssh/**)"), VerdictKind::Ask);
}

#[test]
fn i7_commands_cannot_read_or_write_what_files_rules_deny() {
    let rules = ["deny Read(**/.env)", "deny Write(/etc/**)", "allow Bash(*)"];
    for text in [
        "cat .env",
        "cat <.env",
        "cat ./sub/../.env",
        "cat \"$x\" .env",
        "grep -f=.env x",
        "sh -c 'cat .env'",
    ] {
        modes(&rules, "Bash", &command(text), "deny deny deny deny");
    }
    modes(
        &rules,
        "Bash",
        &command("echo x > /etc/passwd"),
        "deny deny deny deny",
    );
    modes(
        &rules,
        "Bash",
        &command("cat /etc/passwd"),
        "allow allow deny allow",
    );
    modes(
        &["deny Write(/dev/**)"],
        "Bash",
        &command("ls > /dev/null"),
        "ask ask deny allow",
    );
}

#[test]
fn addresses_are_judged_by_host_and_by_form() {
    let url = |text: &str| Subject::Url(text.to_owned());
    let rules = ["allow WebFetch(domain:docs.rs)", "deny WebFetch(*.evil)"];
    modes(
        &rules,
        "WebFetch",
        &url("https://docs.rs/x"),
        "allow allow deny allow",
    );
    modes(
        &rules,
        "WebFetch",
        &url("https://ana@docs.rs/x"),
        "ask ask deny allow",
    );
    modes(
        &rules,
        "WebFetch",
        &url("https://docs.rs@a.evil/x"),
        "deny deny deny deny",
    );
    modes(
        &["ask WebFetch(*)", "allow WebFetch"],
        "WebFetch",
        &url("https://docs.rs/x"),
        "ask ask deny allow",
    );
}

#[test]
fn an_asking_judgement_says_everything_a_person_needs() {
    let judgement = ask(
        &policy(&[]),
        "Bash",
        &command("cargo test -p 'a b'"),
        PermissionMode::Default,
    );
    let expected = Judgement {
        verdict: Verdict {
            kind: VerdictKind::Ask,
            rule: "mode:default".into(),
            reason: "no rule allows every part of this command".into(),
        },
        grant: Some("Bash(cargo test -p 'a b')".into()),
        scopes: vec![Scope::Once, Scope::Session, Scope::Always],
        title: "Run cargo test -p 'a b'".into(),
        detail: "cargo test -p 'a b'".into(),
        risks: vec![],
        by_content: false,
    };
    assert_eq!(judgement, expected);
}

#[test]
fn the_deciding_rule_is_named() {
    let rules = ["deny Bash(rm -rf:*)"];
    let verdict = ask(
        &policy(&rules),
        "Bash",
        &command("rm -fr x"),
        PermissionMode::Yolo,
    )
    .verdict;
    let expected = Verdict {
        kind: VerdictKind::Deny,
        rule: "Bash(rm -rf:*)".into(),
        reason: "the operator rule Bash(rm -rf:*) forbids this".into(),
    };
    assert_eq!(verdict, expected);
}

#[test]
fn a_grant_allows_just_what_was_asked() {
    let base = policy(&["ask Bash(git push:*)"]);
    for (tool, subject, other) in [
        ("Bash", command("cargo test"), command("cargo test x")),
        ("Bash", command("sh -c 'a; b'"), command("sh -c 'a; c'")),
        ("Write", path(true, "src/[a]*.rs"), path(true, "src/ab.rs")),
        ("Write", path(true, "/x/y"), path(true, "/x/z")),
    ] {
        let grant = ask(&base, tool, &subject, PermissionMode::Default).grant.unwrap();
        let granted = base.with(vec![Rule::parse(&grant, Source::Grant).unwrap()]);
        assert_eq!(
            ask(&granted, tool, &subject, PermissionMode::Default)
                .verdict
                .kind,
            VerdictKind::Allow,
            "{grant}"
        );
        assert_eq!(
            ask(&granted, tool, &other, PermissionMode::Default).verdict.kind,
            VerdictKind::Ask,
            "{grant}"
        );
    }
    for text in ["a && b", "a $b", "git push", "echo it\\'s"] {
        let judgement = ask(&base, "Bash", &command(text), PermissionMode::Default);
        assert_eq!(
            (judgement.grant, judgement.scopes),
            (None, vec![Scope::Once]),
            "{text}"
        );
    }
}

#[test]
fn hidden_characters_are_asked_about_and_named() {
    let judgement = ask(
        &policy(&["allow Bash(*)"]),
        "Bash",
        &command("echo a\u{202e}b"),
        PermissionMode::Default,
    );
    assert_eq!(judgement.verdict.kind, VerdictKind::Ask);
    assert_eq!(
        judgement.risks,
        [
            "it has hidden characters: U+202E",
            "it has a control or invisible character"
        ]
    );
    let judgement = ask(
        &policy(&["allow Write"]),
        "Write",
        &path(true, "a\u{200b}"),
        PermissionMode::AcceptEdits,
    );
    assert_eq!(judgement.verdict.kind, VerdictKind::Ask);
}

#[test]
fn wholly_denied_tools_are_found() {
    let policy = policy(&[
        "deny Bash",
        "deny Write(**)",
        "deny Read(/etc/**)",
        "deny mcp__*",
        "ask Grep",
    ]);
    let denied = wholly_denied(&policy, &["Bash", "Write", "Edit", "Read", "Grep", "mcp__x__y"]);
    assert_eq!(denied, ["Bash", "Write", "mcp__x__y"]);
}

#[test]
fn a_bad_rule_says_where_and_how() {
    let error = |text: &str| Rule::parse(text, Source::Operator).unwrap_err();
    assert_eq!(
        error("deny Bash(ls; rm:*)"),
        PolicyError {
            rule: "Bash(ls; rm:*)".into(),
            position: 8,
            problem: "a rule cannot contain ';'; quote it if it is part of a word of the command".into(),
            example: "Bash(cargo test:*), Write(/etc/**), WebFetch(domain:docs.rs) or Read",
        }
    );
    for text in [
        "",
        "Bash(",
        "Bash()",
        "(x)",
        "Bash(a 'b)",
        "Bash(git *)",
        "Read([)",
        "Todo(x)",
        "Bash(a\u{202e})",
        "deny",
    ] {
        assert!(
            Rule::parse(text, Source::Operator).is_err() || text == "deny",
            "{text:?}"
        );
    }
}

fn subjects() -> impl Strategy<Value = (&'static str, Subject)> {
    let words = prop::sample::select(vec![
        "rm", "-rf", "ls", "curl", "x", "sudo", "sh", "-c", "'curl x'", ".env", "git", "push",
    ]);
    let joins = prop::sample::select(vec![" ", " && ", " | ", "; ", "\n", " $(", ") ", " & ", " > "]);
    let text = prop::collection::vec((words, joins), 1..8).prop_map(|parts| {
        parts
            .into_iter()
            .map(|(word, join)| format!("{word}{join}"))
            .collect::<String>()
    });
    let file = "[a-c./~]{1,8}";
    prop_oneof![
        text.prop_map(|text| ("Bash", Subject::Command { command: text })),
        ("[ -~]{0,40}").prop_map(|text| ("Bash", Subject::Command { command: text })),
        file.prop_map(|file| (
            "Read",
            Subject::Path {
                write: false,
                path: file
            }
        )),
        file.prop_map(|file| (
            "Edit",
            Subject::Path {
                write: true,
                path: file
            }
        )),
    ]
}

fn rules() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec!["allow", "ask", "deny"]);
    let rule = prop::sample::select(vec![
        "Bash",
        "Bash(*)",
        "Bash(rm -rf:*)",
        "Bash(ls:*)",
        "Bash(curl:*)",
        "Bash(git push:*)",
        "Bash(sh -c 'curl x')",
        "Read",
        "Read(**/.env)",
        "Read(/**)",
        "Write(a/**)",
        "Edit(a)",
        "Write(~/a)",
        "Edit",
    ]);
    (kind, rule).prop_map(|(kind, rule)| format!("{kind} {rule}"))
}

fn modes_any() -> impl Strategy<Value = PermissionMode> {
    prop::sample::select(vec![
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::Yolo,
    ])
}

#[test]
fn i6_characters_beyond_ascii_do_not_crash_the_reader() {
    for text in [
        "$%﹪🕴౮:.{𐍝󠆔Azꛌ§𑱨3$%PȺ'𞸧",
        "𐣪oÜ6$`B𞹼~🃍꯷/Oൢ{󠄎Á𑃑𞹍Ѩy𑤥K﹟D`𑴿*.ꚧ[",
        "🕴S\\{$x)🂹{4󠇧Ѩ'Àvﹰ𐒱I¥e໙爵ꘃ1%ຆල::~ଯ𑍰.4𤆰",
        "echo ${𞸧} <<𞸧\n𞸧",
    ] {
        let kind = ask(
            &policy(&["allow Bash(*)"]),
            "Bash",
            &command(text),
            PermissionMode::Default,
        )
        .verdict
        .kind;
        assert_ne!(kind, VerdictKind::Allow, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn i7_a_deny_rule_never_makes_a_verdict_more_permissive(
        (tool, subject) in subjects(), base in prop::collection::vec(rules(), 0..5), extra in rules(), mode in modes_any(),
    ) {
        let texts: Vec<&str> = base.iter().map(String::as_str).collect();
        let before = ask(&policy(&texts), tool, &subject, mode).verdict.kind;
        let denying = extra.replacen("allow ", "deny ", 1).replacen("ask ", "deny ", 1);
        let mut more = texts.clone();
        more.push(&denying);
        let after = ask(&policy(&more), tool, &subject, mode).verdict.kind;
        prop_assert!(after >= before, "{denying}: {before:?} -> {after:?}");
        // The order of the rules does not affect the verdict.
        more.reverse();
        prop_assert_eq!(ask(&policy(&more), tool, &subject, mode).verdict.kind, after);
    }

    #[test]
    fn i7_judging_never_panics_and_a_grant_reads_back(text in "\\PC{0,60}|[ -~\n]{0,60}", mode in modes_any()) {
        let judgement = ask(&policy(&["allow Bash(*)", "deny Bash(rm -rf:*)"]), "Bash", &command(&text), mode);
        if let Some(grant) = judgement.grant {
            prop_assert!(Rule::parse(&grant, Source::Always).is_ok());
        }
    }
}

fn paths(paths: &[&str]) -> Subject {
    Subject::Paths {
        write: true,
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    }
}

#[test]
fn of_several_paths_the_strictest_verdict_stands_and_names_its_path() {
    let rules = [
        "allow ApplyPatch(src/**)",
        "deny Write(**/.env)",
        "ask ApplyPatch(src/secret/**)",
    ];
    modes(
        &rules,
        "ApplyPatch",
        &paths(&["src/a", "src/b"]),
        "allow allow deny allow",
    );
    modes(
        &rules,
        "ApplyPatch",
        &paths(&["src/a", "b"]),
        "ask allow deny allow",
    );
    modes(
        &rules,
        "ApplyPatch",
        &paths(&["src/a", "../b"]),
        "ask ask deny allow",
    );
    modes(
        &rules,
        "ApplyPatch",
        &paths(&["src/a", "sub/.env"]),
        "deny deny deny deny",
    );
    let denied = ask(
        &policy(&rules),
        "ApplyPatch",
        &paths(&["b", "sub/.env", "src/a"]),
        PermissionMode::Default,
    );
    assert_eq!(
        denied.verdict,
        Verdict {
            kind: VerdictKind::Deny,
            rule: "Write(**/.env)".to_owned(),
            reason: "sub/.env: the operator rule Write(**/.env) forbids this".to_owned(),
        }
    );
    modes(&rules, "ApplyPatch", &paths(&[]), "deny deny deny deny");
}

#[test]
fn a_grant_for_several_paths_allows_exactly_these() {
    let asked = ask(
        &policy(&["allow ApplyPatch(doc/**)"]),
        "ApplyPatch",
        &paths(&["a b", "src/[x]", "doc/d"]),
        PermissionMode::Default,
    );
    assert_eq!(asked.scopes, [Scope::Once, Scope::Session, Scope::Always]);
    let grant = asked.grant.unwrap();
    assert_eq!(grant, "ApplyPatch(/{w/a b,w/src/[[]x[]]})");
    let rules = [grant.as_str()];
    modes(
        &rules,
        "ApplyPatch",
        &paths(&["src/[x]", "a b"]),
        "allow allow deny allow",
    );
    modes(
        &rules,
        "ApplyPatch",
        &paths(&["a b", "c"]),
        "ask allow deny allow",
    );
    modes(&rules, "ApplyPatch", &paths(&["a b,w/c"]), "ask allow deny allow");
    for (rules, touched) in [(&[][..], ["a,b", "c"]), (&["ask ApplyPatch(c)"][..], ["a", "c"])] {
        let asked = ask(
            &policy(rules),
            "ApplyPatch",
            &paths(&touched),
            PermissionMode::Default,
        );
        assert_eq!((asked.grant, asked.scopes), (None, vec![Scope::Once]));
    }
}

#[test]
fn what_is_forbidden_for_edit_is_forbidden_for_its_relatives() {
    for tool in ["Edit", "MultiEdit", "ApplyPatch", "UndoPatch"] {
        modes(
            &["deny Edit(src/**)"],
            tool,
            &path(true, "src/a"),
            "deny deny deny deny",
        );
        modes(&["deny Edit"], tool, &path(true, "a"), "deny deny deny deny");
        assert_eq!(wholly_denied(&policy(&["deny Edit"]), &[tool]), [tool]);
    }
    modes(
        &["allow Edit"],
        "ApplyPatch",
        &path(true, "a"),
        "ask allow deny allow",
    );
}

#[test]
fn what_is_said_of_commands_holds_for_those_in_the_background() {
    let push = command("git push origin");
    for (rule, expected) in [
        ("deny Bash(git push:*)", "deny deny deny deny"),
        ("ask Bash(git push:*)", "ask ask deny allow"),
        ("allow Bash(git push:*)", "allow allow deny allow"),
        ("allow BashStart(git push:*)", "allow allow deny allow"),
    ] {
        modes(&[rule], "BashStart", &push, expected);
    }
    modes(
        &["allow BashStart(git push:*)"],
        "Bash",
        &push,
        "ask ask deny allow",
    );
    modes(&["deny BashStart"], "Bash", &push, "ask ask deny allow");
    assert_eq!(
        wholly_denied(&policy(&["deny Bash"]), &["BashStart"]),
        ["BashStart"]
    );
    for (rule, expected) in [
        ("deny Bash(git push:*)", "deny deny deny deny"),
        ("deny BashStart(git push:*)", "deny deny deny deny"),
        ("ask Bash(git push:*)", "ask ask deny allow"),
        ("allow Bash(git push:*)", "ask ask deny allow"),
        ("allow BashWrite(git push:*)", "allow allow deny allow"),
    ] {
        modes(&[rule], "BashWrite", &push, expected);
    }
    assert_eq!(
        wholly_denied(&policy(&["deny Bash"]), &["BashWrite"]),
        ["BashWrite"]
    );
    modes(
        &["deny Bash"],
        "BashPoll",
        &Subject::Nothing,
        "allow allow allow allow",
    );
}

#[test]
fn tools_of_servers_are_asked_about_and_ruled_by_their_names() {
    let version = "ab".repeat(16);
    let call = Subject::Remote {
        arguments: "{\"path\":\"/etc/passwd\"}".to_owned(),
        version: version.clone(),
        undeclared: Vec::new(),
    };
    let tool = "mcp__files__read";
    modes(&[], tool, &call, "ask ask deny allow");
    for rule in ["allow mcp__files__read", "allow mcp__files__*", "allow mcp__*"] {
        modes(&[rule], tool, &call, "allow allow deny allow");
    }
    for rule in [
        "allow mcp__file__*",
        "allow mcp__files__readme",
        "allow mcp__mail__*",
    ] {
        modes(&[rule], tool, &call, "ask ask deny allow");
    }
    modes(&["deny mcp__files__*"], tool, &call, "deny deny deny deny");
    modes(&["ask mcp__*"], tool, &call, "ask ask deny allow");
    let asked = ask(&policy(&[]), tool, &call, PermissionMode::Default);
    assert_eq!(asked.grant, Some(format!("{tool}(sha256:{version})")));
    assert_eq!(asked.detail, "{\"path\":\"/etc/passwd\"}");
    // The operator declared that it only reads.
    let reads = Request {
        tool,
        subject: &call,
        effect: EffectClass::Read,
        mode: PermissionMode::Plan,
        workdir: "/w",
    };
    assert_eq!(judge(&policy(&[]), &reads).verdict.kind, VerdictKind::Allow);
}

/// The rug pull: a tool is allowed permanently, then its server changes the description (Invariant Labs, "MCP Security
/// Notification: Tool Poisoning Attacks"; CVE-2025-54136, a trusted server's definition replaced in Cursor).
#[test]
fn i7_redteam_an_allowance_for_good_ends_when_the_tool_changes() {
    let tool = "mcp__files__read";
    let call = |version: &str, undeclared: &[&str]| Subject::Remote {
        arguments: "{}".to_owned(),
        version: version.to_owned(),
        undeclared: undeclared.iter().map(|name| (*name).to_owned()).collect(),
    };
    let (then, now) = ("ab".repeat(16), "cd".repeat(16));
    let granted = ask(&policy(&[]), tool, &call(&then, &[]), PermissionMode::Default)
        .grant
        .unwrap();
    for source in [Source::Grant, Source::Always] {
        let kind = |rule: &str, call: &Subject| {
            let policy = Policy::new(None).with(vec![Rule::parse(rule, source).unwrap()]);
            ask(&policy, tool, call, PermissionMode::Default).verdict.kind
        };
        assert_eq!(
            kind(&granted, &call(&then, &[])),
            VerdictKind::Allow,
            "positive control"
        );
        assert_eq!(
            kind(&granted, &call(&now, &[])),
            VerdictKind::Ask,
            "another description"
        );
        assert_eq!(kind(&granted, &call("", &[])), VerdictKind::Ask, "unknown");
        assert_eq!(
            kind(&granted, &call(&then, &["sidenote"])),
            VerdictKind::Ask,
            "an argument of its own"
        );
        assert_eq!(
            kind(tool, &call(&then, &[])),
            VerdictKind::Ask,
            "an answer of an older version"
        );
    }
    modes(
        &["allow mcp__files__*"],
        tool,
        &call(&now, &[]),
        "allow allow deny allow",
    );
    modes(
        &["allow mcp__files__*"],
        tool,
        &call(&now, &["sidenote"]),
        "ask ask deny allow",
    );
    assert!(Rule::parse("deny mcp__files__read(sha256:ab)", Source::Operator).is_err());
    assert!(Rule::parse("mcp__files__read(sha256:xyz)", Source::Operator).is_err());
}

#[test]
fn i7_a_verdict_without_a_tool_is_no_rule() {
    for text in ["deny", "deny ", " Ask", "allow", "DENY(x)"] {
        let refused = Rule::parse(text, Source::Session).unwrap_err().to_string();
        assert!(
            refused.contains("no tool follows the verdict"),
            "{text}: {refused}"
        );
    }
    assert!(Rule::parse("deny denyx", Source::Session).is_ok());
}

#[test]
fn denied_writes_are_told_for_a_sandbox() {
    let rules = [
        "deny Write(prod.cfg)",
        "deny Edit(~/keys/**)",
        "deny Write(/etc/**)",
        "deny Write",
        "ask Write(asked)",
        "deny Read(secret/**)",
        "deny Bash(cat:*)",
    ];
    let rules = rules.map(|rule| Rule::parse(rule, Source::Operator).unwrap());
    let globs = |home| Policy::new(home).with(rules.to_vec()).denied_writes();
    assert_eq!(
        globs(Some("/home/[a]")),
        ["prod.cfg", "/home/[[]a[]]/keys/**", "/etc/**"]
    );
    assert_eq!(globs(None), ["prod.cfg", "**/keys/**", "/etc/**"]);
}

#[test]
fn denied_reads_are_told_for_a_sandbox() {
    let rules = [
        "deny Read(secret/**)",
        "deny Read(~/.ssh/**)",
        "ask Read(**/.env)",
        "deny Bash(cat:*)",
    ];
    let rules = rules.map(|rule| Rule::parse(rule, Source::Operator).unwrap());
    let policy = Policy::new(Some("/home/ana")).with(rules.to_vec());
    assert!(policy.has_denied_reads() && !Policy::new(None).has_denied_reads());
    for (path, denied) in [
        ("/w/secret/a", true),
        ("/w/src/a", false),
        ("/home/ana/.ssh/id", true),
        ("/w/.env", false),
    ] {
        assert_eq!(policy.denies_reading("/w", path), denied, "{path}");
    }
}
