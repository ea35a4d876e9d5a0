//! Recognizes errors about one item of a request: an image, or the description of a tool.

use super::patterns::has;
use agentd_protocol::RefusedItem;
use regex::Regex;
use std::sync::LazyLock;

/// The server takes no images at all, whatever they contain.
pub(super) const NO_IMAGES: &[&[&str]] = &[
    &["support image input"],
    &["support image inputs"],
    &["image input is not supported"],
    &["image input is not enabled"],
    &["image inputs are not supported"],
    &["not support images"],
    &["n't support images"],
    &["images are not supported"],
    &["not support vision"],
    &["n't support vision"],
    &["vision is not"],
    &["vision not supported"],
    &["image_url", "only supported by"],
    &["unknown variant `image_url`"],
    &["not a multimodal model"],
    &["missing data required for image input"],
    &["model cannot read image"],
    &["content must be a string"],
    &["does not support the image"],
];

/// The word, as text or as a part of a field's name, but not as a part of a model's name such as `gpt-image-1`.
static IMAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?:^|[^a-z0-9_/-])images?(?:$|[^a-z0-9_-])|image_url|input_image|invalid_image|image_parse|inlinedata|inline_data|mime ?type",
    )
    .ok()
});

/// What servers say of an image that they refuse.
const IMAGE_TROUBLE: &[&str] = &[
    "could not process",
    "could not be",
    "cannot identify",
    "cannot be decoded",
    "corrupt",
    "decode",
    "does not match",
    "does not represent",
    "do not meet",
    "exceed",
    "failed to",
    "invalid",
    "is not valid",
    "larger than",
    "too small",
    "too large",
    "too many",
    "at most",
    "not a valid",
    "not allowed",
    "not in expected format",
    "must be",
    "must have",
    "sanitize",
    "unable to",
    "unknown format",
    "unrecognized",
    "unsupported",
    "not supported",
];

/// Servers put these into errors about an image of a request for something else.
const NOT_AN_IMAGE: &[&[&str]] = &[
    &["model", "does not exist"],
    &["invalid model"],
    &["model", "not found"],
    &["max_tokens"],
    &["generation of images"],
];

/// Whether the text says that an image is refused.
pub(super) fn is_about_an_image(text: &str) -> bool {
    let named = IMAGE.as_ref().is_some_and(|image| image.is_match(text));
    named && !has(text, NOT_AN_IMAGE) && IMAGE_TROUBLE.iter().any(|words| text.contains(words))
}

/// The description of a tool is refused.
const TOOL: &[&[&str]] = &[
    &["schema for function"],
    &["schema for tool"],
    &["function schema"],
    &["tool schema"],
    &["input_schema"],
    &["inputschema"],
    &["function_declarations["],
    &["functiondeclaration"],
    &["invalid_function_parameters"],
    &["tool parameters schema"],
    &["tools.function.parameters"],
    &["function.parameters"],
    &["function.name"],
    &["json schema conversion failed"],
    &["failed to parse grammar"],
    &["tool names must be unique"],
    &["tools.", ".name: string should"],
    &["tools[", "].parameters"],
    &["tools[", "].name"],
    &["tools[", "].function"],
];

fn regexes(patterns: &[&str]) -> Vec<Regex> {
    patterns.iter().filter_map(|one| Regex::new(one).ok()).collect()
}

/// The phrases in which servers name the tool.
static NAME: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    regexes(&[
        r#"(?i)schema for (?:the )?(?:function|tool):? ?['"`]?([\w.-]+)"#,
        r#"(?i)`([\w.-]+)` functiondeclaration"#,
        r#"(?i)(?:function|tool) ['"`]([\w.-]+)['"`]"#,
        r#"(?i)schema (?:error )?(?:of|in) (?:function|tool):? ['"`]?([\w.-]+)"#,
    ])
});

/// The paths with the index of the tool. Gemini has one list of tools with all functions in it.
static INDEX: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    regexes(&[
        r"function_declarations\[(\d+)\]",
        r"functionDeclarations\[(\d+)\]",
        r"tools\.(\d+)\.",
        r"tools\[(\d+)\]",
    ])
});

/// The paths with the index of the message.
static MESSAGE: LazyLock<Vec<Regex>> =
    LazyLock::new(|| regexes(&[r"messages\.(\d+)\.", r"messages\[(\d+)\]", r"contents\[(\d+)\]"]));

/// The item that an error is about: `text` is all of the error in lower case, `said` its message.
pub(super) fn refused(text: &str, said: &str) -> Option<RefusedItem> {
    let number = |patterns: &[Regex]| {
        first(patterns, said)
            .or_else(|| first(patterns, text))?
            .parse()
            .ok()
    };
    if has(text, TOOL) {
        return Some(RefusedItem::Tool {
            name: first(&NAME, said).map(str::to_owned),
            index: number(&INDEX),
        });
    }
    is_about_an_image(text).then(|| RefusedItem::Image {
        message: number(&MESSAGE),
    })
}

fn first<'a>(patterns: &[Regex], text: &'a str) -> Option<&'a str> {
    let found = patterns.iter().find_map(|one| one.captures(text)?.get(1))?;
    Some(found.as_str())
}

#[cfg(test)]
mod tests;
