//! Messages between sessions: each is sent, waits for an answer, and is retried. They last as long as the node.

use crate::messages::{Happening, Order};
use crate::options::Knob;
use crate::world::World;
use agentd_protocol::{Block, Fault, SessionCreated, SessionId, Spent};
use agentd_session_loop::{
    COMMAND, Next, after_creation, after_report, after_stop, missed, not_started, pauses, spent_of,
    unanswered,
};
use agentd_turn::{Answer, Command, Ended, NewInput, QuestionId, Reply};

/// The most attempts to look up the tree.
const LOOKS: u32 = 8;

/// The content of a message.
#[derive(Debug)]
pub(crate) enum What {
    BringUp {
        child: SessionId,
        created: Box<SessionCreated>,
        prompt: String,
    },
    Stop {
        child: SessionId,
        reason: String,
        /// The child was already closed: ask it how it ended.
        telling: bool,
    },
    /// Make a child check its parent.
    Lead { child: SessionId },
    Report {
        parent: SessionId,
        child: SessionId,
        ended: Box<Ended>,
        /// The child's question whether the report arrived.
        tells: Option<QuestionId>,
    },
    Look {
        id: QuestionId,
        root: SessionId,
        parent: Option<SessionId>,
    },
}

/// One message with its retry state.
#[derive(Debug)]
pub(crate) struct TreeMessage {
    /// The loop that sent it; it may be gone.
    owner: u64,
    session: SessionId,
    what: What,
    tries: u32,
}

impl TreeMessage {
    pub(crate) const fn new(owner: u64, session: SessionId, what: What) -> Self {
        Self {
            owner,
            session,
            what,
            tries: 0,
        }
    }
}

impl World {
    pub(crate) fn send_out(&mut self, message: TreeMessage) {
        self.last_message += 1;
        self.here.tree_messages.insert(self.last_message, message);
        let after = self.dice.between(0, 20);
        self.post(after, Happening::TreeMessage(self.last_message, 0));
    }

    /// Takes the message out, unless it is finished or at a different attempt.
    fn take_message(&mut self, number: u64, tried: u32) -> Option<TreeMessage> {
        let current = self.here.tree_messages.get(&number)?.tries == tried;
        current.then(|| self.here.tree_messages.remove(&number)).flatten()
    }

    /// Makes one attempt.
    pub(crate) fn run_message(&mut self, number: u64, tried: u32) {
        let Some(mut message) = self.take_message(number, tried) else {
            return;
        };
        let to = match &mut message.what {
            What::BringUp {
                child,
                created,
                prompt,
            } => {
                let owner = (message.owner, message.session);
                self.bring_up(owner, *child, created, prompt)
            }
            What::Stop {
                child,
                reason,
                telling,
            } => {
                let command = match *telling {
                    true => Command::Tell,
                    false => Command::Close {
                        reason: reason.clone(),
                        force: true,
                    },
                };
                Ok(Some((*child, command)))
            }
            What::Lead { child } => Ok(Some((*child, Command::Follow))),
            What::Report {
                parent, child, ended, ..
            } => {
                let (child, ended) = (*child, ended.clone());
                Ok(Some((*parent, Command::ChildEnded { child, ended })))
            }
            What::Look { id, root, parent } => {
                let (owner, asked) = (message.owner, *id);
                let lost = self.permille(Knob::Lost);
                let spent = (!lost).then(|| self.tree(message.session, *root, *parent));
                if spent.is_some() || message.tries + 1 >= LOOKS {
                    let unknown = || Answer::Nobody("it could not be read".into());
                    let answer = spent.map_or_else(unknown, Answer::TreeSpending);
                    return self.reply_to(owner, 5, asked, answer);
                }
                return self.message_again(number, message);
            }
        };
        match to {
            Ok(Some((session, command))) => {
                self.here.tree_messages.insert(number, message);
                self.ask_for(number, tried, session, command);
            }
            Ok(None) => {}
            Err(fault) => {
                self.here.tree_messages.insert(number, message);
                self.word(number, tried, Some(Err(fault)));
            }
        }
    }

