//! Images as results: how a vision model gets an image file.

use crate::refusal::{Code, refuse};
use agentd_protocol::{ToolOutcome, ToolStatus, image_media_type};
use agentd_settings::ToolsConfig;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::path::Path;

/// Why a provider would refuse an image, and with it the whole conversation that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Too many bytes.
    #[error("is an image of more than {most} bytes, which is the limit (tools.max_image_bytes)")]
    TooManyBytes {
        /// The limit.
        most: u64,
    },
    /// Too many pixels.
    #[error(
        "is {width} x {height} pixels; neither side may be 0 or longer than {most} (tools.max_image_side)"
    )]
    TooManyPixels {
        /// Its width.
        width: usize,
        /// Its height.
        height: usize,
        /// The longest side.
        most: u32,
    },
    /// Another format, or a damaged file.
    #[error("cannot be read as a PNG, JPEG, GIF or WebP image")]
    Unreadable,
}

/// The media type, width and height of an image that providers accept.
///
/// # Errors
/// A provider would refuse it.
pub fn check_image(content: &[u8], limits: &ToolsConfig) -> Result<(&'static str, usize, usize), ImageError> {
    let media_type = image_media_type(content).ok_or(ImageError::Unreadable)?;
    let most = limits.max_image_bytes;
    if u64::try_from(content.len()).unwrap_or(u64::MAX) > most {
        return Err(ImageError::TooManyBytes { most });
    }
    let size = imagesize::blob_size(content).map_err(|_| ImageError::Unreadable)?;
    let (width, height) = (size.width, size.height);
    let side = usize::try_from(limits.max_image_side).unwrap_or(usize::MAX);
    if width == 0 || height == 0 || width.max(height) > side {
        let most = limits.max_image_side;
        return Err(ImageError::TooManyPixels { width, height, most });
    }
    Ok((media_type, width, height))
}

/// The image as a tool result.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn show(path: &Path, content: &[u8], limits: &ToolsConfig) -> Result<ToolOutcome, ToolOutcome> {
    let name = path.display();
    let (media_type, width, height) = check_image(content, limits).map_err(|error| match error {
        ImageError::Unreadable => refuse(Code::Binary, format!("{name} {error}.")),
        ImageError::TooManyBytes { .. } | ImageError::TooManyPixels { .. } => refuse(
            Code::TooLarge,
            format!("{name} {error}. Make a smaller copy and read that."),
        ),
    })?;
    let bytes = content.len();
    let text = format!(
        "[{name}: {media_type}, {width} x {height} pixels, {bytes} bytes. The image follows where the model sees images.]"
    );
    Ok(ToolOutcome {
        details: Some(json!({ "media_type": media_type, "width": width, "height": height, "bytes": bytes })),
        media: vec![json!({ "media_type": media_type, "data": STANDARD.encode(content) })],
        ..ToolOutcome::text(ToolStatus::Ok, text)
    })
}

/// An image from a tool server, for the media of a result; `None` if a provider would refuse it.
#[must_use]
pub fn image_of_server(base64: &str, limits: &ToolsConfig) -> Option<serde_json::Value> {
    let content = STANDARD.decode(base64).ok()?;
    let shown = show(Path::new("image"), &content, limits).ok()?;
    shown.media.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The start of a PNG of this size: all that the check reads.
    pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
        let mut image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        image.extend(width.to_be_bytes());
        image.extend(height.to_be_bytes());
        image.extend([8, 2, 0, 0, 0]);
        image
    }

    fn shown(content: &[u8], limits: &ToolsConfig) -> Result<ToolOutcome, String> {
        show(Path::new("a.png"), content, limits).map_err(|refused| {
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
    fn image_types_are_recognized_by_their_first_bytes() {
        assert_eq!(image_media_type(b"GIF89a..."), Some("image/gif"));
        assert_eq!(image_media_type(b"RIFF....WEBPVP8 "), Some("image/webp"));
        assert_eq!(image_media_type(b"%PDF-1.7"), None);
    }
}
