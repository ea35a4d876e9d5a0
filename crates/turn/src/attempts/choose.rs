//! Chooses what follows a failed attempt: the first remedy in the table that still has budget.

use crate::attempts::remedy::{Again, Elsewhere, Parking, Row, row};
use crate::context::overflow;
use crate::draft::Draft;
use crate::durable::Attempt;
use crate::input::{ModelFacts, ModelFailure};
use agentd_protocol::{Advice, FailureClass, RefusedItem, Remedy, RequestPart, ThinkingLevel, Timestamp};

/// The longest random delay before switching credentials, so that sessions do not switch in lockstep.
const ROTATE_JITTER_MS: u64 = 250;
/// The most thinking levels that are tried on one model, not counting the original one.
const MAX_LEVELS: usize = 5;
/// The most compactions because of overflows in one turn.
const MAX_COMPACTIONS: u32 = 3;
/// The first parking time when the provider names none; doubles each time.
const FIRST_PARK_MS: u64 = 600_000;
/// The longest parking time that we choose ourselves.
const LONGEST_PARK_MS: u64 = 3_600_000;
/// This many parkings last as long as the provider asks; later ones grow, so that a provider that asks for
/// short waits and never recovers costs little.
const TRUSTED_PARKS: u32 = 8;
/// The most that is added to a requested wait, so that sessions do not come back in lockstep.
const ASKED_JITTER_MS: u64 = 10_000;
/// Retries when the name of the server does not exist: name servers rarely err.
const RETRIES_WITHOUT_HOST: u32 = 1;
/// Failures of an overloaded model after which its fallback is tried, if there is one.
const OVERLOADS_BEFORE_FALLBACK: u32 = 2;
/// Failed attempts allowed per call with one credential or none; each further credential adds to it.
const BASE_ATTEMPTS: u32 = 32;
const ATTEMPTS_PER_CREDENTIAL: u32 = 8;
const MOST_ATTEMPTS: u32 = 160;

/// The next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) retry_at: Timestamp,
    pub(crate) remedy: Option<Remedy>,
}

/// How many attempts of one call may fail. A larger configured number of retries raises the limit.
pub(crate) fn most_attempts(credentials: usize, retries: u32) -> u32 {
    let credentials = u32::try_from(credentials).unwrap_or(u32::MAX);
    ATTEMPTS_PER_CREDENTIAL
        .saturating_mul(credentials)
        .saturating_add(BASE_ATTEMPTS)
        .max(retries.saturating_add(2))
        .min(MOST_ATTEMPTS)
}

/// One failure and the state needed to choose its remedy.
struct Case<'a, 'd, 's> {
    draft: &'a Draft<'d, 's>,
    current: &'a Attempt,
    failure: &'a ModelFailure,
    row: &'static Row,
    credentials: &'a [String],
    dice: u64,
}

/// The next attempt; `None`: no remedy is left and the call has failed.
pub(crate) fn after(draft: &mut Draft<'_, '_>, current: &Attempt, failure: &ModelFailure) -> Option<Next> {
    let dice = draft.stamp().next_u64();
    let facts = (draft.scene.models)(&current.model).ok();
    let credentials = facts.map(|facts| facts.credentials).unwrap_or_default();
    if current.tries.failed.saturating_add(1) >= most_attempts(credentials.len(), draft.config().max_retries)
    {
        return None;
    }
    let case = Case {
        draft,
        current,
        failure,
        row: row(failure.class),
        credentials: &credentials,
        dice,
    };
    case.learn()
        .or_else(|| case.shrink())
        .or_else(|| case.rotate())
        .or_else(|| case.again())
        .or_else(|| case.elsewhere())
        .or_else(|| case.park())
}

