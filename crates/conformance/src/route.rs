//! Determines the dialect of an exchange from its path alone; provider names are not needed.

use crate::cassette::When;
use agentd_provider::Dialect;

/// The kind of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// A model call of this dialect.
    Dialect(Dialect),
    /// Not a model call that we make, with the reason.
    Skip(String),
}

/// Path endings of model calls.
const ENDS: [(&str, Dialect); 7] = [
    ("/messages", Dialect::Anthropic),
    ("/chat/completions", Dialect::OpenaiChat),
    ("/responses", Dialect::OpenaiResponses),
    (":generateContent", Dialect::Gemini),
    (":streamGenerateContent", Dialect::Gemini),
    ("/api/chat", Dialect::Ollama),
    ("/completion", Dialect::LlamaCompletion),
];

/// The dialect of a recorded request.
#[must_use]
pub fn route(when: &When) -> Route {
    let path = when.path.split(['?', '#']).next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    if !when.method.is_empty() && !when.method.eq_ignore_ascii_case("POST") {
        return Route::Skip(format!("{} of {} is no model call", when.method, kind(path)));
    }
    ENDS.iter().find(|(end, _)| path.ends_with(end)).map_or_else(
        || Route::Skip(format!("{} is a service that we do not use", kind(path))),
        |(_, dialect)| Route::Dialect(*dialect),
    )
}

/// The path with individual names removed, so that skips of one kind are counted together.
fn kind(path: &str) -> String {
    let named = |part: &str| {
        part.len() > 24 || part.contains("REDACTED") || part.chars().filter(char::is_ascii_digit).count() > 3
    };
    let parts: Vec<&str> = path
        .split('/')
        .map(|part| if named(part) { "…" } else { part })
        .collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_determines_its_dialect_on_any_host() {
        let check = |method: &str, path: &str, expected: Route| {
            let when = When {
                path: path.into(),
                method: method.into(),
                body: None,
            };
            assert_eq!(route(&when), expected, "{method} {path}");
        };
        check("POST", "/v1/messages", Route::Dialect(Dialect::Anthropic));
        check(
            "POST",
            "/openai/v1/chat/completions",
            Route::Dialect(Dialect::OpenaiChat),
        );
        check(
            "POST",
            "/api/v1/responses?x=1",
            Route::Dialect(Dialect::OpenaiResponses),
        );
        check(
            "POST",
            "/v1beta/models/m-1:streamGenerateContent",
            Route::Dialect(Dialect::Gemini),
        );
        check("POST", "/completion", Route::Dialect(Dialect::LlamaCompletion));
        let skip = |reason: &str| Route::Skip(reason.to_owned());
        check(
            "POST",
            "/v1/completions",
            skip("/v1/completions is a service that we do not use"),
        );
        check("GET", "/v1/models", skip("GET of /v1/models is no model call"));
        check(
            "DELETE",
            "/v1beta/cachedContents/c-REDACTED_1",
            skip("DELETE of /v1beta/cachedContents/… is no model call"),
        );
    }
}
