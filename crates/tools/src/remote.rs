//! The port to tools that somebody else runs: tool servers, outside of sessions.

use crate::context::{Finished, ToolContext};
use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::spec::ToolEntry;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::path::Path;

/// What the names of all their tools begin with: `mcp__SERVER__TOOL`.
pub const REMOTE_PREFIX: &str = "mcp__";

/// What one tool server offers, or why nothing is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// Its name.
    pub server: String,
    /// Its tools, always in the same order; or why there are none.
    pub tools: Result<Vec<ToolEntry>, String>,
}

/// A call of a tool that somebody else runs: judged and allowed already.
#[derive(Debug)]
pub struct RemoteCall {
    /// The name of the tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Bytes of its text that the model reads.
    pub max_bytes: usize,
    /// Lines of it.
    pub max_lines: usize,
}

/// Whoever runs the tools of servers. Every answer comes in bounded time.
#[async_trait]
pub trait Remote: Debug + Send + Sync {
    /// The names of the servers.
    fn servers(&self) -> Vec<String>;
    /// What some of them offer to a session in a directory, as far as it is known soon.
    async fn offered(&self, workdir: &Path, servers: &[String]) -> Vec<Offered>;
    /// Calls a tool. Dropping the future gives the call up, and tells its server so.
    async fn call(&self, workdir: &Path, call: RemoteCall, ctx: &ToolContext) -> Finished;
    /// A session in a directory was closed: servers that nobody else uses soon may end.
    fn released(&self, _workdir: &Path) {}
}

pub(crate) async fn run(prepared: &Prepared, ctx: &ToolContext) -> Finished {
    let Some(remote) = &ctx.remote else {
        let text = format!(
            "{} belongs to a tool server, and there are none here.",
            prepared.name
        );
        return refuse(Code::UnknownTool, text).into();
    };
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let call = RemoteCall {
        name: prepared.name.clone().into_owned(),
        arguments: prepared.input.as_object().cloned().unwrap_or_default(),
        max_bytes: count(ctx.limits.max_bytes),
        max_lines: count(ctx.limits.max_lines.into()),
    };
    ctx.on_start.begun();
    remote.call(ctx.workdir.path(), call, ctx).await
}
