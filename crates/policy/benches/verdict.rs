//! Benchmarks the cost of a verdict: 100 rules, a simple command and a long one.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must stop")]

use agentd_policy::{Policy, Request, Rule, Source, Subject, judge};
use agentd_protocol::{EffectClass, PermissionMode, VerdictKind};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn verdict(c: &mut Criterion) {
    let rules = (0..100).map(|n| {
        let rule = Rule::new(
            VerdictKind::Allow,
            &format!("Bash(tool{n} run:*)"),
            Source::Operator,
        );
        rule.expect("a rule")
    });
    let policy = Policy::new(Some("/home/ana")).with(rules.collect());
    let mut group = c.benchmark_group("verdict with 100 rules");
    for (name, command) in [
        ("plain", "tool99 run --all".to_owned()),
        (
            "long",
            "tool1 run a | tool2 run b && X=1 tool3 run \"$(tool4 run c)\"; ".repeat(10),
        ),
    ] {
        let subject = Subject::Command { command };
        let request = Request {
            tool: "Bash",
            subject: &subject,
            effect: EffectClass::Exec,
            mode: PermissionMode::Default,
            workdir: "/work",
        };
        group.bench_function(name, |b| b.iter(|| judge(&policy, black_box(&request))));
    }
    group.finish();
}

criterion_group!(benches, verdict);
criterion_main!(benches);
