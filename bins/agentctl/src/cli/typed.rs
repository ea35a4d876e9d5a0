//! The two meanings of `--context`: before the verb, `--context NAME` chooses a daemon; `show --context` shows the
//! context window of a session's model.

use std::ffi::OsString;

/// Global flags whose value is the next argument.
const WITH_VALUE: [&str; 5] = ["--socket", "--context", "--output", "-o", "--color"];
/// The verb `show` and its aliases.
const SHOW: [&str; 3] = ["show", "inspect", "describe"];

/// Rewrites `show --context` to `show --window`. After that verb, only `--context=NAME` chooses a daemon.
pub(crate) fn understood(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let (at, verb) = verb(&args);
    if SHOW.contains(&verb) {
        for arg in args.iter_mut().skip(at + 1).filter(|arg| *arg == "--context") {
            *arg = "--window".into();
        }
    }
    args
}

/// The verb and its index in the arguments; empty if there is none.
pub(crate) fn verb(args: &[OsString]) -> (usize, &str) {
    let mut at = 1;
    while let Some(arg) = args.get(at).and_then(|arg| arg.to_str()) {
        if WITH_VALUE.contains(&arg) {
            at += 2;
        } else if arg.starts_with('-') {
            at += 1;
        } else {
            return (at, arg);
        }
    }
    (at, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn show_context_is_the_window_and_elsewhere_a_daemon() {
        let check = |typed: &str, expected: &str| {
            let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(understood(words(typed)), words(expected));
        };
        check("agentctl show x --context", "agentctl show x --window");
        check("agentctl show --context x", "agentctl show --window x");
        check(
            "agentctl --context a -o json inspect x --context",
            "agentctl --context a -o json inspect x --window",
        );
        check("agentctl show x --context=a", "agentctl show x --context=a");
        check("agentctl ps --context a", "agentctl ps --context a");
        check("agentctl --context show ps", "agentctl --context show ps");
    }
}
