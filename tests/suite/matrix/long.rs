//! The long matrix: other hits of every point, by a seed. `just matrix` runs it; otherwise it does nothing.

use super::{Action, Cell, TABLES, run};

/// A small generator; equal seeds make equal runs.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Not every scenario reaches later hits than these.
const LATEST: u64 = 12;

#[expect(clippy::disallowed_methods, reason = "the recipe says how much is wanted")]
fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_i2_i3_i4_i6_faults_at_random_hits() {
    let rounds = asked("AGENTD_MATRIX_ROUNDS").unwrap_or(1);
    let seed = asked("AGENTD_MATRIX_SEED").unwrap_or(1);
    let mut dice = Dice(seed.max(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut cells = Vec::new();
    for _ in 0..rounds {
        // The points that every step of every session passes.
        for (scenario, points) in TABLES.iter().take(2) {
            for (point, _) in *points {
                if point.contains("session.create") {
                    continue;
                }
                let action = Action::ALL[usize::try_from(dice.below(3)).unwrap_or(0)];
                // A session has three commands, each other session two, and one turn each.
                let latest = if point.contains("turn.finished") { 3 } else { 6 };
                let hit = 1 + dice.below(latest.min(LATEST));
                cells.push(Cell {
                    scenario: *scenario,
                    point: (*point).to_owned(),
                    action,
                    hit,
                });
            }
        }
    }
    run(cells).await;
}
