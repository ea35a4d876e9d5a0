//! `session.context`: the conversation as the model gets it, folded from the log as the session's loop does. Reading wakes
//! no session.

use crate::api::Api;
use crate::sight::{Caller, Seen};
use agentd_protocol::{
    CacheEffect, ContextItem, ContextPart, ContextShown, Event, Fault, Seq, SessionParams, Summary, Timestamp,
};
use agentd_transcript::{CacheBill, Item, Part, Prices, Rewinds, Transcript};

/// The maximum number of items in an answer.
const ITEMS: usize = 50;

/// A log, folded.
#[derive(Default)]
struct Folded {
    transcript: Transcript,
    rewinds: Rewinds,
    bill: CacheBill,
    head: Seq,
}

impl Folded {
    fn apply(&mut self, event: &Event, prices: &Prices) {
        self.transcript.apply(event);
        self.rewinds.note(event);
        self.bill.apply(event, prices);
        self.head = event.seq;
    }
}

impl Api {
    pub(crate) async fn context(&self, who: &Caller, params: SessionParams) -> Result<ContextShown, Fault> {
        let (session, row) = self.row_of(who, &params.session).await?;
        let models = self.parts.view.models().await;
        let window = models.iter().find(|model| model.name == row.summary.model);
        let window = window
            .map(|model| model.context_window)
            .filter(|window| *window > 0);
        let priced = models
            .iter()
            .filter_map(|model| Some((model.name.clone(), model.price?)));
        let prices: Prices = priced.collect();
        let _permit = self.turn(&self.folding).await?;
        let mut folded = Folded::default();
        loop {
            let events = self.events(session, folded.head).await?;
            if events.is_empty() {
                break;
            }
            for event in &events {
                folded.apply(event, &prices);
            }
        }
        if !folded.rewinds.is_empty() {
            folded.transcript = self.kept(session, &folded.rewinds, folded.head).await?;
        }
        Ok(shown(&row.summary, window, folded, self.parts.clock.now()))
    }

    /// The conversation without the parts that were taken back.
    async fn kept(&self, session: Seen, rewinds: &Rewinds, head: Seq) -> Result<Transcript, Fault> {
        let mut transcript = Transcript::new();
        let parts = rewinds.parts(head);
        let last = parts.len().saturating_sub(1);
        for (number, (mut at, end)) in parts.into_iter().enumerate() {
            while at < end {
                for event in self.events(session, at).await? {
                    at = event.seq;
                    if at <= end {
                        transcript.apply(&event);
                    }
                }
            }
            if number < last {
                transcript.went_back();
            }
        }
        Ok(transcript)
    }
}

fn shown(row: &Summary, window: Option<u64>, folded: Folded, now: Timestamp) -> ContextShown {
    let (transcript, cached_up_to) = (folded.transcript, folded.bill.cached_up_to(&row.model, now));
    let part = |part: Part| ContextPart {
        kind: part.kind.key().to_owned(),
        part: part.kind.as_str().to_owned(),
        items: part.items,
        tokens: part.tokens,
        cached: part.cached,
    };
    let parts: Vec<ContextPart> = transcript.parts(cached_up_to).into_iter().map(part).collect();
    let item = |item: Item| ContextItem {
        seq: item.seq,
        kind: item.kind.key().to_owned(),
        tool: item.tool,
        tokens: item.tokens,
    };
    let cache: CacheEffect = folded.bill.into_effect();
    ContextShown {
        session: row.session,
        model: row.model.clone(),
        window,
        tokens: transcript.estimate_tokens(),
        counted: transcript.counted(),
        messages: transcript.messages().len(),
        cached: parts.iter().map(|part| part.cached).sum(),
        cache,
        largest: transcript
            .largest(ITEMS, folded.head)
            .into_iter()
            .map(item)
            .collect(),
        parts,
    }
}
