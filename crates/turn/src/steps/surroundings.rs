//! The mode, the date and the working directory that the model knows. The system prompt never changes, so changes are told
//! in notes next to the newest input.

use crate::draft::Draft;
use crate::durable::Durable;
use crate::{inbox, words};
use agentd_protocol::{NoteInjected, NoteKind, PermissionMode, SessionCreated, Timestamp};
use serde::Serialize;

/// The length of a date in RFC 3339, in characters.
const DATE: usize = 10;

/// The model's knowledge of its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Surroundings {
    /// The model was last told the date of this moment.
    pub at: Timestamp,
    /// The model believes that plan mode is on.
    pub plan: bool,
    /// The system prompt contains the date of this moment.
    pub first_at: Timestamp,
    /// The system prompt says that plan mode is on.
    pub first_plan: bool,
    /// The model has been told about plan mode at some time.
    pub ever_plan: bool,
    /// The model believes that the session works in an earlier directory.
    pub moved: bool,
    /// The session has moved to another directory at some time.
    pub ever_moved: bool,
}

impl Surroundings {
    /// The state that the system prompt describes.
    pub(crate) fn by_prompt(created: &SessionCreated, at: Timestamp) -> Self {
        let plan = created.mode == PermissionMode::Plan;
        Self {
            at,
            plan,
            first_at: at,
            first_plan: plan,
            ever_plan: plan,
            ..Self::default()
        }
    }

    /// Old messages are gone, perhaps with notes among them: only the system prompt is certain.
    fn forget(&mut self) {
        *self = Self {
            at: self.first_at,
            plan: self.first_plan,
            moved: self.ever_moved,
            ..*self
        };
    }
}

impl Surroundings {
    /// The session works in another directory from now on.
    pub(crate) const fn moved(&mut self) {
        self.moved = true;
        self.ever_moved = true;
    }
}

impl Durable {
    /// The current permission mode.
    pub(crate) fn mode(&self) -> PermissionMode {
        self.settings
            .as_ref()
            .map_or(PermissionMode::Default, |settings| settings.mode)
    }

    /// Whether the session offers a tool.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        let settings = self.settings.as_ref();
        settings.is_some_and(|settings| settings.tools.iter().any(|offered| offered == tool))
    }

    /// Forgets notes because old messages, or the newest ones (`back`), left the conversation. If plan mode is off, it
    /// is safer to tell the model once too often that it is over.
    pub(crate) fn forget_told(&mut self, back: bool) {
        let was = self.told.plan || (back && self.told.ever_plan);
        self.told.forget();
        if self.mode() != PermissionMode::Plan {
            self.told.plan |= was;
        }
    }

    /// Records that a note of this kind was given.
    pub(crate) fn told(&mut self, kind: NoteKind, at: Timestamp) {
        match kind {
            NoteKind::PlanReminder if self.mode() == PermissionMode::Plan => {
                self.told.plan = true;
                self.told.ever_plan = true;
            }
            NoteKind::ContextNotice => {
                self.told.moved = false;
                self.restored = None;
                self.told.at = at;
                self.told.plan = self.mode() == PermissionMode::Plan && self.told.plan;
            }
            _ => {}
        }
    }
}

/// Adds notes about a changed mode, date or working directory before a model call. In plan mode, each input gets its reminder.
pub(crate) fn tell(draft: &mut Draft<'_, '_>) {
    let told = draft.durable().told;
    let plan = draft.durable().mode() == PermissionMode::Plan;
    let joins = !inbox::joins_next(draft).is_empty();
    let mut news = Vec::new();
    if told.plan && !plan {
        news.push(words::PLAN_MODE_IS_OVER.to_owned());
    }
    if let Some(settings) = draft.durable().settings.as_ref().filter(|_| told.moved) {
        news.push(match &draft.durable().restored {
            Some(restored) => words::restored(&settings.workdir, restored.as_of, &restored.missing),
            None if settings.workspace.is_some() => words::moved(&settings.workdir),
            None => words::moved_by_person(&settings.workdir),
        });
    }
    let today = date(draft.now());
    if joins && today != date(told.at) {
        news.push(format!("Today is {today}."));
    }
    if !news.is_empty() {
        draft.emit(NoteInjected {
            kind: NoteKind::ContextNotice,
            text: news.join(" "),
        });
    }
    if plan && (joins || !told.plan) {
        draft.emit(NoteInjected {
            kind: NoteKind::PlanReminder,
            text: words::plan_mode(draft.durable().offers(words::EXIT_PLAN_MODE)),
        });
    }
}

fn date(at: Timestamp) -> String {
    let text = at.to_string();
    text.get(..DATE).map(str::to_owned).unwrap_or(text)
}
