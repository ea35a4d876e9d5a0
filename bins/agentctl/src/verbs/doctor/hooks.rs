//! Checks that the programs of the operator's hooks exist.

use crate::verbs::doctor::Check;
use agentd_settings::{HookConfig, HooksConfig};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// `None` if there are no hooks.
pub(super) fn check(hooks: &HooksConfig) -> Option<Check> {
    if hooks.run.is_empty() {
        return None;
    }
    let bad: Vec<_> = hooks
        .run
        .iter()
        .filter_map(|hook| trouble(hook).map(|why| (hook, why)))
        .collect();
    if bad.is_empty() {
        let count = hooks.run.len();
        return Some(Check::ok("hooks", format!("{count}; all programs found")));
    }
    let told: Vec<_> = bad
        .iter()
        .map(|(hook, why)| format!("{}: {why}", hook.name))
        .collect();
    let message = told.join("; ");
    let fix = "put an executable program there, or fix hooks.run; then restart agentd";
    let judges = bad.iter().any(|(hook, _)| hook.event.prevents());
    let then = if judges {
        " (agentd blocks or asks about calls that need such a hook)"
    } else {
        ""
    };
    Some(Check::fail("hooks", format!("{message}{then}"), fix))
}

fn trouble(hook: &HookConfig) -> Option<String> {
    let program = hook.command.first()?;
    match std::fs::metadata(Path::new(program)) {
        Err(error) => Some(format!("{program}: {error}")),
        Ok(meta) if !meta.is_file() => Some(format!("{program} is not a file")),
        Ok(meta) if meta.permissions().mode() & 0o111 == 0 => Some(format!("{program} is not executable")),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::doctor::Level;
    use agentd_protocol::HookEvent;

    fn of(programs: &[&str]) -> Option<Level> {
        let run = programs
            .iter()
            .map(|program| HookConfig::new("h", HookEvent::Stop, &[program]));
        let hooks = HooksConfig {
            run: run.collect(),
            ..HooksConfig::default()
        };
        check(&hooks).map(|check| check.level)
    }

    #[test]
    fn a_hook_without_a_program_to_run_is_a_failure() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["/bin/sh"]), Some(Level::Ok));
        for bad in ["/nowhere/gone", "/etc/passwd", "/etc"] {
            assert_eq!(of(&["/bin/sh", bad]), Some(Level::Fail), "{bad}");
        }
    }
}
