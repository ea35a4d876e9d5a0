//! Before each model call: does the conversation still fit, and if not, how is it made shorter?
//!
//! In this order: results too long for the window are cut, old results are cleared, messages are trimmed to the
//! operator's limit, the beginning is summarised, and finally all results are cut. Each is requested once per call (a
//! summary up to three times) and recorded in the log. `overflow.rs` handles requests that the model still rejects.

pub(crate) mod overflow;
pub(crate) mod size;
pub(crate) mod token_count;

use crate::context::overflow::Shrinking;
use crate::context::size::tokens;
use crate::draft::Draft;
use crate::durable::Durable;
use crate::effect::{Shrink, Summariser};
use crate::input::Shrunk;
use crate::questions::{self, Subject};
use crate::{attempts::launch, steps::limits};
use agentd_protocol::{CompactionAsked, CompactionCause, ContextKept, Fault};

pub use size::Sizes;

/// The largest share of the window for one tool result, in percent.
const RESULT_PERCENT: u64 = 30;
/// Bytes per token in the estimate's worst case.
const BYTES_PER_TOKEN: u64 = 3;
/// Percent of the window that remains after a compaction. More than 40 percent must then be added before the next one,
/// so that a long session is not compacted all the time.
const AFTER_COMPACTION: u64 = 35;
/// The operator's reserve is limited to this share of a small window, in percent.
const RESERVE_PERCENT: u64 = 20;
/// The most compactions in a row without a step between them.
pub(crate) const MAX_IN_ROW: u32 = 3;
/// After a fruitless pruning, the conversation must grow by this percentage before pruning is requested again.
const ASK_AGAIN_PERCENT: u64 = 25;
/// Steps between two token counts by the provider.
const COUNT_EVERY: u64 = 3;

/// The operator's settings for long conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextRules {
    /// Thousandths of the window at which a conversation is compacted.
    pub compact_at_permille: u64,
    /// Tokens at the end of the conversation that are kept verbatim.
    pub keep_recent_tokens: u64,
    /// Tokens of the window that are kept free for the answer.
    pub reserve_tokens: u64,
    /// Tokens of the newest tool results that are never cleared.
    pub prune_protect_tokens: u64,
    /// Old tool results are cleared if that frees at least this many tokens; 0: never.
    pub prune_min_tokens: u64,
    /// Time limit for a summary by a model; 0: summaries are made without a model.
    pub summary_ms: u64,
    /// The provider counts the tokens when the estimate is this close to the limit, in thousandths of it; 0: never.
    pub count_margin_permille: u64,
    /// The time limit for that count.
    pub count_ms: u64,
}

impl Default for ContextRules {
    fn default() -> Self {
        Self {
            compact_at_permille: 800,
            keep_recent_tokens: 20_000,
            reserve_tokens: 16_384,
            prune_protect_tokens: 40_000,
            prune_min_tokens: 20_000,
            summary_ms: 120_000,
            count_margin_permille: 100,
            count_ms: 3_000,
        }
    }
}

/// The steps taken to make the next call fit, and when to try pruning again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Preparing {
    /// The measures already requested for this call; not requested again.
    done: Vec<Shrink>,
    /// Pruning gains nothing until the conversation has this many tokens.
    prune_from: u64,
    /// The number of messages and the session's step count at the provider's last count.
    counted: Option<(u64, u64)>,
}

impl Preparing {
    /// The call begins, or was dropped: preparation starts over for the next one.
    pub(crate) fn launched(&mut self) {
        self.done.clear();
    }

    /// Whether counting this many messages at this step is worth a request.
    pub(crate) fn may_count(&self, messages: u64, steps: u64) -> bool {
        self.counted
            .is_none_or(|(then, at)| then != messages && steps.saturating_sub(at) >= COUNT_EVERY)
    }

    pub(crate) const fn counted(&mut self, messages: u64, steps: u64) {
        self.counted = Some((messages, steps));
    }
}

/// Limits of the model's window, in our own token measure.
#[derive(Debug, Clone, Copy)]
struct Room {
    window: u64,
    /// A conversation longer than this is compacted.
    line: u64,
}

