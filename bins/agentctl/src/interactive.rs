//! Watching a turn, answering its questions, steering it: shared by `run`, `send --wait` and `attach`.

mod answer;
mod asking;
mod beside;
mod console;
mod conversation;
mod draft;
mod footer;
mod manner;
mod pages;
mod prose;
mod requests;
mod screen;
mod signals;
mod thoughts;
mod turn_watch;
mod typing;
mod unfinished;

pub(crate) use answer::{Typed, choice_of, read as typed};
pub(crate) use console::{Before, Console};
pub(crate) use conversation::Conversation;
pub(crate) use manner::{Held, Interrupt, Manner, Unattended};
pub(crate) use pages::Pages;
pub(crate) use screen::{Screen, Streams};
pub(crate) use signals::{Signals, TerminalSignal};
pub(crate) use turn_watch::{RunResult, TurnWatch};

#[cfg(test)]
mod tests;
