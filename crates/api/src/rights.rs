//! Where and how the sessions of a caller may work. Pure.
//!
//! Invariant: I7. A token has the narrowest rights unless its creator names others, and a right that cannot be read is none.

use agentd_protocol::{Budget, Fault, PermissionMode, TokenRights};
use agentd_settings::url_is_below;
use std::path::{Path, PathBuf};

/// The entry of `sources` that stands for every URL.
const EVERY_URL: &str = "*";

/// The rights of a caller.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rights<'a> {
    /// Of a local user.
    All,
    /// Of a token, and whether it has the scope `approve`.
    Token(&'a TokenRights, bool),
}

/// What a directory is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A session works in it.
    Work,
    /// A session works in a clone or a copy of it.
    Copy,
    /// The changes of a session are brought to it.
    Target,
}

impl<'a> Rights<'a> {
    /// The rights as those of a token.
    pub(crate) fn owned(self) -> TokenRights {
        match self {
            Self::All => TokenRights::all(),
            Self::Token(rights, _) => rights.clone(),
        }
    }

    /// The directories that may be used this way, with everything below them; `None`: all.
    pub(crate) fn dirs(self, how: Use) -> Option<Vec<&'a Path>> {
        let Self::Token(rights, _) = self else { return None };
        let sources = rights.sources.iter().filter(|_| how == Use::Copy);
        let places = rights.dirs.iter().chain(sources).map(Path::new);
        Some(places.filter(|place| place.is_absolute()).collect())
    }

    /// Whether a URL may be cloned. `listed`: `workspace.urls` names it.
    pub(crate) fn may_clone(self, url: &str, listed: bool) -> bool {
        let Self::Token(rights, _) = self else { return true };
        let mut urls = rights
            .sources
            .iter()
            .filter(|entry| !entry.starts_with('/'))
            .peekable();
        if urls.peek().is_none() {
            return listed;
        }
        urls.any(|entry| entry == EVERY_URL || url_is_below(url, std::slice::from_ref(entry)))
    }

    /// The least strict mode of its sessions.
    pub(crate) const fn ceiling(self) -> PermissionMode {
        match self {
            Self::All => PermissionMode::Yolo,
            Self::Token(rights, _) => rights.mode,
        }
    }

    /// Refuses a mode above the ceiling.
    pub(crate) fn mode(self, asked: PermissionMode) -> Result<(), Fault> {
        if asked.stricter(self.ceiling()) == asked {
            return Ok(());
        }
        let message = format!(
            "the caller may not use the mode {asked}: its sessions have at most the mode {}",
            self.ceiling()
        );
        Err(Fault::denied("mode_beyond", message)
            .hint(format!("use a token that was created with --mode {asked}")))
    }

    /// Whether it may make a session less strict.
    pub(crate) const fn may_loosen(self) -> bool {
        matches!(self, Self::All | Self::Token(_, true))
    }

    /// Refuses to make a session less strict without the scope `approve`: that would answer its questions in advance.
    pub(crate) fn loosen(self, what: &str) -> Result<(), Fault> {
        match self.may_loosen() {
            true => Ok(()),
            false => Err(Fault::denied(
                "needs_approve",
                format!("{what} makes the session less strict, which needs the scope approve"),
            )
            .hint("use a token with the scope approve, or leave the setting as it is")),
        }
    }

    /// Refuses to change the mode of a session beyond these rights.
    pub(crate) fn change_mode(self, now: PermissionMode, asked: PermissionMode) -> Result<(), Fault> {
        self.mode(asked)?;
        if asked.stricter(now) == asked {
            return Ok(());
        }
        self.loosen(&format!("the mode {asked}"))
    }

    /// Refuses a budget that allows more than the one so far.
    pub(crate) fn change_budget(self, now: &Budget, asked: &Budget) -> Result<(), Fault> {
        if within(now, asked) {
            return Ok(());
        }
        self.loosen("a larger budget")
    }

    /// Refuses more steps per turn than a session has by default. `None` is no limit.
    pub(crate) fn change_steps(self, default: Option<u32>, asked: Option<u32>) -> Result<(), Fault> {
        match (default, asked) {
            (None, _) => Ok(()),
            (Some(default), Some(asked)) if asked <= default => Ok(()),
            (Some(_), _) => self.loosen("a larger max_turns"),
        }
    }

    /// Refuses rules that allow something.
    pub(crate) fn rules(self, rules: &[String]) -> Result<(), Fault> {
        let narrows = |rule: &String| {
            let verb = rule.split_whitespace().next().unwrap_or_default();
            matches!(verb, "deny" | "ask")
        };
        match rules.iter().find(|rule| !narrows(rule)) {
            Some(rule) => self.loosen(&format!("the rule {:?}", crate::words::cut(rule))),
            None => Ok(()),
        }
    }

    /// Refuses to grant what the caller does not have.
    pub(crate) fn grant(self, asked: &TokenRights) -> Result<(), Fault> {
        let Self::Token(mine, _) = self else { return Ok(()) };
        let beyond = |what: String| {
            let message = format!("the token cannot grant {what}, which is beyond its own rights");
            Err(Fault::denied("rights_beyond", message))
        };
        let below = |place: &str, mine: &[String]| {
            let mut roots = mine.iter().map(Path::new).filter(|root| root.is_absolute());
            roots.any(|root| Path::new(place).starts_with(root))
        };
        if let Some(dir) = asked.dirs.iter().find(|dir| !below(dir, &mine.dirs)) {
            return beyond(format!("the directory {dir}"));
        }
        let has = |source: &String| match source.as_str() {
            path if path.starts_with('/') => below(path, &mine.dirs) || below(path, &mine.sources),
            EVERY_URL => mine.sources.iter().any(|entry| entry == EVERY_URL),
            url => self.may_clone(url, false),
        };
        if let Some(source) = asked.sources.iter().find(|source| !has(source)) {
            return beyond(format!("the source {source}"));
        }
        if asked.mode.stricter(mine.mode) != asked.mode {
            return beyond(format!("the mode {}", asked.mode));
        }
        Ok(())
    }
}

