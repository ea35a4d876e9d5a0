//! From a request to a verdict: deny, then the mode, then ask, then allow; what is left is asked about.

use crate::danger::{Danger, danger};
use crate::path::{absolute, expand_home, inside, name_hidden};
use crate::pattern::{Pattern, exact_path};
use crate::policy::Policy;
use crate::request::{Judgement, Request, Subject};
use crate::rule::Rule;
use crate::several::several;
use crate::shell::{Analysis, analyse};
use crate::url::{is_plain, site};
use crate::words::exact_pattern;
use agentd_protocol::{EffectClass, PermissionMode, Scope, Verdict, VerdictKind};

/// Judges a call.
#[must_use]
pub fn judge(policy: &Policy, request: &Request<'_>) -> Judgement {
    if let Subject::Paths { write, paths } = request.subject {
        return several(policy, request, *write, paths);
    }
    let analysis = match request.subject {
        Subject::Command { command } => Some(analyse(command)),
        _ => None,
    };
    let path = match request.subject {
        Subject::Path { path, .. } => Some(absolute(request.workdir, &expand_home(policy.home(), path))),
        _ => None,
    };
    let case = Case {
        policy,
        request,
        analysis,
        path,
    };
    case.judgement(case.verdict())
}

struct Case<'a> {
    policy: &'a Policy,
    request: &'a Request<'a>,
    analysis: Option<Analysis>,
    path: Option<String>,
}

fn verdict(kind: VerdictKind, rule: impl Into<String>, reason: impl Into<String>) -> Verdict {
    Verdict {
        kind,
        rule: rule.into(),
        reason: reason.into(),
    }
}

fn by_rule(rule: &Rule) -> Verdict {
    let word = match rule.kind {
        VerdictKind::Allow => "allows",
        VerdictKind::Ask => "asks about",
        VerdictKind::Deny => "forbids",
    };
    verdict(
        rule.kind,
        &rule.text,
        format!("the {} rule {} {word} this", rule.source, rule.text),
    )
}

