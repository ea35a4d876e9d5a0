//! The order of `session.list`, its search, and the place at which a page ends.

use crate::ids::SessionId;
use crate::stamp::Timestamp;
use crate::summary::{Group, RunState, Summary};
use crate::usage::Usage;
use crate::vocabulary::Labels;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// What `session.list` sorts by. Sessions with the same value are in the order of their ids, that is, of their creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SortBy {
    /// The time of creation.
    #[default]
    Created,
    /// The time of the last change.
    Updated,
    /// The title; upper and lower case are the same.
    Name,
    /// The model's name; upper and lower case are the same.
    Model,
    /// How much the state needs a person, as of the last event: waiting for one is the largest, closed the smallest.
    State,
    /// Steps.
    Steps,
    /// Tokens, as [`Usage::total`] counts them.
    Tokens,
    /// Cost.
    Cost,
}

/// The value of a session in an order. All values of one order are of the same kind.
#[derive(Debug, Clone, PartialEq)]
pub enum SortKey {
    /// A number or a time.
    Number(f64),
    /// A text.
    Text(String),
}

impl SortKey {
    /// A total order.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(two)) => one.total_cmp(two),
            (Self::Text(one), Self::Text(two)) => one.cmp(two),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

impl fmt::Display for SortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The shortest text that parses to the same number.
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl SortBy {
    /// All orders.
    pub const ALL: [Self; 8] = [
        Self::Created,
        Self::Updated,
        Self::Name,
        Self::Model,
        Self::State,
        Self::Steps,
        Self::Tokens,
        Self::Cost,
    ];

    /// Parses what [`SortKey`] displays; `None`: it is not a value of this order.
    #[must_use]
    pub fn parse_key(self, text: &str) -> Option<SortKey> {
        match self {
            Self::Name | Self::Model => Some(SortKey::Text(text.to_owned())),
            _ => text.parse().ok().map(SortKey::Number),
        }
    }
}

/// The fields of a [`Summary`] that orders and searches read. Parsing these is cheaper than parsing the whole row.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct Listed {
    session: SessionId,
    name: String,
    state: RunState,
    reason: String,
    model: String,
    workdir: String,
    labels: Labels,
    steps: u64,
    usage: Usage,
    cost_usd: f64,
    updated_at: Timestamp,
}

/// Stands for a row that cannot be read: it sorts as a faulted session, and no search finds it.
impl Default for Listed {
    fn default() -> Self {
        Self {
            session: SessionId::NIL,
            name: String::new(),
            state: RunState::Faulted,
            reason: String::new(),
            model: String::new(),
            workdir: String::new(),
            labels: Labels::new(),
            steps: 0,
            usage: Usage::default(),
            cost_usd: 0.0,
            updated_at: Timestamp(0),
        }
    }
}

impl From<&Summary> for Listed {
    fn from(row: &Summary) -> Self {
        Self {
            session: row.session,
            name: row.name.clone(),
            state: row.status.state,
            reason: row.status.reason.clone(),
            model: row.model.clone(),
            workdir: row.workdir.clone(),
            labels: row.labels.clone(),
            steps: row.steps,
            usage: row.usage,
            cost_usd: row.cost_usd,
            updated_at: row.updated_at,
        }
    }
}

impl Listed {
    /// Its value in an order. The order of creation is that of the ids alone.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "below 2^53, and otherwise only an order"
    )]
    pub fn key(&self, by: SortBy) -> SortKey {
        SortKey::Number(match by {
            SortBy::Created => 0.0,
            SortBy::Updated => self.updated_at.0 as f64,
            SortBy::Name => return SortKey::Text(self.name.to_lowercase()),
            SortBy::Model => return SortKey::Text(self.model.to_lowercase()),
            SortBy::State => f64::from(urgency(self.state.group())),
            SortBy::Steps => self.steps as f64,
            SortBy::Tokens => self.usage.total() as f64,
            SortBy::Cost => self.cost_usd,
        })
    }

    /// Whether each word of a search is in the title, the id, the state, its reason, the model, the directory or the value
    /// of a label. `search` is in lower case; an empty one finds everything.
    #[must_use]
    pub fn has(&self, search: &str) -> bool {
        let searched = self.searched();
        search.split_whitespace().all(|word| searched.contains(word))
    }

    /// What a search reads, in lower case. The fields are on lines of their own, and a word has no line break.
    #[must_use]
    pub fn searched(&self) -> String {
        let mut text = format!("{}\n{}", self.session, self.state.as_str());
        let fields = [&self.name, &self.reason, &self.model, &self.workdir];
        for field in fields.into_iter().chain(self.labels.values()) {
            text.push('\n');
            text.push_str(&field.to_lowercase());
        }
        text
    }

    /// The place of the page that begins after this row.
    #[must_use]
    pub fn place(&self, by: SortBy) -> ListPlace {
        // A row shows its live state, and the order is that of the stored ones.
        let stored = !matches!(by, SortBy::Created | SortBy::State);
        ListPlace {
            session: self.session,
            key: stored.then(|| self.key(by).to_string()),
        }
    }
}

