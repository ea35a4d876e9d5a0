//! What requests claim beyond reading and steering: modes, rules, budgets, URLs, limits and rights. Each field of the parameters
//! of each method is listed here, as plain or as part of a claim, so that a new field does not compile before someone has
//! decided which it is. Directories are plain here: only `crate::directories` makes the types that work needs.

use crate::api::Api;
use crate::rights::checked;
use crate::sight::Caller;
use agentd_protocol::{
    ApplyParams, ApprovalChangesParams, ApprovalListParams, ApprovalQuestionParams, AuditParams,
    BackupEndParams, BackupPartParams, BlobParams, BranchParams, Budget, BulkParams, CancelInputParams,
    CancelTurnParams, CreateParams, CreateTokenParams, DailyUsageParams, DecideParams, DiffParams,
    ExportParams, Fault, FilesParams, ForkParams, ImportParams, LifecycleParams, LinkTokenParams, ListParams,
    LogParams, LoopLimits, NodeKeyParams, PatchParams, PermissionMode, PlaceParams, RemoveRuleParams,
    ResumeParams, RevokeTokenParams, RewindParams, SendParams, SessionParams, TokenRights, UndoParams,
    UpdateParams, UsageParams, WorkspaceListParams, WorkspacePruneParams, WorkspaceRequest,
};

/// Something that needs a right of the caller.
#[derive(Debug)]
pub(crate) enum Claim<'a> {
    /// A session gets this mode.
    Mode(PermissionMode),
    /// A new session gets these rules.
    Rules(&'a [String]),
    /// A new session gets this budget.
    Budget(&'a Budget),
    /// A new session gets this many steps per turn.
    Steps(i32),
    /// The daemon clones this URL.
    Clone(&'a str),
    /// A token gets these rights.
    Grant(TokenRights),
}

/// The parameters of a method.
pub(crate) trait Claims {
    /// What they claim.
    fn claims(&self) -> Vec<Claim<'_>>;
}

/// Parameters that claim nothing.
macro_rules! plain {
    ($($params:ident { $($field:ident),* $(,)? })*) => {
        $(impl Claims for $params {
            fn claims(&self) -> Vec<Claim<'_>> {
                let Self { $($field: _),* } = self;
                Vec::new()
            }
        })*
    };
}

plain! {
    // `to` becomes a `Target`.
    ApplyParams { session, to, dry_run }
    ApprovalChangesParams { approval }
    ApprovalListParams { session, labels }
    ApprovalQuestionParams { approval }
    AuditParams { before, limit, who, event, session, since, until }
    BackupEndParams { backup }
    BackupPartParams { backup, path, offset }
    BlobParams { name, offset }
    // For everyone, `workspace.push` lists the URLs.
    BranchParams { session, name, message, push }
    BulkParams { action, sessions, reason, force }
    CancelInputParams { session, input }
    CancelTurnParams { session, expect_turn, reason, kill }
    DailyUsageParams { labels, by, days }
    DecideParams { approval, decision, scope, answer, message, shown, policy }
    DiffParams { session, turn, at }
    ExportParams { session, after_seq, limit }
    FilesParams { session, at }
    // The copy keeps what the session has: judged when that is known.
    ForkParams { session, at, title, key }
    LifecycleParams { session, reason, force }
    ListParams { all, sessions, states, labels, limit, sort, ascending, search, after }
    // A browser gets the rights of the caller.
    LinkTokenParams { scopes, ttl_ms }
    LogParams { lines }
    PatchParams { session, bundle }
    NodeKeyParams { node }
    PlaceParams { node, placing }
    RemoveRuleParams { rule }
    // `workdir` becomes a `WorkDir`.
    ResumeParams { session, reason, force, workdir }
    RevokeTokenParams { name }
    RewindParams { session, at, files, force, dry_run, key }
    // A typed command that changes the mode is judged when it is read.
    SendParams { session, content, delivery, key, model, agent, commands }
    SessionParams { session }
    UndoParams { session, change, turn, force, dry_run, key }
    UsageParams { labels, by }
    WorkspaceListParams { measure }
    WorkspacePruneParams { sessions, days, force, dry_run }
}

impl Claims for CreateParams {
    fn claims(&self) -> Vec<Claim<'_>> {
        let Self {
            // Plain; `workdir` becomes a `WorkDir`.
            prompt: _,
            title: _,
            workdir: _,
            model: _,
            labels: _,
            requires: _,
            preset: _,
            thinking: _,
            tools: _,
            agent: _,
            system_prompt: _,
            append_system_prompt: _,
            commands: _,
            headless: _,
            key: _,
            parent: _,
            force: _,
            mode,
            max_turns,
            budget,
            rules,
            workspace,
        } = self;
        let repo = workspace.as_ref().and_then(|asked| {
            let WorkspaceRequest {
                kind: _,
                repo,
                reference: _,
                with_changes: _,
            } = asked;
            repo.as_deref()
        });
        let mut claims = settings(*mode, rules, budget.as_ref(), *max_turns);
        claims.extend(repo.map(Claim::Clone));
        claims
    }
}

