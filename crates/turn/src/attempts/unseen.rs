//! Tells people that a model does not see the images of its conversation.

use crate::attempts::left_out::Items;
use crate::draft::Draft;
use agentd_protocol::{RequestPart, WarningRaised};

/// The code of the warning.
pub(crate) const UNSEEN: &str = "images_not_sent";

/// The warning for a conversation with images whose model takes none, once per log.
pub(crate) fn unseen(draft: &Draft<'_, '_>, model: &str) -> Option<WarningRaised> {
    let takes = (draft.scene.models)(model).ok()?.images;
    let taught = draft.durable().outer.taught.get(model);
    let refused = taught.is_some_and(|taught| taught.without.contains(&RequestPart::Images));
    if draft.durable().outer.told_unseen || (takes && !refused) {
        return None;
    }
    let Items { images, .. } = (draft.scene.items)();
    if images.is_empty() {
        return None;
    }
    let why = if refused {
        format!("the provider of {model} takes no images")
    } else {
        format!(
            "{model} is not known to take images; if it does, set capabilities.images = true in [models.{model}]"
        )
    };
    Some(WarningRaised {
        code: UNSEEN.to_owned(),
        message: format!("the images of this conversation are not sent: {why}"),
    })
}
