//! The lists of the in-memory backend. Pure.

use super::state::State;
use crate::access::carries;
use crate::read::{MAX_LIST, clamp};
use crate::{Filter, Row, StoreError};
use agentd_protocol::{ListPlace, Listed, RunState, SessionId, SortBy, SortKey, Summary};

impl State {
    pub(super) fn list(&self, filter: &Filter) -> Result<Vec<Row>, StoreError> {
        let begin = filter
            .after
            .as_ref()
            .map(|place| self.place(place, filter.sort))
            .transpose()?;
        let compare = |one: &(SortKey, SessionId), two: &(SortKey, SessionId)| {
            let order = one.0.compare(&two.0).then(one.1.cmp(&two.1));
            if filter.ascending { order } else { order.reverse() }
        };
        let wanted = self.rows().filter(|(_, _, summary)| matches(filter, summary));
        let mut placed: Vec<_> = wanted
            .map(|(id, session, summary)| ((Listed::from(summary).key(filter.sort), id), session))
            .filter(|(place, _)| begin.as_ref().is_none_or(|begin| compare(begin, place).is_lt()))
            .collect();
        placed.sort_by(|(one, _), (two, _)| compare(one, two));
        let rows = placed.into_iter().filter_map(|(_, session)| session.row());
        Ok(rows.take(clamp(filter.limit, MAX_LIST)).collect())
    }

    /// The place behind which a page begins.
    fn place(&self, place: &ListPlace, by: SortBy) -> Result<(SortKey, SessionId), StoreError> {
        let stored = || {
            let session = self.sessions.get(&place.session)?;
            Some(Listed::from(&session.row()?.summary).key(by))
        };
        let seen = match by {
            SortBy::Created => Some(SortKey::Number(0.0)),
            _ => place.key.as_deref().and_then(|text| by.parse_key(text)),
        };
        let key = seen.or_else(stored).ok_or(StoreError::NotFound(place.session))?;
        Ok((key, place.session))
    }
}

fn matches(filter: &Filter, summary: &Summary) -> bool {
    let state = summary.status.state;
    let text = state.as_str();
    let closed_too = filter.all || !filter.states.is_empty();
    let named = |want: &String| {
        text.strip_prefix(want.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
    };
    (closed_too || state != RunState::Closed)
        && (filter.states.is_empty() || filter.states.iter().any(named))
        && carries(&summary.labels, &filter.labels)
        && (!filter.resumable_or_timed || summary.resumable || summary.wake_at.is_some())
        && (filter.search.is_empty() || Listed::from(summary).has(&filter.search))
}
