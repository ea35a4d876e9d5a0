//! The messages: lists, calls, progress, cancellations, refusals.

use super::*;

#[tokio::test(start_paused = true)]
async fn i7_tools_are_listed_page_by_page_and_what_they_claim_changes_nothing() {
    let fake = Fake::new(|_, message| {
        (message["method"] == "tools/list").then(|| {
            let page = match message["params"]["cursor"].as_str() {
                None => json!({ "tools": offered(&["echo", "look.up"]), "nextCursor": "two" }),
                Some(_) => json!({ "tools": offered(&["echo", "hidden"]) }),
            };
            vec![result(message, &page)]
        })
    });
    let mut spec = spec("fake");
    spec.only = Some(["echo", "look.up"].map(str::to_owned).into());
    spec.effects = [("look.up".to_owned(), EffectClass::Read)].into();
    let listings = pool(&fake, vec![spec]).offers(Path::new(DIR)).await;
    let offers = listings[0].offers.as_ref().unwrap();
    let offer = |name: &str, tool: &str, effect| Offer {
        name: name.to_owned(),
        server: "fake".to_owned(),
        tool: tool.to_owned(),
        title: format!("fake: {tool}"),
        description: "says it again".to_owned(),
        schema: json!({ "type": "object", "properties": { "text": { "type": "string" } } }),
        effect,
    };
    let odd = crate::tool_name("fake", "look.up");
    assert_eq!(
        offers.tools,
        [
            offer("mcp__fake__echo", "echo", EffectClass::Exec),
            offer(&odd, "look.up", EffectClass::Read)
        ]
    );
    let left_out = |tool: &str, why| LeftOut {
        tool: tool.to_owned(),
        why,
    };
    assert_eq!(
        offers.left_out,
        [
            left_out("echo", "another tool has the same name"),
            left_out("hidden", "the configuration excludes it")
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_comes_to_the_servers_result() {
    let fake = Fake::good();
    let answer = echo(&pool(&fake, vec![spec("fake")])).await;
    assert_eq!(
        answer.outcome,
        ToolOutcome {
            details: Some(json!({ "server": "fake" })),
            ..ToolOutcome::text(ToolStatus::Ok, r#"{"text":"hi"}"#)
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_teaches() {
    let fake = Fake::new(|_, message| {
        (message["method"] == "tools/call").then(|| {
            let error = json!({ "code": -32602, "message": "text is\u{1b}[2J missing" });
            vec![Act::Say(
                json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }),
            )]
        })
    });
    let pool = pool(&fake, vec![spec("fake")]);
    let refused = echo(&pool).await.outcome;
    assert_eq!(
        (refused.status, refused.llm_text.as_str()),
        (
            ToolStatus::Error,
            "tool server fake answered with an error: text is\u{241b}[2J missing (code -32602). \
             Check the arguments against the tool's description."
        )
    );
    let unknown = pool
        .call(Path::new(DIR), call("mcp__fake__other", &json!({})))
        .await;
    assert_eq!(
        unknown.outcome.llm_text,
        "`mcp__fake__other` is not available (any more). The tools of fake are: mcp__fake__echo."
    );
    let nobody = pool.call(Path::new(DIR), call("mcp__x__other", &json!({}))).await;
    assert_eq!(
        nobody.outcome.llm_text,
        "`mcp__x__other` belongs to no tool server. The servers are: fake."
    );
}

#[tokio::test(start_paused = true)]
async fn progress_is_heard_and_a_dropped_call_is_cancelled() {
    let fake = Fake::new(|_, message| {
        (message["method"] == "tools/call").then(|| {
            let token = &message["params"]["_meta"]["progressToken"];
            let params =
                json!({ "progressToken": token, "progress": 1, "total": 4, "message": "one\nof four" });
            vec![Act::Say(
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
            )]
        })
    });
    let pool = pool(&fake, vec![spec("fake")]);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let mut slow = call("mcp__fake__echo", &json!({}));
    slow.on_progress = OnProgress::new(move |heard| tell.send(heard).unwrap());
    let heard = tokio::select! {
        heard = told.recv() => heard.unwrap(),
        answer = pool.call(Path::new(DIR), slow) => panic!("{answer:?}"),
    };
    assert_eq!(
        (heard.progress, heard.total, heard.message.as_str()),
        (1.0, Some(4.0), "one of four")
    );
    let asked = fake.told("tools/call").await;
    let cancelled = fake.told("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_may_not_ask_for_models_files_or_people() {
    let fake = Fake::new(|_, message| {
        let ask = |id: &str, method: &str, params: Value| {
            Act::Say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
        };
        (message["method"] == "tools/call").then(|| {
            let text = json!({ "type": "text", "text": "x" });
            let sampling = json!({ "messages": [{ "role": "user", "content": text }], "maxTokens": 1 });
            let schema = json!({ "type": "object", "properties": {} });
            vec![
                ask("s", "sampling/createMessage", sampling),
                ask(
                    "e",
                    "elicitation/create",
                    json!({ "message": "key?", "requestedSchema": schema }),
                ),
                ask("r", "roots/list", json!({})),
                result(message, &json!({ "content": [] })),
            ]
        })
    });
    assert_eq!(
        echo(&pool(&fake, vec![spec("fake")])).await.outcome.status,
        ToolStatus::Ok
    );
    let mut heard = fake.heard.subscribe();
    let of = |all: &[Value], id: &str| all.iter().find(|message| message["id"] == id).cloned();
    let all = heard
        .wait_for(|all| ["s", "e", "r"].iter().all(|id| of(all, id).is_some()))
        .await
        .unwrap();
    assert_eq!(of(&all, "s").unwrap()["error"]["code"], -32601);
    assert_eq!(of(&all, "e").unwrap()["result"], json!({ "action": "decline" }));
    assert_eq!(of(&all, "r").unwrap()["result"], json!({ "roots": [] }));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_changed_is_read_again() {
    let fake = Fake::new(|_, message| {
        if message["method"] != "tools/call" {
            return None;
        }
        let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        Some(vec![
            Act::Say(changed),
            result(message, &json!({ "content": [] })),
        ])
    });
    let pool = pool(&fake, vec![spec("fake")]);
    let lists = || {
        let heard = fake.heard.borrow();
        heard
            .iter()
            .filter(|message| message["method"] == "tools/list")
            .count()
    };
    let mut changes = pool.changes();
    pool.offers(Path::new(DIR)).await;
    pool.offers(Path::new(DIR)).await;
    assert_eq!(lists(), 1);
    echo(&pool).await;
    changes.changed().await.unwrap();
    pool.offers(Path::new(DIR)).await;
    assert_eq!(lists(), 2);
}
