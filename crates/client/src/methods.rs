//! One typed function per method of the protocol.

use crate::connection::Client;
use crate::error::ClientError;
use crate::subscription::Subscription;
use agentd_protocol::{
    AppliedTo, ApplyParams, ApprovalChanges, ApprovalChangesParams, ApprovalListParams, ApprovalQuestion,
    ApprovalQuestionParams, AttachParams, AuditCheck, AuditPage, AuditParams, Backup, BackupEndParams,
    BackupPart, BackupPartParams, BlobParams, BlobPart, BranchParams, Branched, BulkDone, BulkParams,
    CancelInputParams, CancelTurnParams, CommandRow, ContextShown, CreateParams, CreateTokenParams, Created,
    DailyUsageParams, DailyUsageRow, DecideParams, Decided, DetachParams, DiffParams, Diffed, Done,
    ExportParams, Exported, FilesParams, FleetHistory, FleetNode, ForkParams, ImportParams, LifecycleParams,
    LinkTokenParams, ListParams, Listed, LogParams, LogTail, ModelStatus, NodeKeyParams, NodeKeyRow,
    NodeStatus, OpenApproval, Patch, PatchParams, PlaceParams, PromptShown, PutBackDone, QueuedInput,
    RecordedFiles, Reloaded, RemoveRuleParams, ResumeParams, RevokeTokenParams, RewindParams, RuleRow,
    SendParams, Sent, ServerRow, SessionParams, Summary, TokenCreated, TokenLink, TokenRow, ToolRow,
    UndoParams, UpdateParams, UsageParams, UsageRow, WatchParams, WorkspaceListParams, WorkspacePruneParams,
    WorkspacePruned, WorkspaceRow,
};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::time::Duration;

/// The daemon's own deadlines are 10 s, or 30 s for writes; ours are a little longer, so that its fault can arrive.
const SHORT: Duration = Duration::from_secs(15);
const LONG: Duration = Duration::from_secs(40);
/// Work on files or on a whole log may take two minutes.
const WORK: Duration = Duration::from_secs(130);
/// A new session may get a workspace: the default of `workspace.make_limit`, and the time for an answer.
const MAKE: Duration = Duration::from_secs(340);
/// A backup copies the whole store first, which may take half an hour. So may removing many files.
const COPY: Duration = Duration::from_secs(31 * 60);

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident($params:ty) -> $answer:ty = $method:literal, $within:ident;)*) => {
        impl Client {
            $($(#[$doc])*
            ///
            /// # Errors
            /// [`ClientError`], with the daemon's fault if it refused.
            pub async fn $name(&self, params: &$params) -> Result<$answer, ClientError> {
                self.call($method, params, $within).await
            })*
        }
    };
}