fn room(draft: &Draft<'_, '_>, model: &str) -> Option<Room> {
    let window = overflow::window(draft, model)?;
    let rules = draft.config().context;
    let max_output = (draft.scene.models)(model).map_or(0, |facts| facts.max_output);
    let line = rules.line(window, max_output);
    Some(Room { window, line })
}

impl ContextRules {
    /// A conversation with more tokens than this is compacted.
    #[must_use]
    pub fn line(&self, window: u64, max_output: u64) -> u64 {
        let reserve = self
            .reserve_tokens
            .min(window.saturating_mul(RESERVE_PERCENT) / 100);
        let reserve = reserve.max(overflow::of_answer(max_output, window));
        let share = window.saturating_mul(self.compact_at_permille) / 1_000;
        share.min(window.saturating_sub(reserve))
    }

    /// The tokens that a conversation should have after a compaction.
    #[must_use]
    pub fn after_compaction(&self, window: u64, line: u64) -> u64 {
        let after = window.saturating_mul(AFTER_COMPACTION) / 100;
        after.min(line / 2)
    }

    /// Whether a conversation of this size may be pruned, if it was not tried in vain below `from` tokens. Smaller ones
    /// than these have nothing to clear, or fill little of their window.
    #[must_use]
    pub fn may_prune(&self, tokens: u64, line: u64, from: u64) -> bool {
        let least = self.prune_protect_tokens.saturating_add(self.prune_min_tokens);
        self.prune_min_tokens > 0 && tokens > least.min(line / 2) && tokens >= from
    }

    /// The size from which a pruning is tried again.
    #[must_use]
    pub const fn prune_again_from(&self, tokens: u64) -> u64 {
        tokens.saturating_add(self.prune_min_tokens.saturating_mul(ASK_AGAIN_PERCENT) / 100)
    }
}

/// Requests a shorter conversation if the next call needs one. True: the call has to wait for it.
pub(crate) fn comes_first(draft: &mut Draft<'_, '_>) -> bool {
    if draft.seen().shrinking.is_some() || draft.seen().questions.is_pending(&Subject::TokenCount) {
        return true;
    }
    if limits::spent(draft.durable(), draft.now()) {
        // The turn is about to end; a summary would only cost money.
        return false;
    }
    let model = launch::model(draft, None);
    if draft.durable().compaction_asked {
        let target = manual_target(draft, &model);
        return ask(draft, Shrink::Compact, target, CompactionCause::Manual);
    }
    let Some(room) = room(draft, &model) else {
        return false;
    };
    if token_count::comes_first(draft, &model, tokens(draft), room.line) {
        return true;
    }
    match wanted(draft, room) {
        Some((how, target)) => ask(draft, how, target, CompactionCause::Threshold),
        None => false,
    }
}

fn wanted(draft: &Draft<'_, '_>, room: Room) -> Option<(Shrink, u64)> {
    let (rules, sizes) = (draft.config().context, draft.scene.sizes);
    let preparing = &draft.seen().preparing;
    let left = |how| !preparing.done.contains(&how);
    let (tokens, long) = (tokens(draft), room.window.saturating_mul(RESULT_PERCENT) / 100);
    let long_bytes = long.saturating_mul(BYTES_PER_TOKEN);
    if left(Shrink::CapResults) && sizes.longest_new_result > long_bytes {
        return Some((Shrink::CapResults, long));
    }
    if left(Shrink::Prune) && rules.may_prune(tokens, room.line, preparing.prune_from) {
        // Below the line it has to pay; above it, the alternative is a summary.
        return Some((Shrink::Prune, room.line));
    }
    let most = u64::from(draft.durable().limits().max_messages);
    if left(Shrink::Trim) && most > 0 && sizes.messages >= most {
        return Some((Shrink::Trim, 0));
    }
    if tokens <= room.line {
        return None;
    }
    let in_row = draft.turn().map_or(0, |turn| turn.in_row());
    if left(Shrink::Compact) && in_row < MAX_IN_ROW {
        let besides = sizes.waiting_tokens.saturating_add(sizes.frame_tokens);
        let after = rules.after_compaction(room.window, room.line);
        return Some((Shrink::Compact, after.saturating_sub(besides)));
    }
    left(Shrink::TruncateResults).then_some((Shrink::TruncateResults, room.line))
}

