//! The helper that parses source files. Each map and each pass of an index has one of its own, under a warden of its own:
//! its sandbox contains the program, the system's libraries and an empty directory, and has no network. So a file that
//! takes the parser over reaches nothing, and one on which it crashes or hangs costs only itself (I6).

use crate::line_program::{AnswerLimits, LineProgram, Starts};
use agentd_repo_map::{
    BACKGROUND, Language, MAX_ANSWER, MAX_FILE_BYTES, MapError, Priority, Reply, Request, TagFinder,
    TagFinders, Tags, is_greeting,
};
use agentd_sandbox::{Bounds, CommandSpec, Environment, Sandboxing, WardenSlot, WardenSpec};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::interval;

/// Why nothing is parsed without the helper.
pub(crate) const MISSING: &str =
    "the program agentd-tags, which parses source files, is not in the directory of agentd";
/// The resources of a helper: much more than the largest file takes.
const BOUNDS: Bounds = Bounds {
    processes: 8,
    memory: 1 << 30,
    file: 1 << 20,
    new_files: 8,
    new_bytes: 1 << 20,
    free: 0,
};
/// The limits of an answer. The time is more than the program itself allows a file.
const ANSWER: AnswerLimits = AnswerLimits {
    bytes: MAX_ANSWER,
    within: Duration::from_secs(10),
};
/// How often a wait polls whether to stop.
const POLL_EVERY: Duration = Duration::from_millis(50);
/// How long the end of a helper's warden may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(20);

/// How helpers are started.
#[derive(Debug, Clone)]
pub struct TagProgramSpec {
    /// The helper's program.
    pub program: PathBuf,
    /// The daemon's own program, which is also the process warden.
    pub exe: PathBuf,
    /// An empty directory, in which helpers run.
    pub workdir: PathBuf,
    /// The sandbox of commands; that of the helpers is narrower.
    pub sandboxing: Sandboxing,
}

/// Starts helpers that parse source files.
#[derive(Debug)]
pub struct TagPrograms(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    args: TagProgramSpec,
    runtime: Handle,
    started: AtomicU64,
}

impl TagPrograms {
    /// Starts no helper yet.
    #[must_use]
    pub fn new(args: TagProgramSpec, runtime: Handle) -> Self {
        let sandboxing = args.sandboxing.only_for(&args.program);
        Self(Arc::new(Inner {
            args: TagProgramSpec { sandboxing, ..args },
            runtime,
            started: AtomicU64::new(0),
        }))
    }
}

impl TagFinders for TagPrograms {
    fn finder(&self, priority: Priority) -> Box<dyn TagFinder> {
        Box::new(Finder {
            helpers: Arc::clone(&self.0),
            priority,
            running: None,
            starts: Starts::default(),
        })
    }
}

/// The helper of one piece of work.
struct Finder {
    helpers: Arc<Inner>,
    priority: Priority,
    running: Option<TagProgram>,
    starts: Starts,
}

struct TagProgram {
    program: LineProgram,
    _home: Home,
}

/// The warden of a helper. Dropping it ends everything below it.
struct Home {
    slot: WardenSlot,
    runtime: Handle,
}

impl Drop for Home {
    fn drop(&mut self) {
        let slot = self.slot.clone();
        // The result does not matter: the warden ends with its socket in any case.
        self.runtime.spawn(async move { slot.close(CLOSE_WITHIN).await });
    }
}

impl TagFinder for Finder {
    fn tags(&mut self, language: Language, source: &[u8], stop: &dyn Fn() -> bool) -> Result<Tags, MapError> {
        if source.len() > MAX_FILE_BYTES {
            return Err(MapError::TooLarge {
                bytes: source.len(),
                most: MAX_FILE_BYTES,
            });
        }
        let runtime = self.helpers.runtime.clone();
        let found = runtime.block_on(unless(stop, self.ask(language, source)));
        found.unwrap_or_else(|| {
            // It is in the middle of a file.
            self.running = None;
            Err(MapError::Stopped)
        })
    }
}

impl Finder {
    async fn ask(&mut self, language: Language, source: &[u8]) -> Result<Tags, MapError> {
        let helper = match &mut self.running {
            Some(helper) => helper,
            None if !self.starts.take() => return Err(MapError::Stopped),
            None => self.running.insert(self.helpers.start(self.priority).await?),
        };
        let request = Request {
            language,
            bytes: source.len(),
        };
        let asked = [request.line().as_bytes(), source].concat();
        let mut reply = None;
        let talked = helper.program.exchange(&asked, |line| {
            reply = Reply::read(line);
            true
        });
        let Some(reply) = talked.await.and(reply) else {
            self.running = None;
            return Err(MapError::Failed);
        };
        self.starts.answered();
        match reply {
            Reply::Tags(tags) => Ok(tags),
            Reply::TooHard => Err(MapError::TooHard),
        }
    }
}

impl Inner {
    async fn start(&self, priority: Priority) -> Result<TagProgram, MapError> {
        let args = &self.args;
        if !tokio::fs::try_exists(&args.program).await.unwrap_or_default() {
            return Err(MapError::Unavailable(MISSING.to_owned()));
        }
        let spec = WardenSpec {
            exe: args.exe.clone(),
            workdir: args.workdir.clone(),
            environment: Environment::default(),
            bounds: BOUNDS,
            network: None,
        };
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let home = Home {
            slot: args.sandboxing.slot(spec, &format!("tags-{number}")),
            runtime: self.runtime.clone(),
        };
        let mut argv = vec![args.program.display().to_string()];
        if priority == Priority::Background {
            argv.push(BACKGROUND.to_owned());
        }
        let command = CommandSpec {
            argv,
            cwd: args.workdir.clone(),
            env: Vec::new(),
        };
        let program = LineProgram::start(&home.slot, command, ANSWER, is_greeting).await;
        let failed = |why| {
            MapError::Unavailable(format!(
                "the program agentd-tags, which parses source files, did not start: {why}"
            ))
        };
        Ok(TagProgram {
            program: program.map_err(failed)?,
            _home: home,
        })
    }
}

/// The result of `work`, or `None` once `stop` returns true.
async fn unless<T>(stop: &dyn Fn() -> bool, work: impl Future<Output = T>) -> Option<T> {
    let stopped = async {
        let mut polls = interval(POLL_EVERY);
        while !stop() {
            polls.tick().await;
        }
    };
    tokio::select! {
        biased;
        () = stopped => None,
        done = work => Some(done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn i6_a_wait_ends_soon_after_its_stop() {
        let began = Instant::now();
        let stop = || began.elapsed() >= Duration::from_secs(1);
        assert_eq!(unless(&stop, std::future::pending::<()>()).await, None);
        assert!(began.elapsed() <= Duration::from_secs(1) + POLL_EVERY);
        assert_eq!(unless(&|| false, async { 7 }).await, Some(7));
    }

    #[tokio::test]
    async fn nothing_starts_for_work_that_was_stopped() {
        let begun = Cell::new(false);
        let work = async { begun.set(true) };
        assert_eq!(unless(&|| true, work).await, None);
        assert!(!begun.get());
    }
}
