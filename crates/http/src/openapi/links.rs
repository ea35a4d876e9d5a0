//! Links from an answer to the operations on the things that it names.

use super::{Book, operation_id};
use crate::routes::{ROUTES, Route, STREAMS, Verb};
use serde_json::{Map, Value, json};

/// The operations whose path parameters the answer of `route` gives; those that the request's path has stay as they are.
/// `prefix` is the place of the fields in the answer.
pub(super) fn of(route: &Route, answer: &Value, prefix: &str, book: &Book) -> Map<String, Value> {
    let fields = book.fields(answer);
    let mut links = Map::new();
    let streams = STREAMS.iter().filter(|(_, path)| path.starts_with('/'));
    let all = ROUTES.iter().map(|target| (target.method, target.path));
    for (method, path) in all.chain(streams.map(|(method, path)| (*method, *path))) {
        let names = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let mut parameters = Map::new();
        let (mut complete, mut given) = (true, false);
        for name in names {
            let in_answer = means(route, method, name) && fields.iter().any(|field| field == name);
            let source = if in_answer {
                given = true;
                format!("$response.body#/{prefix}{name}")
            } else {
                complete &= route.path_params().any(|own| own == name);
                format!("$request.path.{name}")
            };
            parameters.insert(name.to_owned(), Value::from(source));
        }
        if complete && given {
            let operation = operation_id(method);
            links.insert(
                operation.clone(),
                json!({"operationId": operation, "parameters": parameters}),
            );
        }
    }
    links
}

/// Whether a field of this name in the answer of a route is what the path of a method takes.
fn means(route: &Route, method: &str, name: &str) -> bool {
    match name {
        // Sessions and tools have names, too; a token's is the only one that a path takes.
        "name" => route.method.starts_with("token.") && method == "token.revoke",
        // Here it is the input of a tool.
        "input" => route.method != "approval.list",
        // A rule names the approval that it came from.
        "approval" => route.method != "rule.list",
        // A client must not remove an object of another client only because a list names it first.
        "session" => method != "session.delete" || route.verb != Verb::Get,
        _ => true,
    }
}

/// The links of an answer with open approvals.
pub(super) fn approvals(mut links: Map<String, Value>) -> Map<String, Value> {
    let operation = operation_id("approval.decide");
    let parameters = json!({"approval": "$response.body#/approvals/0/approval"});
    let link = json!({"operationId": operation, "parameters": parameters});
    links.insert(operation, link);
    links
}
