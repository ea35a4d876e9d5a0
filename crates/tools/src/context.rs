//! The context of a running tool, and its result.

use crate::jobs::Jobs;
use crate::pre_image::PreImage;
use crate::remote::Remote;
use crate::search::Search;
use crate::seen::FilesSeen;
use agentd_file_work::FileWork;
use agentd_protected::ProtectedPaths;
use agentd_protocol::{ToolCallId, ToolOutcome};
use agentd_repo_map::TagFinders;
use agentd_sandbox::{Beneath, SpillFile, WardenSlot};
use agentd_settings::ToolsConfig;
use agentd_web::{Hop, Hops};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

/// Limits of tool calls.
pub type ToolLimits = ToolsConfig;

/// Output that a running tool produced since the last report.
pub type Progress = agentd_sandbox::Fresh;

/// Receives the output of running tools, at most every 100 ms; must not block.
#[derive(Clone)]
pub struct ProgressSink(Arc<dyn Fn(Progress) + Send + Sync>);

impl ProgressSink {
    /// A sink that calls `f`.
    pub fn new(f: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    /// Discards the output.
    #[must_use]
    pub fn nobody() -> Self {
        Self::new(|_| {})
    }

    /// Reports new output.
    pub fn report(&self, progress: Progress) {
        (self.0)(progress);
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressSink")
    }
}

/// Called once, when the effect of a call begins; must not block.
#[derive(Clone)]
pub struct OnStart(Arc<dyn Fn() + Send + Sync>);

impl OnStart {
    /// Calls `f`.
    pub fn new(f: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    pub(crate) fn begun(&self) {
        (self.0)();
    }
}

impl Default for OnStart {
    fn default() -> Self {
        Self::new(|| {})
    }
}

impl fmt::Debug for OnStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnStart")
    }
}

/// The bytes of a stored blob, or none if it does not exist; the error says why the store cannot tell.
type Fetched = Pin<Box<dyn Future<Output = Result<Option<Vec<u8>>, String>> + Send>>;

/// Reads stored blobs. Every answer comes in bounded time.
#[derive(Clone)]
pub struct BlobSource(Arc<dyn Fn(String) -> Fetched + Send + Sync>);

impl BlobSource {
    /// A source that asks `f` for a blob by its name.
    pub fn new<F>(f: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Option<Vec<u8>>, String>> + Send + 'static,
    {
        Self(Arc::new(move |name| Box::pin(f(name))))
    }

    /// A source without blobs.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(|_| std::future::ready(Ok(None)))
    }

    pub(crate) async fn fetch(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        (self.0)(name.to_owned()).await
    }
}

impl fmt::Debug for BlobSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlobSource")
    }
}

/// The verdict of the rules on an address.
type JudgedHop = Pin<Box<dyn Future<Output = Hop> + Send>>;

/// Judges addresses to which a server redirects a call. Every answer comes in bounded time.
#[derive(Clone)]
pub struct AddressGate(Arc<dyn Fn(String) -> JudgedHop + Send + Sync>);

impl AddressGate {
    /// Asks `f` about an address.
    pub fn new<F>(f: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Hop> + Send + 'static,
    {
        Self(Arc::new(move |url| Box::pin(f(url))))
    }

    /// A gate without an opinion.
    #[must_use]
    pub fn nobody() -> Self {
        Self::new(|_| std::future::ready(Hop::Unjudged))
    }
}

impl Hops for AddressGate {
    fn judge(&self, url: &str) -> Pin<Box<dyn Future<Output = Hop> + Send + '_>> {
        (self.0)(url.to_owned())
    }
}

impl fmt::Debug for AddressGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressGate")
    }
}

/// Whether a file may be read.
type JudgedFile = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Judges files that turn up while a call runs. Every answer comes in bounded time; a missing answer means no (I7).
#[derive(Clone)]
pub struct FileGate(Arc<dyn Fn(String) -> JudgedFile + Send + Sync>);

