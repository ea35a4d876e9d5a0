use crate::state::Rules;
use crate::{GateArgs, PermissionGate, check_rules};
use agentd_actor_kit::{CallError, Clock, Done, GateMsg, Handle, JudgeRequest, Pointer, Read, StoreMsg};
use agentd_file_work::Failed;
use agentd_policy::{Here, Judgement, Policy, Request, Subject};
use agentd_protected::{Named, Places};
use agentd_protocol::{
    ApprovalId, EffectClass, Grant, PermissionMode, Principal, Reach, SessionId, Stamp, Timestamp,
    VerdictKind,
};
use agentd_settings::{PermissionConfig, RuleConfig};
use agentd_store::{Append, Backend, EncodedEvent, MemoryStore, Outcome, Range};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// Replaces the session store: handles the same messages with a backend in memory.
struct Store;

impl Actor for Store {
    type Msg = StoreMsg;
    type State = Arc<dyn Backend>;
    type Arguments = Arc<dyn Backend>;

    async fn pre_start(
        &self,
        _: ActorRef<StoreMsg>,
        backend: Arc<dyn Backend>,
    ) -> Result<Arc<dyn Backend>, ActorProcessingErr> {
        Ok(backend)
    }

    async fn handle(
        &self,
        _: ActorRef<StoreMsg>,
        msg: StoreMsg,
        backend: &mut Arc<dyn Backend>,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            StoreMsg::Append { append, done } => done.answer(backend.append(append).await),
            StoreMsg::Read(Read::Load { session, range, done }) => {
                done.answer(backend.load(session, range).await);
            }
            StoreMsg::Claim { session, done, .. } => done.answer(backend.claim(session).await),
            other => panic!("the gate has no business with {other:?}"),
        }
        Ok(())
    }
}

async fn store() -> (Arc<dyn Backend>, Handle<StoreMsg>) {
    let backend: Arc<dyn Backend> = Arc::new(MemoryStore::default());
    let (actor, _) = Actor::spawn(None, Store, Arc::clone(&backend)).await.unwrap();
    (backend, Handle::fixed("the session store", actor))
}

fn args(store: &Handle<StoreMsg>) -> GateArgs {
    GateArgs {
        rules: PermissionConfig {
            rules: vec![RuleConfig::new(VerdictKind::Deny, "Bash(curl:*)")],
            ..PermissionConfig::default()
        },
        home: Some("/home/ana".into()),
        places: Places::default(),
        store: store.clone(),
        clock: Clock::virtual_from(Timestamp(1_000)),
    }
}

async fn gate(args: GateArgs) -> (ActorRef<GateMsg>, Handle<GateMsg>) {
    let (actor, _) = Actor::spawn(None, PermissionGate::default(), args).await.unwrap();
    (actor.clone(), Handle::fixed("the permission gate", actor))
}

fn request(command: &str) -> JudgeRequest {
    JudgeRequest {
        session: SessionId::NIL,
        tool: "Bash".into(),
        subject: Subject::Command {
            command: command.into(),
        },
        effect: EffectClass::Exec,
        mode: PermissionMode::Default,
        workdir: "/w".into(),
        rules: vec![],
        here: Here {
            place: "/w".into(),
            files: Some(BTreeMap::new()),
        },
        grants: vec![],
        always: Vec::new(),
    }
}

async fn judge(gate: &Handle<GateMsg>, request: JudgeRequest) -> Result<Judgement, CallError> {
    gate.call(SOON, |done| GateMsg::Judge {
        request: Box::new(request),
        done,
    })
    .await
}

async fn kind(gate: &Handle<GateMsg>, command: &str) -> VerdictKind {
    judge(gate, request(command)).await.unwrap().verdict.kind
}

async fn add(gate: &Handle<GateMsg>, rule: &str) -> Result<(), String> {
    add_grant(gate, Grant::everywhere(rule)).await
}

async fn add_grant(gate: &Handle<GateMsg>, grant: Grant) -> Result<(), String> {
    let message = |done: Done<Result<(), String>>| GateMsg::AddRule {
        grant,
        approval: Some(ApprovalId::NIL),
        by: Principal::user("ana"),
        done,
    };
    gate.call(SOON, message).await.unwrap()
}

