//! Runs every target on its corpus and on mutations of it. `AGENTD_FUZZ_RUNS` makes the run longer, `AGENTD_FUZZ_SEED`
//! varies it; the input of a failure is saved to a file and should be added to the corpus together with the fix.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test: how long and from which seed is asked once, and the input of a failure is told"
)]

use agentd_fuzz::{Mutator, TARGETS, corpus, target};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn try_input(name: &str, input: &[u8], from: &str) {
    let holds = target(name).unwrap();
    if let Err(why) = catch_unwind(AssertUnwindSafe(|| holds(input))) {
        let file = std::env::temp_dir().join(format!("agentd-fuzz-{name}-{}", std::process::id()));
        std::fs::write(&file, input).unwrap();
        eprintln!("{name}: {from}: the input is in {}", file.display());
        std::panic::resume_unwind(why);
    }
}

fn replay(name: &str, runs: u64) {
    let corpus = corpus(name);
    assert!(corpus.len() > 1, "{name} has a corpus");
    for (path, input) in &corpus {
        try_input(name, input, &path.display().to_string());
    }
    let (runs, seed) = (number("AGENTD_FUZZ_RUNS", runs), number("AGENTD_FUZZ_SEED", 1));
    for run in 0..runs {
        let mut mutator = Mutator::new(seed.wrapping_mul(1 << 32).wrapping_add(run));
        let (input, other) = (mutator.below(corpus.len()), mutator.below(corpus.len()));
        let changed = mutator.change(&corpus[input].1, &corpus[other].1);
        try_input(name, &changed, &format!("seed {seed}, run {run}"));
    }
}

macro_rules! replays {
    ($($test:ident: $name:literal, $runs:literal;)*) => {
        $(#[test]
        fn $test() {
            replay($name, $runs);
        })*

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$($name),*];
            assert!(TARGETS.iter().all(|(name, _)| replayed.contains(name)));
            assert_eq!(TARGETS.len(), replayed.len());
        }
    };
}

replays! {
    i6_frames: "wire", 4_000;
    i2_imports: "import", 600;
    configurations: "settings", 250;
    i7_command_lines: "shell", 3_000;
    patches: "patch", 3_000;
    terminals: "terminal", 3_000;
    i2_logs: "fold", 300;
    i6_streams: "decoder", 800;
    typed_lines: "typed", 4_000;
}

#[test]
fn a_seed_gives_the_same_inputs_again() {
    let inputs = |seed| {
        let mut mutator = Mutator::new(seed);
        (0..50)
            .map(|_| mutator.change(b"echo hello", b"other"))
            .collect::<Vec<_>>()
    };
    assert_eq!(inputs(3), inputs(3));
    assert_ne!(inputs(3), inputs(4));
}