/// How much a state needs a person.
const fn urgency(group: Group) -> u8 {
    match group {
        Group::Person => 6,
        Group::Failed => 5,
        Group::Limited => 4,
        Group::Running => 3,
        Group::Paused => 2,
        Group::Idle => 1,
        Group::Closed => 0,
    }
}

/// The last session of a page, and its value in the list's order when the page was made: a page that follows neither
/// repeats nor skips a session that has not changed. Written `ID` or `ID:VALUE`; without a value of this
/// order, the stored one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPlace {
    /// The last session.
    pub session: SessionId,
    /// Its [`SortKey`] as text.
    pub key: Option<String>,
}

impl From<SessionId> for ListPlace {
    fn from(session: SessionId) -> Self {
        Self { session, key: None }
    }
}

impl fmt::Display for ListPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            None => self.session.fmt(f),
            Some(key) => write!(f, "{}:{key}", self.session),
        }
    }
}

impl FromStr for ListPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (session, key) = match text.split_once(':') {
            Some((session, key)) => (session, Some(key.to_owned())),
            None => (text, None),
        };
        let session = session.parse().map_err(|_| {
            format!("{session:?} is not a session's id; pass the last session of the page before")
        })?;
        Ok(Self { session, key })
    }
}

impl Serialize for ListPlace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ListPlace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Status, WaitReason};
    use serde_json::json;

    fn row() -> Summary {
        let state = RunState::Waiting(WaitReason::Approval);
        Summary {
            name: "Fix the Bug".to_owned(),
            model: "Opus".to_owned(),
            workdir: "/src/Shop".to_owned(),
            labels: [("team".to_owned(), "Infra".to_owned())].into(),
            cost_usd: 0.1 + 0.2,
            steps: 7,
            ..Summary::new(SessionId::NIL, Status::new(state, "Bash asks", Timestamp(5)))
        }
    }

    #[test]
    fn a_row_and_its_json_give_the_same_values() {
        let parsed: Listed = serde_json::from_value(serde_json::to_value(row()).unwrap()).unwrap();
        assert_eq!(parsed, Listed::from(&row()));
        for by in [
            SortBy::Updated,
            SortBy::Name,
            SortBy::Model,
            SortBy::Steps,
            SortBy::Tokens,
            SortBy::Cost,
        ] {
            let key = parsed.key(by);
            let place: ListPlace = parsed.place(by).to_string().parse().unwrap();
            assert_eq!(by.parse_key(&place.key.unwrap()), Some(key), "{by:?}");
        }
        assert_eq!(parsed.place(SortBy::State), SessionId::NIL.into());
        assert_eq!(SortBy::Cost.parse_key("much"), None);
    }

    #[test]
    fn every_word_must_be_somewhere() {
        let row = Listed::from(&row());
        for found in ["", "bug", "opus infra", "fix shop approval", "asks"] {
            assert!(row.has(found), "{found}");
        }
        for absent in ["team", "bug gpt"] {
            assert!(!row.has(absent), "{absent}");
        }
    }

    #[test]
    fn a_place_is_an_id_and_maybe_a_value() {
        let id = SessionId::NIL;
        for (text, key) in [(format!("{id}"), None), (format!("{id}:a:b"), Some("a:b"))] {
            let place: ListPlace = serde_json::from_value(json!(text)).unwrap();
            assert_eq!((place.session, place.key.as_deref()), (id, key));
            assert_eq!(place.to_string(), text);
        }
        let error = serde_json::from_value::<ListPlace>(json!("7")).unwrap_err();
        assert!(
            error.to_string().contains("\"7\" is not a session's id"),
            "{error}"
        );
    }
}
