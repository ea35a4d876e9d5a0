use super::*;
use SandboxLevel::{Confined, Isolated, None};
use agentd_protocol::sandbox::{Builder, Finding, KernelLimits, Refusal};

fn machine(landlock_abi: u32, limits: bool) -> Findings {
    Findings {
        isolated: Finding::Works,
        builder: Builder::default(),
        confined: Finding::Works,
        landlock_abi,
        root: false,
        broker: Finding::Works,
        kernel: KernelLimits {
            processes: limits,
            memory: limits,
        },
    }
}

#[test]
fn a_stronger_level_never_has_additional_gaps() {
    for guard in guards() {
        let holds = |level| guard.at(level).holds();
        assert!(
            holds(Isolated) >= holds(Confined) && holds(Confined) >= holds(None),
            "{guard:?}"
        );
    }
}

#[test]
fn a_missing_machine_feature_is_a_gap() {
    let signals = "signals to other processes";
    assert!(!gaps_in_words(Confined, Some(&machine(6, true))).contains(signals));
    assert!(gaps_in_words(Confined, Some(&machine(5, true))).contains(signals));
    assert!(!gaps_in_words(Isolated, Some(&machine(5, true))).contains(signals));
    let lacking = Findings {
        broker: Finding::Missing(Refusal {
            message: String::new(),
            fix: String::new(),
        }),
        ..machine(6, true)
    };
    let modes = "modes, owners and times of outside files";
    assert!(!gaps_in_words(Confined, Some(&machine(6, true))).contains(modes));
    assert!(gaps_in_words(Confined, Some(&lacking)).contains(modes));
    assert!(!gaps_in_words(Isolated, Some(&lacking)).contains(modes));
    let memory = guards().iter().find(|guard| guard.what == "memory").unwrap();
    assert_eq!(memory.here(Isolated, Some(&machine(6, true))), By("cgroup"));
    assert_eq!(memory.here(Isolated, Some(&machine(6, false))), WATCH);
}

/// docs/security.md has this table, word for word.
#[test]
fn the_documentation_contains_the_table() {
    let page = include_str!("../../../../docs/security.md");
    let page = page.split("## Comparison").next().unwrap();
    for guard in guards() {
        let cells = [Isolated, Confined, None].map(|level| guard.at(level).to_string());
        let line = format!("| {} | {} |", guard.what, cells.join(" | "));
        assert!(page.contains(&line), "docs/security.md lacks this line:\n{line}");
    }
    let lines = page
        .lines()
        .filter(|line| line.starts_with("| ") && line.matches(" | ").count() == 3);
    assert_eq!(
        lines.count(),
        guards().len() + 1,
        "docs/security.md has a row that the table has not"
    );
}
