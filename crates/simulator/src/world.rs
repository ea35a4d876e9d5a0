//! The world of one run: the schedule and all shared state.

use crate::book::Book;
use crate::dice::Dice;
use crate::disk::Disk;
use crate::fixed;
use crate::fleet::READ_AGAIN_MS;
use crate::here::Node;
use crate::messages::{Happening, Message, Order};
use crate::options::{Knob, Options};
use crate::rules::Rules;
use crate::trace::Trace;
use crate::viewers::Watcher;
use agentd_actor_kit::Published;
use agentd_protocol::{Fault, Timestamp};
use agentd_store::{Append, Outcome};
use agentd_tools::Registry;
use agentd_turn::{Config, Reply, Violation};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The answers that have arrived, by ticket; `None`: there will be none.
pub(crate) type Answers = Arc<Mutex<Vec<(u64, Option<Result<Reply, Fault>>)>>>;

/// The most events of a run: one that needs more is in an endless loop (I6).
const MOST: u64 = 400_000;

/// One run.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) dice: Dice,
    /// The true time, in milliseconds; also the store's clock.
    pub(crate) clock: u64,
    /// The time as the node sees it that the world looks at.
    pub(crate) now: Timestamp,
    /// What happens, at which node.
    schedule: BTreeMap<(u64, u64), (u64, Happening)>,
    number: u64,
    pub(crate) trace: Trace,
    pub(crate) disk: Disk,
    /// The node that the world looks at, and the others.
    pub(crate) here: Node,
    pub(crate) others: BTreeMap<u64, Node>,
    pub(crate) rules: Rules,
    pub(crate) registry: Registry,
    pub(crate) config: Arc<Config>,
    pub(crate) last_loop: u64,
    pub(crate) last_worker: u64,
    pub(crate) viewers: BTreeMap<u64, Watcher>,
    pub(crate) last_message: u64,
    pub(crate) tickets: BTreeMap<u64, Box<Order>>,
    pub(crate) last_ticket: u64,
    pub(crate) answers: Answers,
    pub(crate) book: Book,
    /// The number of takeovers of a session by another node.
    pub(crate) moved: u64,
    pub(crate) actions: u32,
    /// Fault injection has stopped.
    pub(crate) calm: bool,
    pub(crate) calm_rounds: u32,
    pub(crate) done: bool,
    pub(crate) broken: Option<Violation>,
}

impl World {
    pub(crate) fn new(seed: u64, options: Options, keep_all: bool) -> Result<Self, String> {
        let now = Timestamp(1_800_000_000_000);
        let nodes = u64::from(options.get(Knob::Nodes));
        let mut world = Self {
            dice: Dice::new(seed, 2),
            clock: now.0,
            now,
            schedule: BTreeMap::new(),
            number: 0,
            trace: Trace::new(keep_all),
            disk: Disk::new(options.flaw),
            here: Node::new(0, &options, now),
            others: (1..options.get(Knob::Nodes).into())
                .map(|number| (number, Node::new(number, &options, now)))
                .collect(),
            rules: fixed::rules()?,
            registry: fixed::registry(),
            config: fixed::config_of(&options),
            last_loop: 0,
            last_worker: 0,
            viewers: BTreeMap::new(),
            last_message: 0,
            tickets: BTreeMap::new(),
            last_ticket: 0,
            answers: Answers::default(),
            book: Book::default(),
            moved: 0,
            actions: options.get(Knob::Actions),
            calm: false,
            calm_rounds: 0,
            done: false,
            broken: None,
            options,
        };
        if world.is_fleet() {
            for number in 0..nodes {
                world.go_to(number);
                world.join();
            }
        }
        world.post(0, Happening::Person);
        Ok(world)
    }

    /// Runs to the end, or to the first violation.
    pub(crate) fn live(&mut self) {
        let mut happenings = 0;
        while let Some(((at, _), (node, happening))) = self.schedule.pop_first() {
            happenings += 1;
            if happenings > MOST {
                self.fail(Violation::of("I6", "the run goes round in circles"));
            }
            if self.done || self.broken.is_some() {
                return;
            }
            self.clock = self.clock.max(at);
            self.disk.tell_time(self.clock);
            self.go_to(node);
            if let Some(happening) = self.hold(happening) {
                self.happen(happening);
            }
        }
    }

    /// Lets something happen at the node that the world looks at.
    pub(crate) fn post(&mut self, after_ms: u64, happening: Happening) {
        self.post_at(self.here.number, after_ms, happening);
    }

    pub(crate) fn post_at(&mut self, node: u64, after_ms: u64, happening: Happening) {
        self.number += 1;
        let at = self.clock.saturating_add(after_ms);
        self.schedule.insert((at, self.number), (node, happening));
    }

