//! The names of tools as models write them.

/// What models and their templates put before a tool's name.
const NAMESPACES: [&str; 7] = [
    "functions",
    "function",
    "tools",
    "tool",
    "default_api",
    "default",
    "antml",
];
/// What separates it from the name.
const SEPARATORS: [char; 3] = ['.', ':', '/'];

/// The offered tool that a name means, ignoring case, word separators, a namespace and control tokens of the template.
pub(crate) fn meant<'a>(said: &str, tools: &'a [String]) -> Option<&'a String> {
    let find = |name: &str| tools.iter().find(|tool| is_name(tool, name));
    if let Some(exact) = tools.iter().find(|tool| *tool == said) {
        return Some(exact);
    }
    let plain = plain(said);
    find(plain).or_else(|| find(without_namespace(plain)?))
}

/// A name without the control tokens that some templates leave in it, and without quotes.
fn plain(said: &str) -> &str {
    let name = said.split("<|").next().unwrap_or_default();
    name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\''))
}

fn without_namespace(name: &str) -> Option<&str> {
    let (space, rest) = name.split_once(SEPARATORS)?;
    let known = NAMESPACES.iter().any(|known| known.eq_ignore_ascii_case(space));
    known.then(|| rest.trim_start_matches(SEPARATORS))
}

/// Compares names, ignoring case and word separators.
fn is_name(tool: &str, said: &str) -> bool {
    let letters = |name: &str| -> String {
        let kept = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
        kept.flat_map(char::to_lowercase).collect()
    };
    letters(tool) == letters(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_behind_what_templates_add() {
        let tools = ["Bash", "WebFetch", "mcp__a__read"].map(str::to_owned);
        let check = |said: &str, expected: Option<&str>| {
            assert_eq!(meant(said, &tools).map(String::as_str), expected, "{said}");
        };
        check("Bash", Some("Bash"));
        check("functions.Bash", Some("Bash"));
        check("functions:bash", Some("Bash"));
        check("default_api.web_fetch", Some("WebFetch"));
        check("tools/mcp__a__read", Some("mcp__a__read"));
        check("Bash<|channel|>commentary", Some("Bash"));
        check("functions.Bash<|constrain|>json", Some("Bash"));
        check("`Bash` ", Some("Bash"));
        check("github.Bash", None);
        check("functions.Frobnicate", None);
        check("functions.", None);
        check("<|channel|>Bash", None);
        check("", None);
    }
}