methods! {
    /// Creates a session, with its first input if there is a prompt.
    create(CreateParams) -> Created = "session.create", MAKE;
    /// The system prompt of a session and its sources.
    prompt(SessionParams) -> PromptShown = "session.prompt", SHORT;
    /// The commands that an input of a session may begin with.
    commands(SessionParams) -> Vec<CommandRow> = "session.commands", SHORT;
    /// The conversation as the model gets it, by part.
    context(SessionParams) -> ContextShown = "session.context", LONG;
    /// Changes settings of a session.
    update(UpdateParams) -> Done = "session.update", LONG;
    /// Creates a token. The answer is the only place that ever has its text.
    create_token(CreateTokenParams) -> TokenCreated = "token.create", LONG;
    /// Makes a link that signs a browser in.
    link_token(LinkTokenParams) -> TokenLink = "token.link", LONG;
    /// Ends a token for good.
    revoke_token(RevokeTokenParams) -> TokenRow = "token.revoke", LONG;
    remove_rule(RemoveRuleParams) -> RuleRow = "rule.remove", LONG;
    /// Closes a session: it takes no more input.
    close(LifecycleParams) -> Done = "session.close", LONG;
    /// Deletes a session; a tombstone stays.
    delete(LifecycleParams) -> Done = "session.delete", LONG;
    /// Pauses, resumes, cancels, closes or deletes many sessions.
    bulk(BulkParams) -> BulkDone = "session.bulk", WORK;
    /// Pauses a session: no new model call starts.
    pause(LifecycleParams) -> Done = "session.pause", LONG;
    /// Compacts a session's conversation.
    compact(SessionParams) -> Done = "session.compact", LONG;
    /// Lets a model summarize a session's work.
    summarize(SessionParams) -> Done = "session.summarize", LONG;
    /// Resumes a paused or faulted session.
    resume(ResumeParams) -> Done = "session.resume", LONG;
    /// Adds an input; the daemon answers when it is durable.
    send(SendParams) -> Sent = "input.send", LONG;
    /// Cancels an input before it joins a turn.
    cancel_input(CancelInputParams) -> Done = "input.cancel", LONG;
    /// Ends the running turn.
    cancel_turn(CancelTurnParams) -> Done = "turn.cancel", LONG;
    /// Open approvals of one session or of the fleet.
    approvals(ApprovalListParams) -> Vec<OpenApproval> = "approval.list", SHORT;
    /// What has changed since an approval was asked for.
    approval_changes(ApprovalChangesParams) -> ApprovalChanges = "approval.changes", SHORT;
    /// An open approval in the lines that a person must see.
    approval_question(ApprovalQuestionParams) -> ApprovalQuestion = "approval.question", SHORT;
    /// Answers an approval.
    decide(DecideParams) -> Decided = "approval.decide", LONG;
    /// A page of the exact stored lines.
    export(ExportParams) -> Exported = "session.export", SHORT;
    /// A part of an output that was too long for its result.
    blob(BlobParams) -> BlobPart = "session.blob", SHORT;
    /// A part of a backup's file.
    backup_part(BackupPartParams) -> BackupPart = "node.backup_part", LONG;
    /// Ends a backup.
    backup_end(BackupEndParams) -> Value = "node.backup_end", SHORT;
    /// Creates a session from exported lines (one page; `more` announces another).
    import(ImportParams) -> Option<Created> = "session.import", LONG;
    /// A session's changes to files.
    diff(DiffParams) -> Diffed = "session.diff", LONG;
    /// The recorded files of a session's directory.
    files(FilesParams) -> RecordedFiles = "session.files", LONG;
    /// Undoes changes to files.
    undo(UndoParams) -> PutBackDone = "session.undo", WORK;
    /// Applies a session's changes of files to another directory.
    apply(ApplyParams) -> AppliedTo = "session.apply", WORK;
    /// Makes a git branch of a session's changes of files.
    branch(BranchParams) -> Branched = "session.branch", WORK;
    /// A session's changes of files, as a patch or a bundle.
    patch(PatchParams) -> Patch = "session.patch", WORK;
    /// Takes the conversation back to an earlier point.
    rewind(RewindParams) -> PutBackDone = "session.rewind", WORK;
    /// Creates a session whose log begins with a copy of another one's.
    fork(ForkParams) -> Created = "session.fork", WORK;
    /// A page of the audit files, newest first.
    audit(AuditParams) -> AuditPage = "audit.query", LONG;
    /// Says which sessions a node of the fleet may have.
    place(PlaceParams) -> Value = "node.place", LONG;
    /// Removes the keys of another node of the fleet for good.
    remove_key(NodeKeyParams) -> Value = "node.remove_key", LONG;
    /// Lets a node whose key was removed join with a new one.
    admit_key(NodeKeyParams) -> Value = "node.admit_key", LONG;
    /// The workspaces of the node.
    workspaces(WorkspaceListParams) -> Vec<WorkspaceRow> = "workspace.list", COPY;
    /// Removes workspaces.
    prune(WorkspacePruneParams) -> WorkspacePruned = "workspace.prune", COPY;
    /// The end of the daemon's log file.
    log(LogParams) -> LogTail = "node.log", LONG;
    /// Tokens and money, grouped.
    usage(UsageParams) -> Vec<UsageRow> = "usage.query", SHORT;
    /// Tokens and money by day, grouped.
    usage_daily(DailyUsageParams) -> Vec<DailyUsageRow> = "usage.daily", SHORT;
    /// One page of sessions; `limit` and `after` choose it.
    list_page(ListParams) -> Vec<Summary> = "session.list", SHORT;
}

