//! Drops outdated frames from a batch. Pure.

use agentd_actor_kit::FeedFrame;
use agentd_protocol::Delta;

/// Drops frames that a later frame of the same batch supersedes: a status before another status, and fragments of an
/// answer before the event with the complete answer. Keeps all events, in their order (I2).
pub(crate) fn news(mut batch: Vec<FeedFrame>) -> Vec<FeedFrame> {
    let (mut status, mut answered) = (false, false);
    batch.reverse();
    batch.retain(|frame| match frame {
        FeedFrame::Event(told) => {
            answered |= matches!(told.event.kind.as_ref(), "model.finished" | "model.failed");
            true
        }
        FeedFrame::Delta(delta) => match delta.as_ref() {
            Delta::Status(_) => !std::mem::replace(&mut status, true),
            Delta::Text(_) | Delta::Thinking(_) | Delta::ToolInput(_) => !answered,
            Delta::ToolOutput { .. } | Delta::Asks { .. } | Delta::Viewers { .. } | Delta::Unknown => true,
        },
        FeedFrame::Lagged => true,
    });
    batch.reverse();
    batch
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_actor_kit::FeedEvent;
    use agentd_protocol::{CallId, Fragment, RunState, SessionId, Status, Timestamp};
    use agentd_store::EncodedEvent;
    use bytes::Bytes;
    use std::sync::Arc;

    fn event(seq: u64, kind: &'static str) -> FeedFrame {
        let event = EncodedEvent {
            seq,
            at: Timestamp(0),
            kind: kind.into(),
            body: Bytes::new(),
        };
        FeedFrame::Event(Arc::new(FeedEvent {
            session: SessionId::NIL,
            cursor: seq,
            event,
        }))
    }

    fn delta(delta: Delta) -> FeedFrame {
        FeedFrame::Delta(Arc::new(delta))
    }

    fn text(text: &str) -> FeedFrame {
        delta(Delta::Text(Fragment {
            call: CallId::NIL,
            attempt: 1,
            block: 0,
            offset: 0,
            text: text.to_owned(),
        }))
    }

    fn status(state: RunState) -> FeedFrame {
        delta(Delta::Status(Status {
            state,
            reason: String::new(),
            since: Timestamp(0),
            until: None,
            attempt: None,
            position: None,
        }))
    }

    fn words(batch: Vec<FeedFrame>) -> Vec<String> {
        let word = |frame: FeedFrame| match frame {
            FeedFrame::Event(told) => told.event.seq.to_string(),
            FeedFrame::Delta(delta) => match delta.as_ref() {
                Delta::Text(fragment) => fragment.text.clone(),
                Delta::Status(status) => format!("{:?}", status.state),
                other => format!("{other:?}"),
            },
            FeedFrame::Lagged => "lagged".to_owned(),
        };
        news(batch).into_iter().map(word).collect()
    }

    #[test]
    fn i2_a_batch_drops_only_frames_that_a_later_frame_replaces() {
        let batch = vec![
            status(RunState::RunningModel),
            text("a"),
            event(7, "model.finished"),
            status(RunState::RunningTool),
            event(8, "tool.finished"),
            text("b"),
            FeedFrame::Lagged,
        ];
        assert_eq!(words(batch), ["7", "RunningTool", "8", "b", "lagged"]);
    }

    #[test]
    fn a_single_frame_is_kept() {
        for frame in [
            text("a"),
            status(RunState::Idle),
            event(1, "model.finished"),
            FeedFrame::Lagged,
        ] {
            assert_eq!(news(vec![frame]).len(), 1);
        }
    }
}