#[tokio::test]
async fn rules_of_the_node_the_session_and_its_grants_are_judged_together() {
    let (_, store) = store().await;
    let (_, gate) = gate(args(&store)).await;
    assert_eq!(kind(&gate, "cargo test").await, VerdictKind::Ask);
    assert_eq!(kind(&gate, "curl x").await, VerdictKind::Deny);
    assert_eq!(kind(&gate, "rm -rf /").await, VerdictKind::Deny);
    let with = |rules: &[&str], grants: &[&str]| JudgeRequest {
        rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
        grants: grants.iter().map(|rule| Grant::everywhere(*rule)).collect(),
        ..request("cargo test")
    };
    let verdict = |request| async { judge(&gate, request).await.unwrap().verdict };
    assert_eq!(
        verdict(with(&["allow Bash(cargo test:*)"], &[])).await.kind,
        VerdictKind::Allow
    );
    assert_eq!(
        verdict(with(&[], &["Bash(cargo test)"])).await.kind,
        VerdictKind::Allow
    );
    assert_eq!(
        verdict(with(&["deny Bash(cargo:*)"], &["Bash(cargo test)"]))
            .await
            .kind,
        VerdictKind::Deny
    );
    let bad = verdict(with(&["allow Bash("], &["Bash(cargo test)"])).await;
    assert_eq!(
        (bad.kind, bad.rule.as_str()),
        (VerdictKind::Deny, "gate:error"),
        "I7: a rule that cannot be read denies"
    );
}

#[tokio::test]
async fn i1_an_always_rule_is_answered_for_when_it_is_durable_and_survives_a_restart() {
    let (backend, store) = store().await;
    let (first, handle) = gate(args(&store)).await;
    assert_eq!(add(&handle, "Bash(cargo test)").await, Ok(()));
    assert_eq!(kind(&handle, "cargo test").await, VerdictKind::Allow);
    assert_eq!(
        add(&handle, "allow Bash(cargo test)").await,
        Ok(()),
        "the same rule twice is one rule"
    );
    first.stop_and_wait(None, Some(SOON)).await.unwrap();

    let (_, again) = gate(args(&store)).await;
    assert_eq!(kind(&again, "cargo test").await, VerdictKind::Allow);
    assert_eq!(add(&again, "Bash(ls)").await, Ok(()));
    let page = backend.load(SessionId::NIL, Range::after(0)).await.unwrap();
    let lines: Vec<String> = page
        .events
        .iter()
        .map(|(_, body)| String::from_utf8(body.to_vec()).unwrap())
        .collect();
    let expected = |seq: u64, rule: &str| {
        format!(
            r#"{{"v":1,"session":"{nil}","seq":{seq},"at":"1970-01-01T00:00:01.000Z","by":"user:ana","type":"rule.added","rule":"{rule}","approval":"{nil}"}}"#,
            nil = SessionId::NIL
        )
    };
    let at = |line: &String| {
        line.replace(
            line.split("\"at\":\"").nth(1).unwrap().split('"').next().unwrap(),
            "1970-01-01T00:00:01.000Z",
        )
    };
    assert_eq!(
        lines.iter().map(at).collect::<Vec<_>>(),
        [
            expected(1, "allow Bash(cargo test)"),
            expected(2, "allow Bash(ls)")
        ]
    );
    let rules = again.call(SOON, |done| GateMsg::Rules { done }).await.unwrap();
    assert!(rules.ends_with(&[
        "always: allow Bash(cargo test)".to_owned(),
        "always: allow Bash(ls)".to_owned()
    ]));
}

