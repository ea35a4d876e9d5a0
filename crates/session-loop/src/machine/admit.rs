//! Which commands a loop accepts.

use super::commit::disk_full;
use super::outbox::{Asker, MAX_UNACKNOWLEDGED};
use crate::answer::{Asked, again};
use crate::conceal;
use crate::machine::Machine;
use crate::work::Task;
use agentd_actor_kit::Routed;
use agentd_protocol::Fault;
use agentd_turn::{Command, Input};

impl Machine {
    /// Takes a command. The answer comes when the command is durable, or immediately when it is refused.
    pub fn command(&mut self, routed: Routed) {
        self.handled = self.handled.saturating_add(1);
        let Routed { by, key, done, .. } = routed;
        if let Some(fault) = self.refusal(&routed.command) {
            return done.answer(Err(fault));
        }
        let mut command = conceal::command(*routed.command);
        if let Command::Resume {
            moved: Some(moved), ..
        } = &mut command
        {
            moved.epoch = self.outbox.epoch();
        }
        let asked = Asked::of(&command);
        let asker = Asker {
            done,
            keyed: key.is_some(),
            urgent: is_urgent(&command),
        };
        let input = Input::Command { command, by };
        self.push(Task::of_command(input, asker, asked, key));
    }

    fn refusal(&self, command: &Command) -> Option<Fault> {
        if self.stop.is_some() {
            return Some(again("the session is being reloaded"));
        }
        // An urgent command passes even when nothing can be written; there is at most one per turn, so they stay few.
        let urgent = is_urgent(command);
        if self.outbox.is_full() && !urgent {
            return Some(disk_full());
        }
        if self.outbox.unacknowledged() >= MAX_UNACKNOWLEDGED && !urgent {
            let fault = Fault::busy(
                "store_behind",
                "too many events of this session are waiting for the store",
            );
            return Some(fault.hint("try again in a moment"));
        }
        let create = matches!(command, Command::Create { .. });
        match (create, self.agent.durable().head) {
            (false, 0) => Some(Fault::not_found(
                "unknown_session",
                format!("no session {}", self.session),
            )),
            (true, 1..) => Some(Fault::conflict("session_exists", "the session already exists")),
            (true, 0) | (false, 1..) => None,
        }
    }
}

/// Whether a command ends running work. Such a command is carried out, and answered, even on a full disk.
const fn is_urgent(command: &Command) -> bool {
    matches!(command, Command::CancelTurn { .. })
}
