//! The parameters of a run. Each run switches some features off and picks rates for the rest (swarm testing): a feature
//! that is always on hides bugs that need it off.

use crate::dice::Dice;
use agentd_loop_supervisor::SupervisorMutant;
use agentd_session_loop::Mutant;
use agentd_store::MemberMutant;
use std::fmt;
use std::str::FromStr;

macro_rules! knobs {
    ($($(#[$doc:meta])* $knob:ident $name:literal $choices:tt,)*) => {
        /// One parameter of a run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Knob { $($(#[$doc])* $knob,)* }

        const KNOBS: &[(&str, &[u32])] = &[$(($name, &$choices),)*];
    };
}

knobs! {
    /// The number of sessions.
    Sessions "sessions" [1, 1, 2, 3, 5],
    /// The number of actions by people before everything calms down.
    Actions "actions" [8, 20, 40, 80],
    /// The number of model calls that the provider accepts at once.
    Permits "permits" [1, 1, 2, 4],
    /// The number of the provider's credentials.
    Credentials "credentials" [0, 1, 2, 3],
    /// Requests per minute and credential; 0: no limit.
    Rate "rate" [0, 0, 0, 6, 30],
    /// Percent of answers that call tools.
    Tools "tools" [0, 40, 60, 85],
    /// Percent of tool calls with invalid arguments.
    Malformed "malformed" [0, 0, 10, 40],
    /// Percent of attempts that fail.
    Fail "fail" [0, 0, 10, 30, 70],
    /// Percent of attempts that fail because the conversation is too long.
    Overflow "overflow" [0, 0, 5, 20],
    /// The window, in thousands of tokens.
    Window "window" [2, 6, 20, 100],
    /// Percent of answers and results that are long.
    Long "long" [0, 10, 40],
    /// Percent of answers and results that take minutes.
    Slow "slow" [0, 0, 10, 30],
    /// Percent of tools that fail or die.
    ToolFail "tool_fail" [0, 10, 40],
    /// Percent of commands that become background jobs.
    Jobs "jobs" [0, 0, 15, 40],
    /// Permille of appends whose answer is lost.
    Lost "lost" [0, 0, 0, 10, 60],
    /// Permille of appends that fail for lack of space.
    Full "full" [0, 0, 0, 20, 80],
    /// Permille of appends that are rejected.
    Refused "refused" [0, 0, 0, 0, 10],
    /// Permille of appends that take too long.
    Overdue "overdue" [0, 0, 0, 10, 40],
    /// Permille of messages at which the loop panics.
    Crash "crash" [0, 0, 0, 4, 15],
    /// Percent of actions replaced by a node crash.
    Node "node" [0, 0, 4, 12],
    /// Percent of actions replaced by a drain and a restart.
    Drain "drain" [0, 0, 0, 6],
    /// Percent of actions replaced by another owner's claim.
    Failover "failover" [0, 0, 0, 8],
    /// Percent of judgements that are lost or never arrive.
    Gate "gate" [0, 0, 5, 20],
    /// Hooks on inputs, ends of turns and compactions; percent that object.
    Hooks "hooks" [0, 0, 0, 5, 30],
    /// The number of viewers.
    Viewers "viewers" [0, 1, 3, 8],
    /// The size of a viewer's queue in frames.
    Queue "queue" [4, 16, 64],
    /// Percent of actions that pause or resume.
    Pause "pause" [0, 0, 10, 20],
    /// Percent of actions that cancel a turn or an input.
    Cancel "cancel" [0, 10, 25],
    /// Percent of actions that rewind the conversation.
    Rewind "rewind" [0, 0, 8, 15],
    /// Percent of actions that ask for a compaction.
    Compact "compact" [0, 0, 8],
    /// Percent of actions that change settings.
    Update "update" [0, 5, 10],
    /// Percent of actions that close or delete.
    Delete "delete" [0, 0, 3, 8],
    /// The limited budget: 1 steps, 2 tokens, 3 money, 4 time.
    Budget "budget" [0, 0, 0, 1, 2, 3, 4],
    /// The step cap of a turn; 0: the default.
    Cap "cap" [0, 0, 2, 5],
    /// Unattended sessions: 1 headless, 2 unattended, 3 questions that expire.
    Alone "alone" [0, 0, 1, 2, 3],
    /// The permission mode: 0 default, 1 accept edits, 2 plan, 3 yolo.
    Mode "mode" [0, 0, 1, 2, 3, 3],
    /// Percent of tool calls that start sub-agents.
    Children "children" [0, 0, 0, 0, 10, 30],
    /// Whether models are asked outside of the turns.
    Sides "sides" [0, 0, 0, 1],
    /// Hooks on tool calls; percent that deny.
    CallHooks "call_hooks" [0, 0, 0, 5, 30],
    /// Percent of actions that fork a session.
    Fork "fork" [0, 0, 0, 6],
    /// Percent of actions that import a forged log.
    Import "import" [0, 0, 0, 6],
    /// The most sessions in memory.
    Hot "hot" [64, 64, 64, 3, 2, 1],
    /// When files are recorded: 0 never, 1 in each turn, 2 after each step.
    Checkpoints "checkpoints" [0, 1, 2, 2],
    /// The number of nodes; more than one share the store.
    Nodes "nodes" [1],
    /// In a fleet, percent of actions that stop a node for a while, as SIGSTOP does.
    Freeze "freeze" [0, 4, 12],
    /// In a fleet, percent of actions that part a node from the store for a while.
    Cut "cut" [0, 4, 12],
    /// In a fleet, percent of actions that restart the store.
    Restart "restart" [0, 0, 4],
    /// In a fleet, percent of actions at which the wall clock of a node jumps.
    Jump "jump" [0, 0, 10],
}

/// A bug injected on purpose, to check that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flaw {
    /// No bug.
    #[default]
    None,
    /// A bug in the shipped machine of the session loop.
    Loop(Mutant),
    /// A bug in the shipped machine of the supervisor.
    Supervisor(SupervisorMutant),
    /// A bug in the shipped decisions of a node about its membership.
    Member(MemberMutant),
    /// The store takes the appends of earlier owners.
    NoFence,
    /// The store lets a node take over the sessions of live nodes.
    AdoptLive,
    /// The store acknowledges an append without keeping it.
    LostAppend,
    /// A call that was started before a crash runs again.
    RunAgain,
    /// The permit of a killed call is not returned.
    LostPermit,
    /// A viewer misses an event without notice.
    LostFrame,
    /// A tool of a cancelled turn keeps running.
    Orphan,
    /// A gate that does not answer counts as an approval.
    OpenGate,
    /// A command whose key was used before is executed again.
    TwiceByKey,
    /// The report of a child's end is lost, and the child believes that it arrived.
    LostReport,
    /// A child whose call ended is not stopped and does not check whether it is still needed.
    StrayChild,
    /// A child's spending is not reported.
    LostSpent,
    /// A model that is asked outside of the turn never answers, and there is no deadline.
    LostSide,
    /// A call that a hook denies runs anyway.
    DeafHook,
    /// An imported log is trusted (a bug that existed).
    TrustedImport,
}

impl Flaw {
    /// All flaws, by name.
    pub const ALL: [(&'static str, Self); 33] = [
        ("lost-append", Self::LostAppend),
        ("early-answer", Self::Loop(Mutant::EarlyAnswer)),
        ("early-effect", Self::Loop(Mutant::EarlyEffect)),
        ("lost-effect", Self::Loop(Mutant::LostEffect)),
        ("lost-down", Self::Loop(Mutant::LostDown)),
        ("double-start", Self::Loop(Mutant::DoubleStart)),
        ("deaf", Self::Loop(Mutant::Deaf)),
        ("run-again", Self::RunAgain),
        ("lost-permit", Self::LostPermit),
        ("lost-frame", Self::LostFrame),
        ("orphan", Self::Orphan),
        ("open-gate", Self::OpenGate),
        ("lost-timer", Self::Loop(Mutant::LostTimer)),
        ("forgotten", Self::Loop(Mutant::Forgotten)),
        ("twice-by-key", Self::TwiceByKey),
        ("early-look", Self::Supervisor(SupervisorMutant::EarlyLook)),
        ("lost-exit", Self::Supervisor(SupervisorMutant::LostExit)),
        ("double-load", Self::Supervisor(SupervisorMutant::DoubleLoad)),
        ("lost-command", Self::Supervisor(SupervisorMutant::LostCommand)),
        ("lost-wake", Self::Supervisor(SupervisorMutant::LostWake)),
        (
            "miscounted-crash",
            Self::Supervisor(SupervisorMutant::MiscountedCrash),
        ),
        ("early-child", Self::Loop(Mutant::EarlyChild)),
        ("lost-report", Self::LostReport),
        ("stray-child", Self::StrayChild),
        ("lost-spent", Self::LostSpent),
        ("lost-side", Self::LostSide),
        ("deaf-hook", Self::DeafHook),
        ("trusted-import", Self::TrustedImport),
        ("endless-lease", Self::Member(MemberMutant::EndlessLease)),
        ("kept-sessions", Self::Member(MemberMutant::KeptSessions)),
        ("no-rejoin", Self::Member(MemberMutant::NoRejoin)),
        ("no-fence", Self::NoFence),
        ("adopt-live", Self::AdoptLive),
    ];

    /// The bug to plant in a session loop.
    pub(crate) const fn in_loop(self) -> Option<Mutant> {
        if let Self::Loop(mutant) = self {
            Some(mutant)
        } else {
            None
        }
    }

    /// The bug to plant in the membership of a node.
    pub(crate) const fn in_member(self) -> Option<MemberMutant> {
        if let Self::Member(mutant) = self {
            Some(mutant)
        } else {
            None
        }
    }

    /// The bug to plant in the supervisor.
    pub(crate) const fn in_supervisor(self) -> Option<SupervisorMutant> {
        if let Self::Supervisor(mutant) = self {
            Some(mutant)
        } else {
            None
        }
    }
}

/// The parameters of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    values: Vec<u32>,
    /// The injected bug.
    pub flaw: Flaw,
}

impl Options {
    /// The options derived from a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 1);
        let values = KNOBS
            .iter()
            .map(|(_, choices)| dice.pick(choices).copied().unwrap_or(0));
        Self {
            values: values.collect(),
            flaw: Flaw::None,
        }
    }

    /// The same options with changes: `fail=20,lost=0,flaw=orphan`.
    ///
    /// # Errors
    /// A change names no option, or its value is not a number.
    pub fn changed(mut self, changes: &str) -> Result<Self, String> {
        for change in changes.split(',').filter(|change| !change.trim().is_empty()) {
            let (name, value) = change
                .split_once('=')
                .ok_or_else(|| format!("{change:?} is not NAME=NUMBER"))?;
            if name.trim() == "flaw" {
                self.flaw = value.trim().parse()?;
                continue;
            }
            let at = KNOBS.iter().position(|(known, _)| *known == name.trim());
            let place = at.and_then(|at| self.values.get_mut(at));
            let number = value
                .trim()
                .parse()
                .map_err(|error| format!("{change:?}: {error}"))?;
            *place.ok_or_else(|| {
                format!("there is no option {name:?}; the options are those of `seed=… options=…`")
            })? = number;
        }
        Ok(self)
    }

    pub(crate) fn get(&self, knob: Knob) -> u32 {
        self.values.get(knob as usize).copied().unwrap_or(0)
    }
}

impl FromStr for Flaw {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known
            .map(|(_, flaw)| *flaw)
            .ok_or_else(|| format!("there is no flaw {name:?}"))
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = KNOBS.iter().zip(&self.values);
        for (at, ((name, _), value)) in pairs.enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{name}={value}")?;
        }
        if let Some((name, _)) = Flaw::ALL.iter().find(|(_, flaw)| *flaw == self.flaw) {
            write!(f, ",flaw={name}")?;
        }
        Ok(())
    }
}
