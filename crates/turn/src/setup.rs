//! A session's own workspace: whether it is there, and the operator's setup commands, which run in it before its first model
//! call.
//!
//! If a command fails, the turn ends, and the next turn runs them again: a session never works in a workspace that is half
//! set up.

use crate::Config;
use crate::draft::Draft;
use crate::durable::Durable;
use crate::durable::apply::Refusal;
use crate::questions::{self, Question, Subject};
use crate::steps::limits::{self, Leave};
use agentd_protocol::{
    EndReason, Seq, SessionMoved, SessionPlace, TurnId, Workspace, WorkspaceCreated, WorkspacePrepared,
    WorkspaceRestored,
};

/// The class of the error of a turn whose setup failed.
const FAILED: &str = "setup_failed";
/// The class of the error of a turn whose workspace is not on this machine.
const LOST: &str = "workspace_lost";

/// A setup that failed in this incarnation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedSetup {
    turn: TurnId,
    message: String,
}

/// Whether the commands have to run before anything else works in the directory.
pub(crate) fn is_missing(durable: &Durable, config: &Config) -> bool {
    let own = durable
        .settings
        .as_ref()
        .is_some_and(|settings| settings.workspace.is_some());
    config.setup && own && !durable.prepared
}

/// Ends the turn if the workspace is lost. Runs the commands if they are missing; they come first.
pub(crate) fn comes_first(draft: &mut Draft<'_, '_>) -> Leave {
    if let Some(why) = &draft.seen().lost_workspace {
        let error = limits::error(LOST, why.clone());
        return Leave::End(EndReason::InitializationFailed, error);
    }
    if !is_missing(draft.durable(), draft.config()) {
        return Leave::Go;
    }
    let turn = draft.turn().map(|turn| turn.id);
    if let Some(failed) = &draft.seen().failed_setup
        && Some(failed.turn) == turn
    {
        let error = limits::error(FAILED, failed.message.clone());
        return Leave::End(EndReason::InitializationFailed, error);
    }
    if !draft.seen().draining && !draft.seen().questions.is_pending(&Subject::Setup) {
        questions::ask(draft, Question::Setup);
    }
    Leave::Wait
}

/// The commands ended.
pub(crate) fn answered(draft: &mut Draft<'_, '_>, prepared: WorkspacePrepared) {
    if let (Some(turn), Some(message)) = (draft.turn().map(|turn| turn.id), prepared.error.clone()) {
        draft.volatile().failed_setup = Some(FailedSetup { turn, message });
    }
    draft.emit(prepared);
}

impl Durable {
    pub(crate) fn workspace_created(&mut self, created: &WorkspaceCreated) -> Result<(), Refusal> {
        self.still_open()?;
        self.moves_to(&created.workspace);
        Ok(())
    }

    pub(crate) fn workspace_restored(
        &mut self,
        restored: &WorkspaceRestored,
        seq: Seq,
    ) -> Result<(), Refusal> {
        self.still_open()?;
        self.moves_to(&restored.workspace);
        self.files.tree = Some(restored.tree.clone());
        self.files.recorded = seq;
        self.restored = Some(Box::new(restored.clone()));
        Ok(())
    }

    /// Another node has the session, or it works in another directory from now on. Its own workspace is left behind then.
    pub(crate) fn session_moved(&mut self, moved: &SessionMoved) -> Result<(), Refusal> {
        self.home.clone_from(&moved.node);
        let Some(workdir) = &moved.workdir else {
            return Ok(());
        };
        self.still_open()?;
        if let Some(settings) = &mut self.settings {
            settings.workdir.clone_from(workdir);
            settings.workspace = None;
        }
        self.files.tree = None;
        self.restored = None;
        self.told.moved();
        Ok(())
    }

    /// The project that it works on: what its workspace, or that of its parent, was made from, or else its directory.
    #[must_use]
    pub fn project(&self) -> String {
        let Some(settings) = &self.settings else {
            return String::new();
        };
        let shares = self.lineage().and_then(|(_, lineage)| lineage.shares.as_ref());
        let shares = shares.filter(|shares| shares.dir == settings.workdir && settings.workspace.is_none());
        shares.map_or(settings.place(), |shares| &shares.place).to_owned()
    }

    /// Where the files are.
    pub(crate) fn place(&self) -> SessionPlace {
        let own = self
            .settings
            .as_ref()
            .is_some_and(|settings| settings.workspace.is_some());
        SessionPlace {
            home: self.home.clone(),
            kept: own && self.files.kept.is_some(),
        }
    }

    /// What only the commands left behind is not in the new workspace.
    fn moves_to(&mut self, workspace: &Workspace) {
        if let Some(settings) = &mut self.settings {
            settings.workdir.clone_from(&workspace.path);
            settings.workspace = Some(Box::new(workspace.clone()));
        }
        self.prepared = false;
        self.restored = None;
        self.told.moved();
    }

    pub(crate) fn workspace_prepared(&mut self, prepared: &WorkspacePrepared) -> Result<(), Refusal> {
        self.still_open()?;
        self.prepared = prepared.error.is_none();
        Ok(())
    }
}
