//! A short form of the conversation for questions outside of the turn, and the content of its next request.

use crate::cut;
use crate::transcript::{NOTE_MARK, Transcript};
use agentd_protocol::{Block, Message, Role};
use std::sync::Arc;

/// The most bytes of one message in a digest.
const MESSAGE_BYTES: usize = 800;

impl Transcript {
    /// The conversation in at most `bytes` bytes: each message shortened, and of many only the first and last ones.
    #[must_use]
    pub fn digest(&self, bytes: usize) -> String {
        let pieces = self.messages.iter().map(|message| {
            let piece = crate::retell::told(message);
            cut::head_and_tail(&piece, MESSAGE_BYTES).unwrap_or(piece)
        });
        let whole: String = pieces.collect();
        cut::head_and_tail(&whole, bytes).unwrap_or(whole)
    }

    /// The conversation as the next request would send it if all waiting inputs joined.
    #[must_use]
    pub fn upcoming(&self) -> Vec<Arc<Message>> {
        self.followed_by(self.inputs.values().flatten().cloned())
    }

    /// The conversation as it is, with a question of agentd at its end. Waiting inputs keep waiting.
    #[must_use]
    pub fn asking(&self, question: &str) -> Vec<Arc<Message>> {
        self.followed_by([Block::text(format!("{NOTE_MARK}{question}"))])
    }

    /// The sealed messages, then one with the open results, the notes and `last`.
    fn followed_by(&self, last: impl IntoIterator<Item = Block>) -> Vec<Arc<Message>> {
        let mut content = self.step.clone().seal();
        content.extend(self.notes.iter().cloned());
        content.extend(last);
        let mut messages = self.messages.clone();
        if !content.is_empty() {
            messages.push(Arc::new(Message {
                role: Role::User,
                content,
            }));
        }
        messages
    }

    /// Records that this model's provider counted [`Self::upcoming`] with the system prompt and the tools: the count
    /// becomes the estimate, and calibrates later ones.
    pub fn counted_as(&mut self, model: &str, tokens: u64) {
        self.rate.asks(model);
        let waiting = self.waiting_tokens();
        let sent = tokens.saturating_sub(waiting);
        self.rate.counted(sent, 0);
        self.tokens = sent;
        self.counted = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate_tokens;
    use agentd_protocol::*;

    fn event(seq: Seq, body: impl Into<EventBody>) -> Event {
        Event {
            v: EVENT_VERSION,
            session: SessionId::NIL,
            seq,
            at: Timestamp(seq),
            by: Principal::agentd(),
            turn: None,
            body: body.into(),
        }
    }

    fn asked(transcript: &mut Transcript, text: &str) -> InputId {
        let input = Stamp::new(Timestamp(7), 7).input();
        transcript.apply(&event(
            1,
            InputAccepted {
                input,
                key: None,
                delivery: Delivery::Start,
                content: vec![Block::text(text)],
                model: None,
                agent: None,
            },
        ));
        input
    }

    fn started(transcript: &mut Transcript, inputs: Vec<InputId>) {
        transcript.apply(&event(
            2,
            ModelStarted {
                call: Stamp::new(Timestamp(8), 8).call(),
                attempt: 1,
                step: 1,
                max_steps: 9,
                inputs,
                provider: "p".into(),
                model: "m".into(),
                credential: None,
                input_tokens_estimate: 0,
                tools_off: false,
                configured: None,
                thinking: None,
                cache_hour: false,
            },
        ));
    }

    #[test]
    fn a_digest_is_bounded_and_keeps_both_ends() {
        let mut transcript = Transcript::new();
        let input = asked(&mut transcript, "Fix the parser.");
        started(&mut transcript, vec![input]);
        let digest = transcript.digest(2_000);
        assert_eq!(digest, "Person: Fix the parser.\n");
        let mut long = Transcript::new();
        let text = format!("first {} last", "word ".repeat(2_000));
        let input = asked(&mut long, &text);
        started(&mut long, vec![input]);
        let digest = long.digest(500);
        assert!(digest.len() <= 500, "{}", digest.len());
        assert!(
            digest.starts_with("Person: first") && digest.ends_with("last\n"),
            "{digest}"
        );
    }

    #[test]
    fn a_count_replaces_the_estimate_without_counting_waiting_inputs_twice() {
        let mut transcript = Transcript::new();
        let input = asked(&mut transcript, "Fix the parser.");
        started(&mut transcript, vec![input]);
        let next = asked(&mut transcript, &"word ".repeat(400));
        let ahead = transcript.upcoming();
        assert_eq!((transcript.messages().len(), ahead.len()), (1, 2));
        let waiting = transcript.waiting_tokens();
        assert!(waiting >= estimate_tokens(&"word ".repeat(400)));
        transcript.counted_as("m", 9_000);
        assert!(transcript.counted());
        assert_eq!(transcript.estimate_tokens() + transcript.waiting_tokens(), 9_000);
        started(&mut transcript, vec![next]);
        assert_eq!(transcript.messages(), ahead, "it is what was counted");
    }
}
