//! Whether a deny or ask rule applies to a call.

use super::Case;
use crate::computed::resolved;
use crate::loose::Loose;
use crate::path::{absolute, expand_home};
use crate::pattern::Pattern;
use crate::request::Subject;
use crate::rule::{Rule, Source};
use crate::scripts::directories;
use crate::shell::Analysis;
use crate::tools::{READ, WRITE};
use crate::tree::Pattern as Computed;
use crate::unmodelled::Unmodelled;
use agentd_protocol::{Verdict, VerdictKind};

impl Case<'_> {
    /// Whether a deny or ask rule applies to this call.
    pub(super) fn catches(&self, rule: &Rule) -> bool {
        if rule.restricts_whole(self.request.tool, Some(self.request.subject)) {
            return true;
        }
        let home = self.policy.home();
        let speaks = || rule.restricts(self.request.tool, Some(self.request.subject));
        match (&rule.pattern, self.request.subject) {
            (Pattern::Command(words), Subject::Command { .. }) => {
                speaks() && self.commands().any(|argv| words.catches(argv))
            }
            (Pattern::Path(pattern), Subject::Path { write, .. }) => {
                let speaks = speaks() || rule.names(if *write { WRITE } else { READ });
                let path = self.path.as_deref().unwrap_or_default();
                speaks && pattern.matches(self.request.workdir, home, path)
            }
            (Pattern::Path(pattern), Subject::Command { .. }) => {
                let (reads, writes) = (rule.names(READ), rule.names(WRITE));
                if !reads && !writes {
                    return false;
                }
                let bases = self.bases();
                let workdir = self.request.workdir;
                let matches = |path: &str| {
                    bases
                        .iter()
                        .any(|base| pattern.is_touched(workdir, home, base, path))
                };
                // The built-in rules are in force everywhere, so they leave `x*` alone.
                let ending = rule.source == Source::Builtin;
                let computed = |word: &Computed| {
                    let mut full = bases.iter().map(|base| resolved(&word.text, workdir, home, base));
                    (reads || (writes && word.writes))
                        && full.any(|word| pattern.may_be(workdir, home, &word, ending))
                };
                (reads && self.named_files().any(matches))
                    || (writes && self.written_files().any(matches))
                    || self.computed().any(computed)
            }
            (Pattern::Url(pattern), Subject::Url(_)) => speaks() && self.is_at(pattern),
            _ => false,
        }
    }

    /// The directories to which a command's relative paths may refer.
    fn bases(&self) -> Vec<String> {
        let dirs = self.analysis.iter().flat_map(directories);
        let dirs = dirs.map(|dir| absolute(self.request.workdir, &expand_home(self.policy.home(), &dir)));
        std::iter::once(self.request.workdir.to_owned())
            .chain(dirs)
            .collect()
    }

    fn commands(&self) -> impl Iterator<Item = &Vec<String>> {
        self.analysis.iter().flat_map(|analysis| &analysis.commands)
    }

    /// Words of a command that may name a file that it reads.
    fn named_files(&self) -> impl Iterator<Item = &str> {
        let analysis = self.analysis.iter();
        let words = analysis
            .clone()
            .flat_map(|analysis| &analysis.words)
            .flat_map(|word| names_in(word));
        words.chain(analysis.flat_map(|analysis| analysis.reads.iter().map(String::as_str)))
    }

    /// Words of a command whose value a shell computes.
    fn computed(&self) -> impl Iterator<Item = &Computed> {
        self.analysis.iter().flat_map(|analysis| &analysis.patterns)
    }

    pub(super) fn written_files(&self) -> impl Iterator<Item = &str> {
        self.analysis.iter().flat_map(Analysis::written)
    }

    /// The verdict of the deny rules on the parts of a command that are searched, since they cannot be parsed.
    pub(super) fn searched(&self) -> Option<Verdict> {
        let (Some(analysis), Subject::Command { command }) = (&self.analysis, self.request.subject) else {
            return None;
        };
        let unmodelled = Unmodelled::read(command, analysis).verdict(self.policy, self.request);
        if unmodelled
            .as_ref()
            .is_some_and(|found| found.kind == VerdictKind::Deny)
        {
            return unmodelled;
        }
        let loose = Loose::read(command, analysis).verdict(self.policy, self.request);
        loose.or(unmodelled)
    }
}

/// The parts of a word that may be a path: `@file`, `--option=file`, `HEAD:file`, `-ffile`.
fn names_in(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let attached = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let attached = attached.and_then(|rest| rest.get(rest.chars().next()?.len_utf8()..));
    let after = word.split(':').skip(1);
    let parts = [Some(word), value, attached.filter(|file| !file.is_empty())];
    parts
        .into_iter()
        .flatten()
        .chain(after)
        .map(|word| word.trim_start_matches(['@', '<']))
}
