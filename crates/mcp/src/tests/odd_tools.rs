//! What servers send against the protocol: each tool of a list stands alone.

use super::*;
use agentd_tools::Remote as _;

pub(super) fn answering(method: &'static str, reply: Value) -> Pool {
    let fake =
        Fake::new(move |_, message| (message["method"] == method).then(|| vec![result(message, &reply)]));
    pool(&fake, vec![spec("fake")])
}

/// Entries of a list of tools that cannot be offered, with the name and the reason in the warning.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn bad_tools() -> Vec<(Value, &'static str, &'static str)> {
    let object = json!({ "type": "object" });
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "type": "object", "items": inner }));
    let long = "x".repeat(300);
    vec![
        (json!({ "name": "odd" }), "odd", "it has no `inputSchema`"),
        (
            json!({ "name": "odd", "inputSchema": null }),
            "odd",
            "it has no `inputSchema`",
        ),
        (
            json!({ "name": "odd", "inputSchema": true }),
            "odd",
            "its schema is not an object",
        ),
        (
            json!({ "name": "odd", "inputSchema": false }),
            "odd",
            "its schema is not an object",
        ),
        (
            json!({ "name": "odd", "inputSchema": "{}" }),
            "odd",
            "its schema is not an object",
        ),
        (
            json!({ "name": "odd", "inputSchema": [] }),
            "odd",
            "its schema is not an object",
        ),
        (
            json!({ "name": "odd", "inputSchema": 7 }),
            "odd",
            "its schema is not an object",
        ),
        (
            json!({ "name": "odd", "input_schema": object }),
            "odd",
            "it has no `inputSchema`",
        ),
        (
            json!({ "name": "odd", "inputSchema": { "type": "string" } }),
            "odd",
            "its schema does not describe an object",
        ),
        (
            json!({ "name": "odd", "inputSchema": { "type": ["object"] } }),
            "odd",
            "its schema does not describe an object",
        ),
        (
            json!({ "name": "odd", "inputSchema": { "type": null } }),
            "odd",
            "its schema does not describe an object",
        ),
        (
            json!({ "name": "odd", "inputSchema": deep }),
            "odd",
            "its schema is nested too deeply",
        ),
        (
            json!({ "name": "odd", "inputSchema": { "properties": { "a": { "$ref": "https://x.example/y" } } } }),
            "odd",
            "its schema refers to another document",
        ),
        (json!({ "inputSchema": object }), "#2", "it has no name"),
        (
            json!({ "name": null, "inputSchema": object }),
            "#2",
            "it has no name",
        ),
        (
            json!({ "name": 5, "inputSchema": object }),
            "#2",
            "it has no name",
        ),
        (
            json!({ "name": "", "inputSchema": object }),
            "",
            "its name is empty or too long",
        ),
        (
            json!({ "name": long, "inputSchema": object }),
            "",
            "its name is empty or too long",
        ),
        (
            json!({ "name": "first", "inputSchema": object }),
            "first",
            "another tool has the same name",
        ),
        (json!(null), "#2", "it is not an object"),
        (json!("odd"), "#2", "it is not an object"),
        (json!(["odd"]), "#2", "it is not an object"),
    ]
}

/// Entries with something else that is wrong: the tool can be called all the same.
fn odd_tools() -> Vec<Value> {
    let tool = |more: Value| {
        let mut tool = json!({ "name": "odd", "inputSchema": { "type": "object" } });
        let fields = more.as_object().cloned().unwrap();
        tool.as_object_mut().unwrap().extend(fields);
        tool
    };
    vec![
        tool(json!({ "title": 5 })),
        tool(json!({ "title": null })),
        tool(json!({ "description": null })),
        tool(json!({ "description": ["a"] })),
        tool(json!({ "annotations": "read only" })),
        tool(json!({ "annotations": { "readOnlyHint": "yes" } })),
        tool(json!({ "outputSchema": true })),
        tool(json!({ "outputSchema": null })),
        tool(json!({ "icons": "none" })),
        tool(json!({ "_meta": [] })),
        tool(json!({ "inputSchema": {} })),
        tool(json!({ "inputSchema": { "type": "object", "properties": null, "required": null } })),
        tool(json!({ "unheard": { "of": [1] } })),
    ]
}

async fn listed(entry: Value) -> (Vec<String>, Vec<LeftOut>) {
    let mut tools = offered(&["first", "last"]);
    tools.insert(1, entry);
    let listings = answering("tools/list", json!({ "tools": tools }))
        .offers(Path::new(DIR))
        .await;
    let offers = listings[0].offers.as_ref().unwrap();
    let names = offers.tools.iter().map(|offer| offer.tool.clone()).collect();
    (names, offers.left_out.clone())
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_be_offered_takes_no_other_with_it() {
    for (entry, name, why) in bad_tools() {
        let (names, left_out) = listed(entry.clone()).await;
        assert_eq!(names, ["first", "last"], "{entry}");
        assert_eq!(left_out.len(), 1, "{entry}: {left_out:?}");
        assert!(left_out[0].tool.starts_with(name), "{entry}: {left_out:?}");
        assert_eq!(left_out[0].why, why, "{entry}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_other_faults_is_offered() {
    for entry in odd_tools() {
        let (names, left_out) = listed(entry.clone()).await;
        assert_eq!(names, ["first", "odd", "last"], "{entry}");
        assert_eq!(left_out, [], "{entry}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_hears_of_tools_that_are_left_out_against_the_operators_will() {
    let mut tools = offered(&["first", "hidden"]);
    tools.push(json!({ "name": "odd" }));
    let reply = json!({ "tools": tools });
    let fake = Fake::new(move |_, message| {
        (message["method"] == "tools/list").then(|| vec![result(message, &reply)])
    });
    let mut spec = spec("fake");
    spec.without = ["hidden".to_owned()].into();
    let pool = pool(&fake, vec![spec]);
    let found = pool.offered(Path::new(DIR), &["fake".to_owned()]).await;
    assert_eq!(found[0].tools.as_ref().unwrap().len(), 1);
    let why = "it has no `inputSchema`".to_owned();
    assert_eq!(found[0].left_out, [("mcp__fake__odd".to_owned(), why)]);
}

#[tokio::test(start_paused = true)]
async fn a_list_without_tools_is_empty_or_says_what_is_wrong() {
    for (reply, expected) in [
        (json!({ "tools": null }), Ok(0)),
        (json!({ "tools": [] }), Ok(0)),
        (json!({ "tools": offered(&["a"]), "nextCursor": 5 }), Ok(1)),
        (json!({ "tools": offered(&["a"]), "nextCursor": null }), Ok(1)),
        (json!({ "tools": {} }), Err("its list of tools is not a list")),
        (json!({}), Err("its list of tools has no `tools`")),
        (json!(null), Err("its list of tools has no `tools`")),
    ] {
        let listings = answering("tools/list", reply.clone())
            .offers(Path::new(DIR))
            .await;
        match (&listings[0].offers, expected) {
            (Ok(offers), Ok(count)) => assert_eq!(offers.tools.len(), count, "{reply}"),
            (Err(error), Err(why)) => assert!(error.to_string().contains(why), "{reply}: {error}"),
            other => panic!("{reply}: {other:?}"),
        }
    }
}
