//! The items of a request that a provider can refuse one by one.

use crate::event::Seq;
use serde::{Deserialize, Serialize};

/// An item of a request without which the rest of the request still makes sense.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RequestItem {
    /// An image of the conversation.
    Image {
        /// Where the log sealed its message.
        seq: Seq,
        /// Its index among the images of the message, from 0.
        nth: u32,
    },
    /// The description of a tool.
    Tool {
        /// The name of the tool.
        name: String,
    },
}

impl RequestItem {
    /// Some items in words: `the tool X and 2 images`.
    pub fn in_words<'a>(items: impl IntoIterator<Item = &'a Self>) -> String {
        let (mut names, mut images) = (Vec::new(), 0);
        for item in items {
            match item {
                Self::Tool { name } => names.push(name.as_str()),
                Self::Image { .. } => images += 1,
            }
        }
        let tools = match names.as_slice() {
            [] => None,
            [one] => Some(format!("the tool {one}")),
            more => Some(format!("the tools {}", more.join(", "))),
        };
        let images = match images {
            0 => None,
            1 => Some("1 image".to_owned()),
            more => Some(format!("{more} images")),
        };
        let parts: Vec<String> = tools.into_iter().chain(images).collect();
        parts.join(" and ")
    }
}

/// What an error reveals about the item that the provider refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedItem {
    /// An image.
    Image {
        /// The index of its message in the request, as the provider counts.
        message: Option<u64>,
    },
    /// The description of a tool.
    Tool {
        /// Its name in the request.
        name: Option<String>,
        /// Its index among the tools of the request.
        index: Option<u64>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_named_or_counted() {
        let tool = |name: &str| RequestItem::Tool {
            name: name.to_owned(),
        };
        let image = |nth| RequestItem::Image { seq: 1, nth };
        for (items, words) in [
            (vec![tool("Read")], "the tool Read"),
            (vec![tool("Read"), tool("Bash")], "the tools Read, Bash"),
            (vec![image(0)], "1 image"),
            (
                vec![image(0), tool("Read"), image(1)],
                "the tool Read and 2 images",
            ),
        ] {
            assert_eq!(RequestItem::in_words(&items), words);
        }
    }
}
