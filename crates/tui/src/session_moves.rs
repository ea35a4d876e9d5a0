//! Moves through the transcript by entries: selection, jumps, search.

use crate::action::Action;
use crate::entry::{Entry, Kind};
use crate::session::SessionView;

impl SessionView {
    /// Selects the entry before or after; a long one scrolls first.
    pub(crate) fn select(&mut self, by: isize) -> Option<Action> {
        let first = self.visible.first().map(|row| row.entry);
        let last = self.visible.last().map(|row| row.entry);
        let Some(selected) = self.selected else {
            self.selected = last
                .filter(|id| *id != 0)
                .or_else(|| self.log.entries.back().map(|entry| entry.id));
            return None;
        };
        let at = self.log.entries.iter().position(|entry| entry.id == selected);
        let next = at.and_then(|at| at.checked_add_signed(by));
        let next = next
            .and_then(|next| self.log.entries.get(next))
            .map(|entry| entry.id);
        let edge = if by < 0 { first } else { last };
        if edge == Some(selected) || next.is_none() {
            let action = self.scroll(by);
            let height = usize::from(self.area.height);
            let shown = self.rows(|rows| rows.visible(self.position, height));
            let shows = |id: u64| shown.iter().any(|row| row.entry == id);
            if let Some(next) = next.filter(|next| shows(*next) || !shows(selected)) {
                self.selected = Some(next);
            }
            return action;
        }
        self.selected = next;
        None
    }

    pub(crate) fn fold(&mut self) {
        let open = self.open;
        let selected = self.selected;
        if let Some(entry) = self
            .log
            .entries
            .iter_mut()
            .find(|entry| Some(entry.id) == selected)
        {
            entry.open = Some(!entry.open.unwrap_or(open));
        }
    }

    pub(crate) fn copy(&mut self) -> Option<Action> {
        let selected = self.selected?;
        let entry = self.log.entries.iter().find(|entry| entry.id == selected)?;
        Some(Action::Copy(entry.text()))
    }

    /// Shows the images of the selected entry. They are not kept here: they may be large.
    pub(crate) fn show_images(&mut self) -> Option<Action> {
        let entry = self
            .log
            .entries
            .iter()
            .find(|entry| Some(entry.id) == self.selected);
        let images = entry.and_then(|entry| entry.images);
        if images.is_none() {
            self.tell("this entry has no image".to_owned());
        }
        images.map(Action::Images)
    }

    /// Goes to the next or previous entry of a kind.
    pub(crate) fn jump(&mut self, down: bool, wanted: impl Fn(&Entry) -> bool) -> Option<Action> {
        let count = self.log.entries.len();
        let at = self
            .selected
            .or_else(|| self.visible.first().map(|row| row.entry))
            .and_then(|id| self.log.entries.iter().position(|entry| entry.id == id))
            .unwrap_or(count);
        let fits = |index: &usize| self.log.entries.get(*index).is_some_and(&wanted);
        let next = if down {
            (at + 1..count).find(fits)
        } else {
            (0..at.min(count)).rev().find(fits)
        };
        let Some(next) = next else {
            if !down && self.log.has_older() {
                self.tell("loading earlier events; press the key again".to_owned());
                return self.load(Action::Older(self.log.first));
            }
            self.tell("there is no other one".to_owned());
            return None;
        };
        let height = usize::from(self.area.height);
        self.position = self.rows(|rows| rows.at(next, height));
        self.selected = self.log.entries.get(next).map(|entry| entry.id);
        None
    }

    pub(crate) fn search(&mut self, down: bool) -> Option<Action> {
        let words = self.found.clone()?.to_lowercase();
        self.jump(down, |entry| entry.text().to_lowercase().contains(&words))
    }
}

/// Whether the entry begins a turn.
pub(crate) fn is_turn(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::User { .. })
}