#[tokio::test]
async fn i7_new_rules_of_the_configuration_are_in_force_at_once_and_those_of_people_stay() {
    let (_, store) = store().await;
    let (_, handle) = gate(args(&store)).await;
    assert_eq!(add(&handle, "Bash(make)").await, Ok(()));
    let configure = |kind, rule: &str| {
        let rules = vec![RuleConfig::new(kind, rule)];
        let permission = Box::new(PermissionConfig {
            rules,
            builtin: Vec::new(),
            ..PermissionConfig::default()
        });
        handle.call(SOON, |done| GateMsg::Configure { permission, done })
    };
    assert_eq!(kind(&handle, "curl x").await, VerdictKind::Deny);
    configure(VerdictKind::Allow, "Bash(curl:*)")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kind(&handle, "curl x").await, VerdictKind::Allow);
    let refused = configure(VerdictKind::Deny, "Bash(").await.unwrap();
    assert!(refused.is_err(), "the old rules stay");
    for command in ["curl x", "make"] {
        assert_eq!(kind(&handle, command).await, VerdictKind::Allow, "{command}");
    }
}

#[tokio::test]
async fn i9_a_gate_that_was_fenced_off_reads_what_is_new_and_goes_on() {
    let (_, store) = store().await;
    let (_, one) = gate(args(&store)).await;
    let (_, two) = gate(args(&store)).await;
    assert_eq!(add(&one, "Bash(a)").await, Ok(()));
    assert_eq!(add(&two, "Bash(b)").await, Ok(()));
    assert_eq!(add(&one, "Bash(c)").await, Ok(()));
    assert_eq!(
        (kind(&one, "b").await, kind(&two, "a").await),
        (VerdictKind::Allow, VerdictKind::Allow)
    );
}

#[tokio::test]
async fn many_rules_at_once_are_all_kept_and_bad_ones_refused() {
    let (_, store) = store().await;
    let (_, gate) = gate(args(&store)).await;
    let mut waiting = Vec::new();
    for n in 0..20 {
        let (done, answer) = Done::channel();
        let (rule, by) = (format!("Bash(run {n})"), Principal::user("ana"));
        gate.cast(GateMsg::AddRule {
            grant: Grant::everywhere(rule),
            approval: None,
            by,
            done,
        });
        waiting.push(answer);
    }
    for answer in waiting {
        assert_eq!(answer.await, Ok(Ok(())));
    }
    assert_eq!(kind(&gate, "run 19").await, VerdictKind::Allow);
    assert!(
        add(&gate, "Bash(a; b)")
            .await
            .unwrap_err()
            .starts_with("rule \"Bash(a; b)\", character 7")
    );
}

#[tokio::test]
async fn wholly_denied_tools_are_not_offered() {
    let (_, store) = store().await;
    let (_, gate) = gate(args(&store)).await;
    let ask = |rules: &[&str]| {
        let (tools, rules) = (
            vec!["Bash".into(), "Read".into()],
            rules.iter().map(|rule| (*rule).to_owned()).collect(),
        );
        gate.call(SOON, move |done| GateMsg::WhollyDenied { tools, rules, done })
    };
    assert_eq!(ask(&["deny Bash"]).await, Ok(vec!["Bash".to_owned()]));
    assert_eq!(ask(&[]).await, Ok(vec![]));
    assert_eq!(
        ask(&["deny ("]).await,
        Ok(vec!["Bash".to_owned(), "Read".to_owned()])
    );
}

fn panics(_: &Policy, _: &Request<'_>) -> Judgement {
    panic!("a bug in judging")
}

/// The stuck judge waits for a message on this channel.
static RELEASE: Mutex<Option<mpsc::Receiver<()>>> = Mutex::new(None);

fn stuck(_: &Policy, _: &Request<'_>) -> Judgement {
    let release = RELEASE.lock().unwrap().take().unwrap();
    let _ = release.recv();
    Judgement::denied("late", "too late")
}

