//! `policy dry-run`: judges logged calls again by other rules.

use crate::cli::DryRunArgs;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Row;
use crate::render::{Column, clean};
use crate::tool_program::ToolProgram;
use crate::verbs::policy::case::{Case, Events};
use crate::verbs::policy::explained::word;
use crate::verbs::policy::{configured, home, in_force};
use agentd_policy::{CallFacts, Policy, Request, Source, Subject, ToolAnswer, ToolQuestion, judge};
use agentd_protocol::{
    EffectClass, Event, EventBody, Fault, ListParams, Seq, SessionId, Timestamp, ToolCallId, Verdict,
    VerdictGiven, VerdictKind,
};
use agentd_settings::{Sources, load};
use serde::Serialize;
use std::collections::BTreeMap;

/// A call whose verdict would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Change {
    session: SessionId,
    seq: Seq,
    at: Timestamp,
    tool_call: ToolCallId,
    tool: String,
    title: String,
    before: VerdictKind,
    before_rule: String,
    after: VerdictKind,
    after_rule: String,
}

impl Row for Change {
    fn columns(wide: bool) -> Vec<Column> {
        let mut columns = vec![
            Column::whole("session", 0),
            Column::whole("seq", 1),
            Column::whole("before", 0),
            Column::whole("after", 0),
            Column::text("call", 0, 20),
        ];
        if wide {
            columns.extend(["rule before", "rule after"].map(|name| Column::text(name, 2, 12)));
        }
        columns
    }

    fn cells(&self, wide: bool, _: Timestamp) -> Vec<String> {
        let mut cells = vec![
            self.session.short(),
            self.seq.to_string(),
            word(self.before).to_owned(),
            word(self.after).to_owned(),
            clean(&self.title).into_owned(),
        ];
        if wide {
            cells.extend([self.before_rule.clone(), self.after_rule.clone()]);
        }
        cells
    }

    fn name(&self) -> String {
        self.tool_call.to_string()
    }
}

pub(super) async fn dry_run(ctx: &mut Ctx, args: &DryRunArgs) -> Result<Exit, Failure> {
    let sources = Sources {
        file: Some(args.rules.clone()),
        ..Sources::default()
    };
    let other = load(&sources).map_err(|error| Fault::invalid("bad_config", error.to_string()))?;
    let client = ctx.connect().await?;
    // Rules that people made permanent are not part of a configuration.
    let mut rules = configured(&other.settings.permission)?;
    let kept = in_force(&client).await?;
    rules.extend(kept.into_iter().filter(|rule| rule.source() == Source::Always));
    let base = Policy::new(home(ctx)).with(rules);
    let sessions = match &args.session {
        Some(session) => vec![client.get(session).await?.session],
        None => {
            let everything = ListParams {
                all: true,
                ..ListParams::default()
            };
            let rows = client.list(&everything).await?;
            rows.into_iter().map(|row| row.session).collect()
        }
    };
    let mut tools = ToolProgram::new(&ctx.environment);
    let (mut judged, mut passed_over, mut changes) = (0, 0, Vec::new());
    for session in sessions {
        let mut replay = Replay::new(&base);
        let mut log = Events::of(&session.to_string());
        while let Some(events) = log.next(&client).await? {
            let answers = tools.answers(&replay.questions(&events)).await?;
            replay.take(&events, answers);
        }
        judged += replay.judged;
        passed_over += replay.passed_over;
        changes.append(&mut replay.changes);
    }
    ctx.out.list(&changes)?;
    let mut told = format!(
        "{judged} logged calls evaluated; {} verdicts would change",
        changes.len()
    );
    if passed_over > 0 {
        told.push_str(&format!(
            "; {passed_over} skipped (tool or session rule unreadable, or original evaluation failed)"
        ));
    }
    ctx.out.status(&told);
    Ok(Exit::OK)
}

/// One session's log, event by event.
struct Replay<'a> {
    base: &'a Policy,
    case: Case,
    /// Calls that were proposed but not judged yet.
    proposed: BTreeMap<ToolCallId, ToolAnswer>,
    judged: u64,
    passed_over: u64,
    changes: Vec<Change>,
}

impl<'a> Replay<'a> {
    fn new(base: &'a Policy) -> Self {
        Self {
            base,
            case: Case::default(),
            proposed: BTreeMap::new(),
            judged: 0,
            passed_over: 0,
            changes: Vec::new(),
        }
    }

    /// What to ask about the calls in the next events, one question per proposed call.
    fn questions(&self, events: &[Event]) -> Vec<ToolQuestion> {
        let mut workdir = self.case.workdir();
        let mut questions = Vec::new();
        for event in events {
            match &event.body {
                EventBody::SessionCreated(created) => workdir = &created.workdir,
                EventBody::ToolProposed(call) => questions.push(ToolQuestion::Call {
                    tool: call.name.clone(),
                    input: call.input.clone(),
                    workdir: workdir.to_owned(),
                }),
                _ => {}
            }
        }
        questions
    }

    /// Takes the next events, with the answers to their questions.
    fn take(&mut self, events: &[Event], answers: Vec<ToolAnswer>) {
        let mut answers = answers.into_iter();
        for event in events {
            self.case.learn(event);
            match &event.body {
                EventBody::ToolProposed(call) => {
                    if let Some(answer) = answers.next() {
                        self.proposed.insert(call.tool_call, answer);
                    }
                }
                EventBody::VerdictGiven(given) => self.given(event, given),
                EventBody::ToolFinished(finished) => {
                    self.proposed.remove(&finished.tool_call);
                }
                _ => {}
            }
        }
    }

    fn given(&mut self, event: &Event, given: &VerdictGiven) {
        // A call that was judged again after a restart already has its verdict.
        let Some(answer) = self.proposed.remove(&given.tool_call) else {
            return;
        };
        let failed = given.verdict.rule == "gate:error" || given.verdict.rule == "gate:timeout";
        match answer {
            ToolAnswer::Call(call) if !failed && !is_undo(&call) => {
                self.judge(event, given.tool_call, &call, &given.verdict);
            }
            ToolAnswer::Call(_) | ToolAnswer::Tool { .. } | ToolAnswer::Refused(_) => self.passed_over += 1,
        }
    }

    fn judge(&mut self, event: &Event, tool_call: ToolCallId, call: &CallFacts, before: &Verdict) {
        let Ok(policy) = self.case.policy(self.base) else {
            self.passed_over += 1;
            return;
        };
        let request = Request {
            tool: &call.name,
            subject: &call.subject,
            effect: call.effect,
            mode: self.case.mode(),
            workdir: self.case.workdir(),
        };
        let after = judge(&policy, &request).verdict;
        self.judged += 1;
        if after.kind != before.kind {
            self.changes.push(Change {
                session: event.session,
                seq: event.seq,
                at: event.at,
                tool_call,
                tool: call.name.clone(),
                title: call.title.clone(),
                before: before.kind,
                before_rule: before.rule.clone(),
                after: after.kind,
                after_rule: after.rule,
            });
        }
    }
}

/// The files that an undo changes are known only in the session's memory, not in its log.
fn is_undo(call: &CallFacts) -> bool {
    call.effect == EffectClass::Write && call.subject == Subject::Nothing
}

#[cfg(test)]
mod tests;
