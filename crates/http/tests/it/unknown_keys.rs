//! A key that a method does not know is refused, wherever it stands in the body: every map of every request that the
//! description of the API allows gets one.

use crate::server::Http;
use agentd_http::openapi;
use serde_json::{Map, Value, json};

const STRANGE: &str = "strange_key";
/// Marks a map with fixed keys in a sample.
const FIXED: &str = "\u{1}";
const NIL: &str = "00000000-0000-0000-0000-000000000000";

/// The bodies that a schema allows: one for each of its choices.
fn samples(schema: &Value, book: &Value) -> Vec<Value> {
    if let Some(name) = schema["$ref"].as_str() {
        return samples(&book[name.rsplit('/').next().unwrap()], book);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        return choices.iter().flat_map(|choice| samples(choice, book)).collect();
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let merged = parts.iter().map(|part| samples(part, book).remove(0));
        let whole: Map<String, Value> = merged
            .flat_map(|part| part.as_object().unwrap().clone())
            .collect();
        return vec![Value::Object(whole)];
    }
    if let Some(value) = schema.get("const") {
        return vec![value.clone()];
    }
    if let Some(words) = schema["enum"].as_array() {
        return vec![words[0].clone()];
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind.unwrap_or("string") {
        "object" => objects(schema, book),
        "array" => samples(&schema["items"], book)
            .into_iter()
            .map(|item| json!([item]))
            .collect(),
        "integer" => vec![json!(1)],
        "number" => vec![json!(1.5)],
        "boolean" => vec![json!(true)],
        "null" => vec![Value::Null],
        "string" if schema["format"] == "date-time" => vec![json!("2026-01-01T00:00:00.000Z")],
        "string" if schema["format"] == "uuid" || schema["pattern"].is_string() => vec![json!(NIL)],
        "string" => vec![json!("x")],
        other => panic!("{other}: {schema}"),
    }
}

/// A map with the first choice of every field, and one more for each further choice of a field.
fn objects(schema: &Value, book: &Value) -> Vec<Value> {
    let Some(fields) = schema["properties"].as_object() else {
        return vec![json!({})];
    };
    // An image is in `data` or in `blob`.
    let either = |name: &str| name == "blob" && fields.contains_key("data");
    let fields: Vec<_> = fields
        .iter()
        .filter(|(name, _)| !either(name))
        .map(|(name, field)| (name, samples(field, book)))
        .collect();
    let mut first: Map<String, Value> = Map::from_iter([(FIXED.to_owned(), Value::Null)]);
    first.extend(
        fields
            .iter()
            .map(|(name, values)| ((*name).clone(), values[0].clone())),
    );
    let mut all = vec![Value::Object(first.clone())];
    for (name, values) in fields {
        for value in values.into_iter().skip(1) {
            let mut other = first.clone();
            other.insert(name.clone(), value);
            all.push(Value::Object(other));
        }
    }
    all
}

/// The places of all maps with fixed keys, as JSON pointers.
fn places(sample: &Value, at: &str, found: &mut Vec<String>) {
    match sample {
        Value::Object(fields) => {
            if fields.contains_key(FIXED) {
                found.push(at.to_owned());
            }
            fields
                .iter()
                .for_each(|(name, field)| places(field, &format!("{at}/{name}"), found));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, item)| places(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

fn unmarked(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove(FIXED);
            fields.values_mut().for_each(unmarked);
        }
        Value::Array(items) => items.iter_mut().for_each(unmarked),
        _ => {}
    }
}

#[tokio::test]
async fn an_unknown_key_is_refused_at_every_depth_of_every_body() {
    let http = Http::start(|_| {}).await;
    let page: Value = serde_json::from_str(&openapi()).unwrap();
    let book = &page["components"]["schemas"];
    let (mut bodies, mut inside) = (0, 0);
    for (path, verbs) in page["paths"].as_object().unwrap() {
        for verb in ["post", "patch"] {
            let schema = &verbs[verb]["requestBody"]["content"]["application/json"]["schema"];
            if schema.is_null() || path == "/v1/sign-in" {
                continue;
            }
            bodies += 1;
            let path: String = path
                .split('{')
                .map(|part| {
                    part.split_once('}')
                        .map_or(part.to_owned(), |(_, rest)| format!("x{rest}"))
                })
                .collect();
            for sample in samples(schema, book) {
                let mut found = Vec::new();
                places(&sample, "", &mut found);
                for place in found {
                    inside += usize::from(!place.is_empty());
                    let mut body = sample.clone();
                    body.pointer_mut(&place).unwrap()[STRANGE] = json!(1);
                    unmarked(&mut body);
                    let answer = http
                        .ask(
                            &verb.to_uppercase(),
                            &path,
                            "Content-Type: application/json\r\n",
                            &body.to_string(),
                        )
                        .await;
                    let told = answer.json();
                    let detail = told["detail"].as_str().unwrap_or_default();
                    assert!(
                        answer.status == 400 && detail.ends_with(&format!("{STRANGE}: there is no such key")),
                        "{verb} {path} {body}\n{told}"
                    );
                    assert!(told["field"].as_str().unwrap().ends_with(STRANGE), "{told}");
                }
            }
        }
    }
    assert!(
        bodies > 20 && inside > 8,
        "{bodies} bodies with {inside} maps inside"
    );
}

#[tokio::test]
async fn a_mistyped_limit_is_no_limit_and_says_which_there_are() {
    let http = Http::start(|_| {}).await;
    let body = json!({"workdir": http.h.workdir(), "budget": {"dollars": 1}});
    let answer = http.post("/v1/sessions", &body).await;
    let told = answer.json();
    assert_eq!((answer.status, &told["code"]), (400, &json!("bad_params")));
    assert_eq!(told["field"], "budget.dollars");
    assert_eq!(told["hint"], "the keys here are tokens, usd, time_ms, steps");
}
