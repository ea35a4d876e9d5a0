//! The indexer's arguments: what it may read, the source of its vectors, and the handle for searches.

use crate::children::ChildArgs;
use crate::error::NodeError;
use crate::node::NodeArgs;
use agentd_actor_kit::{Clock, Handle};
use agentd_index::{Embedder, IndexHandle, IndexMsg, IndexerArgs, Limits, ReadRule, RemoteEmbedder};
use agentd_permission_gate::configured_rules;
use agentd_policy::{Policy, Request, Subject, judge};
use agentd_protocol::{EffectClass, PermissionMode, VerdictKind};
use agentd_provider::EmbedClient;
use agentd_settings::Settings;
use agentd_tool_executor::ExecutorArgs;
use std::path::Path;
use std::sync::Arc;

/// The arguments of the indexer.
pub(crate) fn args(
    args: &NodeArgs,
    settings: &Settings,
    http: &reqwest::Client,
    (clock, executor): (Clock, &ExecutorArgs),
) -> Result<IndexerArgs, NodeError> {
    let home = args.environment.get("HOME").map(String::as_str);
    let rules =
        configured_rules(&settings.permission).map_err(|error| NodeError::Rules(error.to_string()))?;
    let policy = Policy::new(home).with(rules);
    Ok(IndexerArgs {
        dir: args.paths.data_dir.join("index"),
        limits: Limits::from(&settings.index),
        rule: ReadRule::new(move |workdir, path| may_read(&policy, workdir, path)),
        embedder: embedder(args, settings, http),
        parsers: executor.parsers.clone(),
        clock,
    })
}

/// The arguments of the tool executor, with a handle to the indexer unless search is off.
pub(crate) fn searching(args: &ChildArgs, indexer: Handle<IndexMsg>) -> ExecutorArgs {
    let search = IndexHandle::new(indexer, &args.present.settings.now().settings.index);
    ExecutorArgs {
        search: search.map(|search| Arc::new(search) as _),
        ..args.executor.clone()
    }
}

/// Allows only files that every session may read without a question. A search applies the session's own rules.
fn may_read(policy: &Policy, workdir: &Path, path: &str) -> bool {
    let Some(workdir) = workdir.to_str() else {
        return false;
    };
    let subject = Subject::Path {
        write: false,
        path: path.to_owned(),
    };
    let request = Request {
        tool: agentd_policy::READ,
        subject: &subject,
        effect: EffectClass::Read,
        mode: PermissionMode::Default,
        workdir,
    };
    judge(policy, &request).verdict.kind == VerdictKind::Allow
}

/// An unusable model does not prevent the start: searches then use words alone.
fn embedder(args: &NodeArgs, settings: &Settings, http: &reqwest::Client) -> Option<Arc<dyn Embedder>> {
    let env = |name: &str| args.environment.get(name).cloned();
    match EmbedClient::resolve(http.clone(), settings, &env) {
        Ok(client) => {
            let client = RemoteEmbedder::new(client?, &settings.index.embedding);
            Some(Arc::new(client))
        }
        Err(why) => {
            tracing::warn!(why, "cannot use index.embedding; searching by words instead");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_files_that_rules_deny_or_ask_about_are_not_indexed() {
        let rules = configured_rules(&Settings::default().permission).unwrap();
        let policy = Policy::new(Some("/home/ana")).with(rules);
        let allowed = |path: &str| may_read(&policy, Path::new("/w"), path);
        assert!(allowed("src/main.rs") && allowed("package.json"));
        for path in [
            ".env",
            "a/credentials.json",
            "tls/server.pem",
            ".npmrc",
            "a\u{202e}b.rs",
        ] {
            assert!(!allowed(path), "{path}");
        }
    }
}
