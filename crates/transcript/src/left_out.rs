//! The images of the conversation, and the conversation without some of them.

use crate::transcript::{NOTE_MARK, Transcript};
use agentd_protocol::{Block, Message, RequestItem, Role, Seq};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Stands in for an image that the provider refused.
const REFUSED: &str = "An image was here. The provider refused it, so it is left out.";

impl Transcript {
    /// The images of the sealed messages in order, each with the index of its message.
    #[must_use]
    pub fn images(&self) -> Vec<(RequestItem, u64)> {
        let sealed = self.messages.iter().zip(&self.seqs).zip(0..);
        sealed
            .flat_map(|((message, seq), at)| places(message, *seq).map(move |(_, item)| (item, at)))
            .collect()
    }

    /// Replaces these items by a note in `messages`, which begin with the sealed messages. The log and this conversation
    /// keep them.
    #[must_use]
    pub fn leaving_out(&self, messages: &[Arc<Message>], items: &BTreeSet<RequestItem>) -> Vec<Arc<Message>> {
        let mut messages = messages.to_vec();
        for (message, seq) in messages.iter_mut().zip(&self.seqs) {
            let refused: Vec<usize> = places(message, *seq)
                .filter(|(_, item)| items.contains(item))
                .map(|(at, _)| at)
                .collect();
            if refused.is_empty() {
                continue;
            }
            let message = Arc::make_mut(message);
            for at in refused {
                if let Some(block) = message.content.get_mut(at) {
                    *block = Block::text(format!("{NOTE_MARK}{REFUSED}"));
                }
            }
        }
        messages
    }
}

/// The images of a message, each with the index of its block.
fn places(message: &Message, seq: Seq) -> impl Iterator<Item = (usize, RequestItem)> {
    // An answer can be sealed at the same place of the log as the message before it, and has no images.
    let asks = message.role == Role::User;
    let blocks = message.content.iter().enumerate();
    let images = blocks.filter(move |(_, block)| asks && matches!(block, Block::Image { .. }));
    images
        .zip(0..)
        .map(move |((at, _), nth)| (at, RequestItem::Image { seq, nth }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::ImageSource;

    fn picture(data: &str) -> Block {
        Block::Image {
            media_type: "image/png".into(),
            source: ImageSource::Data(data.into()),
        }
    }

    fn transcript(messages: &[(Role, Seq, &[Block])]) -> Transcript {
        let mut transcript = Transcript::new();
        for (role, seq, content) in messages {
            transcript.messages.push(Arc::new(Message {
                role: *role,
                content: content.to_vec(),
            }));
            transcript.seqs.push(*seq);
        }
        transcript
    }

    #[test]
    fn a_refused_image_becomes_a_note_in_what_is_sent_only() {
        let look = [Block::text("look"), picture("a"), picture("b")];
        let conversation = transcript(&[
            (Role::User, 3, &look),
            (Role::Assistant, 7, &[Block::text("I see.")]),
            (Role::User, 7, &[picture("c")]),
        ]);
        let image = |seq, nth| RequestItem::Image { seq, nth };
        assert_eq!(
            conversation.images(),
            [(image(3, 0), 0), (image(3, 1), 0), (image(7, 0), 2)]
        );
        let before = conversation.messages().to_vec();
        let mut longer = before.clone();
        longer.push(Arc::new(Message {
            role: Role::User,
            content: vec![picture("not sealed")],
        }));
        let refused = [image(3, 1), image(7, 0), image(99, 0)].into();
        let sent = conversation.leaving_out(&longer, &refused);
        let note = Block::text("[agentd] An image was here. The provider refused it, so it is left out.");
        assert_eq!(sent[0].content, [Block::text("look"), picture("a"), note.clone()]);
        assert_eq!(sent[2].content, [note]);
        assert_eq!((&sent[1], &sent[3]), (&longer[1], &longer[3]));
        assert_eq!(conversation.messages(), before);
    }
}