/// Whether a budget allows at most what another one does; 0 is no limit.
fn within(limit: &Budget, asked: &Budget) -> bool {
    let number = |limit: u64, asked: u64| limit == 0 || (asked != 0 && asked <= limit);
    let usd = limit.usd <= 0.0 || (asked.usd > 0.0 && asked.usd <= limit.usd);
    usd && number(limit.tokens, asked.tokens)
        && number(limit.time_ms, asked.time_ms)
        && number(limit.steps, asked.steps)
}

/// Checks the rights that a creator names, and tidies their paths.
pub(crate) fn checked(rights: TokenRights) -> Result<TokenRights, Fault> {
    let bad = |what: &str, entry: &str, fix: &str| {
        let message = format!("{what} {:?} is not allowed", crate::words::cut(entry));
        Err(Fault::invalid("bad_rights", message).hint(fix.to_owned()))
    };
    if rights.dirs.len() + rights.sources.len() > MAX_ENTRIES {
        let message = format!("a token can have at most {MAX_ENTRIES} directories and sources");
        return Err(Fault::invalid("too_many_rights", message));
    }
    let mut tidied = TokenRights {
        mode: rights.mode,
        ..TokenRights::default()
    };
    for dir in &rights.dirs {
        match tidy(dir) {
            Some(dir) => tidied.dirs.push(dir),
            None => return bad("the directory", dir, "give an absolute path without .."),
        }
    }
    for source in rights.sources {
        let fits = |url: &str| {
            url.len() <= MAX_URL
                && url.contains("://")
                && !url.chars().any(|c| c.is_control() || c.is_whitespace())
        };
        match tidy(&source) {
            Some(dir) => tidied.sources.push(dir),
            None if source == EVERY_URL || fits(&source) => tidied.sources.push(source),
            None => {
                let fix = "give an absolute path, the beginning of a URL such as https://git.example/team, or * for every URL";
                return bad("the source", &source, fix);
            }
        }
    }
    Ok(tidied)
}

/// The most directories and sources of a token.
const MAX_ENTRIES: usize = 64;
/// The longest beginning of a URL.
const MAX_URL: usize = 2_048;

/// An absolute path without `..`, `.` and repeated slashes.
fn tidy(path: &str) -> Option<String> {
    use std::path::Component::{Normal, RootDir};
    let fits = path.starts_with('/') && !path.contains('\0');
    let parts: PathBuf = Path::new(path).components().collect();
    let plain = parts.components().all(|part| matches!(part, RootDir | Normal(_)));
    (fits && plain).then(|| parts.display().to_string())
}

#[cfg(test)]
mod tests;
