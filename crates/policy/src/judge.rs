//! From a request to a verdict: deny, then the mode, then ask, then allow; anything else needs an approval.

mod catches;
mod said;

use crate::danger::{Danger, danger};
use crate::guarded::{Guarded, guarded};
use crate::path::{absolute, expand_home, inside, name_hidden};
use crate::pattern::{Pattern, exact_path};
use crate::policy::Policy;
use crate::request::{Judgement, Request, Subject};
use crate::rule::{Rule, Source, VERSION};
use crate::several::several;
use crate::shell::{Analysis, analyse};
use crate::url::{Address, UrlPattern, is_plain, site};
use crate::words::exact_pattern;
use agentd_protocol::{EffectClass, PermissionMode, Scope, Verdict, VerdictKind};
use said::one_line;

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
    let address = match request.subject {
        Subject::Url(url) => Some(Address::read(url)),
        _ => None,
    };
    let guarded = guarded(policy, request, path.as_deref(), analysis.as_ref());
    let case = Case {
        policy,
        request,
        analysis,
        path,
        address,
        guarded,
    };
    case.judgement(case.verdict())
}

struct Case<'a> {
    policy: &'a Policy,
    request: &'a Request<'a>,
    analysis: Option<Analysis>,
    path: Option<String>,
    address: Option<Address>,
    /// The protected paths that it writes.
    guarded: Vec<Guarded>,
}

pub(crate) fn verdict(kind: VerdictKind, rule: impl Into<String>, reason: impl Into<String>) -> Verdict {
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
            return verdict(VerdictKind::Deny, "mode:plan", "mode plan allows only reading");
        }
        if let Some(unreadable) = self.unreadable() {
            return unreadable;
        }
        if let Some(decided) = self.yolo() {
            return decided;
        }
        if let Some(asked) = caught(VerdictKind::Ask) {
            return asked;
        }
        if let Err(why) = self.sayable() {
            return verdict(VerdictKind::Ask, "gate:not_plain", why);
        }
        if let Some(allowed) = self.allowed() {
            return self.searched().unwrap_or(allowed);
        }
        match self.guarded.first() {
            Some(guarded) => verdict(VerdictKind::Ask, "gate:protected", guarded.why()),
            None => self.by_mode(reads),
        }
    }

    /// The verdict of mode yolo: allows everything except what a deny rule may forbid, and git metadata.
    fn yolo(&self) -> Option<Verdict> {
        if self.request.mode != PermissionMode::Yolo {
            return None;
        }
        if let Some(found) = self.searched() {
            return Some(found);
        }
        let asked = self.guarded.iter().any(Guarded::in_every_mode);
        (!asked).then(|| {
            verdict(
                VerdictKind::Allow,
                "mode:yolo",
                "mode yolo allows what no rule forbids",
            )
        })
    }

    /// An unreadable command needs an approval in every mode: a deny rule may forbid its contents.
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
            _ if remote => "tools of tool servers need approval in this mode",
            EffectClass::Read | EffectClass::None => "it reads outside the working directory",
            EffectClass::Write => "writing files needs approval in this mode",
            EffectClass::Exec => "no rule allows every part of this command",
            EffectClass::Network => "network access needs approval in this mode",
        };
        verdict(VerdictKind::Ask, mode, reason)
    }

    fn writes(&self) -> bool {
        matches!(
            self.request.subject,
            Subject::Path { write: true, .. } | Subject::Paths { write: true, .. } | Subject::Command { .. }
        )
    }

    /// Whether a rule or a mode may allow it at all, or why a person has to decide.
    fn sayable(&self) -> Result<(), String> {
        let odd = match self.request.subject {
            Subject::Path { path, .. } => path.contains('\n') || !name_hidden(path).is_empty(),
            Subject::Url(url) => !is_plain(url),
            Subject::Paths { .. } | Subject::Command { .. } | Subject::Remote { .. } | Subject::Nothing => {
                false
            }
        };
        if let Subject::Remote { undeclared, .. } = self.request.subject
            && !undeclared.is_empty()
        {
            let names: Vec<String> = undeclared.iter().take(8).map(|name| one_line(name)).collect();
            return Err(format!(
                "it has arguments that the tool does not declare: {}",
                names.join(", ")
            ));
        }
        if odd {
            return Err("it has unusual characters".to_owned());
        }
        match self.analysis.as_ref().map(|analysis| &analysis.segments) {
            Some(Err(why)) => Err(format!("the command has {why}, which always needs approval")),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Allows the call if allow rules together cover all of it.
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
        if !self.guarded.iter().all(|guarded| guarded.is_spelled_by(rule)) {
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
            Pattern::Path(_) | Pattern::Url(_) | Pattern::Version(_) => false,
        }
    }

    /// Whether an allow rule covers a call that is not a command.
    fn allows(&self, rule: &Rule) -> bool {
        let spelled = self.guarded.iter().all(|guarded| guarded.is_spelled_by(rule));
        if !rule.names(self.request.tool) || !spelled {
            return false;
        }
        match (&rule.pattern, self.request.subject) {
            // The approval was for one version of the tool, so a rule that names no version has to be approved again.
            (Pattern::Any, Subject::Remote { .. }) => !matches!(rule.source, Source::Grant | Source::Always),
            (Pattern::Any, _) => true,
            (Pattern::Version(rule), Subject::Remote { version, .. }) => rule == version,
            (Pattern::Path(pattern), Subject::Path { .. }) => {
                let home = self.policy.home();
                let path = self.path.as_deref().unwrap_or_default();
                (home.is_some() || !pattern.needs_home()) && pattern.matches(self.request.workdir, home, path)
            }
            (Pattern::Url(pattern), Subject::Url(_)) => self.is_at(pattern),
            _ => false,
        }
    }

    fn is_at(&self, pattern: &UrlPattern) -> bool {
        self.address
            .as_ref()
            .is_some_and(|address| pattern.matches(address))
    }

    /// The rule that would allow exactly this call, if it can be expressed safely.
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
            Subject::Remote { version, .. } if version.is_empty() => None,
            Subject::Remote { version, .. } => Some(format!("{tool}({VERSION}{version})")),
            Subject::Nothing => Some(tool.to_owned()),
        }
        .filter(|text| Rule::new(VerdictKind::Allow, text, Source::Always).is_ok())
    }

    fn judgement(&self, verdict: Verdict) -> Judgement {
        // Only a question of a mode can be allowed for longer: a rule that asks beats a rule that allows.
        // The grant is built only when needed: it builds patterns, which costs more than the verdict.
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
            by_content: false,
        }
    }
}