impl Case<'_, '_, '_> {
    fn next(&self, wait_ms: u64, remedy: impl Into<Option<Remedy>>) -> Next {
        Next {
            retry_at: self.draft.now().plus_ms(wait_ms),
            remedy: remedy.into(),
        }
    }

    fn wish_ms(&self) -> u64 {
        self.failure.retry_after_ms.unwrap_or_default()
    }

    /// The requested wait is too long to hold the call open.
    fn long_wish(&self) -> bool {
        self.wish_ms() > self.draft.config().cap_ms
    }

    /// Adds jitter, so that sessions with the same deadline do not come back at the same moment.
    fn a_little_later(&self, wait_ms: u64) -> u64 {
        let jitter = self.dice % (wait_ms / 10).min(ASKED_JITTER_MS).saturating_add(1);
        wait_ms.saturating_add(jitter)
    }

    /// The error itself names the remedy.
    fn learn(&self) -> Option<Next> {
        let remedy = match self.failure.advice.as_ref()? {
            Advice::Think(taken) => match self.level(taken) {
                Some(level) => Remedy::Think { level },
                // Some servers reject even the parameter that turns thinking off.
                None => Remedy::Without {
                    part: self.part(RequestPart::ThinkingLevel)?,
                },
            },
            Advice::Without(part) => Remedy::Without {
                part: self.part(*part)?,
            },
            Advice::Item(refused) => self.leave_out(refused)?,
            // Once: the model may get it right the second time.
            Advice::Miscalled { .. } if self.current.failures == 0 => {
                return Some(self.next(own_backoff_ms(self.draft.config(), 0, self.dice), None));
            }
            Advice::NoSuchHost | Advice::Window { .. } | Advice::Miscalled { .. } => return None,
        };
        Some(self.next(0, remedy))
    }

    /// Leaves out the refused item, or a suspect if the provider does not say which one it is.
    fn leave_out(&self, refused: &RefusedItem) -> Option<Remedy> {
        let left = self
            .draft
            .config()
            .max_omissions
            .checked_sub(self.current.tries.omissions)?;
        let known = self.draft.durable().outer.taught_of(&self.current.model).left_out;
        let items = (left > 0).then(|| (self.draft.scene.items)())?;
        let next = known.after(refused, &items, left == 1)?;
        Some(Remedy::LeaveOut {
            items: next.items.into_iter().collect(),
            among: next.among,
        })
    }

    fn part(&self, part: RequestPart) -> Option<RequestPart> {
        let taught = self.draft.durable().outer.taught.get(&self.current.model);
        let known = taught.is_some_and(|taught| taught.without.contains(&part));
        (!known).then_some(part)
    }

    /// The next untried level below the refused one that the model accepts, else one above it, else no thinking at all.
    fn level(&self, taken: &[ThinkingLevel]) -> Option<ThinkingLevel> {
        let tried = &self.current.tries.levels;
        if tried.len() >= MAX_LEVELS {
            return None;
        }
        let refused = self.current.thinking;
        let untried = |level: &ThinkingLevel| Some(*level) != refused && !tried.contains(level);
        let from = refused.unwrap_or(ThinkingLevel::Medium);
        let taken = || taken.iter().copied().filter(untried);
        let below = taken().filter(|level| *level <= from).max();
        let off = Some(ThinkingLevel::Off).filter(untried);
        below.or_else(|| taken().min()).or(off)
    }

    fn shrink(&self) -> Option<Next> {
        if !self.row.shrink {
            return None;
        }
        if overflow::less_is_asked(self.draft, &self.current.model, self.failure.advice.as_ref()) {
            return Some(self.next(0, None));
        }
        let compactions = self.draft.turn().map_or(0, |turn| turn.compactions);
        if compactions < MAX_COMPACTIONS {
            return Some(self.next(0, Remedy::Compact));
        }
        (!self.current.tries.truncated).then(|| self.next(0, Remedy::TruncateResults))
    }

    fn rotate(&self) -> Option<Next> {
        let other = self.failure.other_credential.as_ref()?;
        let used = self
            .failure
            .credential
            .as_ref()
            .or(self.current.credential.as_ref());
        let left = (self.current.tries.rotations as usize) < self.credentials.len();
        let usable = self.row.rotate && left && Some(other) != used && self.credentials.contains(other);
        usable.then(|| {
            let credential = other.clone();
            self.next(
                self.dice % ROTATE_JITTER_MS.saturating_add(1),
                Remedy::Rotate { credential },
            )
        })
    }

    fn again(&self) -> Option<Next> {
        let left = match self.row.again {
            Again::No => false,
            Again::Once => self.current.internal == 0,
            Again::BackOff => true,
        };
        if !left || self.long_wish() {
            return None;
        }
        let probation = self.draft.durable().outer.on_probation(&self.current.model);
        if probation && self.row.elsewhere == Elsewhere::Yes && self.other_model().is_some() {
            return None;
        }
        let overloaded = self.failure.class == FailureClass::Overloaded
            && self.current.failures >= OVERLOADS_BEFORE_FALLBACK;
        if overloaded && self.other_model().is_some() {
            return None;
        }
        if self.failure.refused
            && self.wish_ms() > 0
            && let Some(next) = self.park_for(self.wish_ms())
        {
            // Nothing was sent, so it is not a retry: the session only waits for its slot.
            return Some(next);
        }
        let most = match self.failure.advice {
            Some(Advice::NoSuchHost) => self.draft.config().max_retries.min(RETRIES_WITHOUT_HOST),
            _ => self.draft.config().max_retries,
        };
        if self.current.failures >= most {
            return None;
        }
        let own = own_backoff_ms(self.draft.config(), self.current.failures, self.dice);
        let asked = self.wish_ms();
        let wait_ms = if own > asked {
            own
        } else {
            self.a_little_later(asked)
        };
        Some(self.next(wait_ms, None))
    }

    fn elsewhere(&self) -> Option<Next> {
        let may = match self.row.elsewhere {
            Elsewhere::No => false,
            Elsewhere::Yes => true,
            Elsewhere::IfUnknownModel => names_unknown_model(&self.failure.message),
        };
        let model = may.then(|| self.other_model()).flatten()?;
        Some(self.next(0, Remedy::Fallback { model }))
    }

    /// The next untried model for the call: its fallbacks, then its own model.
    fn other_model(&self) -> Option<String> {
        let tries = &self.current.tries;
        let facts = |name: &str| -> Option<ModelFacts> { (self.draft.scene.models)(name).ok() };
        let fallbacks = facts(&tries.own).map(|own| own.fallbacks).unwrap_or_default();
        fallbacks
            .into_iter()
            .chain(std::iter::once(tries.own.clone()))
            .find(|name| *name != self.current.model && !tries.models.contains(name) && facts(name).is_some())
    }

    fn park(&self) -> Option<Next> {
        let wait_ms = match (self.row.parking, self.wish_ms()) {
            (Parking::No, _) => return None,
            (Parking::IfAsked, _) if !self.long_wish() => return None,
            (Parking::IfAsked, wish) => wish,
            (Parking::Yes, 0) => doubled(FIRST_PARK_MS, self.current.tries.parks, LONGEST_PARK_MS),
            (Parking::Yes, wish) => wish,
        };
        self.park_for(wait_ms)
    }

    /// Parks the call, if the wait ends before the call's patience does.
    fn park_for(&self, wait_ms: u64) -> Option<Next> {
        let (config, parks) = (self.draft.config(), self.current.tries.parks);
        let floor = match parks.checked_sub(TRUSTED_PARKS) {
            Some(more) => doubled(config.base_ms, more, LONGEST_PARK_MS),
            None => 0,
        };
        let plain = wait_ms.max(floor);
        let next = self.next(self.a_little_later(plain), Remedy::Park);
        let since = self.current.tries.since.unwrap_or(self.draft.now());
        (next.retry_at <= since.plus_ms(config.park_ms)).then_some(next)
    }
}

