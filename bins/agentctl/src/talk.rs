//! Watching a turn, answering what it asks, steering it: what `run`, `send --wait` and `attach` share.

mod answer;
mod asks;
mod console;
mod conversation;
mod manner;
mod screen;
mod turn_watch;

pub(crate) use conversation::Conversation;
pub(crate) use manner::{Held, Interrupt, Manner, Unattended};
pub(crate) use screen::{Place, Screen};
pub(crate) use turn_watch::{RunResult, TurnWatch};

#[cfg(test)]
mod tests;
