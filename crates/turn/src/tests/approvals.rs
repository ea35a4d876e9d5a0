//! Approvals: first valid answer wins, scopes, expiry, no viewer attached.

use super::world::*;
use crate::*;
use agentd_protocol::*;

fn asking(limits: LoopLimits) -> World {
    let mut world = World::running(limits);
    world.call(&["Bash"]);
    world.judge(VerdictKind::Ask);
    world
}

#[test]
fn an_asked_call_shows_what_will_happen_and_waits() {
    let mut world = asking(LoopLimits::default());
    assert_eq!(
        world.kinds(),
        [
            "model.finished",
            "tool.proposed",
            "verdict.given",
            "approval.asked"
        ]
    );
    let open = world.summary().open_approvals.remove(0);
    assert_eq!(
        (
            open.kind,
            open.tool.as_deref(),
            open.title.as_str(),
            open.detail.as_str(),
            open.expires_at
        ),
        (ApprovalKind::Tool, Some("Bash"), "Bash: it", "all of it", None)
    );
    assert!(world.agent.at_rest() && world.timers.is_empty());
    assert_eq!(
        (world.summary().wake_at, world.summary().resumable),
        (None, false)
    );
    world.decide(Decision::Allow, Scope::Once).unwrap();
    assert_eq!(world.step.events[0].by, ana());
    assert_eq!(world.agent.volatile.running.len(), 1);
}

#[test]
fn the_first_valid_answer_wins_and_the_second_is_told() {
    let mut world = asking(LoopLimits::default());
    let approval = world.approval();
    let decide = |decision, scope| Command::Decide {
        approval,
        decision,
        scope,
        answer: None,
        message: None,
        basis: Some(Basis::Policy),
    };
    for decision in [Decision::Answer, Decision::Expired, Decision::Withdrawn] {
        assert_eq!(
            world.command(decide(decision, Scope::Once)).unwrap_err().class,
            FaultClass::Invalid
        );
    }
    world.command(decide(Decision::Allow, Scope::Once)).unwrap();
    let late = world.command(decide(Decision::Deny, Scope::Once)).unwrap_err();
    assert_eq!(
        (late.class, late.code.as_str()),
        (FaultClass::Conflict, "approval_decided")
    );
    let other = Command::Decide {
        approval: ApprovalId::NIL,
        decision: Decision::Allow,
        scope: Scope::Once,
        answer: None,
        message: None,
        basis: Some(Basis::Policy),
    };
    assert_eq!(world.command(other).unwrap_err().class, FaultClass::NotFound);
    assert_eq!(world.agent.volatile.running.len(), 1);
}

#[test]
fn redteam_58_i7_an_answer_counts_only_for_what_was_shown() {
    let decide = |world: &mut World, decision, basis| {
        let approval = world.approval();
        world.command(Command::Decide {
            approval,
            decision,
            scope: Scope::Once,
            answer: None,
            message: None,
            basis,
        })
    };
    let hash = |world: &World| {
        let open = world.agent.durable.approval(world.approval()).unwrap();
        agentd_text::shown(&agentd_text::question_lines(open))
    };
    let mut world = asking(LoopLimits::default());
    let right = hash(&world);
    for (basis, code) in [
        (None, "question_not_shown"),
        (Some(Basis::Shown(String::new())), "question_changed"),
        (Some(Basis::Shown(right.to_uppercase())), "question_changed"),
        (Some(Basis::Shown(right[..60].to_owned())), "question_changed"),
        (
            Some(Basis::Shown(agentd_text::digest("chmod +x a"))),
            "question_changed",
        ),
    ] {
        let fault = decide(&mut world, Decision::Allow, basis).unwrap_err();
        assert_eq!(fault.code, code);
        assert!(fault.hint.is_some(), "it says how to look again");
    }
    assert!(world.agent.volatile.running.is_empty());
    // Positive control: the hash of what was shown, a stated policy; a denial needs nothing.
    for (decision, basis, told) in [
        (
            Decision::Allow,
            Some(Basis::Shown(right.clone())),
            Some(Basis::Shown(right)),
        ),
        (Decision::Allow, Some(Basis::Policy), Some(Basis::Policy)),
        (Decision::Deny, None, None),
        (Decision::Deny, Some(Basis::Shown("stale".to_owned())), None),
    ] {
        let mut world = asking(LoopLimits::default());
        decide(&mut world, decision, basis).unwrap();
        let EventBody::ApprovalDecided(decided) = &world.step.events[0].body else {
            panic!("{:?}", world.kinds());
        };
        assert_eq!(decided.basis, told);
    }
}

