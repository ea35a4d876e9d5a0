use super::*;
use agentd_protocol::{EVENT_VERSION, Event, Principal, Timestamp};
use agentd_provider::{Dialect, Script};
use agentd_tools::ToolLimits;
use serde_json::json;

fn transcript() -> Transcript {
    let id = "00000000-0000-0000-0000-000000000001";
    let bodies = [
        json!({"type": "input.accepted", "input": id, "delivery": "start", "content": [
            {"type": "text", "text": "look"}, {"type": "image", "media_type": "image/png", "data": "QUJD"}]}),
        json!({"type": "model.started", "call": id, "attempt": 1, "step": 1, "max_steps": 9, "inputs": [id],
            "provider": "p", "model": "m", "input_tokens_estimate": 1}),
    ];
    let mut transcript = Transcript::new();
    for (body, seq) in bodies.into_iter().zip(2..) {
        transcript.apply(&Event {
            v: EVENT_VERSION,
            session: SessionId::NIL,
            seq,
            at: Timestamp(1),
            turn: None,
            by: Principal::user("ana"),
            body: serde_json::from_value(body).unwrap(),
        });
    }
    transcript
}

#[test]
fn what_the_provider_refused_is_not_sent_until_it_may_be_sent_again() {
    let names = ["Read".to_owned(), "Ls".to_owned()];
    let toolset = Toolset::new(&Registry::builtin(&ToolLimits::default()), &names, Vec::new());
    let mut spec = ModelSpec::scripted("m", Arc::new(Script::builtin()));
    spec.dialect = Dialect::OpenaiChat;
    spec.capabilities.images = true;
    let (spec, transcript) = (Arc::new(spec), transcript());
    let mut requests = Requests::new(SessionId::NIL, System::default());
    let body = |requests: &mut Requests| {
        let body = requests.body(&toolset, &spec, &transcript, false, None);
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    };
    let whole = body(&mut requests);
    assert!(
        whole.contains("QUJD") && whole.contains(r#""name":"Ls""#),
        "{whole}"
    );
    let (image, _) = transcript.images().remove(0);
    requests.leave_out(vec![image, RequestItem::Tool { name: "Ls".into() }]);
    let sent = body(&mut requests);
    assert!(
        !sent.contains("QUJD") && !sent.contains(r#""name":"Ls""#),
        "{sent}"
    );
    assert!(
        sent.contains("The provider refused it") && sent.contains(r#""name":"Read""#),
        "{sent}"
    );
    requests.leave_out(Vec::new());
    assert_eq!(body(&mut requests), whole);
}

#[test]
fn the_prompt_is_silent_about_a_refused_tool() {
    let names = ["Read", "Task", "Job"].map(str::to_owned);
    let toolset = Toolset::new(&Registry::builtin(&ToolLimits::default()), &names, Vec::new());
    let sources = agentd_protocol::PromptSources::default();
    let system = agentd_prompt::build(&agentd_prompt::Layers {
        left_out: &[],
        workdir: "/w",
        platform: "linux",
        created_at: Timestamp(1),
        replace: None,
        mode: agentd_protocol::PermissionMode::Default,
        tools: agentd_prompt::OfferedTools(&names),
        sources: &sources,
        append: None,
    });
    let mut spec = ModelSpec::scripted("m", Arc::new(Script::builtin()));
    spec.dialect = Dialect::OpenaiChat;
    let (spec, transcript) = (Arc::new(spec), transcript());
    let mut requests = Requests::new(SessionId::NIL, system.into());
    let body = |requests: &mut Requests| {
        let body = requests.body(&toolset, &spec, &transcript, false, None);
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    };
    let whole = body(&mut requests);
    assert!(whole.contains("Give a sub-agent only") && whole.contains("as background jobs"));
    requests.leave_out(vec![RequestItem::Tool { name: "Task".into() }]);
    let sent = body(&mut requests);
    assert!(
        !sent.contains("Give a sub-agent only") && sent.contains("as background jobs"),
        "{sent}"
    );
    requests.leave_out(Vec::new());
    assert_eq!(body(&mut requests), whole);
}