impl Client {
    /// One session by id, prefix or name.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn get(&self, session: &str) -> Result<Summary, ClientError> {
        self.call(
            "session.get",
            &SessionParams {
                session: session.to_owned(),
            },
            SHORT,
        )
        .await
    }

    /// All matching sessions, fetched page by page; `params.limit` is the maximum number, 0 for all.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn list(&self, params: &ListParams) -> Result<Vec<Summary>, ClientError> {
        let mut rows = Vec::new();
        let mut page = params.clone();
        loop {
            let found = self.list_page(&page).await?;
            page.after = found.last().map(|row| Listed::from(row).place(params.sort));
            page.limit = page
                .limit
                .saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            rows.extend(found);
            if page.after.is_none() || (params.limit > 0 && page.limit == 0) {
                return Ok(rows);
            }
        }
    }

    /// A session's queued inputs.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn list_inputs(&self, session: &str) -> Result<Vec<QueuedInput>, ClientError> {
        self.call(
            "input.list",
            &SessionParams {
                session: session.to_owned(),
            },
            SHORT,
        )
        .await
    }

    /// Subscribes to a session: its log, a `synced`, then live frames.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn attach(&self, params: &AttachParams) -> Result<Subscription, ClientError> {
        self.subscribe("session.attach", params, SHORT).await
    }

    /// Subscribes to the events of all sessions.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn watch(&self, params: &WatchParams) -> Result<Subscription, ClientError> {
        self.subscribe("fleet.watch", params, SHORT).await
    }

    pub(crate) async fn detach(&self, sub: u64) -> Result<(), ClientError> {
        self.call::<_, IgnoredAny>("session.detach", &DetachParams { sub }, SHORT)
            .await
            .map(drop)
    }

    /// The state of the node.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn status(&self) -> Result<NodeStatus, ClientError> {
        self.call("node.status", &json!({}), SHORT).await
    }

    /// Lets the daemon verify the chain of its audit files.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn audit_verify(&self) -> Result<AuditCheck, ClientError> {
        self.call("audit.verify", &json!({}), WORK).await
    }

    /// The nodes of the fleet.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn nodes(&self) -> Result<Vec<FleetNode>, ClientError> {
        self.call("node.list", &json!({}), SHORT).await
    }

    /// How many sessions are in which state, now and in the last hour.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn fleet_history(&self) -> Result<FleetHistory, ClientError> {
        self.call("fleet.history", &json!({}), SHORT).await
    }

    /// Replaces the key with which the node signs.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn rotate_key(&self) -> Result<NodeKeyRow, ClientError> {
        self.call("node.rotate_key", &json!({}), LONG).await
    }

    /// Internal state of the node, for troubleshooting.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn diagnostics(&self) -> Result<Value, ClientError> {
        self.call("node.diagnostics", &json!({}), SHORT).await
    }

    /// The rules that people made permanent.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn rules(&self) -> Result<Vec<RuleRow>, ClientError> {
        self.call("rule.list", &json!({}), SHORT).await
    }

    /// The tokens, those that ended recently included.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn tokens(&self) -> Result<Vec<TokenRow>, ClientError> {
        self.call("token.list", &json!({}), SHORT).await
    }

    /// The daemon's effective settings and their sources.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn config(&self) -> Result<Value, ClientError> {
        self.call("node.config", &json!({}), SHORT).await
    }

    /// Checks the store for damage: reports the problems and how much was checked.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn check_store(&self) -> Result<Value, ClientError> {
        self.call("node.check", &json!({}), LONG).await
    }

    /// Lets the daemon copy its data directory consistently; the copy is then fetched in parts.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn backup(&self) -> Result<Backup, ClientError> {
        self.call("node.backup", &json!({}), COPY).await
    }

    /// Lets the daemon reload configuration, rules and keys.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn reload(&self) -> Result<Reloaded, ClientError> {
        self.call("node.reload", &json!({}), WORK).await
    }

    /// Stops the daemon after running work has ended; the daemon answers immediately.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn drain(&self) -> Result<(), ClientError> {
        self.call::<_, IgnoredAny>("node.drain", &json!({}), SHORT)
            .await
            .map(drop)
    }

    /// Stops the daemon, which answers immediately and resumes running work at its next start.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn stop(&self) -> Result<(), ClientError> {
        self.call::<_, IgnoredAny>("node.stop", &json!({}), SHORT)
            .await
            .map(drop)
    }

    /// The configured models.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn models(&self) -> Result<Vec<ModelStatus>, ClientError> {
        self.call("model.list", &json!({}), SHORT).await
    }

    /// The tool servers.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn servers(&self) -> Result<Vec<ServerRow>, ClientError> {
        self.call("mcp.list", &json!({}), SHORT).await
    }

    /// The tools.
    ///
    /// # Errors
    /// [`ClientError`], with the daemon's fault if it refused.
    pub async fn tools(&self) -> Result<Vec<ToolRow>, ClientError> {
        self.call("tool.list", &json!({}), SHORT).await
    }
}
