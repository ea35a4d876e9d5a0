//! `session.list`, `session.get`: stored rows combined with the live statuses. Reading never wakes a session.

use crate::api::{Api, READ, fault_of};
use crate::settings_tag::tag;
use crate::sight::Caller;
use agentd_actor_kit::{LiveStatus, SupervisorMsg};
use agentd_protocol::{
    Budget, Fault, ListParams, Listed, RunState, Selector, SessionId, SessionParams, SortBy, Summary,
};
use agentd_settings::CLIENT;
use agentd_store::{Filter, Row};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes of a list answer, so that it always fits a frame; the next page continues.
const LIST_BYTES: usize = 4 << 20;
/// Rows that one read of the store returns.
const PAGE: u32 = 500;
/// The same for a read that goes through all rows.
const MANY: u32 = 5_000;
/// The maximum number of characters in a search.
const SEARCH_CHARACTERS: usize = 1_000;

pub(crate) type Overlay = BTreeMap<SessionId, LiveStatus>;

impl Api {
    pub(crate) async fn get(&self, who: &Caller, params: SessionParams) -> Result<Summary, Fault> {
        let (session, row) = self.row_of(who, &params.session).await?;
        let mut summary = live(row, &self.statuses().await?);
        // A log that cannot be read does not give its limits; the rest of the answer is still available.
        let created = self.first(session).await.ok();
        summary.settings_tag = Some(tag(&summary));
        summary.limits = created.map(|(created, _)| {
            let mut limits = created.limits;
            budget_changed(&mut limits.from, &created.budget, &summary.budget);
            Box::new(limits)
        });
        Ok(summary)
    }

    pub(crate) async fn list(&self, who: &Caller, params: &ListParams) -> Result<Vec<Summary>, Fault> {
        for state in &params.states {
            check_state(state)?;
        }
        check_search(params)?;
        let overlay = self.statuses().await?;
        let most = self.loaded().settings.limits.list_rows.max(1);
        let limit = if params.limit == 0 {
            most
        } else {
            params.limit.min(most)
        };
        // The first rows are usually the answer. A filter that leaves out most rows reads on in larger pages.
        let first = limit.min(PAGE);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut filter = filter(params, first);
        // Such a read goes through all rows, so that a few at a time are enough, and each returns more.
        let whole = params.sort != SortBy::Created || !params.search.is_empty();
        let _permit = if whole {
            Some(self.turn(&self.sorting).await?)
        } else {
            None
        };
        let page = if whole { MANY } else { PAGE };
        let mut bytes = 0;
        let mut found = Vec::new();
        loop {
            let (rows, last) = if params.sessions.is_empty() {
                let rows = self.rows(who, filter.clone()).await?;
                let last = rows
                    .last()
                    .map(|row| Listed::from(&row.summary).place(params.sort));
                (rows, last)
            } else {
                (self.named_rows(&params.sessions).await?, None)
            };
            for row in rows {
                if !chosen(who, &row, &params.labels) {
                    continue;
                }
                let summary = live(row, &overlay);
                if !listed(params, summary.status.state) {
                    continue;
                }
                bytes = json_len(&summary).saturating_add(bytes);
                if bytes > LIST_BYTES && !found.is_empty() {
                    return Ok(found);
                }
                found.push(summary);
                if found.len() >= limit {
                    return Ok(found);
                }
            }
            if last.is_none() {
                return Ok(found);
            }
            filter.after = last;
            filter.limit = page;
        }
    }

    /// Waits for a permit for a read of much: a list of all rows, or a whole log.
    pub(crate) async fn turn<'a>(&self, permits: &'a Semaphore) -> Result<SemaphorePermit<'a>, Fault> {
        let turn = tokio::time::timeout(READ, permits.acquire()).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| {
            Fault::busy("reading", "other clients' large reads are in progress").hint("try again")
        })
    }

    /// The live statuses of sessions: of those with an actor, and of those that no live node may run.
    pub(crate) async fn statuses(&self) -> Result<Overlay, Fault> {
        let mut overlay = self.overlay().await?;
        if let Some(peers) = &self.parts.peers {
            for (session, status) in peers.stranded().iter() {
                overlay.entry(*session).or_insert_with(|| LiveStatus {
                    seq: None,
                    status: status.clone(),
                });
            }
        }
        Ok(overlay)
    }

    /// The live statuses of sessions with an actor.
    pub(crate) async fn overlay(&self) -> Result<Overlay, Fault> {
        self.parts
            .supervisor
            .call(READ, |done| SupervisorMsg::Overlay { done })
            .await
            .map_err(fault_of)
    }
}

