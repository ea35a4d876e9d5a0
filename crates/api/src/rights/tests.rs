use super::*;
use agentd_protocol::PermissionMode::{AcceptEdits, Default as Asking, Plan, Yolo};

fn rights(dirs: &[&str], sources: &[&str], mode: PermissionMode) -> TokenRights {
    let texts = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
    TokenRights {
        dirs: texts(dirs),
        sources: texts(sources),
        mode,
    }
}

fn code(outcome: Result<(), Fault>) -> String {
    outcome.map_or_else(|fault| fault.code, |()| "ok".to_owned())
}

#[test]
fn i7_a_token_has_no_directory_and_a_mode_that_asks_unless_its_creator_names_others() {
    let narrow = TokenRights::default();
    let token = Rights::Token(&narrow, true);
    for how in [Use::Work, Use::Copy, Use::Target] {
        assert_eq!(token.dirs(how), Some(Vec::new()), "{how:?}");
        assert_eq!(Rights::All.dirs(how), None, "{how:?}");
    }
    for (mode, expected) in [
        (Plan, "ok"),
        (Asking, "ok"),
        (AcceptEdits, "mode_beyond"),
        (Yolo, "mode_beyond"),
    ] {
        assert_eq!(code(token.mode(mode)), expected, "{mode}");
        assert_eq!(code(Rights::All.mode(mode)), "ok", "{mode}");
    }
}

#[test]
fn i7_a_source_may_be_copied_and_not_worked_in() {
    let mine = rights(&["/srv/app"], &["/srv/lib", "https://git.example/a"], Asking);
    let token = Rights::Token(&mine, false);
    assert_eq!(token.dirs(Use::Work), Some(vec![Path::new("/srv/app")]));
    assert_eq!(token.dirs(Use::Target), Some(vec![Path::new("/srv/app")]));
    assert_eq!(
        token.dirs(Use::Copy),
        Some(vec![Path::new("/srv/app"), Path::new("/srv/lib")])
    );
}

#[test]
fn i7_urls_are_those_of_the_token_or_those_that_the_operator_lists() {
    let may = |sources: &[&str], url, listed| {
        Rights::Token(&rights(&[], sources, Asking), false).may_clone(url, listed)
    };
    let url = "https://git.example/a/app.git";
    assert!(may(&[], url, true) && !may(&[], url, false));
    assert!(may(&["/srv/lib"], url, true), "a directory is no URL");
    assert!(may(&["https://git.example/a"], url, false));
    assert!(
        !may(&["https://git.example/b"], url, true),
        "its own URLs replace those of the operator"
    );
    assert!(!may(
        &["https://git.example/a"],
        "https://git.example/a/../b",
        false
    ));
    assert!(!may(&["https://git.example/a"], "https://git.example/ab", false));
    assert!(may(&["*"], url, false) && Rights::All.may_clone(url, false));
}

#[test]
fn i7_only_approve_makes_a_session_less_strict() {
    let mine = rights(&[], &[], Yolo);
    let (steers, approves) = (Rights::Token(&mine, false), Rights::Token(&mine, true));
    let rows = [
        (Yolo, Yolo, "ok"),
        (Yolo, Plan, "ok"),
        (Asking, Asking, "ok"),
        (Plan, Asking, "needs_approve"),
        (Asking, AcceptEdits, "needs_approve"),
        (AcceptEdits, Yolo, "needs_approve"),
    ];
    for (now, asked, expected) in rows {
        assert_eq!(code(steers.change_mode(now, asked)), expected, "{now} to {asked}");
        assert_eq!(code(approves.change_mode(now, asked)), "ok", "{now} to {asked}");
        assert_eq!(
            code(Rights::All.change_mode(now, asked)),
            "ok",
            "{now} to {asked}"
        );
    }
    let below = rights(&[], &[], Asking);
    assert_eq!(
        code(Rights::Token(&below, true).change_mode(Asking, Yolo)),
        "mode_beyond",
        "approve does not lift the ceiling"
    );
}

#[test]
fn i7_only_approve_allows_by_rule() {
    let mine = TokenRights::default();
    let rules = |rules: &[&str], approves| {
        let rules: Vec<String> = rules.iter().map(|&rule| rule.to_owned()).collect();
        code(Rights::Token(&mine, approves).rules(&rules))
    };
    assert_eq!(rules(&[], false), "ok");
    assert_eq!(rules(&["deny Bash(rm *)", "ask Edit"], false), "ok");
    for loose in [
        "allow Bash(ls)",
        "Bash(ls)",
        " allow Bash",
        "",
        "DENY Bash",
        "denyx Bash",
    ] {
        assert_eq!(rules(&["deny Edit", loose], false), "needs_approve", "{loose:?}");
        assert_eq!(rules(&[loose], true), "ok", "{loose:?}");
    }
}

