//! `usage.daily`: tokens and money by day (UTC), counted from the log as it grows. The node keeps the counts in a file.

use crate::api::Api;
use crate::sight::Caller;
use crate::usage::{NO_LABEL, REMOVED};
use agentd_actor_kit::Read;
use agentd_protocol::{
    DailyUsageParams, DailyUsageRow, Fault, FaultClass, Labels, SessionId, Timestamp, Usage,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// Days in an answer, unless the caller asks for another number.
const DAYS: u32 = 31;
/// Days that are kept.
const KEPT: u32 = 62;
/// Groups of one day that are kept apart; further ones lose their labels.
const GROUPS: usize = 200;
/// Models of one day that are kept apart when there are too many groups; further ones share one sum.
const MODELS: usize = 50;
const OTHERS: &str = "(others)";
/// The version of the file's format.
const FORMAT: u32 = 1;

/// Spending: steps, tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Sum {
    steps: u64,
    usage: Usage,
    cost_usd: f64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.steps = self.steps.saturating_add(other.steps);
        self.usage = self.usage.plus(other.usage);
        self.cost_usd += other.cost_usd;
    }
}

/// The sessions of a day with the same model and labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Group {
    day: String,
    model: String,
    labels: Labels,
}

#[derive(Debug, Default)]
struct Book {
    /// The last event that is counted.
    cursor: u64,
    /// Counts of sessions whose model and labels are not known yet.
    open: BTreeMap<(String, SessionId), Sum>,
    sums: BTreeMap<Group, Sum>,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Saved<G, O> {
    format: u32,
    cursor: u64,
    sums: Vec<(G, Sum)>,
    open: Vec<(O, Sum)>,
}

/// The keys of an event that counts; other events have some of them with another meaning.
#[derive(Deserialize)]
struct Line<'a> {
    session: SessionId,
    at: Timestamp,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    attempt: u32,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    cost_usd: Option<f64>,
}

impl Line<'_> {
    fn sum(&self) -> Option<Sum> {
        match self.kind.as_ref() {
            // A step is one call, however many attempts it takes.
            "model.started" => (self.attempt == 1).then(|| Sum {
                steps: 1,
                ..Sum::default()
            }),
            "model.finished" | "model.failed" | "context.compacted" | "side_call.finished" => Some(Sum {
                steps: 0,
                usage: self.usage.unwrap_or_default(),
                cost_usd: self.cost_usd.unwrap_or_default(),
            }),
            _ => None,
        }
    }
}

/// Counts of the last days. Each event counts once, because the counts and the cursor of the last event change together.
#[derive(Debug, Default)]
pub struct DailyUsage(Mutex<Book>);

impl DailyUsage {
    /// Counts from a file of [`Self::to_json`], or none if there is no such file. `committed` is the end of the log; a log
    /// that ends earlier than the counts is another one, and counts from its end on.
    #[must_use]
    pub fn read(json: Option<&[u8]>, committed: u64) -> Self {
        let file =
            json.and_then(|json| serde_json::from_slice::<Saved<Group, (String, SessionId)>>(json).ok());
        let book = match file.filter(|file| file.format == FORMAT) {
            Some(file) => Book {
                cursor: file.cursor.min(committed),
                open: file.open.into_iter().collect(),
                sums: file.sums.into_iter().collect(),
            },
            None => Book {
                cursor: committed,
                ..Book::default()
            },
        };
        Self(Mutex::new(book))
    }

