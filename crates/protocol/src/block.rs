//! Content blocks: the parts of a message.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One piece of content. `raw` keeps the provider's own JSON text where replay needs it byte-exact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image, inline or in the blob store.
    Image {
        /// For example `image/png`.
        media_type: String,
        /// Where the bytes are.
        #[serde(flatten)]
        #[cfg_attr(feature = "schema", schema(value_type = crate::schema::ImagePlace))]
        source: ImageSource,
    },
    /// The model's reasoning; replayed verbatim from `raw`.
    Thinking {
        /// The readable part; empty when the provider hides it.
        text: String,
        /// The provider's own block as JSON text, when it must be sent back byte-exact.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
    },
    /// A requested tool call.
    ToolUse {
        /// Our tool call id as text; the model sees the same id.
        id: String,
        /// The tool's name as the model wrote it.
        name: String,
        /// The arguments: an object, or a string with the raw text if it did not parse as one.
        input: Value,
    },
    /// The answer to a tool call.
    ToolResult {
        /// The `id` of the [`Block::ToolUse`] that this answers.
        tool_use_id: String,
        /// Plain text for the model.
        content: String,
        /// Whether the tool failed.
        #[serde(default)]
        is_error: bool,
    },
    /// A block from a newer version; never sent in requests.
    #[serde(other)]
    Unknown,
}

impl Block {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// Where an image's bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// Base64.
    Data(String),
    /// The name of a blob.
    Blob(String),
}

/// The media type of an image, detected from its first bytes: PNG, JPEG, GIF or WebP, the kinds that models accept.
#[must_use]
pub fn image_media_type(bytes: &[u8]) -> Option<&'static str> {
    let kinds: [(&[u8], &str); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    let known = kinds.iter().find(|(magic, _)| bytes.starts_with(magic));
    known.map(|(_, kind)| *kind)
}

/// The author of a [`Message`]. Tool results travel in user messages; dialects that need another role split them off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, or the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One message of the conversation in canonical form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The blocks, in order. In a user message the tool results come first.
    pub content: Vec<Block>,
}
