//! Request URLs: joins a path to the configured base URL and keeps its query.

use url::Url;

/// The URL of an endpoint below a server's base URL. The base URL's query is kept: Azure puts the version of
/// the API there.
pub(crate) fn join(base: &str, path: &str) -> String {
    joined(base, &[], path)
}

/// The same for endpoints that are siblings of a server's compatibility layers for other protocols, not below them: the
/// base URL may also be that of a compatibility layer.
pub(crate) fn beside(base: &str, path: &str) -> String {
    joined(base, &["/v1", "/api"], path)
}

/// The path of a URL, without a trailing slash.
pub(crate) fn path_of(base: &str) -> String {
    Url::parse(base).map_or_else(
        |_| base.to_owned(),
        |url| url.path().trim_end_matches('/').to_owned(),
    )
}

fn joined(base: &str, imitations: &[&str], path: &str) -> String {
    // An invalid URL is passed through: the request then reports it.
    let Ok(mut url) = Url::parse(base) else {
        return format!("{}/{path}", base.trim_end_matches('/'));
    };
    let before = url.path().trim_end_matches('/');
    let root = imitations
        .iter()
        .find_map(|end| before.strip_suffix(end))
        .unwrap_or(before);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let whole = format!("{root}/{path}");
    url.set_path(&whole);
    if !query.is_empty() {
        let queries: Vec<&str> = url
            .query()
            .into_iter()
            .chain([query])
            .filter(|one| !one.is_empty())
            .collect();
        let queries = queries.join("&");
        url.set_query(Some(&queries));
    }
    url.set_fragment(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_before_the_query() {
        for (base, path, expected) in [
            (
                "https://a.example/v1",
                "chat/completions",
                "https://a.example/v1/chat/completions",
            ),
            (
                "https://a.example/v1/",
                "responses",
                "https://a.example/v1/responses",
            ),
            (
                "https://a.example",
                "v1/messages",
                "https://a.example/v1/messages",
            ),
            (
                "http://[::1]:8080/x/?",
                "responses",
                "http://[::1]:8080/x/responses?",
            ),
            (
                "https://me.openai.azure.com/openai/deployments/my%20gpt?api-version=2024-10-21",
                "chat/completions",
                "https://me.openai.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
            ),
            (
                "https://g.example/v1beta/?key=k#top",
                "models/g:streamGenerateContent?alt=sse",
                "https://g.example/v1beta/models/g:streamGenerateContent?key=k&alt=sse",
            ),
            ("no address", "x", "no address/x"),
        ] {
            assert_eq!(join(base, path), expected);
        }
    }

    #[test]
    fn a_servers_own_service_is_beside_its_imitations() {
        for base in ["http://h:1", "http://h:1/v1", "http://h:1/api/", "http://h:1/v1/"] {
            assert_eq!(beside(base, "api/chat"), "http://h:1/api/chat");
        }
        assert_eq!(
            beside("http://h:1/p/v1?t=1", "completion"),
            "http://h:1/p/completion?t=1"
        );
    }
}