#[test]
fn the_model_reads_the_words_of_the_person_who_denied() {
    let mut world = asking(LoopLimits::default());
    let approval = world.approval();
    let message = Some("use the other directory".to_owned());
    world
        .command(Command::Decide {
            approval,
            decision: Decision::Deny,
            scope: Scope::Once,
            answer: None,
            message,
            basis: Some(Basis::Policy),
        })
        .unwrap();
    assert_eq!(
        world.kinds(),
        ["approval.decided", "tool.finished", "model.started"]
    );
    let (status, text) = world.results().remove(0);
    assert_eq!(status, ToolStatus::Denied);
    assert!(text.contains("use the other directory"), "{text}");
    assert!(
        world.rules.is_empty() && world.agent.durable().grants.is_empty(),
        "a denial grants nothing"
    );
}

#[test]
fn scopes_reach_this_call_this_session_the_project_or_everything() {
    let here = |rule: &str| Grant {
        rule: rule.to_owned(),
        reach: Some(reach()),
    };
    let (anywhere, rule) = (Grant::everywhere("Bash(it)"), Grant::everywhere("allow Bash(it)"));
    for (scope, grants, rules) in [
        (Scope::Once, vec![], vec![]),
        (Scope::Session, vec![here("Bash(it)")], vec![]),
        (
            Scope::Always,
            vec![here("Bash(it)")],
            vec![here("allow Bash(it)")],
        ),
        (Scope::Everywhere, vec![anywhere], vec![rule]),
    ] {
        let mut world = asking(LoopLimits::default());
        world.decide(Decision::Allow, scope).unwrap();
        assert_eq!(world.agent.durable().grants, grants);
        let for_good = if rules.is_empty() { vec![] } else { grants.clone() };
        assert_eq!(world.agent.durable().always, for_good);
        assert_eq!(world.rules, rules);
        world.end_tool(ok());
        world.call(&["Bash"]);
        let judged = world.step.effects.iter().find_map(|effect| match effect {
            Effect::Ask {
                question: Question::Verdict { grants, .. },
                ..
            } => Some(grants.clone()),
            _ => None,
        });
        assert_eq!(judged.unwrap(), grants);
    }
}

#[test]
fn a_paused_session_that_waits_for_an_answer_says_both() {
    let mut world = asking(LoopLimits::default());
    world
        .command(Command::Pause {
            reason: "lunch".into(),
        })
        .unwrap();
    let status = world.summary().status;
    assert!(matches!(status.state, RunState::Waiting(_)), "{status:?}");
    assert!(status.reason.ends_with("; paused: lunch"), "{status:?}");
}

#[test]
fn a_denial_reaches_as_far_as_its_scope() {
    for (scope, grants, rules) in [
        (Scope::Once, vec![], vec![]),
        (Scope::Session, vec!["deny Bash(it)"], vec![]),
        (Scope::Always, vec!["deny Bash(it)"], vec!["deny Bash(it)"]),
        (Scope::Everywhere, vec!["deny Bash(it)"], vec!["deny Bash(it)"]),
    ] {
        // What restricts holds in every directory.
        let wide = |rules: Vec<&str>| rules.into_iter().map(Grant::everywhere).collect::<Vec<_>>();
        let (grants, rules) = (wide(grants), wide(rules));
        let mut world = asking(LoopLimits::default());
        world.decide(Decision::Deny, scope).unwrap();
        assert_eq!(world.agent.durable().grants, grants);
        assert_eq!(world.rules, rules);
    }
}

