//! `usage`: tokens and money, in total or since a given time.

use crate::cli::UsageArgs;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{DailyListRow, UsageListRow, one_line, tidy_usd};
use crate::values;
use crate::verbs::context::prices_of;
use crate::verbs::fleet_log::all;
use crate::verbs::logs::Choice;
use agentd_protocol::{
    CallId, DailyUsageParams, Event, EventBody, ListParams, Selector, SessionId, Summary, Timestamp, Usage,
    UsageParams, UsageRow, WatchParams,
};
use agentd_transcript::Prices;
use std::collections::BTreeMap;

/// The group name of the last row.
const TOTAL: &str = "(total)";
/// The group of sessions without the label.
const NO_LABEL: &str = "(none)";
/// The events that record steps and costs, and the one that marks the end of a forked session's copied history.
const KINDS: [&str; 6] = [
    "model.started",
    "model.finished",
    "model.failed",
    "context.compacted",
    "side_call.finished",
    "session.forked",
];

pub(crate) async fn usage(ctx: &mut Ctx, args: &UsageArgs) -> Result<Exit, Failure> {
    let since = values::since_flag(args.since.as_deref(), "agentctl usage --since 24h")?;
    let client = ctx.connect().await?;
    let labels = values::selector(&args.labels);
    if args.daily {
        let by = Some(args.by.clone());
        let days = None;
        let mut rows = client.usage_daily(&DailyUsageParams { labels, by, days }).await?;
        for row in &mut rows {
            row.cost_usd = tidy_usd(row.cost_usd);
        }
        say_if_unknown(ctx, &args.by, rows.iter().map(|row| row.group.as_str()));
        let rows: Vec<DailyListRow> = rows.into_iter().map(DailyListRow).collect();
        ctx.out.list(&rows)?;
        return Ok(Exit::OK);
    }
    let prices = prices_of(&client.models().await?);
    let wanted = ListParams {
        all: true,
        labels: labels.clone(),
        ..ListParams::default()
    };
    let sessions = client.list(&wanted).await?;
    let sessions: BTreeMap<SessionId, Summary> = sessions.into_iter().map(|row| (row.session, row)).collect();
    let (mut rows, saved) = match since {
        Some(since) => {
            let spending = of_logs(ctx, since, labels).await?;
            let saved = spending.saved(&args.by, &sessions, &prices);
            (spending.grouped(&args.by, &sessions), saved)
        }
        None => {
            let by = Some(args.by.clone());
            let rows = client.usage(&UsageParams { labels, by }).await?;
            let each = sessions.iter().map(|(id, row)| (*id, row.usage));
            (rows, saved(each, &args.by, &sessions, &prices))
        }
    };
    for row in &mut rows {
        row.cost_usd = tidy_usd(row.cost_usd);
    }
    say_if_unknown(ctx, &args.by, rows.iter().map(|row| row.group.as_str()));
    // Only for people, because programs can add.
    let total = ctx.out.human() && !ctx.out.quiet && rows.len() > 1;
    let mut saved = saved;
    if total {
        let all = rows.iter().fold(empty(TOTAL), plus);
        rows.push(all);
        saved.insert(TOTAL.to_owned(), saved.values().sum());
    }
    let row = |row: UsageRow| UsageListRow {
        saved_usd: saved.get(&row.group).copied().map(tidy_usd),
        row,
    };
    let rows: Vec<UsageListRow> = rows.into_iter().map(row).collect();
    ctx.out.list(&rows)?;
    Ok(Exit::OK)
}

/// Warns if no session has the label to group by: it is mostly a mistyped word.
fn say_if_unknown<'a>(ctx: &mut Ctx, by: &str, groups: impl Iterator<Item = &'a str>) {
    if !["model", "session"].contains(&by) && nobody_has(groups) {
        ctx.out.status(&format!(
            "note: no session here has the label {}; --by takes model, session or the key of a label",
            one_line(by, 60)
        ));
    }
}

/// Whether all usage is in the group of sessions without the label.
fn nobody_has<'a>(mut groups: impl Iterator<Item = &'a str>) -> bool {
    groups.all(|group| group == NO_LABEL)
}

/// The savings by the prompt cache per group, at the prices of the sessions' models.
fn saved(
    each: impl Iterator<Item = (SessionId, Usage)>,
    by: &str,
    sessions: &BTreeMap<SessionId, Summary>,
    prices: &Prices,
) -> BTreeMap<String, f64> {
    let mut groups = BTreeMap::new();
    for (session, usage) in each {
        let known = sessions.get(&session);
        if let Some(price) = known.and_then(|known| prices.get(&known.model)) {
            *groups.entry(group_of(session, known, by)).or_default() += price.saved(&usage);
        }
    }
    groups
}

fn group_of(session: SessionId, known: Option<&Summary>, by: &str) -> String {
    let group = match by {
        "session" => Some(session.to_string()),
        "model" => known.map(|known| known.model.clone()),
        label => known.and_then(|known| known.labels.get(label).cloned()),
    };
    group.unwrap_or_else(|| NO_LABEL.to_owned())
}

/// The usage since a given time, summed from the logs.
async fn of_logs(ctx: &Ctx, since: Timestamp, labels: Selector) -> Result<Spending, Failure> {
    let asked = WatchParams {
        labels,
        kinds: KINDS.map(str::to_owned).to_vec(),
        after: Some(0),
        once: true,
    };
    let choice = Choice {
        since: Some(since),
        ..Choice::default()
    };
    let mut spending = Spending::default();
    let add = |(event, _)| {
        spending.add(&event);
        Ok(())
    };
    all(&ctx.dial()?, asked, &choice, add).await?;
    Ok(spending)
}

