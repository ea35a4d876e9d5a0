//! The best choice of points for clearing and summaries, by dynamic programming.
//!
//! A state is what the past leaves: how many steps the summary replaces, and how many steps have cleared results. Of all
//! ways to a state only the cheapest matters.

use super::{FRAME, SUMMARY, TASK, Window, Work, cost, summary_cost};

/// Tokens of a cleared result.
const STUB: u64 = 26;

#[derive(Debug, Clone, Copy)]
struct State {
    /// Steps that the summary replaces.
    told: usize,
    /// Steps whose results are gone, be they cleared or summarised.
    cleared: usize,
    usd: f64,
}

/// Sums over the first steps.
struct Sums {
    answers: Vec<u64>,
    results: Vec<u64>,
}

impl Sums {
    fn of(work: &Work) -> Self {
        let sums = |tokens: &[u64]| {
            let mut sum = 0;
            let grow = tokens.iter().map(|tokens| {
                sum += tokens;
                sum
            });
            std::iter::once(0).chain(grow).collect()
        };
        Self {
            answers: sums(&work.answers),
            results: sums(&work.results),
        }
    }

    fn answers(&self, from: usize, to: usize) -> u64 {
        at(&self.answers, to) - at(&self.answers, from)
    }

    fn results(&self, from: usize, to: usize) -> u64 {
        at(&self.results, to) - at(&self.results, from)
    }

    /// The size of a state's request after `steps` steps up to the first result that is not cleared.
    fn stable(&self, told: usize, cleared: usize) -> u64 {
        let head = if told > 0 { SUMMARY } else { 0 };
        FRAME + TASK + head + self.answers(told, cleared) + STUB * (cleared - told) as u64
    }

    fn size(&self, told: usize, cleared: usize, steps: usize) -> u64 {
        self.stable(told, cleared) + self.answers(cleared, steps) + self.results(cleared, steps)
    }
}

fn at(sums: &[u64], place: usize) -> u64 {
    sums.get(place).copied().unwrap_or_default()
}

/// The cost of the cheapest choice, where every `every`th step is a possible point.
pub(super) fn run(work: &Work, window: Window, every: usize) -> f64 {
    let sums = Sums::of(work);
    let rules = window.rules;
    // The shipped plan keeps a quarter of its target for the summary and an eighth for files.
    let target = rules.after_compaction(window.tokens, window.line);
    let room = target.saturating_sub(FRAME + (target / 4).min(8_000) + (target / 8).min(12_500));
    let keep = rules.keep_recent_tokens.min(room);
    let mut states = vec![State {
        told: 0,
        cleared: 0,
        usd: 0.0,
    }];
    let (mut verbatim, mut protected) = (0, 0);
    for (step, answer) in work.answers.iter().enumerate() {
        while sums.answers(verbatim, step) + sums.results(verbatim, step) > keep {
            verbatim += 1;
        }
        while protected < step && sums.results(protected + 1, step) >= rules.prune_protect_tokens {
            protected += 1;
        }
        let point = Point {
            sums: &sums,
            step,
            answer: *answer,
            verbatim,
            protected,
        };
        let may = step > 0 && step.is_multiple_of(every);
        let next = states.iter().flat_map(|state| {
            let changed = [point.summarised(state), point.pruned(state)]
                .into_iter()
                .flatten();
            std::iter::once(point.unchanged(state)).chain(changed.filter(move |_| may))
        });
        let fits = |state: &State| sums.size(state.told, state.cleared, step) <= window.line;
        states = cheapest(next.filter(fits).collect());
    }
    let all = states.iter().map(|state| state.usd);
    all.fold(f64::INFINITY, f64::min)
}

/// The ways from a state to the next request and its answer.
struct Point<'a> {
    sums: &'a Sums,
    step: usize,
    answer: u64,
    /// The first step that a summary now keeps verbatim.
    verbatim: usize,
    /// The first step whose result a clearing now keeps.
    protected: usize,
}

impl Point<'_> {
    /// Tokens that are sent for the first time.
    fn new_tokens(&self) -> u64 {
        match self.step.checked_sub(1) {
            Some(last) => self.sums.answers(last, self.step) + self.sums.results(last, self.step),
            None => FRAME + TASK,
        }
    }

    /// Tokens that the request before this one has left in the cache.
    fn sent(&self, state: &State) -> u64 {
        self.sums.size(state.told, state.cleared, self.step) - self.new_tokens()
    }

    fn unchanged(&self, state: &State) -> State {
        State {
            usd: state.usd + cost(self.sent(state), self.new_tokens(), self.answer),
            ..*state
        }
    }

    fn summarised(&self, state: &State) -> Option<State> {
        let cleared = state.cleared.max(self.verbatim);
        let write = self.sums.size(self.verbatim, cleared, self.step) - FRAME;
        let asking = summary_cost(self.sent(state), self.new_tokens());
        (self.verbatim > state.told).then(|| State {
            told: self.verbatim,
            cleared,
            usd: state.usd + asking + cost(FRAME, write, self.answer),
        })
    }

    fn pruned(&self, state: &State) -> Option<State> {
        let (told, cleared) = (state.told, self.protected);
        (cleared > state.cleared).then(|| {
            let read = self.sums.stable(told, state.cleared);
            let write = self.sums.size(told, cleared, self.step) - read;
            State {
                cleared,
                usd: state.usd + cost(read, write, self.answer),
                ..*state
            }
        })
    }
}

/// The cheapest way to each state.
fn cheapest(mut states: Vec<State>) -> Vec<State> {
    states.sort_by(|one, other| {
        let place = |state: &State| (state.told, state.cleared);
        place(one).cmp(&place(other)).then(one.usd.total_cmp(&other.usd))
    });
    states.dedup_by_key(|state| (state.told, state.cleared));
    states
}