/// The length of a value as JSON, without a text of it. What cannot be written counts as endless.
pub(crate) fn json_len(value: &impl Serialize) -> usize {
    struct Length(usize);
    impl Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    match serde_json::to_writer(&mut length, value) {
        Ok(()) => length.0,
        Err(_) => usize::MAX,
    }
}

fn closed_too(params: &ListParams) -> bool {
    params.all || params.states.iter().any(|state| state == "closed")
}

/// The rows that may be listed. Live states decide which of them are.
fn filter(params: &ListParams, limit: u32) -> Filter {
    Filter {
        all: closed_too(params),
        labels: params.labels.carried(),
        limit,
        after: params.after.clone(),
        sort: params.sort,
        ascending: params.ascending,
        search: params.search.to_lowercase(),
        ..Filter::default()
    }
}

fn listed(params: &ListParams, state: RunState) -> bool {
    (closed_too(params) || state != RunState::Closed)
        && (params.states.is_empty() || params.states.iter().any(|want| is(state, want)))
}

/// Refuses a search that is too long.
fn check_search(params: &ListParams) -> Result<(), Fault> {
    let characters = params.search.chars().count();
    if characters > SEARCH_CHARACTERS {
        let why = format!("search: {characters} characters, and at most {SEARCH_CHARACTERS} are allowed");
        return Err(Fault::invalid("bad_search", why));
    }
    Ok(())
}

/// Whether a selector matches this row, and the caller sees it. The labels of a damaged row are unknown.
pub(crate) fn chosen(who: &Caller, row: &Row, labels: &Selector) -> bool {
    let everything = labels.is_empty() && who.limits().is_none();
    let carried = &row.summary.labels;
    everything || (!row.damaged && labels.matches(carried) && who.sees(carried))
}

/// Records the source of each part of a budget that changed since the session was created.
fn budget_changed(from: &mut BTreeMap<String, String>, first: &Budget, now: &Budget) {
    let changed = [
        ("budget.tokens", first.tokens != now.tokens),
        ("budget.usd", first.usd.total_cmp(&now.usd).is_ne()),
        ("budget.time", first.time_ms != now.time_ms),
        ("budget.steps", first.steps != now.steps),
    ];
    for (key, _) in changed.iter().filter(|(_, changed)| *changed) {
        from.insert((*key).to_owned(), format!("{CLIENT}, later"));
    }
}

/// Merges the live status into a row. A session reports its status a moment after its events, so a row written later is
/// more accurate: a client that has just answered a question must not see the session waiting for the answer.
pub(crate) fn live(row: Row, overlay: &Overlay) -> Summary {
    let mut summary = row.summary;
    if let Some(live) = overlay.get(&summary.session)
        && live.seq.is_none_or(|seq| seq >= summary.seq)
    {
        summary.status = live.status.clone();
    }
    summary.seq = row.head;
    summary
}

/// Whether a state matches the requested one: `running` also matches `running(model)`.
fn is(state: RunState, want: &str) -> bool {
    let text = state.as_str();
    text == want || text.strip_prefix(want).is_some_and(|rest| rest.starts_with('('))
}

fn check_state(want: &str) -> Result<(), Fault> {
    if RunState::parse(want).is_some() || ["running", "waiting"].contains(&want) {
        return Ok(());
    }
    Err(Fault::invalid(
        "unknown_state",
        format!("there is no state {:?}", crate::words::cut(want)),
    )
    .hint(
        "queued, starting, running, waiting, backing_off, compacting, paused, idle, failed, closed, faulted",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::WaitReason;

    #[test]
    fn a_state_family_matches_all_its_states() {
        assert!(is(RunState::RunningModel, "running"));
        assert!(is(RunState::RunningModel, "running(model)"));
        assert!(is(RunState::Waiting(WaitReason::Approval), "waiting"));
        assert!(!is(RunState::Paused, "pause"));
        assert_eq!(check_state("busy").unwrap_err().code, "unknown_state");
    }
}
