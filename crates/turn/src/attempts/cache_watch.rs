//! Watches the provider's prompt cache: warns people when it was not hit, with the reason as far as it is known.

use crate::attempts::outer::Warm;
use crate::draft::Draft;
use crate::durable::Attempt;
use agentd_protocol::{Usage, WarningRaised};

/// A conversation of this many tokens should be in the cache.
const LONG: u64 = 20_000;

/// The code of the warning that a conversation is not cached at all.
pub(crate) const UNREAD: &str = "prompt_cache_unread";

/// The warning for a long conversation whose cache marks have no effect, once per log: the server neither wrote nor
/// read anything, so each step costs the whole conversation.
pub(crate) fn unread(draft: &Draft<'_, '_>, model: &str, usage: &Usage) -> Option<WarningRaised> {
    let marks = (draft.scene.models)(model).ok()?.min_cache_tokens.is_some();
    let idle = usage.cache_read == 0 && usage.cache_write == 0;
    if !marks || !idle || usage.input < LONG || draft.durable().outer.told_unread {
        return None;
    }
    Some(WarningRaised {
        code: UNREAD.to_owned(),
        message: format!(
            "the provider cached nothing of {} tokens although agentd marked where: each step costs the whole conversation; \
             if its gateway drops cache_control, configure the gateway, or set compat.prompt_cache = false for the provider",
            usage.input
        ),
    })
}

/// The cache warning for a call that is answered now, if any. Checked once per call, at its answer.
pub(crate) fn broken(
    draft: &Draft<'_, '_>,
    current: &Attempt,
    usage: &Usage,
    credential: Option<&String>,
) -> Option<WarningRaised> {
    let warm = draft.durable().outer.warm.as_ref()?;
    let least = (draft.scene.models)(&current.model).ok()?.min_cache_tokens?;
    let fresh = current.started_at.since_ms(warm.at) <= warm.holds_ms();
    let counted = usage.input > 0 || usage.cache_read > 0 || usage.cache_write > 0;
    if warm.left < least.max(1) || !fresh || !counted || usage.cache_read >= warm.left.div_ceil(2) {
        return None;
    }
    let why = why(draft, warm, current, credential);
    Some(WarningRaised {
        code: "prompt_cache_broken".to_owned(),
        message: format!(
            "the prompt cache did not hold: {why} ({} tokens were in it, {} were read from it)",
            warm.left, usage.cache_read
        ),
    })
}

fn why(draft: &Draft<'_, '_>, warm: &Warm, current: &Attempt, credential: Option<&String>) -> String {
    if warm.model != current.model {
        return format!("the model changed from {} to {}", warm.model, current.model);
    }
    let credential = credential.or(current.credential.as_ref());
    if warm.credential.as_ref() != credential {
        let name = |credential: Option<&String>| credential.cloned().unwrap_or_else(|| "none".to_owned());
        return format!(
            "the credential changed from {} to {}",
            name(warm.credential.as_ref()),
            name(credential)
        );
    }
    let seen = draft.seen();
    if let (Some(then), Some(now)) = (seen.warm_prefix, seen.sent_prefix)
        && then != now
    {
        return "the system prompt, the tools or the way of encoding changed".to_owned();
    }
    if warm.thinking != current.thinking {
        return "the thinking level changed".to_owned();
    }
    if warm.shortened {
        return "the conversation was shortened".to_owned();
    }
    "the provider dropped it".to_owned()
}

/// Tokens that an answer leaves in the cache. For providers that report only cache reads, at least those.
pub(crate) fn left_by(usage: &Usage) -> u64 {
    usage.cache_read.saturating_add(usage.cache_write)
}
