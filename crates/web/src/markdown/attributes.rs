//! The attributes of a tag.

use html5ever::tokenizer::Tag;

/// The value of an attribute.
pub(super) fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    let found = tag
        .attrs
        .iter()
        .find(|attribute| &*attribute.name.local == name)?;
    Some(&found.value)
}

/// Whether an element is invisible to a person; then agents do not see it either.
pub(super) fn hidden(name: &str, tag: &Tag) -> bool {
    // Some pages hide themselves until their scripts run.
    if matches!(name, "html" | "body") {
        return false;
    }
    let styled = attribute(tag, "style").is_some_and(|style| {
        let style: String = style.chars().filter(|c| !c.is_whitespace()).collect();
        let style = style.to_ascii_lowercase();
        style.contains("display:none") || style.contains("visibility:hidden")
    });
    styled || attribute(tag, "hidden").is_some()
}
