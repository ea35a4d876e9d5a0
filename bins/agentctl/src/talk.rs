//! Watching a turn, answering what it asks, steering it: what `run`, `send --wait` and `attach` share.

mod answer;
mod asking;
mod asks;
mod console;
mod conversation;
mod draft;
mod manner;
mod requests;
mod screen;
mod turn_watch;
mod typing;

pub(crate) use conversation::Conversation;
pub(crate) use manner::{Held, Interrupt, Manner, Unattended};
pub(crate) use screen::{Place, Screen};
pub(crate) use turn_watch::{RunResult, TurnWatch};

#[cfg(test)]
mod tests;
