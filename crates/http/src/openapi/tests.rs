use super::*;
use std::collections::BTreeSet;

/// The operations with their paths and verbs.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        let item = item.as_object().unwrap();
        item.iter()
            .map(move |(verb, operation)| (format!("{verb} {path}"), operation))
    });
    operations.collect()
}

#[test]
fn every_route_has_an_operation_with_its_own_id() {
    let document = document();
    let operations = operations(&document);
    for route in &ROUTES {
        let place = format!("{} {}", verb(route.verb), route.path);
        let (_, operation) = operations.iter().find(|(at, _)| *at == place).expect(&place);
        assert_eq!(operation["operationId"], operation_id(route.method), "{place}");
    }
    let ids: BTreeSet<&str> = operations
        .iter()
        .map(|(_, operation)| operation["operationId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), operations.len());
    assert_eq!(operations.len(), ROUTES.len() + 5 + streams::health().len());
}

#[test]
fn each_post_takes_an_idempotency_key_unless_its_answer_is_a_secret() {
    let document = document();
    let key = json!({"$ref": "#/components/parameters/IdempotencyKey"});
    for route in &ROUTES {
        let operation = &document["paths"][route.path][verb(route.verb)];
        let parameters = operation["parameters"].as_array();
        let takes = parameters.is_some_and(|all| all.contains(&key));
        let secret = ["/v1/tokens", "/v1/links"].contains(&route.path);
        let post = route.verb == Verb::Post;
        assert_eq!(takes, post && !secret, "{}", route.method);
        for status in ["409", "422"] {
            assert!(operation["responses"][status].is_object(), "{}", route.method);
        }
    }
}

#[test]
fn each_body_and_answer_is_a_named_type_and_each_parameter_has_one() {
    let document = document();
    for (place, operation) in operations(&document) {
        let responses = operation["responses"].as_object().unwrap();
        let answers = responses.iter().filter(|(status, _)| status.starts_with('2'));
        let answers = answers.map(|(_, response)| &response["content"]["application/json"]["schema"]);
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        for schema in answers.chain([body]).filter(|schema| !schema.is_null()) {
            let described = schema.get("$ref").is_some() || place == "get /v1/openapi.json";
            assert!(described, "{place}: {schema}");
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let named = parameter.get("$ref").is_some();
            let typed = parameter["schema"]
                .as_object()
                .is_some_and(|schema| schema.contains_key("$ref") || schema.contains_key("type"));
            assert!(named || typed, "{place}: {parameter}");
        }
    }
    // The one has no stable fields, the other has none.
    let open = ["Diagnostics", "CompactionAsked"];
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let bare = schema["type"] == "object" && schema.as_object().unwrap().len() < 3;
        assert!(!bare || open.contains(&name.as_str()), "{name}: {schema}");
    }
}

#[test]
fn every_reference_and_every_link_has_its_target() {
    let document = document();
    let ids: BTreeSet<&str> = operations(&document)
        .into_iter()
        .map(|(_, operation)| operation["operationId"].as_str().unwrap())
        .collect();
    let mut open = vec![&document];
    let mut links = 0;
    while let Some(value) = open.pop() {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let target = document.pointer(reference.trim_start_matches('#'));
            assert!(target.is_some(), "{reference}");
        }
        for (operation, _) in value["links"].as_object().into_iter().flatten() {
            assert!(ids.contains(operation.as_str()), "{operation}");
            links += 1;
        }
        match value {
            Value::Object(fields) => open.extend(fields.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    assert!(links > 0, "no operation leads to another one");
}

#[test]
fn a_new_session_links_to_its_operations() {
    let document = document();
    let links = &document["paths"]["/v1/sessions"]["post"]["responses"]["201"]["links"];
    for target in ["session_get", "session_attach", "input_send", "session_delete"] {
        assert_eq!(
            links[target]["parameters"],
            json!({"session": "$response.body#/session"}),
            "{target}"
        );
    }
}

#[test]
fn each_type_of_event_has_a_schema() {
    let document = document();
    let mapping = document["components"]["schemas"]["Event"]["discriminator"]["mapping"].as_object();
    let kinds: Vec<&str> = mapping.unwrap().keys().map(String::as_str).collect();
    assert_eq!(kinds, agentd_protocol::EVENT_KINDS);
}
