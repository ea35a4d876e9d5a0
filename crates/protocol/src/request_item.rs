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