#[test]
fn i7_only_approve_raises_a_budget_or_the_steps() {
    let mine = TokenRights::default();
    let token = Rights::Token(&mine, false);
    let budget = |tokens, usd, steps| Budget {
        tokens,
        usd,
        time_ms: 0,
        steps,
    };
    let rows = [
        (budget(0, 0.0, 0), budget(9, 9.0, 9), "ok"),
        (budget(0, 0.0, 0), budget(0, 0.0, 0), "ok"),
        (budget(5, 0.0, 0), budget(5, 0.0, 0), "ok"),
        (budget(5, 0.0, 0), budget(6, 0.0, 0), "needs_approve"),
        (budget(5, 0.0, 0), budget(0, 0.0, 0), "needs_approve"),
        (budget(0, 1.0, 0), budget(0, 0.0, 0), "needs_approve"),
        (budget(0, 1.0, 0), budget(0, 1.5, 0), "needs_approve"),
        (budget(0, 0.0, 3), budget(0, 0.0, 4), "needs_approve"),
    ];
    for (now, asked, expected) in rows {
        assert_eq!(
            code(token.change_budget(&now, &asked)),
            expected,
            "{now:?} to {asked:?}"
        );
        assert_eq!(code(Rights::All.change_budget(&now, &asked)), "ok");
    }
    for (default, asked, expected) in [
        (Some(50), Some(50), "ok"),
        (None, None, "ok"),
        (None, Some(900), "ok"),
        (Some(50), Some(51), "needs_approve"),
        (Some(50), None, "needs_approve"),
    ] {
        assert_eq!(
            code(token.change_steps(default, asked)),
            expected,
            "{default:?} to {asked:?}"
        );
    }
}

#[test]
fn i7_nobody_grants_more_than_they_have() {
    let mine = rights(&["/srv/app"], &["/srv/lib", "https://git.example/a"], AcceptEdits);
    let token = Rights::Token(&mine, true);
    for within in [
        TokenRights::default(),
        rights(
            &["/srv/app/sub"],
            &["/srv/lib", "/srv/app", "https://git.example/a/b"],
            Asking,
        ),
        mine.clone(),
    ] {
        assert_eq!(code(token.grant(&within)), "ok", "{within:?}");
    }
    for beyond in [
        rights(&["/srv"], &[], Asking),
        rights(&["/srv/lib"], &[], Asking),
        rights(&["/srv/application"], &[], Asking),
        rights(&[], &["/srv/other"], Asking),
        rights(&[], &["https://git.example/b"], Asking),
        rights(&[], &["*"], Asking),
        rights(&[], &[], Yolo),
    ] {
        assert_eq!(code(token.grant(&beyond)), "rights_beyond", "{beyond:?}");
        assert_eq!(code(Rights::All.grant(&beyond)), "ok", "{beyond:?}");
    }
    let none = TokenRights::default();
    let urls = rights(&[], &["https://git.example/a"], Asking);
    assert_eq!(code(Rights::Token(&none, true).grant(&urls)), "rights_beyond");
}

#[test]
fn rights_are_tidied_or_refused_with_the_entry() {
    let tidied = checked(rights(
        &["/srv//app/."],
        &["/srv/lib/", "https://git.example/a", "*"],
        Asking,
    ))
    .unwrap();
    assert_eq!(
        tidied,
        rights(&["/srv/app"], &["/srv/lib", "https://git.example/a", "*"], Asking)
    );
    for bad in ["", "srv/app", "/srv/../etc", "/srv\0", "*"] {
        assert_eq!(
            code(checked(rights(&[bad], &[], Asking)).map(drop)),
            "bad_rights",
            "{bad:?}"
        );
    }
    for bad in [
        "",
        "srv/lib",
        "/srv/../etc",
        "git.example/a",
        "https://a b",
        "https://a\n",
    ] {
        assert_eq!(
            code(checked(rights(&[], &[bad], Asking)).map(drop)),
            "bad_rights",
            "{bad:?}"
        );
    }
    let many = vec!["/srv"; MAX_ENTRIES];
    assert!(checked(rights(&many, &[], Asking)).is_ok());
    assert_eq!(
        code(checked(rights(&many, &["/srv"], Asking)).map(drop)),
        "too_many_rights"
    );
}