    fn happen(&mut self, happening: Happening) {
        let current = |era: u64, world: &Self| era == world.here.era && world.here.alive;
        match happening {
            Happening::Loop(number, message) => self.deliver(number, message),
            Happening::Worker(number) => self.worker(number),
            Happening::Disk {
                era,
                from,
                append,
                until,
            } if current(era, self) => self.arrive(from, *append, until),
            Happening::Feed { era, published } if current(era, self) && self.is_cut() => {
                self.post(READ_AGAIN_MS, Happening::Feed { era, published });
            }
            Happening::Feed { era, published } if current(era, self) => self.here.feed.committed(published),
            Happening::Asked { era, question } if current(era, self) => self.asked(question),
            Happening::Thaw { era } if current(era, self) => self.thaw(),
            Happening::Alarm {
                era,
                provider,
                number,
            } if current(era, self) => self.alarm(provider, number),
            Happening::Node { era, event } if current(era, self) => self.node(event),
            Happening::Kill { era } if current(era, self) => self.die(),
            Happening::Disk { .. }
            | Happening::Feed { .. }
            | Happening::Asked { .. }
            | Happening::Thaw { .. }
            | Happening::Alarm { .. }
            | Happening::Node { .. }
            | Happening::Kill { .. } => {}
            Happening::Person => self.person(),
            Happening::Send(order) => self.ask(order),
            Happening::TreeMessage(number, tried) => self.run_message(number, tried),
            Happening::Word {
                number,
                tried,
                answer,
            } => self.word(number, tried, answer),
            Happening::Viewer(number) => self.look_of(number),
            Happening::Start => self.begin(),
            Happening::Replaced(number) => self.replaced(number),
            Happening::Calm => self.calm(),
        }
    }

    /// An append reaches the disk. If the answer is lost, it is retried with the same number, as the store's actor does.
    fn arrive(&mut self, from: u64, append: Append, until: u64) {
        if self.is_cut() {
            return self.append_cut(from, append, until);
        }
        let (session, events) = (append.session, append.events.clone());
        if self.permille(Knob::Full) {
            return self.store_says(from, Some(Outcome::Full));
        }
        if self.permille(Knob::Refused) {
            return self.store_says(from, Some(Outcome::Failed("as it was told".into())));
        }
        let lost = self.permille(Knob::Lost);
        let arrives = !lost || self.dice.percent(70);
        let lose = self.dice.percent(4);
        let again = append.clone();
        let mut outcome = Outcome::Unknown;
        if arrives {
            outcome = match self.append(append, lose) {
                Ok(outcome) => outcome,
                Err(violation) => return self.fail(violation),
            };
        }
        if lost && self.dice.percent(60) {
            outcome = match self.append(again, false) {
                Ok(outcome) => outcome,
                Err(violation) => return self.fail(violation),
            };
        } else if lost {
            self.here.feed.unsure(session);
            let answer = self.dice.percent(50).then_some(Outcome::Unknown);
            return self.store_says(from, answer);
        }
        let cursor = match &outcome {
            Outcome::Committed { cursor, .. } => Some(*cursor),
            Outcome::Duplicate { .. } => Some(0),
            _ => None,
        };
        if let Some(cursor) = cursor {
            let published = Published {
                session,
                cursor,
                events,
            };
            let era = self.here.era;
            self.post(0, Happening::Feed { era, published });
        }
        self.store_says(from, Some(outcome));
    }

    fn store_says(&mut self, to: u64, outcome: Option<Outcome>) {
        self.tell(to, 4, Message::Stored(outcome));
    }

    /// Appends that have not reached the disk yet.
    pub(crate) fn on_their_way(&mut self) -> Vec<(u64, Append)> {
        let all = std::mem::take(&mut self.schedule);
        let mut appends = Vec::new();
        for (at, (node, happening)) in all {
            match happening {
                Happening::Disk { era, append, .. } if node == self.here.number => {
                    appends.push((era, *append));
                }
                // Mailboxes are gone; callers notice by their dropped tickets.
                Happening::Loop(_, Message::Command(routed)) if node == self.here.number => drop(routed),
                other => drop(self.schedule.insert(at, (node, other))),
            }
        }
        appends
    }

    /// Whether a command is on its way to the loop.
    pub(crate) fn has_mail(&self, number: u64) -> bool {
        let mut all = self.schedule.values();
        all.any(|(_, next)| matches!(next, Happening::Loop(to, Message::Command(_)) if *to == number))
    }

    /// True with this probability, while faults may be injected.
    pub(crate) fn chance(&mut self, knob: Knob, of: u32) -> bool {
        let rate = u64::from(self.options.get(knob));
        let hit = self.dice.below(of.into()) < rate;
        hit && !self.calm
    }

    pub(crate) fn permille(&mut self, knob: Knob) -> bool {
        self.chance(knob, 1_000)
    }

    pub(crate) fn say(&mut self, line: impl FnOnce() -> String) {
        let line = format!("{} {}", self.clock - 1_800_000_000_000, line());
        self.trace.say(line);
    }

    pub(crate) fn fail(&mut self, violation: Violation) {
        self.say(|| violation.to_string());
        self.broken.get_or_insert(violation);
    }
}