#[test]
fn a_scope_that_is_not_offered_is_refused() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Bash"]);
    let (tool_call, name) = world.judging.remove(0);
    let verdict = Verdict {
        kind: VerdictKind::Ask,
        rule: "r".into(),
        reason: "r".into(),
    };
    let plan = CallPlan {
        scopes: vec![Scope::Once],
        grant: None,
        ..world.plan(&name)
    };
    world.judged(tool_call, Judged::Verdict { verdict, plan });
    for scope in [Scope::Session, Scope::Always, Scope::Everywhere] {
        for decision in [Decision::Allow, Decision::Deny] {
            assert_eq!(
                world.decide(decision, scope).unwrap_err().code,
                "scope_not_offered"
            );
        }
    }
    world.decide(Decision::Allow, Scope::Once).unwrap();
}

#[test]
fn redteam_60_i7_a_question_without_a_reach_has_no_narrow_answer() {
    let asked = |about: About| {
        let mut world = World::running(LoopLimits::default());
        world.call(&["Bash"]);
        let (tool_call, name) = world.judging.remove(0);
        let verdict = Verdict {
            kind: VerdictKind::Ask,
            rule: "r".into(),
            reason: "r".into(),
        };
        let plan = CallPlan {
            about: Box::new(about),
            ..world.plan(&name)
        };
        world.judged(tool_call, Judged::Verdict { verdict, plan });
        world
    };
    for scope in [Scope::Session, Scope::Always] {
        let mut old = asked(About::default());
        let refused = old.decide(Decision::Allow, scope).unwrap_err();
        assert_eq!(refused.code, "scope_not_offered", "it would hold everywhere");
        let mut control = asked(About {
            reach: Some(reach()),
            ..About::default()
        });
        control.decide(Decision::Allow, scope).unwrap();
    }
    asked(About::default())
        .decide(Decision::Allow, Scope::Everywhere)
        .unwrap();
}

#[test]
fn redteam_60_i7_a_call_that_a_grant_allowed_does_not_run_after_a_restart_with_other_files() {
    for (rule, runs) in [("mode:default", true), (CHANGED_RULE, false)] {
        let mut world = World::running(LoopLimits::default());
        world.call(&["Bash"]);
        world.judge(VerdictKind::Allow);
        let given = world
            .log
            .iter()
            .position(|event| event.body.kind() == "verdict.given");
        world.crash_at(given.unwrap() + 1);
        world.input(Input::Recover);
        let (tool_call, name) = world.judging.remove(0);
        let verdict = Verdict {
            kind: VerdictKind::Ask,
            rule: rule.into(),
            reason: "r".into(),
        };
        let plan = world.plan(&name);
        world.judged(tool_call, Judged::Verdict { verdict, plan });
        assert_eq!(!world.running.is_empty(), runs, "{rule}");
    }
}

#[test]
fn i7_an_approval_that_expires_is_a_denial() {
    let mut world = asking(LoopLimits {
        ask_timeout_ms: Some(60_000),
        ..LoopLimits::default()
    });
    let approval = world.approval();
    assert_eq!(world.summary().wake_at, Some(Timestamp(world.now + 60_000)));
    world.fire(TimerKey::Expiry(approval));
    assert_eq!(
        world.kinds(),
        ["approval.decided", "tool.finished", "model.started"]
    );
    assert_eq!(world.statuses(), [ToolStatus::Denied]);
}