/// Whether the provider's message says that it does not know the model; each words it differently.
fn names_unknown_model(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("model")
        && ["not found", "not_found", "does not exist", "unknown model"]
            .iter()
            .any(|words| message.contains(words))
}

fn doubled(first: u64, times: u32, most: u64) -> u64 {
    first
        .saturating_mul(1_u64.checked_shl(times).unwrap_or(u64::MAX))
        .min(most)
}

/// base * 2^failures, capped, with up to 25 percent jitter either way so that sessions do not retry in lockstep.
pub(crate) fn own_backoff_ms(config: &crate::Config, failures: u32, dice: u64) -> u64 {
    let plain = doubled(config.base_ms, failures, config.cap_ms);
    let spread = plain / 4;
    let jitter = dice % spread.saturating_mul(2).saturating_add(1);
    plain
        .saturating_sub(spread)
        .saturating_add(jitter)
        .min(config.cap_ms)
}

/// Whether a failure is our fault, not the provider's; worth one more attempt.
pub(crate) const fn is_our_bug(class: FailureClass) -> bool {
    matches!(class, FailureClass::Internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_bounded_whatever_the_number_of_credentials() {
        assert_eq!(
            [0, 1, 3, 16, 17, usize::MAX].map(|credentials| most_attempts(credentials, 5)),
            [32, 40, 56, 160, 160, 160]
        );
        assert_eq!([50, 1_000].map(|retries| most_attempts(1, retries)), [52, 160]);
    }

    #[test]
    fn an_unknown_model_is_recognised_by_what_is_said_of_it() {
        for message in [
            "The model `x` does not exist or you do not have access to it.",
            "model: x-1 not found",
            "type not_found_error: model: x",
        ] {
            assert!(names_unknown_model(message), "{message}");
        }
        for message in ["model: field required", "the file was not found", ""] {
            assert!(!names_unknown_model(message), "{message}");
        }
    }
}
