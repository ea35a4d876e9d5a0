//! The client side of commands: answers are checked, and commands without an answer are sent again.

use crate::fleet::unreachable;
use crate::hot::ana;
use crate::messages::{Happening, Order, name};
use crate::options::Flaw;
use crate::world::World;
use agentd_protocol::{EventBody, Fault, FaultClass, SessionId};
use agentd_session_loop::taken;
use agentd_store::{ELSEWHERE, EncodedEvent};
use agentd_turn::{Held, Reply, Violation};
use futures_util::FutureExt as _;

impl World {
    /// Sends a command, possibly repeatedly.
    pub(crate) fn again(&mut self, order: Box<Order>) {
        self.tickets.insert(order.ticket, order.clone());
        let to = match order.message {
            Some(_) => self.here.number,
            None => self.any_node(),
        };
        let after = self.dice.between(0, 50);
        self.post_at(to, after, Happening::Send(order));
    }

    /// A command reaches the node. If its key was used before, the stored answer is returned.
    pub(crate) fn ask(&mut self, mut order: Box<Order>) {
        if order
            .message
            .is_some_and(|(number, _)| !self.here.tree_messages.contains_key(&number))
        {
            // Its node is gone, or it was completed in the meantime.
            self.tickets.remove(&order.ticket);
            return;
        }
        self.say(|| {
            format!(
                "ask {} {} of {}",
                order.ticket,
                name(&order.command),
                order.session.short()
            )
        });
        if order.key.is_some() && self.is_cut() {
            self.done(&order).answer(Err(Fault::from(unreachable())));
            return self.take_answers();
        }
        if self.disk.flaw == Flaw::TwiceByKey {
            order.key = None;
        } else if let Some(key) = &order.key
            && let Some(Ok(Some(stored))) = self.disk.backend.key(&ana(), key).now_or_never()
        {
            let answer = taken(&stored.answer, stored.method == name(&order.command));
            self.done(&order).answer(answer);
            return self.take_answers();
        }
        self.route(&order);
    }

    /// Processes the answers that have arrived.
    pub(crate) fn take_answers(&mut self) {
        let taken = {
            let mut answers = self
                .answers
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            std::mem::take(&mut *answers)
        };
        for (ticket, answer) in taken {
            let Some(order) = self.tickets.remove(&ticket) else {
                continue;
            };
            if let Some((number, tried)) = order.message {
                if let Some(Ok(reply)) = &answer
                    && let Err(violation) = self.is_so(&order, reply)
                {
                    self.fail(violation);
                }
                self.post_at(
                    order.home,
                    0,
                    Happening::Word {
                        number,
                        tried,
                        answer,
                    },
                );
                continue;
            }
            match answer {
                Some(Ok(reply)) => {
                    self.book.answered += 1;
                    if let Err(violation) = self.is_so(&order, &reply) {
                        self.fail(violation);
                    }
                }
                Some(Err(fault)) if fault.code == ELSEWHERE && self.pass_on(&order) => {}
                Some(Err(fault)) if !passes(&fault) => {
                    self.say(|| format!("ask {ticket} is refused: {}", fault.code));
                }
                Some(Err(_)) | None => self.perhaps_again(order),
            }
        }
    }

    fn perhaps_again(&mut self, order: Box<Order>) {
        self.say(|| format!("ask {} has no answer", order.ticket));
        if order.key.is_some() && self.dice.percent(80) {
            self.tickets.insert(order.ticket, order.clone());
            let (after, to) = (self.dice.between(100, 5_000), self.any_node());
            self.post_at(to, after, Happening::Send(order));
        }
    }

    /// I1: whatever was answered is in the log.
    fn is_so(&mut self, order: &Order, reply: &Reply) -> Held {
        let session = order.session;
        if self.disk.deleted.contains(&session) {
            return Ok(());
        }
        let (Reply::Created { seq, .. }
        | Reply::Sent { seq, .. }
        | Reply::Done { seq }
        | Reply::Ended { seq }) = reply;
        if self.disk.head(session) < *seq {
            let what = format!(
                "a reply names event {seq}, but the log ends at {}",
                self.disk.head(session)
            );
            return Err(Violation::of("I1", what));
        }
        if let Some(key) = &order.key {
            self.book.answers(key, reply)?;
        }
        match reply {
            Reply::Sent { input, seq } => self.has_input(session, *seq, *input),
            Reply::Created { .. } | Reply::Done { .. } | Reply::Ended { .. } => Ok(()),
        }
    }

    fn has_input(&self, session: SessionId, seq: u64, input: agentd_protocol::InputId) -> Held {
        let event = self
            .disk
            .line(session, seq)
            .and_then(|line| EncodedEvent::decode(line).ok());
        match event.map(|event| event.body) {
            Some(EventBody::InputAccepted(accepted)) if accepted.input == input => Ok(()),
            other => {
                let found = other.map(|body| body.kind());
                Err(Violation::of(
                    "I1",
                    format!("event {seq} is no input as answered but {found:?}"),
                ))
            }
        }
    }
}

/// Whether the fault is temporary.
const fn passes(fault: &Fault) -> bool {
    matches!(
        fault.class,
        FaultClass::Unavailable | FaultClass::Busy | FaultClass::Storage
    )
}