/// The events of an unanswered question, per minute for three minutes.
fn unanswered(on_expiry: OnExpiry) -> (World, Vec<Vec<&'static str>>) {
    let config = Config {
        on_expiry,
        ..Config::default()
    };
    let limits = LoopLimits {
        ask_timeout_ms: Some(60_000),
        ..LoopLimits::default()
    };
    let mut world = World::configured(created(limits), std::sync::Arc::new(config));
    world.send("do it");
    world.call(&["Bash"]);
    world.judge(VerdictKind::Ask);
    let approval = world.approval();
    let mut told = Vec::new();
    for _ in 0..3 {
        if !world.timers.contains_key(&TimerKey::Expiry(approval)) {
            break;
        }
        world.fire(TimerKey::Expiry(approval));
        told.push(world.kinds());
    }
    (world, told)
}

#[test]
fn an_approval_that_may_wait_stays_open_and_says_so_once() {
    let (mut world, told) = unanswered(OnExpiry::Wait);
    assert_eq!(told, [["approval.escalated"]]);
    let open = world.summary().open_approvals.remove(0);
    assert_eq!((open.level, open.expires_at), (1, None));
    assert!(world.agent.at_rest() && world.timers.is_empty());
    world.decide(Decision::Allow, Scope::Once).unwrap();
    assert_eq!(world.kinds(), ["approval.decided", "tool.started"]);
}

#[test]
fn i7_an_approval_goes_up_the_levels_and_is_denied_after_the_last() {
    let (world, told) = unanswered(OnExpiry::Escalate { levels: 2 });
    assert_eq!(
        told,
        [
            vec!["approval.escalated"],
            vec!["approval.escalated"],
            vec!["approval.decided", "tool.finished", "model.started"],
        ]
    );
    assert_eq!(world.statuses(), [ToolStatus::Denied]);
}

#[test]
fn i7_what_a_person_was_asked_about_binds_the_call_until_it_has_its_result() {
    let mut world = asking(LoopLimits::default());
    let asked = world.log.iter().find_map(|event| match &event.body {
        EventBody::ApprovalAsked(asked) => asked.binding.clone(),
        _ => None,
    });
    let call = world.summary().open_approvals[0].tool_call.unwrap();
    assert_eq!(
        world.summary().open_approvals[0].input,
        asked.clone().map(|bound| bound.input)
    );
    assert!(asked.is_some() && world.agent.durable().bound(call) == asked.as_ref());
    world.decide(Decision::Allow, Scope::Once).unwrap();
    assert_eq!(world.agent.durable().bound(call), asked.as_ref(), "when it runs");
    world.end_tool(ok());
    assert_eq!(world.agent.durable().bound(call), None);
    // A call that the rules allow has no binding.
    world.call(&["Bash"]);
    world.judge(VerdictKind::Allow);
    let running = world.running[0];
    assert_eq!(world.agent.durable().bound(running), None);
}

#[test]
fn i7_with_nobody_attached_who_may_decide_a_call_is_denied() {
    let mut world = asking(LoopLimits {
        unattended_ms: Some(0),
        ..LoopLimits::default()
    });
    let approval = world.approval();
    assert!(!world.agent.at_rest(), "somebody must look who is there");
    world.fire(TimerKey::Unattended(approval));
    assert_eq!(world.counting, [approval]);
    world.deciders(approval, 1);
    assert_eq!(
        world.timers[&TimerKey::Unattended(approval)].1 - world.now,
        5_000,
        "somebody is there: look again"
    );
    world.fire(TimerKey::Unattended(approval));
    world.deciders(approval, 0);
    assert_eq!(
        world.kinds(),
        ["approval.decided", "tool.finished", "model.started"]
    );
    assert!(
        world.results()[0].1.contains("nobody is attached"),
        "{:?}",
        world.results()
    );
    world.deciders(approval, 0);
    assert_eq!(world.step, Step::default());
}

#[test]
fn a_count_that_comes_after_the_answer_changes_nothing() {
    let mut world = asking(LoopLimits {
        unattended_ms: Some(0),
        ..LoopLimits::default()
    });
    let approval = world.approval();
    world.fire(TimerKey::Unattended(approval));
    world.decide(Decision::Allow, Scope::Once).unwrap();
    world.deciders(approval, 0);
    assert_eq!(world.step, Step::default());
    assert_eq!(world.running.len(), 1);
}