    /// The counts as a file.
    ///
    /// # Errors
    /// A value that JSON has not, such as an infinite cost.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let book = self.book();
        serde_json::to_string(&Saved {
            format: FORMAT,
            cursor: book.cursor,
            sums: book.sums.iter().map(|(group, sum)| (group, *sum)).collect(),
            open: book.open.iter().map(|(key, sum)| (key, *sum)).collect(),
        })
    }

    /// The cursor of the last event that is counted.
    pub fn cursor(&self) -> u64 {
        self.book().cursor
    }

    /// Counts a stored event.
    pub fn take(&self, cursor: u64, stored: &[u8]) {
        let line = serde_json::from_slice::<Line<'_>>(stored).ok();
        // A fork begins with a copy of another log, whose events count there.
        let line = line.filter(|line| line.at >= line.session.made_at());
        let sum = line.as_ref().and_then(Line::sum);
        let mut book = self.book();
        book.cursor = cursor;
        if let (Some(line), Some(sum)) = (line, sum) {
            let key = (day(line.at), line.session);
            book.open.entry(key).or_default().add(sum);
        }
    }

    fn open(&self) -> Vec<(String, SessionId)> {
        self.book().open.keys().cloned().collect()
    }

    /// Moves the counts of a session to its group.
    fn settle(&self, key: &(String, SessionId), model: String, labels: Labels) {
        let mut book = self.book();
        let Some(sum) = book.open.remove(key) else { return };
        let day = key.0.clone();
        let mut group = Group { day, model, labels };
        let full = |group: &Group, most| {
            let of_day = book.sums.keys().filter(|known| known.day == group.day);
            !book.sums.contains_key(group) && of_day.count() >= most
        };
        if full(&group, GROUPS) {
            group.labels.clear();
        }
        if full(&group, GROUPS + MODELS) {
            OTHERS.clone_into(&mut group.model);
        }
        book.sums.entry(group).or_default().add(sum);
    }

    fn forget_before(&self, day: &str) {
        self.book().sums.retain(|group, _| group.day.as_str() >= day);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Api {
    /// Reads the models and labels of sessions that spent something, and forgets old days.
    ///
    /// # Errors
    /// The store does not answer; nothing is lost.
    pub async fn settle_usage(&self) -> Result<(), Fault> {
        let daily = &self.parts.daily;
        for key in daily.open() {
            let session = key.1;
            let (model, labels) = match self.read(|done| Read::Row { session, done }).await {
                Ok(Some(row)) => (row.summary.model, row.summary.labels),
                Err(fault) if matches!(fault.class, FaultClass::Unavailable | FaultClass::Timeout) => {
                    return Err(fault);
                }
                // Deleted meanwhile, or unreadable.
                Ok(None) | Err(_) => (REMOVED.to_owned(), Labels::new()),
            };
            daily.settle(&key, model, labels);
        }
        daily.forget_before(&self.first_day(KEPT));
        Ok(())
    }

    pub(crate) async fn usage_daily(
        &self,
        who: &Caller,
        params: &DailyUsageParams,
    ) -> Result<Vec<DailyUsageRow>, Fault> {
        let days = params.days.unwrap_or(DAYS);
        if !(1..=KEPT).contains(&days) {
            let why = format!("days: {days} is not from 1 to {KEPT}");
            return Err(Fault::invalid("bad_days", why));
        }
        let by = params.by.as_deref().unwrap_or("model");
        if by == "session" {
            let fault = Fault::invalid("bad_group", "by: the days are not kept for each session");
            return Err(fault.hint("usage.query groups by session"));
        }
        self.settle_usage().await?;
        let first = self.first_day(days);
        let mut sums = BTreeMap::<(String, String), Sum>::new();
        for (group, sum) in &self.parts.daily.book().sums {
            let seen = params.labels.matches(&group.labels) && who.sees(&group.labels);
            if !seen || group.day < first {
                continue;
            }
            let name = match by {
                "model" => group.model.as_str(),
                label => group.labels.get(label).map_or(NO_LABEL, String::as_str),
            };
            let key = (group.day.clone(), name.to_owned());
            sums.entry(key).or_default().add(*sum);
        }
        let row = |((day, group), sum): ((String, String), Sum)| DailyUsageRow {
            day,
            group,
            steps: sum.steps,
            usage: sum.usage,
            cost_usd: sum.cost_usd,
        };
        let mut rows: Vec<DailyUsageRow> = sums.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            let days = b.day.cmp(&a.day);
            days.then(b.cost_usd.total_cmp(&a.cost_usd))
                .then_with(|| a.group.cmp(&b.group))
        });
        Ok(rows)
    }

    /// The first of the last `days` days.
    fn first_day(&self, days: u32) -> String {
        let before = u64::from(days.saturating_sub(1)).saturating_mul(DAY_MS);
        day(Timestamp(self.parts.clock.now().0.saturating_sub(before)))
    }
}

