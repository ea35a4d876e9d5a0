//! Tells people that a model does not see images: below the message that has them, or after the next answer if they came
//! from a tool.

use crate::attempts::launch;
use crate::attempts::left_out::Items;
use crate::draft::Draft;
use agentd_protocol::{Block, RequestPart, WarningRaised};

/// The code of the warning.
pub(crate) const UNSEEN: &str = "images_not_sent";

/// The warning for a conversation with images whose model takes none, once for all images up to now.
pub(crate) fn unseen(draft: &Draft<'_, '_>, model: &str) -> Option<WarningRaised> {
    if draft.durable().outer.told_unseen {
        return None;
    }
    let why = why(draft, model)?;
    let Items { images, .. } = (draft.scene.items)();
    if images.is_empty() {
        return None;
    }
    Some(warning("the images of this conversation are not sent", &why))
}

/// The warning for an input with images that its model will not see.
pub(crate) fn of_input(
    draft: &Draft<'_, '_>,
    model: Option<&str>,
    content: &[Block],
) -> Option<WarningRaised> {
    if !has_images(content) {
        return None;
    }
    let own = || launch::model(draft, None);
    let why = why(draft, &model.map_or_else(own, str::to_owned))?;
    Some(warning("the images of this message are not sent", &why))
}

/// Whether there are images among these blocks.
pub(crate) fn has_images(content: &[Block]) -> bool {
    content.iter().any(|block| matches!(block, Block::Image { .. }))
}

/// Why a model does not see images; `None` if it does.
fn why(draft: &Draft<'_, '_>, model: &str) -> Option<String> {
    let takes = (draft.scene.models)(model).ok()?.images;
    let taught = draft.durable().outer.taught.get(model);
    if taught.is_some_and(|taught| taught.without.contains(&RequestPart::Images)) {
        return Some(format!("the provider of {model} takes no images"));
    }
    (!takes).then(|| {
        format!(
            "{model} is not known to take images; if it does, set capabilities.images = true in [models.{model}]"
        )
    })
}

fn warning(what: &str, why: &str) -> WarningRaised {
    WarningRaised {
        code: UNSEEN.to_owned(),
        message: format!("{what}: {why}"),
    }
}
