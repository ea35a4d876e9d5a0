//! Implements the port through which sessions call tools of servers.

use crate::answer::{CallAnswer, Media};
use crate::call::{Call, Heard, OnProgress};
use crate::name::tool_name;
use crate::offer::{LeftOut, Offer};
use crate::pool::{Listing, Pool};
use agentd_protocol::Truncated;
use agentd_tools::{
    Finished, Offered, Progress, ProgressSink, Remote, RemoteCall, Spilled, ToolContext, ToolEntry,
    ToolLimits, ToolSpec, image_of_server,
};
use async_trait::async_trait;
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

#[async_trait]
impl Remote for Pool {
    fn servers(&self) -> Vec<String> {
        self.names()
    }

    async fn offered(&self, workdir: &Path, servers: &[String]) -> Vec<Offered> {
        self.offers_soon(workdir, servers)
            .await
            .into_iter()
            .map(offered)
            .collect()
    }

    fn released(&self, workdir: &Path) {
        self.release(workdir);
    }

    async fn call(&self, workdir: &Path, call: RemoteCall, ctx: &ToolContext) -> Finished {
        let max_lines = call.max_lines;
        let call = Call {
            name: call.name,
            arguments: call.arguments,
            time: None,
            max_bytes: call.max_bytes,
            on_progress: shown(ctx.progress.clone()),
        };
        finished(Self::call(self, workdir, call).await, max_lines, &ctx.limits)
    }
}

fn offered(listing: Listing) -> Offered {
    let named = |left: &LeftOut| (tool_name(&listing.server, &left.tool), left.why.to_owned());
    let left_out = listing.offers.iter().flat_map(|offers| &offers.left_out);
    let left_out = left_out.filter(|left| left.is_news()).map(named).collect();
    let tools = listing.offers.map(|offers| offers.made.clone());
    Offered {
        server: listing.server,
        tools: tools.map_err(|error| error.to_string()),
        left_out,
    }
}

/// A registry entry for a server's tool.
pub(crate) fn tool(offer: &Offer) -> ToolEntry {
    ToolEntry::new(ToolSpec {
        name: offer.name.clone().into(),
        aliases: &[],
        title: offer.title.clone().into(),
        description: offer.description.clone(),
        schema: offer.schema.clone(),
        example: Value::Null,
        effect: offer.effect,
        idempotent: false,
        server: Some(offer.server.clone()),
    })
}

/// Shows progress messages as output of the call.
fn shown(sink: ProgressSink) -> OnProgress {
    let told = AtomicU64::new(0);
    OnProgress::new(move |heard| {
        let text = line(&heard);
        let length = u64::try_from(text.len()).unwrap_or_default();
        let offset = told.fetch_add(length, Ordering::Relaxed);
        sink.report(Progress { offset, text });
    })
}

fn line(heard: &Heard) -> String {
    let of = heard.total.map(|total| format!("/{total}")).unwrap_or_default();
    format!("{}{of} {}", heard.progress, heard.message)
        .trim_end()
        .to_owned()
        + "\n"
}

fn finished(answer: CallAnswer, max_lines: usize, limits: &ToolLimits) -> Finished {
    let CallAnswer {
        mut outcome,
        mut whole,
        media,
    } = answer;
    let lines = outcome.llm_text.lines().count();
    if lines > max_lines {
        let whole_text = outcome.llm_text;
        let kept: Vec<&str> = whole_text.lines().take(max_lines).collect();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        outcome.llm_text = format!(
            "{}\n[... {} lines omitted ...]",
            kept.join("\n"),
            lines - max_lines
        );
        outcome.truncated.get_or_insert_with(|| Truncated {
            bytes: count(whole_text.len()),
            lines: count(lines),
            spill: None,
        });
        whole.get_or_insert_with(|| whole_text.into_bytes());
    }
    outcome.media = images(&media, limits);
    Finished {
        spilled: whole.map(Spilled::Memory),
        ..Finished::from(outcome)
    }
}

/// The images to show to the model. All of them share the size limit of one image, because the log stores each.
fn images(media: &[Media], limits: &ToolLimits) -> Vec<Value> {
    let mut room = usize::try_from(limits.max_image_bytes).unwrap_or(usize::MAX);
    let mut shown = Vec::new();
    for one in media.iter().filter(|one| one.media_type.starts_with("image/")) {
        let bytes = one.base64.len() / 4 * 3;
        if bytes <= room
            && let Some(image) = image_of_server(&one.base64, limits)
        {
            room -= bytes;
            shown.push(image);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{ToolOutcome, ToolStatus};

    #[test]
    fn a_result_has_at_most_so_many_lines_and_is_kept_whole_beside() {
        let of = |max_lines: usize| {
            let answer = CallAnswer {
                outcome: ToolOutcome::text(ToolStatus::Ok, "one\ntwo\nthree"),
                whole: None,
                media: Vec::new(),
            };
            finished(answer, max_lines, &ToolLimits::default())
        };
        let all = of(3);
        assert!(all.spilled.is_none() && all.outcome.truncated.is_none());
        let cut = of(2);
        assert_eq!(cut.outcome.llm_text, "one\ntwo\n[... 1 lines omitted ...]");
        assert_eq!(
            cut.outcome.truncated.map(|cut| (cut.bytes, cut.lines)),
            Some((13, 3))
        );
        assert!(matches!(cut.spilled, Some(Spilled::Memory(whole)) if whole == b"one\ntwo\nthree"));
    }

    #[test]
    fn i6_only_images_that_a_provider_accepts_and_that_fit_are_shown() {
        let of = |kind: &str, base64: &str| Media {
            media_type: kind.to_owned(),
            base64: base64.to_owned(),
        };
        // The start of a PNG of one pixel.
        let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";
        let media = [
            of("image/png", png),
            of("image/png", "AAAA"),
            of("audio/wav", png),
            of("image/png", png),
        ];
        let limits = ToolLimits::default();
        assert_eq!(images(&media, &limits).len(), 2);
        let small = ToolLimits {
            max_image_bytes: 24,
            ..limits
        };
        let shown = images(&media, &small);
        assert_eq!(
            (shown.len(), &shown[0]["media_type"]),
            (1, &Value::from("image/png"))
        );
    }
}