impl Case<'_> {
    fn verdict(&self) -> Verdict {
        let caught = |kind| self.policy.of(kind).find(|rule| self.catches(rule)).map(by_rule);
        if let Some(denied) = caught(VerdictKind::Deny) {
            return denied;
        }
        let reads = matches!(self.request.effect, EffectClass::Read | EffectClass::None) && !self.writes();
        if self.request.mode == PermissionMode::Plan && !reads {
            return verdict(
                VerdictKind::Deny,
                "mode:plan",
                "in mode plan only reading is allowed",
            );
        }
        if let Some(unreadable) = self.unreadable() {
            return unreadable;
        }
        if self.request.mode == PermissionMode::Yolo {
            return verdict(
                VerdictKind::Allow,
                "mode:yolo",
                "mode yolo allows what no rule forbids",
            );
        }
        if let Some(asked) = caught(VerdictKind::Ask) {
            return asked;
        }
        if let Err(why) = self.sayable() {
            return verdict(VerdictKind::Ask, "gate:not_plain", why);
        }
        self.allowed().unwrap_or_else(|| self.by_mode(reads))
    }

    /// What cannot be read is asked about in every mode: a deny rule may well forbid what is in it.
    fn unreadable(&self) -> Option<Verdict> {
        let analysis = self.analysis.as_ref().filter(|analysis| analysis.unread)?;
        let why = analysis.segments.as_ref().err().copied().unwrap_or_default();
        let nul = matches!(self.request.subject, Subject::Command { command } if command.contains('\0'));
        let kind = if nul { VerdictKind::Deny } else { VerdictKind::Ask };
        Some(verdict(
            kind,
            "gate:unreadable",
            format!("the command has {why}, so it cannot be judged"),
        ))
    }

    fn by_mode(&self, reads: bool) -> Verdict {
        let mode = if self.request.mode == PermissionMode::AcceptEdits {
            "mode:accept-edits"
        } else {
            "mode:default"
        };
        let local = self
            .path
            .as_ref()
            .is_none_or(|path| inside(self.request.workdir, path).is_some());
        if reads && local {
            return verdict(VerdictKind::Allow, mode, "reading is allowed");
        }
        let edits = self.path.is_some() && local && self.request.effect == EffectClass::Write;
        if edits && self.request.mode == PermissionMode::AcceptEdits {
            return verdict(
                VerdictKind::Allow,
                mode,
                "writing in the working directory is allowed",
            );
        }
        let remote = matches!(self.request.subject, Subject::Remote { .. });
        let reason = match self.request.effect {
            _ if remote => "the tool of a server needs an answer in this mode",
            EffectClass::Read | EffectClass::None => "it reads outside the working directory",
            EffectClass::Write => "writing files needs an answer in this mode",
            EffectClass::Exec => "no rule allows every part of this command",
            EffectClass::Network => "reaching the network needs an answer in this mode",
        };
        verdict(VerdictKind::Ask, mode, reason)
    }

    fn writes(&self) -> bool {
        matches!(
            self.request.subject,
            Subject::Path { write: true, .. } | Subject::Paths { write: true, .. } | Subject::Command { .. }
        )
    }

    /// Whether a rule or a mode may allow it at all, or why a person has to look.
    fn sayable(&self) -> Result<(), String> {
        let odd = match self.request.subject {
            Subject::Path { path, .. } => path.contains('\n') || !name_hidden(path).is_empty(),
            Subject::Url(url) => !is_plain(url),
            Subject::Paths { .. } | Subject::Command { .. } | Subject::Remote { .. } | Subject::Nothing => {
                false
            }
        };
        if odd {
            return Err("it has unusual characters".to_owned());
        }
        match self.analysis.as_ref().map(|analysis| &analysis.segments) {
            Some(Err(why)) => Err(format!("the command has {why}, which is always asked about")),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Whether a deny or ask rule speaks of this call.
    fn catches(&self, rule: &Rule) -> bool {
        if rule.restricts_whole(self.request.tool) {
            return true;
        }
        let home = self.policy.home();
        match (&rule.pattern, self.request.subject) {
            (Pattern::Command(words), Subject::Command { .. }) => {
                rule.restricts(self.request.tool) && self.commands().any(|argv| words.catches(argv))
            }
            (Pattern::Path(pattern), Subject::Path { write, .. }) => {
                let speaks =
                    rule.restricts(self.request.tool) || rule.names(if *write { "Write" } else { "Read" });
                let path = self.path.as_deref().unwrap_or_default();
                speaks && pattern.matches(self.request.workdir, home, path)
            }
            (Pattern::Path(pattern), Subject::Command { .. }) => {
                let matches = |path: &str| {
                    let path = expand_home(home, path);
                    pattern.matches(self.request.workdir, home, &absolute(self.request.workdir, &path))
                };
                (rule.names("Read") && self.named_files().any(matches))
                    || (rule.names("Write") && self.written_files().any(matches))
            }
            (Pattern::Url(pattern), Subject::Url(url)) => {
                rule.names(self.request.tool) && pattern.matches(url)
            }
            _ => false,
        }
    }

    fn commands(&self) -> impl Iterator<Item = &Vec<String>> {
        self.analysis.iter().flat_map(|analysis| &analysis.commands)
    }

    /// Words of a command that may name a file it reads.
    fn named_files(&self) -> impl Iterator<Item = &str> {
        let words = self
            .analysis
            .iter()
            .flat_map(|analysis| &analysis.words)
            .flat_map(|word| {
                let value = word.split_once('=').map(|(_, value)| value);
                [Some(word.trim_start_matches(['@', '<'])), value]
                    .into_iter()
                    .flatten()
            });
        words.chain(
            self.analysis
                .iter()
                .flat_map(|analysis| analysis.reads.iter().map(String::as_str)),
        )
    }

    fn written_files(&self) -> impl Iterator<Item = &str> {
        let writes = self
            .analysis
            .iter()
            .flat_map(|analysis| analysis.writes.iter().map(String::as_str));
        writes.filter(|path| !matches!(*path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty"))
    }

    /// The allow rules that together cover everything, if they do.
    fn allowed(&self) -> Option<Verdict> {
        let Some(Ok(segments)) = self.analysis.as_ref().map(|analysis| &analysis.segments) else {
            return self
                .policy
                .of(VerdictKind::Allow)
                .find(|rule| self.allows(rule))
                .map(by_rule);
        };
        let mut last = None;
        for argv in segments {
            last = Some(
                self.policy
                    .of(VerdictKind::Allow)
                    .find(|rule| self.covers(rule, argv))?,
            );
        }
        last.map(by_rule)
    }

    /// Whether an allow rule covers one part of a plain command.
    fn covers(&self, rule: &Rule, argv: &[String]) -> bool {
        if !rule.names(self.request.tool) {
            return false;
        }
        let danger = danger(argv);
        match &rule.pattern {
            Pattern::Any => danger.is_none(),
            Pattern::Command(words) => {
                let named = match danger {
                    None => true,
                    Some(Danger::Word(at)) => words.len() > at,
                    Some(Danger::Everything) => false,
                };
                words.covers(argv) && (named || !words.is_prefix())
            }
            Pattern::Path(_) | Pattern::Url(_) => false,
        }
    }

    /// Whether an allow rule covers a call that is no command.
    fn allows(&self, rule: &Rule) -> bool {
        if !rule.names(self.request.tool) {
            return false;
        }
        match (&rule.pattern, self.request.subject) {
            (Pattern::Any, _) => true,
            (Pattern::Path(pattern), Subject::Path { .. }) => {
                let home = self.policy.home();
                let path = self.path.as_deref().unwrap_or_default();
                (home.is_some() || !pattern.needs_home()) && pattern.matches(self.request.workdir, home, path)
            }
            (Pattern::Url(pattern), Subject::Url(url)) => pattern.matches(url),
            _ => false,
        }
    }

    /// The rule that would allow exactly this, when it can be said safely.
    fn grant(&self) -> Option<String> {
        let tool = self.request.tool;
        match self.request.subject {
            Subject::Command { .. } => match self.analysis.as_ref()?.segments.as_deref() {
                Ok([argv]) => exact_pattern(argv).map(|pattern| format!("{tool}({pattern})")),
                _ => None,
            },
            Subject::Path { path, .. } => exact_path(self.request.workdir, self.policy.home(), path)
                .map(|pattern| format!("{tool}({pattern})")),
            Subject::Url(url) => site(url).map(|pattern| format!("{tool}({pattern})")),
            Subject::Paths { .. } => None,
            Subject::Remote { .. } | Subject::Nothing => Some(tool.to_owned()),
        }
        .filter(|text| Rule::new(VerdictKind::Allow, text, crate::rule::Source::Always).is_ok())
    }

    fn judgement(&self, verdict: Verdict) -> Judgement {
        // Only what a mode asks about can be allowed for longer: a rule that asks beats a rule that allows.
        // It is not looked for without need: that builds patterns, which costs more than the verdict.
        let longer = verdict.kind == VerdictKind::Ask && verdict.rule.starts_with("mode:");
        let grant = longer.then(|| self.grant()).flatten();
        let scopes = match (verdict.kind, &grant) {
            (VerdictKind::Ask, Some(_)) => vec![Scope::Once, Scope::Session, Scope::Always],
            (VerdictKind::Ask, None) => vec![Scope::Once],
            (VerdictKind::Allow | VerdictKind::Deny, _) => Vec::new(),
        };
        let (title, detail) = self.words();
        Judgement {
            risks: self.risks(&detail),
            verdict,
            grant,
            scopes,
            title,
            detail,
        }
    }

    fn words(&self) -> (String, String) {
        match self.request.subject {
            Subject::Command { command } => (format!("Run {}", one_line(command)), command.clone()),
            Subject::Path { write, path } => {
                let verb = if *write { "Change" } else { "Read" };
                let shown = self
                    .path
                    .as_deref()
                    .and_then(|path| inside(self.request.workdir, path))
                    .unwrap_or(path);
                (
                    format!("{verb} {}", one_line(shown)),
                    self.path.clone().unwrap_or_default(),
                )
            }
            Subject::Url(url) => (format!("Fetch {}", one_line(url)), url.clone()),
            Subject::Paths { paths, .. } => (
                format!("{} {} files", self.request.tool, paths.len()),
                paths.join("\n"),
            ),
            Subject::Remote { arguments } => (self.request.tool.to_owned(), arguments.clone()),
            Subject::Nothing => (self.request.tool.to_owned(), String::new()),
        }
    }

    fn risks(&self, detail: &str) -> Vec<String> {
        let mut risks = Vec::new();
        let hidden = name_hidden(detail);
        if !hidden.is_empty() {
            risks.push(format!("it has hidden characters: {}", hidden.join(" ")));
        }
        if let Some(analysis) = &self.analysis {
            match &analysis.segments {
                Err(why) => risks.push(format!("it has {why}")),
                Ok(segments) if segments.iter().any(|argv| danger(argv).is_some()) => {
                    risks.push("it can run other programs or write files".to_owned());
                }
                Ok(_) => {}
            }
            let written: Vec<&str> = self.written_files().take(4).collect();
            if !written.is_empty() {
                risks.push(format!("it writes {}", written.join(", ")));
            }
        }
        let outside = |path: &String| inside(self.request.workdir, path).is_none();
        if self.path.as_ref().is_some_and(outside) {
            risks.push("it is outside the working directory".to_owned());
        }
        risks
    }
}

/// The first line of a text, cut at 100 characters.
fn one_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let mut short: String = first.chars().take(100).collect();
    if short.len() < first.len() || lines.next().is_some() {
        short.push('…');
    }
    short
}