fn day(at: Timestamp) -> String {
    at.to_string().get(..10).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const AT: Timestamp = Timestamp(1_763_629_200_123);

    fn line(session: SessionId, at: Timestamp, kind: &str, cost_usd: f64) -> Vec<u8> {
        let usage = json!({ "input": 10, "output": 1 });
        json!({ "session": session, "at": at, "type": kind, "attempt": 1, "usage": usage, "cost_usd": cost_usd })
            .to_string()
            .into_bytes()
    }

    fn count(daily: &DailyUsage, number: u8, labels: &[(&str, String)]) {
        let session = SessionId::from_parts(AT.0, [number; 10]);
        daily.take(1, &line(session, AT, "model.finished", 0.5));
        let key = |(key, value): &(&str, String)| ((*key).to_owned(), value.clone());
        daily.settle(
            &(day(AT), session),
            "m".to_owned(),
            labels.iter().map(key).collect(),
        );
    }

    #[test]
    fn each_event_counts_on_its_day_and_a_copied_one_does_not() {
        let daily = DailyUsage::default();
        let session = SessionId::from_parts(AT.0, [1; 10]);
        let tomorrow = AT.plus_ms(DAY_MS);
        daily.take(1, &line(session, Timestamp(AT.0 - 1), "model.finished", 8.0));
        daily.take(2, &line(session, AT, "model.started", 0.0));
        daily.take(3, &line(session, AT, "model.failed", 0.25));
        daily.take(4, &line(session, AT, "model.finished", 0.5));
        daily.take(5, &line(session, AT, "turn.finished", 0.75));
        daily.take(6, &line(session, tomorrow, "side_call.finished", 1.0));
        daily.take(7, b"not an event");
        assert_eq!(daily.cursor(), 7);
        let book = daily.book();
        let found: Vec<_> = book
            .open
            .iter()
            .map(|((day, _), sum)| (day.as_str(), sum.steps, sum.usage.input, sum.cost_usd))
            .collect();
        assert_eq!(found, [("2025-11-20", 1, 20, 0.75), ("2025-11-21", 0, 10, 1.0)]);
    }

    #[test]
    fn counts_survive_in_a_file_and_another_log_begins_at_its_end() {
        let daily = DailyUsage::default();
        count(&daily, 1, &[("team", "a".to_owned())]);
        let session = SessionId::from_parts(AT.0, [2; 10]);
        daily.take(9, &line(session, AT, "model.finished", 0.5));
        let json = daily.to_json().unwrap();
        let again = DailyUsage::read(Some(json.as_bytes()), 20);
        assert_eq!(again.cursor(), 9);
        assert_eq!(again.to_json().unwrap(), json);
        assert_eq!(DailyUsage::read(Some(json.as_bytes()), 4).cursor(), 4);
        for broken in [
            None,
            Some(b"{".as_slice()),
            Some(json.replace("\"format\":1", "\"format\":2").as_bytes()),
        ] {
            let fresh = DailyUsage::read(broken, 20);
            assert_eq!((fresh.cursor(), fresh.book().sums.len()), (20, 0));
        }
    }

    #[test]
    fn groups_that_are_too_many_lose_their_labels() {
        let daily = DailyUsage::default();
        for number in 0..=u8::try_from(GROUPS).unwrap() {
            count(&daily, number, &[("run", number.to_string())]);
        }
        let book = daily.book();
        let plain = book
            .sums
            .iter()
            .find(|(group, _)| group.labels.is_empty())
            .unwrap();
        assert_eq!(
            (book.sums.len(), plain.0.model.as_str(), plain.1.cost_usd),
            (GROUPS + 1, "m", 0.5)
        );
        drop(book);
        daily.forget_before("2025-11-21");
        assert!(daily.book().sums.is_empty());
    }
}