/// The target of a compaction that a principal asked for: half of the conversation, at most that of a required compaction.
fn manual_target(draft: &Draft<'_, '_>, model: &str) -> u64 {
    let half = draft.scene.input_tokens_estimate / 2;
    room(draft, model).map_or(half, |room| {
        half.min(room.window.saturating_mul(AFTER_COMPACTION) / 100)
    })
}

/// Sends the request. Always true: the caller has to wait.
fn ask(draft: &mut Draft<'_, '_>, how: Shrink, target_tokens: u64, cause: CompactionCause) -> bool {
    let call = draft.stamp().call();
    let shrinking = Shrinking {
        call,
        attempt: 0,
        how,
        cause,
        since: draft.now(),
        target_tokens,
    };
    overflow::begin(draft, shrinking);
    true
}

/// Which model writes the summary: the next call's, without the request parts that its server is known to reject.
pub(crate) fn summariser(draft: &Draft<'_, '_>, model: &str) -> Option<Summariser> {
    let within_ms = draft.config().context.summary_ms;
    let facts = (draft.scene.models)(model).ok()?;
    let taught = draft.durable().outer.taught_of(model);
    (within_ms > 0).then(|| Summariser {
        model: model.to_owned(),
        credential: launch::credential(draft, &facts),
        thinking: launch::thinking(draft, &taught, &facts),
        without: taught.without.into_iter().collect(),
        window: overflow::window(draft, model),
        within_ms,
    })
}

/// Handles the outcome, before a call or between turns.
pub(crate) fn shrunk(draft: &mut Draft<'_, '_>, asked: Shrinking, shrunk: Shrunk) {
    draft.volatile().shrinking = None;
    let tokens = tokens(draft);
    let prune_from = draft.config().context.prune_again_from(tokens);
    let turn = draft.turn().is_some();
    let preparing = &mut draft.volatile().preparing;
    if asked.how == Shrink::Prune {
        preparing.prune_from = prune_from;
    }
    // A compaction that gained something may be followed by another.
    if turn && !matches!(shrunk, Shrunk::Compacted(_)) {
        preparing.done.push(asked.how);
    }
    if let Some(why) = overflow::write_down(draft, asked, shrunk)
        && asked.cause == CompactionCause::Manual
    {
        draft.emit(ContextKept { reason: why });
    }
}

/// Between two turns, a compaction that a principal asked for runs before the queued inputs. True: it is running.
pub(crate) fn between_turns(draft: &mut Draft<'_, '_>) -> bool {
    if draft.seen().shrinking.is_some() {
        return true;
    }
    let durable = draft.durable();
    let busy = durable.history.is_some() || durable.closed.is_some();
    if !durable.compaction_asked || draft.held() || busy {
        return false;
    }
    if limits::spent(durable, draft.now()) {
        let reason = "the budget is used up, and a summary would only cost".to_owned();
        draft.emit(ContextKept { reason });
        return false;
    }
    let model = launch::model(draft, None);
    let target = manual_target(draft, &model);
    ask(draft, Shrink::Compact, target, CompactionCause::Manual)
}

/// A principal's request to compact: durable at once, run before the next model call, or now if no turn runs.
pub(crate) fn wish(draft: &mut Draft<'_, '_>) -> Result<(), Fault> {
    if let Some(paused) = &draft.durable().paused {
        let message = format!("the session is paused: {}", paused.reason);
        return Err(Fault::conflict("session_paused", message).hint("resume it first"));
    }
    if !draft.durable().compaction_asked {
        draft.emit_by_caller(CompactionAsked {});
    }
    Ok(())
}

/// The turn or the session ends: nothing waits for a shorter conversation any more.
pub(crate) fn stop(draft: &mut Draft<'_, '_>, why: &str) {
    stop_shrinking(draft);
    if draft.durable().compaction_asked {
        draft.emit(ContextKept {
            reason: why.to_owned(),
        });
    }
}

/// Stops the work that makes the conversation shorter.
pub(crate) fn stop_shrinking(draft: &mut Draft<'_, '_>) {
    draft.volatile().shrinking = None;
    questions::withdraw(draft, |subject| *subject == Subject::Shorten);
}

impl Durable {
    /// Whether a compaction that a principal asked for is still pending.
    pub(crate) const fn compaction_is_due(&self) -> bool {
        self.compaction_asked && self.paused.is_none() && self.closed.is_none()
    }
}
