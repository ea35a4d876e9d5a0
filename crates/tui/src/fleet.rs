//! The view of all sessions: a table that refreshes, and what a person does with its rows.

use crate::fleet_action::{FleetAction, Snapshot};
use crate::panel::{Panel, Pressed};
use crate::theme::Theme;
use agentd_protocol::{RunState, SessionId, SortBy, Summary, Timestamp};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Rates are means over this time.
const RATE_MS: u64 = 15_000;
/// Rows that are loaded beyond those on the screen.
const AHEAD: usize = 50;
/// The most rows that are loaded.
const MOST_ROWS: usize = 10_000;
/// How long a message stays.
const NOTICE_MS: u64 = 8_000;

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
    tokens: HashMap<SessionId, VecDeque<(Timestamp, u64)>>,
    totals: VecDeque<(Timestamp, u64, f64)>,
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
            tokens: HashMap::new(),
            totals: VecDeque::new(),
        }
    }

    /// The order, its direction, the search and the number of rows that the next snapshot should have.
    #[must_use]
    pub fn wanted(&self) -> (SortBy, bool, &str, usize) {
        let rows = (self.selected.max(self.top + self.height) + AHEAD).min(MOST_ROWS);
        (self.sort, self.ascending, &self.filter, rows)
    }

    /// Takes in what the daemon tells. The selection stays with its session.
    pub fn refresh(&mut self, shot: Snapshot, now: Timestamp) {
        let selected = self.current().map(|row| row.session);
        self.now = now;
        self.lost = false;
        self.asked = true;
        push(
            &mut self.totals,
            (now, shot.steps, shot.cost_usd),
            |entry| entry.0,
            now,
        );
        self.tokens
            .retain(|session, _| shot.rows.iter().any(|row| row.session == *session));
        for row in &shot.rows {
            let seen = self.tokens.entry(row.session).or_default();
            push(seen, (now, row.usage.total()), |entry| entry.0, now);
        }
        self.shot = shot;
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
    }

    /// The daemon does not answer.
    pub fn lost(&mut self, why: String, now: Timestamp) {
        self.now = now;
        self.lost = true;
        self.tell(why);
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
        let seen = self.tokens.get(&session)?;
        let ((from, before), (to, now)) = (seen.front()?, seen.back()?);
        let more = now.saturating_sub(*before);
        (more * 60_000).checked_div(to.since_ms(*from))
    }

    /// Steps a second and dollars a minute of all sessions.
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub(crate) fn rates(&self) -> (f64, f64) {
        let ends = (self.totals.front(), self.totals.back());
        let (Some((from, steps, cost)), Some((to, more_steps, more_cost))) = ends else {
            return (0.0, 0.0);
        };
        let seconds = to.since_ms(*from) as f64 / 1_000.0;
        if seconds <= 0.0 {
            return (0.0, 0.0);
        }
        let steps = more_steps.saturating_sub(*steps) as f64 / seconds;
        (steps, (more_cost - cost).max(0.0) * 60.0 / seconds)
    }

    /// The marked sessions, or else the selected one.
    fn chosen(&self) -> Vec<SessionId> {
        if self.marked.is_empty() {
            self.current().map(|row| row.session).into_iter().collect()
        } else {
            self.marked.iter().copied().collect()
        }
    }

    /// A key. The answer is what the caller does.
    pub fn key(&mut self, key: KeyEvent, now: Timestamp) -> Option<FleetAction> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        self.now = now;
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if ctrl => return Some(FleetAction::Quit),
            KeyCode::Char('z') if ctrl => return Some(FleetAction::Suspend),
            KeyCode::Char('l') if ctrl => return Some(FleetAction::Redraw),
            _ => {}
        }
        if self.help {
            self.help = false;
            return None;
        }
        if self.panel.is_some() {
            return self.in_panel(key, now);
        }
        if let Some(prompt) = self.prompt.take() {
            return self.in_prompt(&prompt, key);
        }
        self.in_table(key)
    }

    fn in_panel(&mut self, key: KeyEvent, now: Timestamp) -> Option<FleetAction> {
        let panel = self.panel.as_mut()?;
        let leaves = panel.words.is_none() && matches!(key.code, KeyCode::Esc | KeyCode::Tab);
        if leaves {
            self.panel = None;
            return None;
        }
        let Pressed::Answer(line) = panel.key(key, now) else {
            return None;
        };
        let approval = Box::new(panel.open.clone());
        self.panel = None;
        Some(FleetAction::Answer { approval, line })
    }

    fn in_prompt(&mut self, prompt: &Prompt, key: KeyEvent) -> Option<FleetAction> {
        let mut text = match prompt.clone() {
            Prompt::Filter(text) | Prompt::Command(text) => text,
            Prompt::Cancel => {
                let sure = key.code == KeyCode::Char('y');
                return sure.then(|| FleetAction::Cancel(self.chosen()));
            }
        };
        match key.code {
            KeyCode::Esc => {
                if matches!(prompt, Prompt::Filter(_)) {
                    self.filter.clear();
                    return Some(FleetAction::Refresh);
                }
                return None;
            }
            KeyCode::Enter => {
                return match prompt {
                    Prompt::Command(_) if !text.trim().is_empty() => Some(FleetAction::Command(text)),
                    Prompt::Filter(_) | Prompt::Command(_) | Prompt::Cancel => None,
                };
            }
            KeyCode::Backspace => _ = text.pop(),
            KeyCode::Char(c) if !c.is_control() && text.len() < 500 => text.push(c),
            _ => {}
        }
        if matches!(prompt, Prompt::Filter(_)) {
            self.filter.clone_from(&text);
            self.prompt = Some(Prompt::Filter(text));
            return Some(FleetAction::Refresh);
        }
        self.prompt = Some(Prompt::Command(text));
        None
    }

    fn in_table(&mut self, key: KeyEvent) -> Option<FleetAction> {
        let page = isize::try_from(self.height).unwrap_or(1);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Some(FleetAction::Quit),
            KeyCode::Up | KeyCode::Char('k') => return self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => return self.step(1),
            KeyCode::PageUp => return self.step(-page),
            KeyCode::PageDown => return self.step(page),
            KeyCode::Home | KeyCode::Char('g') => return self.step(isize::MIN + 1),
            KeyCode::End | KeyCode::Char('G') => return self.step(isize::MAX),
            KeyCode::Enter => return self.current().map(|row| FleetAction::Attach(row.session)),
            KeyCode::Char(' ') => {
                if let Some(session) = self.current().map(|row| row.session)
                    && !self.marked.remove(&session)
                {
                    self.marked.insert(session);
                }
                return self.step(1);
            }
            KeyCode::Char('u') => self.marked.clear(),
            KeyCode::Char('/') => self.prompt = Some(Prompt::Filter(self.filter.clone())),
            KeyCode::Char(':') => self.prompt = Some(Prompt::Command(String::new())),
            KeyCode::Char('s') => {
                self.sort = next(self.sort);
                return Some(FleetAction::Refresh);
            }
            KeyCode::Char('S') => {
                self.ascending = !self.ascending;
                return Some(FleetAction::Refresh);
            }
            KeyCode::Char('a') => self.ask(),
            KeyCode::Char('A') => return verb(["approvals".to_owned(), "-w".to_owned()], false),
            KeyCode::Char('d') => return self.about("diff", true),
            KeyCode::Char('L') => return self.about("logs", false),
            KeyCode::Char('x') if !self.chosen().is_empty() => self.prompt = Some(Prompt::Cancel),
            KeyCode::Char('p') => return self.pause(),
            KeyCode::Char('?') | KeyCode::F(1) => self.help = true,
            _ => {}
        }
        None
    }

    /// A verb about the selected session.
    fn about(&self, name: &str, waits: bool) -> Option<FleetAction> {
        let session = self.current()?.session.to_string();
        verb([name.to_owned(), session], waits)
    }

    fn pause(&self) -> Option<FleetAction> {
        let paused = self.current()?;
        let resumes = paused.paused || matches!(paused.status.state, RunState::Paused | RunState::Faulted);
        let chosen = self.chosen();
        Some(if resumes {
            FleetAction::Resume(chosen)
        } else {
            FleetAction::Pause(chosen)
        })
    }

    /// Shows the question of the selected session.
    fn ask(&mut self) {
        let open = self.current().and_then(|row| row.open_approvals.first()).cloned();
        match open {
            Some(open) => self.panel = Some(Panel::new(open, true, self.now)),
            None => self.tell("this session asks nothing; A opens the inbox".to_owned()),
        }
    }

    fn step(&mut self, by: isize) -> Option<FleetAction> {
        let last = self.shot.rows.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
        self.follow_selection();
        // Near the end of what is loaded, more is wanted.
        let near = self.selected + AHEAD / 2 > last && self.shot.rows.len() >= AHEAD;
        near.then_some(FleetAction::Refresh)
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
        guard.map(Panel::ready_at)
    }
}

fn verb<const N: usize>(words: [String; N], waits: bool) -> Option<FleetAction> {
    Some(FleetAction::Verb(words.into(), waits))
}

fn push<T>(seen: &mut VecDeque<T>, entry: T, at: impl Fn(&T) -> Timestamp, now: Timestamp) {
    seen.push_back(entry);
    while seen.len() > 2
        && seen
            .get(1)
            .is_some_and(|second| now.since_ms(at(second)) > RATE_MS)
    {
        seen.pop_front();
    }
}

fn next(sort: SortBy) -> SortBy {
    let at = SortBy::ALL.iter().position(|one| *one == sort).unwrap_or(0);
    SortBy::ALL.iter().cycle().nth(at + 1).copied().unwrap_or(sort)
}