#[tokio::test]
async fn i7_a_panic_while_judging_is_a_denial_and_the_gate_lives() {
    let (_, store) = store().await;
    let (actor, _) = Actor::spawn(None, PermissionGate::judging_with(panics), args(&store))
        .await
        .unwrap();
    let gate = Handle::fixed("the permission gate", actor);
    for _ in 0..2 {
        let expected = Judgement::denied("gate:error", "agentd could not judge this call");
        assert_eq!(judge(&gate, request("ls")).await, Ok(expected));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i7_a_gate_that_is_stuck_allows_nothing() {
    let (release, wait) = mpsc::channel();
    *RELEASE.lock().unwrap() = Some(wait);
    let (_, store) = store().await;
    let (actor, _) = Actor::spawn(None, PermissionGate::judging_with(stuck), args(&store))
        .await
        .unwrap();
    let gate = Handle::fixed("the permission gate", actor);
    let message = |done| GateMsg::Judge {
        request: Box::new(request("ls")),
        done,
    };
    let answer = gate.call(Duration::from_millis(50), message).await;
    assert_eq!(answer, Err(CallError::Timeout("the permission gate")));
    drop(release);
}

#[tokio::test]
async fn i7_a_gate_that_goes_down_answers_nobody() {
    let (_, store) = store().await;
    let (actor, gate) = gate(args(&store)).await;
    actor.kill();
    let answer = judge(&gate, request("ls")).await;
    assert_eq!(answer, Err(CallError::Gone("the permission gate")));
}

#[tokio::test]
async fn i7_a_gate_that_cannot_read_its_rules_does_not_start() {
    let pointer = Pointer::new("the session store");
    let down = args(&pointer.handle());
    assert!(Actor::spawn(None, PermissionGate::default(), down).await.is_err());
    let (_, store) = store().await;
    let mut bad = args(&store);
    bad.rules.rules.push(RuleConfig::new(VerdictKind::Deny, "Bash("));
    assert!(Actor::spawn(None, PermissionGate::default(), bad).await.is_err());
}

#[test]
fn i7_a_configured_rule_that_contradicts_its_example_is_found() {
    let mut config = PermissionConfig::default();
    assert_eq!(check_rules(&config, Some("/home/ana")), []);
    let mut wrong = RuleConfig::new(VerdictKind::Allow, "Bash(cargo test)");
    wrong.examples.matches.push("cargo test -p x".into());
    config.rules = vec![
        RuleConfig::new(VerdictKind::Deny, "Bash(curl:*)"),
        wrong,
        RuleConfig::new(VerdictKind::Deny, "Bash("),
    ];
    let problems = check_rules(&config, None);
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["permission.rules[1]", "permission.rules[2]"]);
    assert_eq!(
        problems[0].what,
        "allow Bash(cargo test): the rule does not match its example \"cargo test -p x\""
    );
}

#[test]
fn i7_each_rule_that_comes_with_agentd_does_what_its_examples_say() {
    let config = PermissionConfig::default();
    for home in [Some("/home/ana"), None] {
        assert_eq!(check_rules(&config, home), []);
    }
    for rule in &config.builtin {
        let examples = &rule.examples;
        assert!(
            !examples.matches.is_empty() && !examples.no_match.is_empty(),
            "{} shows what it means",
            rule.rule
        );
    }
    // A rule that contradicts its example is found.
    let mut wrong = config;
    let rule = wrong.builtin.first_mut().unwrap();
    rule.examples.no_match.push("rm -rf /".to_owned());
    assert_eq!(check_rules(&wrong, None).len(), 1);
}

/// A stream that a daemon of an earlier build wrote; see `tests/golden`.
const GOLDEN: &str = include_str!("../../../tests/golden/streams/rules.jsonl");

#[tokio::test]
async fn i7_the_rules_that_an_earlier_build_wrote_are_in_force_and_no_others() {
    let (_, store) = store().await;
    let mut append = Append::new(SessionId::NIL, 1, 0, Stamp::new(Timestamp(1), 1).append());
    let event =
        |line: &str| EncodedEvent::decode(line.as_bytes()).and_then(|event| EncodedEvent::encode(&event));
    append.events = GOLDEN.lines().map(|line| event(line).unwrap()).collect();
    let outcome = store.call(SOON, |done| StoreMsg::Append { append, done }).await;
    assert!(matches!(outcome, Ok(Outcome::Committed { .. })), "{outcome:?}");
    let (_, gate) = gate(args(&store)).await;
    assert_eq!(kind(&gate, "sleep 0").await, VerdictKind::Allow);
    assert_eq!(kind(&gate, "sleep 1").await, VerdictKind::Ask);
}

#[test]
fn i7_a_stored_rule_that_this_build_refuses_allows_nothing_and_forbids_more() {
    let mut rules = Rules::new(
        &PermissionConfig::default(),
        None,
        Places::default(),
        agentd_policy::judge,
    )
    .unwrap();
    let before = rules.lines().len();
    let line = |text: &str| (Grant::everywhere(text), true);
    let stored = [
        "allow WebFetch(*docs.rs)",
        "ask WebFetch(https://ana@docs.rs/**)",
        "deny WebSearch(https://ana@docs.rs/**)",
    ];
    rules.change(stored.map(line)).unwrap();
    let lines = rules.lines();
    assert_eq!(
        lines[before..],
        ["always: ask WebFetch", "always: deny WebSearch"]
    );
    rules
        .change([(Grant::everywhere("ask WebFetch(https://ana@docs.rs/**)"), false)])
        .unwrap();
    assert_eq!(rules.lines()[before..], ["always: deny WebSearch"]);
    // Text that is not a rule at all still prevents the start.
    assert!(rules.change([line("deny (x)")]).is_err());
}

#[tokio::test]
async fn i7_what_git_names_is_asked_about_in_accept_edits() {
    let (_, store) = store().await;
    let (_, gate) = gate(args(&store)).await;
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(".git")).unwrap();
    let write = |path: &str| JudgeRequest {
        tool: "Write".into(),
        subject: Subject::Path {
            write: true,
            path: path.into(),
        },
        effect: EffectClass::Write,
        mode: PermissionMode::AcceptEdits,
        workdir: dir.path().to_str().unwrap().into(),
        ..request("")
    };
    let command = |command: &str| JudgeRequest {
        mode: PermissionMode::Yolo,
        workdir: dir.path().to_str().unwrap().into(),
        ..request(command)
    };
    let hook = "tools/hooks/pre-commit";
    let script = "printf x > tools/hooks/pre-commit";
    let control = judge(&gate, write(hook)).await.unwrap().verdict;
    assert_eq!(control.kind, VerdictKind::Allow);
    let control = judge(&gate, command(script)).await.unwrap().verdict;
    assert_eq!(control.kind, VerdictKind::Allow);
    std::fs::write(
        dir.path().join(".git/config"),
        "[core]\nhooksPath = tools/hooks\n",
    )
    .unwrap();
    let judgement = judge(&gate, write(hook)).await.unwrap();
    assert_eq!(judgement.verdict.rule, "gate:protected");
    assert!(
        judgement
            .risks
            .iter()
            .any(|risk| risk.contains("the git configuration names it"))
    );
    let asked = judge(&gate, command(script)).await.unwrap().verdict;
    assert_eq!(asked.kind, VerdictKind::Ask);
    let plain = judge(&gate, write("src/main.rs")).await.unwrap().verdict;
    assert_eq!(plain.kind, VerdictKind::Allow);
    let plain = judge(&gate, command("printf x > src/main.rs"))
        .await
        .unwrap()
        .verdict;
    assert_eq!(plain.kind, VerdictKind::Allow);
}