impl FileGate {
    /// Asks `f` about a path relative to the working directory.
    pub fn new<F>(f: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        Self(Arc::new(move |path| Box::pin(f(path))))
    }

    /// Denies every file.
    #[must_use]
    pub fn closed() -> Self {
        Self::new(|_| std::future::ready(false))
    }

    /// Allows every file.
    #[cfg(test)]
    pub(crate) fn open() -> Self {
        Self::new(|_| std::future::ready(true))
    }

    pub(crate) async fn may_read(&self, path: &str) -> bool {
        (self.0)(path.to_owned()).await
    }

    /// The same for blocking code. No rule can name a path that is not UTF-8, so such paths are denied.
    pub(crate) fn lets_read(&self, path: &Path) -> bool {
        let (Some(path), Ok(runtime)) = (path.to_str(), tokio::runtime::Handle::try_current()) else {
            return false;
        };
        runtime.block_on(self.may_read(path))
    }
}

impl fmt::Debug for FileGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileGate")
    }
}

/// The facts about the protected paths among those that a call writes.
#[derive(Debug, Clone)]
pub enum Guarding {
    /// None of these may be written.
    Refused(Arc<ProtectedPaths>),
    /// A person approved them, or a rule names them literally.
    Approved,
}

impl Default for Guarding {
    fn default() -> Self {
        Self::Refused(Arc::default())
    }
}

/// The context of a running tool.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The call.
    pub call: ToolCallId,
    /// The session's working directory.
    pub workdir: Arc<Beneath>,
    /// Whether the call may write protected paths.
    pub guarding: Guarding,
    /// The files that the session knows.
    pub seen: Arc<FilesSeen>,
    /// The session's process warden.
    pub warden: WardenSlot,
    /// The session's background jobs.
    pub jobs: Jobs,
    /// The limits.
    pub limits: Arc<ToolLimits>,
    /// Where output that is too long for a result is spilled temporarily.
    pub spill_dir: PathBuf,
    /// Where maps of source trees are stored.
    pub map_dir: PathBuf,
    /// The source of earlier file contents.
    pub blobs: BlobSource,
    /// Judges addresses to which a server redirects the call.
    pub addresses: AddressGate,
    /// Judges files that a search finds or a map shows.
    pub files: FileGate,
    /// Lends the threads for file work.
    pub file_work: FileWork,
    /// The indexes of working directories, if there are any.
    pub search: Option<Arc<dyn Search>>,
    /// What parses source files, if there is anything.
    pub parsers: Option<Arc<dyn TagFinders>>,
    /// Runs the tools of tool servers, if there are any.
    pub remote: Option<Arc<dyn Remote>>,
    /// Receives output as it is produced.
    pub progress: ProgressSink,
    /// Learns that the effect has begun.
    pub on_start: OnStart,
}

/// The complete output when it was too long for the result. It is stored as a blob whose name goes into
/// `truncated.spill`.
#[derive(Debug)]
pub enum Spilled {
    /// A file that is removed on drop.
    File(SpillFile),
    /// In memory.
    Memory(Vec<u8>),
}

impl Spilled {
    /// The bytes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn bytes(self) -> io::Result<Vec<u8>> {
        match self {
            Self::File(file) => tokio::fs::read(file.path()).await,
            Self::Memory(bytes) => Ok(bytes),
        }
    }
}

/// The outcome of a tool call.
#[derive(Debug)]
pub struct Finished {
    /// The result.
    pub outcome: ToolOutcome,
    /// The complete output, if the result does not contain all of it.
    pub spilled: Option<Spilled>,
    /// The contents of changed files before the change, to be stored as blobs.
    pub pre_images: Vec<PreImage>,
}

impl From<ToolOutcome> for Finished {
    fn from(outcome: ToolOutcome) -> Self {
        Self {
            outcome,
            spilled: None,
            pre_images: Vec::new(),
        }
    }
}