    /// Asks an existing child for its state; otherwise creates the child.
    fn bring_up(
        &mut self,
        (owner, parent): (u64, SessionId),
        child: SessionId,
        created: &SessionCreated,
        prompt: &str,
    ) -> Result<Option<(SessionId, Command)>, Fault> {
        if let Some(row) = self.disk.row(child) {
            let above = self.disk.row(parent).map(|row| row.summary);
            if above.is_some_and(|above| missed(&row.summary, &above)) {
                self.send_out(TreeMessage::new(owner, parent, What::Lead { child }));
            }
            let asks = row.summary.turn.is_none();
            return Ok(asks.then_some((child, Command::Tell)));
        }
        self.creatable()?;
        if let Err(violation) = self.may_be_created(child, created) {
            self.fail(violation);
        }
        let first = NewInput {
            content: vec![Block::text(prompt)],
            delivery: None,
            key: None,
            model: None,
        };
        let command = Command::Create {
            created: Box::new(created.clone()),
            first: Some(first),
        };
        Ok(Some((child, command)))
    }

    fn ask_for(&mut self, number: u64, tried: u32, session: SessionId, command: Command) {
        self.last_ticket += 1;
        let order = Order {
            ticket: self.last_ticket,
            session,
            command,
            key: None,
            message: Some((number, tried)),
            home: self.here.number,
        };
        self.again(Box::new(order));
        let within = u64::try_from(COMMAND.as_millis()).unwrap_or(u64::MAX);
        let late = Err(Fault::timeout("session_slow", "the session did not answer"));
        self.post(
            within,
            Happening::Word {
                number,
                tried,
                answer: Some(late),
            },
        );
    }

    /// Handles the answer to an attempt; `None`: there will be none.
    pub(crate) fn word(&mut self, number: u64, tried: u32, answer: Option<Result<Reply, Fault>>) {
        let Some(mut message) = self.take_message(number, tried) else {
            return;
        };
        let Err(fault) = answer.unwrap_or_else(|| Err(unanswered())) else {
            return self.message_done(&message, true);
        };
        self.say(|| format!("message {number} of loop {}: {}", message.owner, fault.code));
        let next = match &mut message.what {
            What::BringUp { .. } => after_creation(&fault),
            What::Stop { telling, .. } if *telling => {
                *telling = false;
                Next::Again
            }
            What::Stop { .. } => after_stop(&fault),
            // An unreachable child checks its parent before its next step anyway.
            What::Lead { .. } => match after_creation(&fault) {
                Next::Again => Next::Again,
                _ => Next::Over,
            },
            What::Report { .. } => match after_report(&fault) {
                Some(heard) => return self.message_done(&message, heard),
                None => Next::Again,
            },
            What::Look { .. } => Next::Over,
        };
        match next {
            Next::Over => {}
            Next::Again => self.message_again(number, message),
            Next::Tell => {
                if let What::Stop { telling, .. } = &mut message.what {
                    *telling = true;
                }
                self.here.tree_messages.insert(number, message);
                self.post(1, Happening::TreeMessage(number, tried));
            }
            Next::GiveUp(why) => self.give_up(&message, why),
        }
    }

    fn message_done(&mut self, message: &TreeMessage, heard: bool) {
        if let What::Report { tells: Some(id), .. } = message.what {
            self.reply_to(message.owner, 5, id, Answer::Report(heard));
        }
    }

    fn message_again(&mut self, number: u64, mut message: TreeMessage) {
        let pause = pauses().nth(usize::try_from(message.tries).unwrap_or(usize::MAX));
        message.tries += 1;
        let Some(pause) = pause.filter(|_| pauses().count() > message.tries as usize) else {
            return match message.what {
                What::BringUp { .. } => self.give_up(&message, "no one answered".to_owned()),
                What::Stop { .. } | What::Lead { .. } | What::Report { .. } | What::Look { .. } => {
                    self.message_done(&message, false);
                }
            };
        };
        let tries = message.tries;
        self.here.tree_messages.insert(number, message);
        let after = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self.post(after, Happening::TreeMessage(number, tries));
    }

    fn give_up(&mut self, message: &TreeMessage, why: String) {
        if let What::BringUp { child, .. } | What::Stop { child, .. } = message.what {
            let what = self.given_up(message.session, child, why);
            self.send_out(TreeMessage::new(message.owner, message.session, what));
        }
    }

    /// A child that could not be created: this is reported to its parent as its end.
    pub(crate) fn given_up(&self, parent: SessionId, child: SessionId, why: String) -> What {
        let row = self.disk.row(child);
        let spent = row.map_or_else(Spent::default, |row| spent_of(&row.summary));
        let ended = not_started(why, spent);
        What::Report {
            parent,
            child,
            ended: Box::new(ended),
            tells: None,
        }
    }
}