#[tokio::test]
async fn the_setting_decides_what_is_free() {
    let (_, store) = store().await;
    let mut free = args(&store);
    free.rules.unprotected = vec![".github".into()];
    let (_, gate) = gate(free).await;
    let write = |path: &str| JudgeRequest {
        tool: "Write".into(),
        subject: Subject::Path {
            write: true,
            path: path.into(),
        },
        effect: EffectClass::Write,
        mode: PermissionMode::AcceptEdits,
        ..request("")
    };
    for (path, kind) in [
        (".github/workflows/ci.yml", VerdictKind::Allow),
        (".venv/x", VerdictKind::Ask),
        (".github/.git/HEAD", VerdictKind::Ask),
    ] {
        assert_eq!(
            judge(&gate, write(path)).await.unwrap().verdict.kind,
            kind,
            "{path}"
        );
    }
    let mut bad = args(&store);
    bad.rules.unprotected = vec![".git".into()];
    assert!(Actor::spawn(None, PermissionGate::default(), bad).await.is_err());
}

async fn remove(gate: &Handle<GateMsg>, rule: &str) -> Result<bool, String> {
    let message = |done: Done<Result<bool, String>>| GateMsg::RemoveRule {
        grant: Grant::everywhere(rule),
        by: Principal::user("bob"),
        done,
    };
    gate.call(SOON, message).await.unwrap()
}

