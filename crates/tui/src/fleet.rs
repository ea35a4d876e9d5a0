//! The view of all sessions: a table that refreshes, and what a person does with its rows.

use crate::fleet_action::Snapshot;
use crate::fleet_rate::Rate;
use crate::labels::Groups;
use crate::panel::Panel;
use crate::theme::Theme;
use agentd_protocol::{ApprovalId, ApprovalQuestion, SessionId, SortBy, Summary, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// Rows that are loaded beyond those on the screen.
pub(crate) const AHEAD: usize = 50;
/// The most rows that are loaded.
const MOST_ROWS: usize = 10_000;
/// How long a message stays.
const NOTICE_MS: u64 = 8_000;

/// The rows that a snapshot should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The order.
    pub sort: SortBy,
    /// The smallest first.
    pub ascending: bool,
    /// Only sessions in which these words occur.
    pub search: &'a str,
    /// The most rows.
    pub rows: usize,
    /// Only sessions with this value of a label; without a value: without the label.
    pub label: Option<(&'a str, Option<&'a str>)>,
}

/// A line that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Prompt {
    Filter(String),
    Command(String),
    /// Whether to cancel the chosen sessions.
    Cancel,
}

/// The view of all sessions.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent states of a screen")]
pub struct FleetView {
    pub(crate) theme: Theme,
    pub(crate) shot: Snapshot,
    pub(crate) now: Timestamp,
    pub(crate) selected: usize,
    pub(crate) top: usize,
    pub(crate) height: usize,
    pub(crate) marked: BTreeSet<SessionId>,
    pub(crate) sort: SortBy,
    pub(crate) ascending: bool,
    pub(crate) filter: String,
    pub(crate) prompt: Option<Prompt>,
    pub(crate) panel: Option<Panel>,
    pub(crate) help: bool,
    pub(crate) notice: Option<(String, Timestamp)>,
    pub(crate) lost: bool,
    pub(crate) asked: bool,
    /// The groups of a label, while they are shown.
    pub(crate) groups: Option<Groups>,
    /// Only sessions with this value of a label; without a value: without the label.
    pub(crate) value: Option<(String, Option<String>)>,
    tokens: HashMap<SessionId, Rate>,
    pub(crate) cost_usd: f64,
    /// Steps, and millionths of a dollar.
    totals: (Rate, Rate),
}

impl FleetView {
    /// An empty view.
    #[must_use]
    pub fn new(theme: Theme, now: Timestamp) -> Self {
        Self {
            theme,
            shot: Snapshot::default(),
            now,
            selected: 0,
            top: 0,
            height: 20,
            marked: BTreeSet::new(),
            sort: SortBy::State,
            ascending: false,
            filter: String::new(),
            prompt: None,
            panel: None,
            help: false,
            notice: None,
            lost: false,
            asked: false,
            groups: None,
            value: None,
            tokens: HashMap::new(),
            cost_usd: 0.0,
            totals: (Rate::default(), Rate::default()),
        }
    }

    /// What the next snapshot should have.
    #[must_use]
    pub fn wanted(&self) -> Wanted<'_> {
        let rows = if self.groups.is_some() {
            MOST_ROWS
        } else {
            (self.selected.max(self.top + self.height) + AHEAD).min(MOST_ROWS)
        };
        Wanted {
            sort: self.sort,
            ascending: self.ascending,
            search: &self.filter,
            rows,
            label: self
                .value
                .as_ref()
                .map(|(key, value)| (key.as_str(), value.as_deref())),
        }
    }

    /// Takes in what the daemon tells; false if the rows are as before. The selection stays with its session.
    pub fn refresh(&mut self, shot: Snapshot, now: Timestamp) -> bool {
        let same = (&shot.rows, shot.counts, shot.approvals)
            == (&self.shot.rows, self.shot.counts, self.shot.approvals);
        let changed = !(self.asked && same);
        let selected = self.current().map(|row| row.session);
        self.now = now;
        self.lost = false;
        self.asked = true;
        let (steps, micros) = &mut self.totals;
        if let Some(spent) = &shot.spent {
            steps.push(now, spent.steps);
            micros.push(now, millionths(spent.usd));
            self.cost_usd = spent.usd;
        }
        let mut before = std::mem::take(&mut self.tokens);
        for row in &shot.rows {
            let mut rate = before.remove(&row.session).unwrap_or_default();
            rate.push(now, row.usage.total());
            self.tokens.insert(row.session, rate);
        }
        self.shot = shot;
        self.regroup();
        let place = selected.and_then(|id| self.shot.rows.iter().position(|row| row.session == id));
        self.selected = place
            .unwrap_or(self.selected)
            .min(self.shot.rows.len().saturating_sub(1));
        // A question that was answered elsewhere is over.
        if let Some(panel) = &self.panel {
            let id = panel.approval();
            let open = |row: &Summary| row.open_approvals.iter().any(|open| open.approval == id);
            if !self.shot.rows.iter().any(open) {
                self.panel = None;
                self.tell("the question is answered".to_owned());
            }
        }
        changed
    }

    /// The daemon does not answer.
    pub fn lost(&mut self, why: String, now: Timestamp) {
        self.now = now;
        self.lost = true;
        self.tell(why);
    }

    /// The question whose lines are wanted, once.
    pub fn wants_question(&mut self) -> Option<ApprovalId> {
        self.panel.as_mut().and_then(Panel::wants)
    }

    /// The lines of a question, as the daemon rendered them; or why they cannot be shown.
    pub fn question(&mut self, approval: ApprovalId, question: Result<Box<ApprovalQuestion>, String>) {
        let now = self.now;
        if let Some(panel) = self.panel.as_mut().filter(|panel| panel.approval() == approval) {
            panel.show(question, now);
        }
    }

    /// Shows a message of this program.
    pub fn tell(&mut self, text: String) {
        self.notice = Some((text, self.now));
    }

    pub(crate) fn arrange_now(&mut self, now: Timestamp) {
        self.now = now;
        if self
            .notice
            .as_ref()
            .is_some_and(|(_, at)| now.since_ms(*at) > NOTICE_MS)
        {
            self.notice = None;
        }
    }

    pub(crate) fn current(&self) -> Option<&Summary> {
        self.shot.rows.get(self.selected)
    }

    /// Tokens a minute of a session.
    pub(crate) fn rate(&self, session: SessionId) -> Option<u64> {
        self.tokens.get(&session)?.a_minute()
    }

    /// Steps a second and dollars a minute of all sessions.
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub(crate) fn rates(&self) -> (f64, f64) {
        let (steps, micros) = &self.totals;
        let dollars = micros.a_minute().unwrap_or(0) as f64 / 1e6;
        (steps.a_second(), dollars)
    }

    pub(crate) fn follow_selection(&mut self) {
        self.top = self.top.min(self.selected);
        if self.selected >= self.top + self.height {
            self.top = self.selected + 1 - self.height.max(1);
        }
    }

    /// When the screen changes next although nothing happens.
    #[must_use]
    pub fn next_change(&self) -> Option<Timestamp> {
        let guard = self.panel.as_ref().filter(|panel| !panel.ready(self.now));
        let shown = self.shot.rows.iter().skip(self.top).take(self.height);
        let counts = shown
            .filter_map(|row| row.status.until)
            .any(|until| until > self.now);
        let fades = self.notice.is_some();
        let second = (counts || fades).then(|| self.now.plus_ms(1_000 - self.now.0 % 1_000));
        guard.map(Panel::ready_at).or(second)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive amount of money, far below the limit"
)]
fn millionths(dollars: f64) -> u64 {
    (dollars.max(0.0) * 1e6) as u64
}
