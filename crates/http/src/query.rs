//! The parameters in a query, as the method wants them.

use agentd_protocol::Fault;
use serde_json::{Map, Value};
use url::form_urlencoded;

/// The type of a parameter in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// A text.
    Text,
    /// A whole number.
    Number,
    /// `true` or `false`; the bare name, without `=`, means true.
    Flag,
    /// Several words: repeated, or separated by commas.
    Words,
    /// A label selector.
    Selector,
}

/// Reads a query. An unknown name is a fault, so that a typo never widens an answer.
pub(crate) fn read(query: &str, known: &[(&str, Query)]) -> Result<Map<String, Value>, Fault> {
    let mut params = Map::new();
    let parts = query.split('&').flat_map(|part| {
        let bare = !part.contains('=');
        form_urlencoded::parse(part.as_bytes()).map(move |(name, text)| (name, text, bare))
    });
    for (name, text, bare) in parts {
        let Some((name, kind)) = known.iter().find(|(known, _)| *known == name) else {
            return Err(unknown(&name, known));
        };
        let repeated = params.contains_key(*name);
        if *kind == Query::Words {
            let all = params.entry(*name).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(all) = all {
                all.extend(text.split(',').filter(|word| !word.is_empty()).map(Value::from));
            }
        } else if repeated {
            return Err(bad(name, "given twice"));
        } else if bare && *kind == Query::Flag {
            params.insert((*name).to_owned(), Value::Bool(true));
        } else {
            params.insert((*name).to_owned(), value(name, *kind, &text)?);
        }
    }
    Ok(params)
}

fn value(name: &str, kind: Query, text: &str) -> Result<Value, Fault> {
    match (kind, text) {
        (Query::Number, _) => {
            let number = text.parse::<u64>();
            number
                .map(Value::from)
                .map_err(|_| bad(name, "expected a whole number"))
        }
        (Query::Flag, "true") => Ok(Value::Bool(true)),
        (Query::Flag, "false") => Ok(Value::Bool(false)),
        (Query::Flag, _) => Err(bad(name, "expected true or false")),
        (Query::Text | Query::Words | Query::Selector, _) => Ok(Value::from(text)),
    }
}

fn bad(name: &str, what: &str) -> Fault {
    Fault::invalid("bad_params", format!("params: {name}: {what}"))
}

fn unknown(name: &str, known: &[(&str, Query)]) -> Fault {
    let shown: String = name.chars().take(64).collect();
    let fault = Fault::invalid(
        "bad_params",
        format!("params: unknown parameter {shown:?} in the query"),
    );
    let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    match known.as_slice() {
        [] => fault.hint("this request takes none"),
        known => fault.hint(format!("the parameters are {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KNOWN: [(&str, Query); 4] = [
        ("all", Query::Flag),
        ("states", Query::Words),
        ("labels", Query::Selector),
        ("limit", Query::Number),
    ];

    #[test]
    fn each_parameter_has_its_type() {
        let read = |query| read(query, &KNOWN).map(Value::Object);
        assert_eq!(
            read("all&states=idle,failed&states=closed&labels=team%3Dinfra&limit=3").unwrap(),
            json!({"all": true, "states": ["idle", "failed", "closed"], "labels": "team=infra", "limit": 3})
        );
        for (query, what) in [
            ("all=yes", "params: all: expected true or false"),
            ("all=", "params: all: expected true or false"),
            ("limit=-1", "params: limit: expected a whole number"),
            ("limit=1&limit=2", "params: limit: given twice"),
            ("al=true", "params: unknown parameter \"al\" in the query"),
        ] {
            assert_eq!(read(query).unwrap_err().message, what);
        }
    }
}
