//! The stack of open elements.

use super::elements::{Role, ends_before, ends_others, holds, stops};

/// The most open elements to track: the text of deeper ones belongs to the last one tracked.
const MAX_OPEN: usize = 100;

/// An open element.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Whether its opening mark is written.
    pub(crate) begun: bool,
    /// Its closing mark.
    pub(crate) closer: String,
    /// Of a list: the number of the next item. Of a row: its cells. Of a table: its rows.
    pub(crate) count: u64,
    /// Of a table: whether it has header cells. Otherwise unused.
    pub(crate) headed: bool,
}

impl Open {
    pub(crate) fn new(name: &str, role: Role) -> Self {
        Self {
            name: name.to_owned(),
            role,
            begun: false,
            closer: String::new(),
            count: 0,
            headed: false,
        }
    }
}

/// All open elements, the outermost first.
#[derive(Debug, Default)]
pub(crate) struct Stack(Vec<Open>);

impl Stack {
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Open> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Open> {
        self.0.iter_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is room for another element.
    pub(crate) fn has_room(&self) -> bool {
        self.0.len() < MAX_OPEN
    }

    pub(crate) fn push(&mut self, open: Open) {
        self.0.push(open);
    }

    pub(crate) fn pop(&mut self) -> Option<Open> {
        self.0.pop()
    }

    /// The innermost element, if it is of this kind.
    pub(crate) fn top(&mut self, role: Role) -> Option<&mut Open> {
        self.0.last_mut().filter(|open| open.role == role)
    }

    /// The innermost element of a kind.
    pub(crate) fn last(&mut self, is: impl Fn(Role) -> bool) -> Option<&mut Open> {
        self.0.iter_mut().rev().find(|open| is(open.role))
    }

    pub(crate) fn any(&self, is: impl Fn(Role) -> bool) -> bool {
        self.0.iter().any(|open| is(open.role))
    }

    /// The stack height after the end tag of an element; `None` if it ends nothing.
    pub(crate) fn after_end(&self, name: &str) -> Option<usize> {
        for (at, open) in self.0.iter().enumerate().rev() {
            if open.name == name {
                return Some(at);
            }
            if holds(&open.name, name) {
                return None;
            }
        }
        None
    }

    /// The stack height before the start of an element, which may end others.
    pub(crate) fn before_start(&self, name: &str) -> usize {
        let mut stay = self.0.len();
        if !ends_others(name) {
            return stay;
        }
        for (at, open) in self.0.iter().enumerate().rev() {
            if ends_before(&open.name, name) {
                stay = at;
            } else if stops(&open.name, name) {
                break;
            }
        }
        stay
    }
}
