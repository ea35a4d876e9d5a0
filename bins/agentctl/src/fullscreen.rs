//! The full-screen mode: `agentd_tui` has the views, this module has the terminal, the connection and the clock.

pub(crate) mod fleet;
mod history;
mod job;
mod palette;
mod picture;
mod requests;
mod session;
pub(crate) mod snapshot;
mod stage;
mod terminal;

pub(crate) use session::follow;

use crate::cli::Color;
use crate::ctx::Ctx;
use crate::environment::Environment;
use agentd_tui::{Depth, Ground, Theme};

/// Events that a session's view begins with; earlier ones are loaded when the person scrolls there.
pub(crate) const TAIL: u32 = 500;

/// Whether a person is at a terminal that can be drawn on, and has not asked for lines.
pub(crate) fn wanted(ctx: &Ctx, no_tui: bool) -> bool {
    let off = ctx.environment.get("AGENTCTL_TUI") == Some("0");
    ctx.out.terminal.draws() && !no_tui && !off && ctx.out.human() && !ctx.out.quiet
}

/// The styles for the person's terminal.
pub(crate) fn theme(environment: &Environment, color: Color) -> Theme {
    let term = environment.get("TERM").unwrap_or_default();
    let plain = color == Color::Never || (color == Color::Auto && environment.get("NO_COLOR").is_some());
    let depth = if plain {
        Depth::None
    } else if matches!(environment.get("COLORTERM"), Some("truecolor" | "24bit")) {
        Depth::True
    } else if term.contains("256color") {
        Depth::Indexed
    } else {
        Depth::Ansi
    };
    // COLORFGBG ends in the background's number in the palette; 7 and 15 are the light ones.
    let reported = environment
        .get("COLORFGBG")
        .and_then(|pair| pair.rsplit(';').next());
    let light = match environment.get("AGENTCTL_THEME") {
        Some(theme) => theme == "light",
        None => matches!(reported, Some("7" | "15")),
    };
    Theme::new(depth, if light { Ground::Light } else { Ground::Dark })
}

/// The two letters of `ctrl-p,ctrl-q`; these two if the setting is unusable.
pub(crate) fn detach_keys(setting: Option<&str>) -> (char, char) {
    let letter = |key: &str| {
        let name = key.trim().strip_prefix("ctrl-")?;
        let mut letters = name.chars();
        letters
            .next()
            .filter(|c| c.is_ascii_lowercase() && letters.next().is_none())
    };
    let keys = setting.and_then(|setting| setting.split_once(','));
    keys.and_then(|(first, second)| Some((letter(first)?, letter(second)?)))
        .unwrap_or(('p', 'q'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_theme_follows_the_environment() {
        let theme = |variables: &[(&str, &str)], color| {
            let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
            let theme = theme(&Environment::new(variables, None), color);
            (theme.depth, theme.ground)
        };
        let (xterm, full) = (("TERM", "xterm-256color"), ("COLORTERM", "truecolor"));
        assert_eq!(theme(&[], Color::Auto), (Depth::Ansi, Ground::Dark));
        assert_eq!(theme(&[xterm], Color::Auto), (Depth::Indexed, Ground::Dark));
        assert_eq!(theme(&[xterm, full], Color::Auto), (Depth::True, Ground::Dark));
        let none = [xterm, full, ("NO_COLOR", "1"), ("COLORFGBG", "0;15")];
        assert_eq!(theme(&none, Color::Auto), (Depth::None, Ground::Light));
        assert_eq!(theme(&none, Color::Always).0, Depth::True);
        assert_eq!(
            theme(&[("AGENTCTL_THEME", "light")], Color::Never),
            (Depth::None, Ground::Light)
        );
    }

    #[test]
    fn the_keys_that_detach_can_be_chosen() {
        assert_eq!(detach_keys(None), ('p', 'q'));
        assert_eq!(detach_keys(Some("ctrl-a, ctrl-d")), ('a', 'd'));
        assert_eq!(detach_keys(Some("alt-a,d")), ('p', 'q'));
    }
}
