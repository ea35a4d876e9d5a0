//! Refuses images that a model is known not to take, before anything is recorded.

use crate::api::Api;
use agentd_protocol::{Block, Fault};

pub(crate) fn has_image(content: &[Block]) -> bool {
    content.iter().any(|block| matches!(block, Block::Image { .. }))
}

impl Api {
    /// Refuses an input with images for a model of which the configuration or the list of models says that it takes none. If
    /// that is only a guess, the session warns instead.
    pub(crate) async fn takes_images(&self, model: &str, content: &[Block]) -> Result<(), Fault> {
        if !has_image(content) {
            return Ok(());
        }
        let models = self.parts.view.models().await;
        let blind =
            |row: &&agentd_protocol::ModelStatus| row.name == model && row.images_known && !row.images;
        if models.iter().find(blind).is_none() {
            return Ok(());
        }
        let message = format!("the model {model} takes no images, and the message has one");
        Err(Fault::invalid("images_not_taken", message).hint(format!(
            "choose another model (`agentctl models -o json` shows `images`); if {model} does take images, set \
             capabilities.images = true in [models.{model}] of the configuration"
        )))
    }
}