impl Claims for ImportParams {
    fn claims(&self) -> Vec<Claim<'_>> {
        let Self {
            // Plain; `workdir` becomes a `WorkDir`.
            lines: _,
            key: _,
            more: _,
            source: _,
            workdir: _,
            title: _,
            model: _,
            labels: _,
            preset: _,
            thinking: _,
            tools: _,
            agent: _,
            mode,
            max_turns,
            budget,
            rules,
        } = self;
        settings(*mode, rules, budget.as_ref(), *max_turns)
    }
}

impl Claims for UpdateParams {
    fn claims(&self) -> Vec<Claim<'_>> {
        // Whether a mode or a budget is looser is judged when those of the session are known.
        let Self {
            session: _,
            expect: _,
            title: _,
            model: _,
            labels: _,
            budget: _,
            mode,
        } = self;
        mode.map(Claim::Mode).into_iter().collect()
    }
}

impl Claims for CreateTokenParams {
    fn claims(&self) -> Vec<Claim<'_>> {
        let Self {
            name: _,
            scopes: _,
            labels: _,
            ttl_ms: _,
            dirs,
            sources,
            mode,
        } = self;
        let rights = TokenRights {
            dirs: dirs.clone(),
            sources: sources.clone(),
            mode: mode.unwrap_or(TokenRights::default().mode),
        };
        vec![Claim::Grant(rights)]
    }
}

/// The claims of the settings of a new session.
fn settings<'a>(
    mode: Option<PermissionMode>,
    rules: &'a [String],
    budget: Option<&'a Budget>,
    steps: Option<i32>,
) -> Vec<Claim<'a>> {
    let mut claims = vec![Claim::Rules(rules)];
    claims.extend(mode.map(Claim::Mode));
    claims.extend(budget.map(Claim::Budget));
    claims.extend(steps.map(Claim::Steps));
    claims
}

impl Api {
    /// Refuses parameters that claim more than the caller may have.
    pub(crate) fn granted<P: Claims>(&self, who: &Caller, params: P) -> Result<P, Fault> {
        for claim in params.claims() {
            self.judge(who, claim)?;
        }
        Ok(params)
    }

    /// Refuses a URL that the caller may not have cloned.
    pub(crate) fn may_clone(&self, who: &Caller, url: &str) -> Result<(), Fault> {
        let listed = self.loaded().settings.workspace.may_clone(url);
        if who.rights().may_clone(url, listed) {
            return Ok(());
        }
        Err(
            Fault::denied("url_denied", "the caller may not have this URL cloned").hint(
                "have a token created with --source URL, or have the operator add the URL to workspace.urls",
            ),
        )
    }

    fn judge(&self, who: &Caller, claim: Claim<'_>) -> Result<(), Fault> {
        let (rights, loaded) = (who.rights(), self.loaded());
        let (limits, budget) = loaded.limits(&agentd_settings::LimitOverrides::default());
        match claim {
            Claim::Mode(mode) => rights.mode(mode),
            Claim::Rules(rules) => rights.rules(rules),
            Claim::Budget(asked) => rights.change_budget(&budget, asked),
            Claim::Steps(max_turns) => {
                let asked = LoopLimits {
                    max_turns,
                    ..limits.clone()
                };
                rights.change_steps(limits.step_cap(), asked.step_cap())
            }
            Claim::Clone(url) => self.may_clone(who, url),
            Claim::Grant(asked) => rights.grant(&checked(asked)?),
        }
    }
}
