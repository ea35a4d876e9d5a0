//! The port to tools that run outside of sessions: those of tool servers.

use crate::context::{Finished, ToolContext};
use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::spec::ToolEntry;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::path::Path;

/// The tools of one tool server, or why they are unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered {
    /// The name of the server.
    pub server: String,
    /// Its tools, always in the same order, or why there are none.
    pub tools: Result<Vec<ToolEntry>, String>,
    /// The names of its tools that cannot be used, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// A call of a tool server's tool that was already judged and allowed.
#[derive(Debug)]
pub struct RemoteCall {
    /// The name of the tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The most bytes of text for the model.
    pub max_bytes: usize,
    /// The most lines of it.
    pub max_lines: usize,
}

/// Runs the tools of tool servers. Every answer comes in bounded time.
#[async_trait]
pub trait Remote: Debug + Send + Sync {
    /// The names of the servers.
    fn servers(&self) -> Vec<String>;
    /// The tools that some of them offer to a session in a directory, as far as they are known soon.
    async fn offered(&self, workdir: &Path, servers: &[String]) -> Vec<Offered>;
    /// Calls a tool. Dropping the future cancels the call and notifies its server.
    async fn call(&self, workdir: &Path, call: RemoteCall, ctx: &ToolContext) -> Finished;
    /// Reports that a session in a directory was closed: its servers may end unless another session uses them soon.
    fn released(&self, _workdir: &Path) {}
}

pub(crate) async fn run(prepared: &Prepared, ctx: &ToolContext) -> Finished {
    let Some(remote) = &ctx.remote else {
        let text = format!(
            "{} belongs to a tool server, but no tool server is configured.",
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
