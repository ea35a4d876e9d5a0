//! Adding a tool takes one file with a [`Tool`], here with an argument name that no other tool has, and one line that
//! registers it. Everything else follows from the type.

use super::{World, code};
use crate::catalog;
use crate::{About, Prepared, Registry, Runs, Subject, Tool, ToolEntry, ToolLimits, ToolSpec, run};
use agentd_policy::{Policy, Request, Rule, Source, judge};
use agentd_protocol::{EffectClass, PermissionMode, ToolOutcome, ToolStatus, Verdict, VerdictKind};
use agentd_text::Content;
use serde_json::{Value, json};
use std::path::Path;

/// Creates an empty file.
struct Touch;

impl Tool for Touch {
    fn name(&self) -> &'static str {
        "Touch"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &[],
            title: "Make an empty file".into(),
            description: String::new(),
            // The target is optional in the schema, so that a call without one reaches the subject.
            schema: catalog::object(&json!({ "target": { "type": "string" } }), &[]),
            example: json!({ "target": "new" }),
            effect: EffectClass::Write,
            idempotent: false,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        About::writes("target", input)
    }

    fn runs(&self) -> Runs {
        Runs::Files(|call, ctx, _| {
            let permit = call.permit(ctx);
            let judged = permit.judged(Path::new(call.path()));
            let made = judged.and_then(|path| ctx.workdir.create_new(path, b""));
            let text = format!("{made:?}");
            ToolOutcome::text(ToolStatus::Ok, text).into()
        })
    }
}

fn prepare(target: &str) -> Prepared {
    registry().prepare("touch", &json!({ "target": target })).unwrap()
}

fn registry() -> Registry {
    let limits = ToolLimits::default();
    Registry::builtin(&limits).with([ToolEntry::builtin(&Touch, Touch.spec(&limits))])
}

fn verdict(call: &Prepared, mode: PermissionMode, rules: &[&str]) -> Verdict {
    let rules = rules
        .iter()
        .map(|rule| Rule::parse(rule, Source::Operator).unwrap());
    let request = Request {
        tool: &call.name,
        subject: &call.subject,
        effect: call.effect,
        mode,
        workdir: "/work",
    };
    judge(&Policy::new(Some("/home/ana")).with(rules.collect()), &request).verdict
}

#[test]
fn i7_a_new_writing_tool_is_judged_by_its_target() {
    let accept = PermissionMode::AcceptEdits;
    for (target, rules, expected) in [
        ("src/new", &[][..], VerdictKind::Allow),
        ("/etc/new", &[], VerdictKind::Ask),
        (".git/hooks/pre-commit", &[], VerdictKind::Ask),
        ("src/new", &["deny Edit"], VerdictKind::Deny),
        ("src/new", &["ask Edit"], VerdictKind::Ask),
        ("src/new", &["deny Write(src/**)"], VerdictKind::Deny),
        ("src/new", &["deny Touch"], VerdictKind::Deny),
        ("/etc/new", &["allow Edit", "allow Write"], VerdictKind::Ask),
        ("/srv/new", &["allow Touch"], VerdictKind::Allow),
        ("/etc/new", &["allow Touch"], VerdictKind::Ask),
    ] {
        let said = verdict(&prepare(target), accept, rules);
        assert_eq!(said.kind, expected, "{target} {rules:?}: {said:?}");
    }
    let plan = verdict(&prepare("src/new"), PermissionMode::Plan, &[]);
    assert_eq!(plan.kind, VerdictKind::Deny);
}

#[test]
fn i7_a_call_without_its_subject_is_refused() {
    let refused = registry().prepare("Touch", &json!({})).unwrap_err();
    assert_eq!(code(&refused), "E_INVALID_ARGS");
    assert!(
        refused.llm_text.contains("`target` is missing"),
        "{}",
        refused.llm_text
    );
}

#[tokio::test]
async fn a_new_tool_runs_on_the_judged_path() {
    let world = World::new();
    let call = prepare(&world.root().join("a/../new").to_string_lossy()).within(&world.root());
    assert_eq!((call.text("target"), call.written()), ("new", vec!["new".into()]));
    let outcome = run(&call, world.context()).await.outcome;
    assert_eq!(world.get("new"), "", "{}", outcome.llm_text);
}

/// The effect class of a tool must fit the subjects of its calls, or the gate judges something else.
#[test]
fn i7_the_subject_of_every_tool_fits_its_effect() {
    let mut limits = ToolLimits {
        search: true,
        ..ToolLimits::default()
    };
    limits.web.enabled = true;
    let tools = Registry::builtin(&limits);
    for tool in catalog::all() {
        let spec = tools.get(tool.name()).unwrap();
        let call = tools.prepare(tool.name(), &spec.example).unwrap();
        let fits = match spec.effect {
            EffectClass::None => call.subject == Subject::Nothing,
            EffectClass::Read => matches!(call.subject, Subject::Path { write: false, .. }),
            // Only the session knows which files an undo changes.
            EffectClass::Write if call.subject == Subject::Nothing => {
                tool.knowing(call.clone(), &crate::FilesSeen::default()).is_err()
            }
            EffectClass::Write => !call.written().is_empty(),
            EffectClass::Exec => matches!(call.subject, Subject::Command { .. }),
            EffectClass::Network => matches!(call.subject, Subject::Url(_)),
        };
        assert!(fits, "{}: {:?}", tool.name(), call.subject);
        let asked = verdict(&call, PermissionMode::Default, &[]).kind;
        let harmless = matches!(spec.effect, EffectClass::None | EffectClass::Read);
        assert_eq!(asked == VerdictKind::Allow, harmless, "{}", tool.name());
    }
}

/// Programs that show questions do not contain the tools; they know the tools that run commands or change files by name.
#[test]
fn a_question_shows_what_the_tool_does() {
    for tool in catalog::all() {
        let content = match tool.effect() {
            EffectClass::Exec => Content::Command,
            EffectClass::Write => Content::Change,
            EffectClass::None | EffectClass::Read | EffectClass::Network => Content::Arguments,
        };
        assert_eq!(Content::of_tool(tool.name()), content, "{}", tool.name());
    }
}