#[tokio::test]
async fn i7_a_rule_that_was_taken_back_allows_nothing_also_where_a_session_remembers_it() {
    let (_, store) = store().await;
    let (actor, first) = gate(args(&store)).await;
    add(&first, "allow Bash(cargo test)").await.unwrap();
    let remembered = |always: &[&str]| JudgeRequest {
        grants: vec![Grant::everywhere("Bash(cargo test)")],
        always: always.iter().map(|rule| Grant::everywhere(*rule)).collect(),
        ..request("cargo test")
    };
    assert_eq!(kind(&first, "cargo test").await, VerdictKind::Allow);
    assert_eq!(remove(&first, "allow Bash(cargo test)").await, Ok(true));
    assert_eq!(
        remove(&first, "allow Bash(cargo test)").await,
        Ok(false),
        "it was not in force"
    );
    assert_eq!(kind(&first, "cargo test").await, VerdictKind::Ask);
    actor.stop(None);
    let (_, second) = gate(args(&store)).await;
    let gate = &second;
    {
        assert_eq!(kind(gate, "cargo test").await, VerdictKind::Ask);
        let of_the_fleet = judge(gate, remembered(&["Bash(cargo test)"])).await.unwrap();
        assert_eq!(of_the_fleet.verdict.kind, VerdictKind::Ask);
        let of_the_session = judge(gate, remembered(&[])).await.unwrap();
        assert_eq!(
            of_the_session.verdict.kind,
            VerdictKind::Allow,
            "a person said so for this session"
        );
    }
    add(&second, "allow Bash(cargo test)").await.unwrap();
    assert_eq!(
        judge(&second, remembered(&["Bash(cargo test)"]))
            .await
            .unwrap()
            .verdict
            .kind,
        VerdictKind::Allow
    );
}

#[test]
fn i7_a_file_system_without_an_answer_denies_a_write_and_asks_nobody() {
    let rules = Rules::new(
        &PermissionConfig::default(),
        None,
        Places::default(),
        agentd_policy::judge,
    )
    .unwrap();
    let write = JudgeRequest {
        tool: "Write".into(),
        subject: Subject::Path {
            write: true,
            path: "src/main.rs".into(),
        },
        effect: EffectClass::Write,
        mode: PermissionMode::Yolo,
        ..request("")
    };
    let silent = Failed::Silent {
        path: "/srv/a".into(),
        mount: "/srv".into(),
    };
    let control = rules.now().judge_with(&write, Ok(Named::default())).verdict;
    assert_eq!(control.kind, VerdictKind::Allow);
    let denied = rules.now().judge_with(&write, Err(silent)).verdict;
    assert_eq!(
        (denied.kind, denied.rule.as_str()),
        (VerdictKind::Deny, "gate:error")
    );
    assert!(
        denied.reason.contains("/srv does not answer"),
        "{}",
        denied.reason
    );
}

fn sum(of: &str) -> String {
    of.repeat(32)
}

/// A request for a script of a project, with its present content.
fn of_project(place: &str, content: &str) -> JudgeRequest {
    JudgeRequest {
        here: Here {
            place: place.to_owned(),
            files: Some([("build.sh".to_owned(), sum(content))].into()),
        },
        ..request("sh build.sh")
    }
}

fn bound(rule: &str, place: &str, content: &str) -> Grant {
    Grant {
        rule: rule.to_owned(),
        reach: Some(Reach {
            place: place.to_owned(),
            files: [("build.sh".to_owned(), sum(content))].into(),
        }),
    }
}

