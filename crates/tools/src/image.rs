//! Images as results: what a model that sees gets of an image file.

use crate::refusal::{Code, refuse};
use agentd_protocol::{ToolOutcome, ToolStatus};
use agentd_settings::ToolsConfig;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::path::Path;

/// What kind of image a content is, of the kinds that models see.
pub(crate) fn media_type(content: &[u8]) -> Option<&'static str> {
    let kinds: [(&[u8], &str); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
    ];
    if content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    let known = kinds.iter().find(|(magic, _)| content.starts_with(magic));
    known.map(|(_, kind)| *kind)
}

/// The image as a result. One that providers would refuse, and with it the whole conversation, is refused here.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn show(
    path: &Path,
    media_type: &str,
    content: &[u8],
    limits: &ToolsConfig,
) -> Result<ToolOutcome, ToolOutcome> {
    let name = path.display();
    let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
    if bytes > limits.max_image_bytes {
        let most = limits.max_image_bytes;
        let text = format!(
            "{name} is an image of more than {most} bytes, which is the limit. Make a smaller copy and read that."
        );
        return Err(refuse(Code::TooLarge, text));
    }
    let size = imagesize::blob_size(content).map_err(|error| {
        refuse(
            Code::Binary,
            format!("{name} says it is {media_type}, but cannot be read as one: {error}."),
        )
    })?;
    let side = usize::try_from(limits.max_image_side).unwrap_or(usize::MAX);
    let (width, height) = (size.width, size.height);
    if width == 0 || height == 0 || width.max(height) > side {
        let text = format!(
            "{name} is {width} x {height} pixels; neither side may be 0 or longer than {side}. Make a smaller copy and read that."
        );
        return Err(refuse(Code::TooLarge, text));
    }
    let text = format!(
        "[{name}: {media_type}, {width} x {height} pixels, {bytes} bytes. The image follows where the model sees images.]"
    );
    Ok(ToolOutcome {
        details: Some(json!({ "media_type": media_type, "width": width, "height": height, "bytes": bytes })),
        media: vec![json!({ "media_type": media_type, "data": STANDARD.encode(content) })],
        ..ToolOutcome::text(ToolStatus::Ok, text)
    })
}

/// An image that a server gave, for the media of a result; nothing when a provider would refuse it.
#[must_use]
pub fn image_of_server(base64: &str, limits: &ToolsConfig) -> Option<serde_json::Value> {
    let content = STANDARD.decode(base64).ok()?;
    let kind = media_type(&content)?;
    let shown = show(Path::new("image"), kind, &content, limits).ok()?;
    shown.media.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of a PNG of this size: all that is looked at.
    pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
        let mut image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        image.extend(width.to_be_bytes());
        image.extend(height.to_be_bytes());
        image.extend([8, 2, 0, 0, 0]);
        image
    }

    fn shown(content: &[u8], limits: &ToolsConfig) -> Result<ToolOutcome, String> {
        let kind = media_type(content).unwrap();
        show(Path::new("a.png"), kind, content, limits).map_err(|refused| {
            let code = refused.details.unwrap()["code"].as_str().unwrap().to_owned();
            format!("{code} {}", refused.llm_text)
        })
    }

    #[test]
    fn an_image_is_shown_up_to_its_limits_exactly() {
        let image = png(30, 20);
        let limits = |bytes: usize, side| ToolsConfig {
            max_image_bytes: bytes as u64,
            max_image_side: side,
            ..ToolsConfig::default()
        };
        let outcome = shown(&image, &limits(image.len(), 30)).unwrap();
        assert_eq!(outcome.media[0]["media_type"], "image/png");
        assert_eq!(
            STANDARD
                .decode(outcome.media[0]["data"].as_str().unwrap())
                .unwrap(),
            image
        );
        assert!(
            outcome.llm_text.contains("30 x 20 pixels"),
            "{}",
            outcome.llm_text
        );
        assert!(
            shown(&image, &limits(image.len() - 1, 30))
                .unwrap_err()
                .starts_with("E_TOO_LARGE")
        );
        assert!(
            shown(&image, &limits(image.len(), 29))
                .unwrap_err()
                .starts_with("E_TOO_LARGE")
        );
        assert!(
            shown(b"\xff\xd8\xffno", &limits(100, 30))
                .unwrap_err()
                .starts_with("E_BINARY")
        );
    }

    #[test]
    fn kinds_are_told_by_their_first_bytes() {
        assert_eq!(media_type(b"GIF89a..."), Some("image/gif"));
        assert_eq!(media_type(b"RIFF....WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"%PDF-1.7"), None);
    }
}