/// The usage of each session according to its log.
#[derive(Debug, Default)]
struct Spending(BTreeMap<SessionId, (UsageRow, Option<CallId>)>);

impl Spending {
    #[expect(clippy::wildcard_enum_match_arm, reason = "most events cost nothing")]
    fn add(&mut self, event: &Event) {
        let (usage, cost) = match &event.body {
            EventBody::ModelStarted(started) => {
                let (row, last) = self.of(event.session);
                // A step is one call, however many attempts it takes.
                if last.replace(started.call) != Some(started.call) {
                    row.steps += 1;
                }
                return;
            }
            // The usage before this event belongs to the session that was forked.
            EventBody::SessionForked(_) => {
                self.0.remove(&event.session);
                return;
            }
            EventBody::ModelFinished(done) => (Some(done.usage), done.cost_usd),
            EventBody::ModelFailed(failed) => (failed.usage, failed.cost_usd),
            EventBody::ContextCompacted(done) => (done.usage, done.cost_usd),
            EventBody::SideCallFinished(done) => (Some(done.usage), done.cost_usd),
            _ => return,
        };
        let (row, _) = self.of(event.session);
        row.usage = row.usage.plus(usage.unwrap_or_default());
        row.cost_usd += cost.unwrap_or_default();
    }

    fn of(&mut self, session: SessionId) -> &mut (UsageRow, Option<CallId>) {
        let fresh = || (empty(&session.to_string()), None);
        let entry = self.0.entry(session).or_insert_with(fresh);
        entry.0.sessions = 1;
        entry
    }

    fn saved(
        &self,
        by: &str,
        sessions: &BTreeMap<SessionId, Summary>,
        prices: &Prices,
    ) -> BTreeMap<String, f64> {
        let each = self.0.iter().map(|(id, (row, _))| (*id, row.usage));
        saved(each, by, sessions, prices)
    }

    /// The totals by group, the most expensive first.
    fn grouped(self, by: &str, sessions: &BTreeMap<SessionId, Summary>) -> Vec<UsageRow> {
        let mut groups = BTreeMap::new();
        for (session, (row, _)) in self.0 {
            let group = group_of(session, sessions.get(&session), by);
            let sum = groups.remove(&group).unwrap_or_else(|| empty(&group));
            groups.insert(group, plus(sum, &row));
        }
        let mut rows: Vec<UsageRow> = groups.into_values().collect();
        rows.sort_by(|a, b| {
            let costs = b.cost_usd.total_cmp(&a.cost_usd);
            costs.then_with(|| a.group.cmp(&b.group))
        });
        rows
    }
}

fn empty(group: &str) -> UsageRow {
    UsageRow {
        group: group.to_owned(),
        sessions: 0,
        steps: 0,
        usage: Usage::default(),
        cost_usd: 0.0,
    }
}

fn plus(sum: UsageRow, row: &UsageRow) -> UsageRow {
    UsageRow {
        group: sum.group,
        sessions: sum.sessions + row.sessions,
        steps: sum.steps + row.steps,
        usage: sum.usage.plus(row.usage),
        cost_usd: sum.cost_usd + row.cost_usd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{EVENT_VERSION, Principal, SessionForked, Stamp};
    use serde_json::json;

    const AT: Timestamp = Timestamp(1_763_629_200_123);

    fn event(session: SessionId, body: EventBody) -> Event {
        Event {
            v: EVENT_VERSION,
            session,
            seq: 1,
            at: AT,
            by: Principal::user("ana"),
            turn: None,
            body,
        }
    }

    /// A step of two attempts, of which both were billed.
    fn step(spending: &mut Spending, session: SessionId, call: CallId) {
        let usage = json!({"input": 10, "output": 1, "cache_read": 0, "cache_write": 0, "reasoning": 0});
        let started = |attempt| {
            json!({
                "type": "model.started", "call": call, "attempt": attempt, "model": "m", "provider": "p", "step": 1, "input_tokens_estimate": 9,
                "max_steps": 9
            })
        };
        let failed = json!({
            "type": "model.failed", "call": call, "attempt": 1, "class": "transient", "message": "broke",
            "usage": usage, "cost_usd": 0.25
        });
        let finished = json!({
            "type": "model.finished", "call": call, "attempt": 2, "content": [], "stop_reason": "end_turn",
            "usage": usage, "cost_usd": 0.5, "latency": {"first_ms": 1, "total_ms": 2}
        });
        for body in [started(1), failed, started(2), finished] {
            spending.add(&event(session, serde_json::from_value(body).unwrap()));
        }
    }

    #[test]
    fn every_attempt_counts_and_copied_events_do_not() {
        let (first, fork) = (
            SessionId::from_parts(AT.0, [1; 10]),
            SessionId::from_parts(AT.0, [2; 10]),
        );
        let mut stamp = Stamp::new(AT, 1);
        let mut spending = Spending::default();
        for session in [first, fork] {
            let call = stamp.call();
            step(&mut spending, session, call);
        }
        let forked = SessionForked {
            from: first,
            at_seq: 4,
        };
        spending.add(&event(fork, forked.into()));
        let call = stamp.call();
        step(&mut spending, first, call);
        let rows = spending.grouped("session", &BTreeMap::new());
        let [row] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        assert_eq!(
            (row.group.as_str(), row.steps, row.sessions),
            (&*first.to_string(), 2, 1)
        );
        assert_eq!((row.usage.input, row.cost_usd), (40, 1.5));
    }
}