#[tokio::test]
async fn redteam_60_i7_always_holds_for_its_project_and_content_also_after_a_restart() {
    let (_, store) = store().await;
    let (actor, first) = gate(args(&store)).await;
    add_grant(&first, bound("allow Bash(sh build.sh)", "/a", "aa"))
        .await
        .unwrap();
    actor.stop(None);
    let (_, second) = gate(args(&store)).await;
    let kind = |request| async { judge(&second, request).await.unwrap().verdict.kind };
    assert_eq!(kind(of_project("/a", "aa")).await, VerdictKind::Allow, "control");
    assert_eq!(
        kind(of_project("/b", "aa")).await,
        VerdictKind::Ask,
        "another project"
    );
    let replaced = judge(&second, of_project("/a", "bb")).await.unwrap();
    assert_eq!(replaced.verdict.kind, VerdictKind::Ask);
    assert_eq!(
        replaced.verdict.reason,
        "build.sh has changed since it was allowed"
    );
    let lines = second.call(SOON, |done| GateMsg::Rules { done }).await.unwrap();
    assert!(
        lines.contains(&"always: allow Bash(sh build.sh) in /a".to_owned()),
        "{lines:?}"
    );
}

#[tokio::test]
async fn redteam_60_i7_a_rule_of_an_earlier_version_holds_everywhere() {
    let (_, store) = store().await;
    let (_, gate) = gate(args(&store)).await;
    add(&gate, "allow Bash(sh build.sh)").await.unwrap();
    for request in [of_project("/a", "aa"), of_project("/b", "bb")] {
        assert_eq!(
            judge(&gate, request).await.unwrap().verdict.kind,
            VerdictKind::Allow
        );
    }
}

#[tokio::test]
async fn redteam_60_i7_a_denial_with_a_reach_still_holds_everywhere() {
    let (_, store) = store().await;
    let (_, gate) = gate(args(&store)).await;
    add_grant(&gate, bound("deny Bash(sh build.sh)", "/a", "aa"))
        .await
        .unwrap();
    let denied = judge(&gate, of_project("/b", "bb")).await.unwrap();
    assert_eq!(denied.verdict.kind, VerdictKind::Deny);
}

#[tokio::test]
async fn redteam_60_i7_a_grant_of_the_session_is_bound_too_and_ends_with_its_rule() {
    let (_, store) = store().await;
    let (_, gate) = gate(args(&store)).await;
    let granted = |place: &str, content: &str, always: Vec<Grant>| JudgeRequest {
        grants: vec![bound("Bash(sh build.sh)", "/a", "aa")],
        always,
        ..of_project(place, content)
    };
    let kind = |request| async { judge(&gate, request).await.unwrap().verdict.kind };
    assert_eq!(
        kind(granted("/a", "aa", vec![])).await,
        VerdictKind::Allow,
        "control"
    );
    assert_eq!(
        kind(granted("/b", "aa", vec![])).await,
        VerdictKind::Ask,
        "resumed elsewhere"
    );
    assert_eq!(
        kind(granted("/a", "bb", vec![])).await,
        VerdictKind::Ask,
        "replaced"
    );
    let rule = bound("allow Bash(sh build.sh)", "/a", "aa");
    add_grant(&gate, rule.clone()).await.unwrap();
    let message = |done: Done<Result<bool, String>>| GateMsg::RemoveRule {
        grant: rule,
        by: Principal::user("bob"),
        done,
    };
    assert_eq!(gate.call(SOON, message).await.unwrap(), Ok(true));
    let of_the_fleet = vec![bound("Bash(sh build.sh)", "/a", "aa")];
    assert_eq!(
        kind(granted("/a", "aa", of_the_fleet)).await,
        VerdictKind::Ask,
        "revoked"
    );
}

#[tokio::test]
async fn i7_two_contents_of_one_rule_are_revoked_one_by_one() {
    let (_, store) = store().await;
    let (_, gate) = gate(args(&store)).await;
    for content in ["aa", "bb"] {
        add_grant(&gate, bound("allow Bash(sh build.sh)", "/a", content))
            .await
            .unwrap();
    }
    let message = |done: Done<Result<bool, String>>| GateMsg::RemoveRule {
        grant: bound("allow Bash(sh build.sh)", "/a", "aa"),
        by: Principal::user("bob"),
        done,
    };
    assert_eq!(gate.call(SOON, message).await.unwrap(), Ok(true));
    let kind = |request| async { judge(&gate, request).await.unwrap().verdict.kind };
    assert_eq!(kind(of_project("/a", "aa")).await, VerdictKind::Ask);
    assert_eq!(kind(of_project("/a", "bb")).await, VerdictKind::Allow);
}
