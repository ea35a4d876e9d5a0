//! The tools of an agent: their specs, argument checks, and implementations.
//!
//! Every failure in a tool becomes a result that tells the model what to do instead, never an error of the daemon.
//! Files are opened only beneath the session's working directory; commands run under the session's warden.
//!
//! Invariants: I3 (a call comes to exactly one result: [`Registry::prepare`] refuses, or [`run`] finishes), I5
//! (dropping [`run`] kills its command), I7 (the path or command that the gate judges is exactly what is opened or
//! run), I8 (commands see only the allow-listed environment of the warden).
//!
//! Flow: name and arguments -> [`Registry::prepare`] -> [`Prepared`] (judged by the gate) -> [`run`] -> [`Finished`].

mod answers;
mod apply_patch;
mod arguments;
mod bash;
mod binding;
mod catalog;
mod change_set;
mod command_line;
mod contents;
mod context;
mod ctags;
mod declared;
mod detail;
mod diff;
mod edit;
mod edit_arguments;
mod focus;
mod git_note;
mod glob;
mod grep;
mod grep_sink;
mod ignored;
mod image;
mod job;
mod job_input;
mod job_tool;
mod job_tools;
mod jobs;
mod large;
mod line_program;
mod loop_tools;
mod ls;
mod matching;
mod multi_edit;
mod patch;
mod plan;
mod pre_image;
mod prepared;
mod prompt_map;
mod put_back;
mod read;
mod refusal;
mod remote;
mod replacement;
mod repo_map;
mod run;
mod search;
mod seen;
mod shape;
mod similarity;
mod skill;
mod source_tree;
mod spec;
mod tag_program;
mod task;
mod tool;
mod undo;
mod walk;
mod watched;
mod web_fetch;
mod write;
mod yielding;

#[cfg(test)]
mod tests;

pub use agentd_policy::{REMOTE_PREFIX, Subject};
pub use agentd_repo_map::{TAGS_PROGRAM, TagFinders};
pub use agentd_sandbox::{Beneath, Environment, WardenSlot};
pub use agentd_web::Hop;
pub use binding::{likeness, partly_watched};
pub use catalog::{builtin, delegates, is_usual};
pub use context::{
    AddressGate, BlobSource, FileGate, Finished, Guarding, OnStart, Progress, ProgressSink, Spilled,
    ToolContext, ToolLimits,
};
pub use diff::{Change, change};
pub use focus::windows;
pub use image::{ImageError, check_image, image_of_server};
pub use jobs::{JobEnding, JobNews, Jobs};
pub use pre_image::{PreImage, undo_id};
pub use prepared::Prepared;
pub use prompt_map::{PromptMap, map_dir};
pub use put_back::{Contents, file_now, kept_content, put_back};
pub use remote::{Offered, Remote, RemoteCall};
pub use repo_map::REPO_MAP;
pub use run::{Abandoned, run, unanswered};
pub use search::{Search, SearchFound, SearchHit, SearchQuery};
pub use seen::{FilesSeen, Seen};
pub use skill::SKILL;
pub use spec::{Registry, ToolEntry, ToolSpec};
pub use tag_program::{TagProgramSpec, TagPrograms};
pub use tool::{About, LoopCall, RunFuture, Runs, Spelling, Tool};
pub use walk::files as walk_files;
