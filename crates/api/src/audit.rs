//! `audit.query`: who did what, newest first, from the audit files.

use crate::api::Api;
use crate::backup::blocking;
use agentd_audit::{LinePosition, Newest, newest};
use agentd_protocol::{AuditCheck, AuditLine, AuditPage, AuditParams, Fault};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Lines in a page unless the caller asks for another number.
const LIMIT: u32 = 100;
/// The most lines in a page.
const MAX_LIMIT: u32 = 1_000;
/// After this many lines a request opens no older file, so that a rare match does not search for minutes.
const SCAN: u64 = 200_000;
/// Searches at the same time. Each reads on a thread, which it keeps if the disk does not answer.
pub(crate) const AUDITING: usize = 4;
/// The time limit of a search, including its wait for a permit.
const SEARCH: Duration = Duration::from_secs(30);

impl Api {
    /// The directory of the audit files.
    fn audit_dir(&self) -> Result<PathBuf, Fault> {
        if self.loaded().settings.log.audit {
            return Ok(Path::new(&self.parts.facts.data_dir).join("logs"));
        }
        let fault = Fault::not_found("no_audit", "this daemon keeps no audit files");
        Err(fault.hint("set log.audit = true and restart it"))
    }

    pub(crate) async fn audit_verify(&self) -> Result<AuditCheck, Fault> {
        let logs = self.audit_dir()?;
        let check = move || {
            let files = agentd_audit::files(&logs)?;
            agentd_audit::check(&files, None).map_err(|(_, error)| error)
        };
        searched(Arc::clone(&self.auditing), check).await
    }

    pub(crate) async fn audit_query(&self, params: AuditParams) -> Result<AuditPage, Fault> {
        let logs = self.audit_dir()?;
        let limit = params.limit.unwrap_or(LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            let why = format!("limit: {limit} is not from 1 to {MAX_LIMIT}");
            return Err(Fault::invalid("bad_limit", why));
        }
        let before = params
            .before
            .as_deref()
            .map(str::parse::<LinePosition>)
            .transpose();
        let before = before.map_err(|why| {
            Fault::invalid("bad_place", format!("before: {why}")).hint("pass `next` of the previous page")
        })?;
        let limits = (usize::try_from(limit).unwrap_or(usize::MAX), SCAN);
        let search = move || newest(&logs, before, limits, |line| matching(line, &params));
        Ok(page(searched(Arc::clone(&self.auditing), search).await?))
    }
}

/// Runs a search on a thread. The thread holds the permit, so that an abandoned search still counts.
async fn searched<T: Send + 'static>(
    permits: Arc<Semaphore>,
    search: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Fault> {
    let work = async move {
        let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
        let holding = move || {
            let _permit = permit;
            search()
        };
        blocking(holding).await
    };
    let slow = |_| {
        let fault = Fault::timeout("audit_slow", "the search of the audit files took too long");
        fault.hint("try again later; if that also fails, check the disk of the data directory")
    };
    let found = tokio::time::timeout(SEARCH, work).await.map_err(slow)?;
    found.map_err(|error| Fault::internal("audit_unreadable", error.to_string()))
}

fn page(found: Newest<AuditLine>) -> AuditPage {
    let placed = |(place, line): (LinePosition, AuditLine)| AuditLine {
        place: place.to_string(),
        ..line
    };
    AuditPage {
        items: found.lines.into_iter().map(placed).collect(),
        next: found.before.map(|place| place.to_string()),
    }
}

/// The line if it matches. A line that is being written, or that is not agentd's, matches nothing.
fn matching(line: &str, params: &AuditParams) -> Option<AuditLine> {
    let mut line: AuditLine = serde_json::from_str(line).ok()?;
    let session = line.session.as_deref().unwrap_or_default();
    let matches = params.who.as_ref().is_none_or(|who| line.who.contains(who))
        && params
            .event
            .as_ref()
            .is_none_or(|event| line.event.starts_with(event))
        && params
            .session
            .as_ref()
            .is_none_or(|part| session.starts_with(part))
        && params.since.is_none_or(|since| line.at >= since)
        && params.until.is_none_or(|until| line.at < until);
    line.more.retain(|_, value| !value.is_null());
    matches.then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::mpsc;
    use tokio::sync::oneshot;

    #[tokio::test(start_paused = true)]
    async fn a_search_that_gets_no_permit_ends_in_time() {
        let permits = Arc::new(Semaphore::new(0));
        let search = searched(permits, || Ok(()));
        assert_eq!(search.await.unwrap_err().code, "audit_slow");
    }

    #[tokio::test]
    async fn an_abandoned_search_keeps_its_permit_until_its_thread_ends() {
        let permits = Arc::new(Semaphore::new(1));
        let (thaw, frozen) = mpsc::channel::<()>();
        let (begin, begun) = oneshot::channel();
        let search = tokio::spawn(searched(Arc::clone(&permits), move || {
            begin
                .send(())
                .map_err(|()| io::Error::other("the test has ended"))?;
            let _ = frozen.recv();
            Ok(())
        }));
        begun.await.unwrap();
        search.abort();
        assert!(search.await.unwrap_err().is_cancelled());
        assert_eq!(permits.available_permits(), 0);
        drop(thaw);
        searched(permits, || Ok(())).await.unwrap();
    }

    #[test]
    fn a_line_must_match_every_filter() {
        let line = json!({
            "at": "2026-11-23T23:50:07.877Z", "who": "token:ci", "session": "01a2-b", "event": "approval.decided",
            "what": {"decision": "allow"}, "why": null,
        })
        .to_string();
        let found = |params: AuditParams| matching(&line, &params).is_some();
        let params = AuditParams::default;
        let at = |text: &str| Some(text.parse().unwrap());
        assert!(found(params()));
        for (who, matches) in [("token:ci", true), ("ci", true), ("user:", false)] {
            let who = Some(who.to_owned());
            assert_eq!(found(AuditParams { who, ..params() }), matches);
        }
        for (event, matches) in [("approval", true), ("approval.decided", true), ("decided", false)] {
            let event = Some(event.to_owned());
            assert_eq!(found(AuditParams { event, ..params() }), matches);
        }
        for (session, matches) in [("01a2", true), ("b", false)] {
            let session = Some(session.to_owned());
            assert_eq!(found(AuditParams { session, ..params() }), matches);
        }
        for (since, until, matches) in [
            (at("2026-11-23T23:50:07.877Z"), None, true),
            (at("2026-11-23T23:50:07.878Z"), None, false),
            (None, at("2026-11-23T23:50:07.877Z"), false),
            (None, at("2026-11-23T23:50:07.878Z"), true),
        ] {
            assert_eq!(
                found(AuditParams {
                    since,
                    until,
                    ..params()
                }),
                matches
            );
        }
        let whole = matching(&line, &params()).unwrap();
        assert_eq!(
            serde_json::to_value(whole.more).unwrap(),
            json!({"what": {"decision": "allow"}})
        );
        assert!(matching("{\"at\":", &params()).is_none());
    }
}
