//! The mouse, where the person wants it. Everything it does can be done with keys.

use crate::action::{Action, Focus};
use crate::fleet::FleetView;
use crate::fleet_action::FleetAction;
use crate::session::SessionView;
use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

/// Rows that the wheel moves.
const NOTCH: isize = 3;

impl SessionView {
    /// The wheel scrolls; a click selects an entry, and a second one unfolds it.
    pub fn mouse(&mut self, event: MouseEvent) -> Option<Action> {
        match event.kind {
            MouseEventKind::ScrollUp => return self.scroll(-NOTCH),
            MouseEventKind::ScrollDown => return self.scroll(NOTCH),
            MouseEventKind::Down(MouseButton::Left) => {}
            _ => return None,
        }
        if !self.area.contains(Position::new(event.column, event.row)) {
            if self.setup.writes && event.row >= self.area.bottom() {
                self.focus = Focus::Message;
                self.selected = None;
            }
            return None;
        }
        let row = usize::from(event.row - self.area.y);
        let entry = self
            .visible
            .get(row)
            .map(|row| row.entry)
            .filter(|entry| *entry != 0)?;
        if self.selected == Some(entry) {
            self.fold();
        }
        self.focus = Focus::Transcript;
        self.selected = Some(entry);
        None
    }
}

impl FleetView {
    /// The wheel moves the selection; a click selects a row, and a second one attaches.
    pub fn mouse(&mut self, event: MouseEvent) -> Option<FleetAction> {
        if self.panel.is_some() || self.prompt.is_some() || self.groups.is_some() {
            return None;
        }
        match event.kind {
            MouseEventKind::ScrollUp => return self.step(-NOTCH),
            MouseEventKind::ScrollDown => return self.step(NOTCH),
            MouseEventKind::Down(MouseButton::Left) => {}
            _ => return None,
        }
        // The title, the figures and the heading are above the table.
        let row = usize::from(event.row)
            .checked_sub(3)
            .filter(|row| *row < self.height)?;
        let index = self.top + row;
        let session = self.shot.rows.get(index)?.session;
        if index == self.selected {
            return Some(FleetAction::Attach(session));
        }
        self.selected = index;
        None
    }
}
