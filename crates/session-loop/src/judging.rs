//! Judging: from a proposed call to its verdict. A call that cannot be judged is denied (I7).

use crate::error::LoopError;
use crate::hooking::narrowed;
use crate::loop_request::loop_request;
use crate::shell::Shell;
use crate::stages::of_verdict;
use crate::work::Planned;
use agentd_actor_kit::{CallDetail, CallStage, Contents, Done, GateMsg, JudgeRequest, SessionMsg, ToolMsg};
use agentd_policy::{Here, Judgement, Subject};
use agentd_protocol::{
    About, Binding, Grant, PermissionMode, Reach, Scope, ToolCallId, ToolOutcome, VerdictKind,
};
use agentd_tool_executor::Mandate;
use agentd_tools::{Prepared, likeness, partly_watched};
use agentd_turn::{Answer, CallPlan, Judged, QuestionId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

impl Shell {
    /// Checks a call's arguments and asks the gate.
    pub(crate) fn judge(
        &mut self,
        id: QuestionId,
        tool_call: ToolCallId,
        name: &str,
        input: &Value,
        grants: Vec<Grant>,
    ) {
        self.enters(tool_call);
        let prepared = match self.prepare(name, input) {
            Ok(prepared) => prepared,
            Err(outcome) => {
                self.leaves(tool_call, CallStage::Discovery, "refused");
                let judged = Judged::Refused(*outcome);
                self.core.answer(id, Answer::Verdict(judged));
                return;
            }
        };
        let planned = Planned {
            question: id,
            prepared,
            input: input.clone(),
            grants,
            contents: Ok(BTreeMap::new()),
            by_content: false,
            judgement: None,
            hooking: None,
            hooked: false,
            questioned: false,
            narrowing: None,
            permit: None,
        };
        self.ask_gate(tool_call, planned);
    }

    /// Asks the gate about a checked call, after the executor has read the files that it runs: the gate reads no files.
    pub(crate) fn ask_gate(&mut self, tool_call: ToolCallId, planned: Planned) {
        let reads = planned.prepared.runs_files();
        let prepared = reads.then(|| Box::new(planned.prepared.clone()));
        self.planned.insert(tool_call, Box::new(planned));
        let Some(prepared) = prepared else {
            return self.compared(tool_call, Some(Ok(BTreeMap::new())));
        };
        let workdir = PathBuf::from(self.workdir());
        let done = Done::cast(&self.me, move |contents| SessionMsg::Compared {
            tool_call,
            contents,
        });
        self.services.tools.cast(ToolMsg::Contents {
            prepared,
            workdir,
            done,
        });
    }

    /// The state of the files that a call runs is known, or will not be.
    pub(crate) fn compared(&mut self, tool_call: ToolCallId, contents: Option<Contents>) {
        let Some(planned) = self.planned.get_mut(&tool_call) else {
            return;
        };
        planned.contents = contents.unwrap_or_else(|| Err("the files were not read".to_owned()));
        let (prepared, grants) = (planned.prepared.clone(), planned.grants.clone());
        let files = planned.contents.clone().ok();
        let request = Box::new(self.request(&prepared, grants, files));
        self.leaves(tool_call, CallStage::Discovery, "ok");
        let done = Done::cast(&self.me, move |judgement| SessionMsg::Judged {
            tool_call,
            judgement,
        });
        self.services.gate.cast(GateMsg::Judge { request, done });
    }

    /// Checks a call. An error becomes the call's result.
    pub(crate) fn prepare(&self, name: &str, input: &Value) -> Result<Prepared, Box<ToolOutcome>> {
        if let Some(refused) = self.toolset.refusal(name.trim()) {
            return Err(Box::new(refused));
        }
        let registry = self.toolset.registry();
        let prepared = registry.prepare(name, input).map_err(Box::new)?;
        prepared
            .within(Path::new(&self.workdir()))
            .knowing(&self.core.seen)
            .map_err(Box::new)
    }

    fn request(
        &self,
        prepared: &Prepared,
        grants: Vec<Grant>,
        files: Option<BTreeMap<String, String>>,
    ) -> JudgeRequest {
        let settings = self.core.agent.durable().settings.as_ref();
        JudgeRequest {
            session: self.session,
            tool: prepared.name.clone().into_owned(),
            subject: prepared.subject.clone(),
            effect: prepared.effect,
            mode: settings.map_or(PermissionMode::Default, |settings| settings.mode),
            workdir: self.workdir(),
            here: Here {
                place: self.core.agent.durable().project(),
                files,
            },
            rules: settings
                .map(|settings| settings.rules.clone())
                .unwrap_or_default(),
            grants,
            always: self.core.agent.durable().always.clone(),
        }
    }

    /// The rights of a call when it runs: the approved binding, and who judges the address of a redirect.
    /// `permitted` says whether a hook answered the rules' question; `contents` are the files by which a grant holds.
    pub(crate) fn mandate(
        &self,
        tool_call: ToolCallId,
        prepared: &Prepared,
        (permitted, contents): (bool, Option<BTreeMap<String, String>>),
    ) -> Mandate {
        let durable = self.core.agent.durable();
        let judges = || {
            let request = self.request(prepared, durable.grants.clone(), contents.clone());
            (self.services.gate.clone(), Box::new(request))
        };
        let finds = prepared.tool().is_some_and(|tool| tool.filtered());
        let bound = durable.bound(tool_call).cloned();
        let meets = matches!(prepared.subject, Subject::Url(_)) || finds || !prepared.written().is_empty();
        Mandate {
            // Only a call that raised a question is bound, and it runs only when the answer was yes.
            approved: permitted || bound.is_some(),
            bound,
            contents: contents.clone(),
            judges: meets.then(judges),
        }
    }

    /// The gate answered, or went down without an answer.
    pub(crate) async fn gate_spoke(
        &mut self,
        tool_call: ToolCallId,
        judgement: Option<Judgement>,
    ) -> Result<(), LoopError> {
        if !self.planned.contains_key(&tool_call) {
            return Ok(());
        }
        let judgement = judgement
            .unwrap_or_else(|| Judgement::denied("gate:error", "the permission gate did not answer"));
        let outcome = of_verdict(judgement.verdict.kind);
        self.leaves(tool_call, CallStage::Permission, outcome);
        self.judged(tool_call, judgement).await
    }

    /// The rules have judged the call; hooks and people may narrow the judgement.
    pub(crate) async fn judged(
        &mut self,
        tool_call: ToolCallId,
        judgement: Judgement,
    ) -> Result<(), LoopError> {
        if self.ask_hooks(tool_call, &judgement).await {
            return Ok(());
        }
        let Some(planned) = self.planned.get(&tool_call) else {
            return Ok(());
        };
        let decided = narrowed(
            judgement.clone(),
            planned.narrowing.as_ref(),
            planned.permit.as_ref(),
        );
        let asks = decided.verdict.kind == VerdictKind::Ask;
        if asks && self.ask_instead(tool_call, &judgement, &decided).await {
            return Ok(());
        }
        self.decided(tool_call, decided).await
    }

    /// Only a person can add anything now: the details of a question are looked up first.
    async fn decided(&mut self, tool_call: ToolCallId, judgement: Judgement) -> Result<(), LoopError> {
        self.leave_judging(tool_call, judgement.verdict.kind);
        let Some(planned) = self.planned.get_mut(&tool_call) else {
            return Ok(());
        };
        planned.by_content = judgement.by_content;
        if judgement.verdict.kind == VerdictKind::Ask {
            let prepared = Box::new(planned.prepared.clone());
            planned.judgement = Some(judgement);
            let workdir = PathBuf::from(self.workdir());
            let done = Done::cast(&self.me, move |detail| SessionMsg::Detailed { tool_call, detail });
            self.services.tools.cast(ToolMsg::Detail {
                prepared,
                workdir,
                done,
            });
            return Ok(());
        }
        let (question, detail) = (planned.question, planned.prepared.title.clone());
        let judged = verdict(
            &planned.prepared,
            judgement,
            Details::of(detail),
            self.services.sandbox,
        );
        self.answer_verdict(question, judged).await
    }

    /// Gives the core its verdict.
    pub(crate) async fn answer_verdict(&mut self, id: QuestionId, judged: Judged) -> Result<(), LoopError> {
        self.core.answer(id, Answer::Verdict(judged));
        self.run_followers().await
    }

    /// The exact action of a call in question is known.
    pub(crate) async fn detailed(
        &mut self,
        tool_call: ToolCallId,
        detail: Option<CallDetail>,
    ) -> Result<(), LoopError> {
        let place = self.core.agent.durable().project();
        let Some(planned) = self.planned.get_mut(&tool_call) else {
            return Ok(());
        };
        let question = planned.question;
        let Some(judgement) = planned.judgement.take() else {
            return Ok(());
        };
        let lost = || "agentd could not determine what the call would do".to_owned();
        let (detail, binding) = detail.map_or_else(
            || (planned.prepared.title.clone(), Err(lost())),
            |detail| (detail.text, detail.binding),
        );
        let binding = match binding {
            Ok(binding) => Some(binding),
            // A person cannot approve a call whose exact action is unknown (I7).
            Err(why) => {
                let judgement = Judgement::denied("gate:unbound", &why);
                let judged = verdict(
                    &planned.prepared,
                    judgement,
                    Details::of(detail),
                    self.services.sandbox,
                );
                return self.answer_verdict(question, judged).await;
            }
        };
        let details = Details {
            detail,
            binding,
            reach: planned.reach(place),
        };
        let judged = verdict(&planned.prepared, judgement, details, self.services.sandbox);
        self.answer_verdict(question, judged).await
    }
}

/// Facts about a call beyond its verdict.
#[derive(Debug, Default)]
pub struct Details {
    /// The exact action.
    pub detail: String,
    /// What an approval is bound to.
    pub binding: Option<Binding>,
    /// How far a grant for the project would reach; `None`: it cannot be bound, so only this call can be allowed.
    pub reach: Option<Reach>,
}

impl Details {
    /// Only the action.
    #[must_use]
    pub fn of(detail: String) -> Self {
        Self {
            detail,
            ..Self::default()
        }
    }
}

/// The answer for the core: the verdict on a checked call.
#[must_use]
pub fn verdict(
    prepared: &Prepared,
    mut judgement: Judgement,
    details: Details,
    sandbox: agentd_protocol::SandboxLevel,
) -> Judged {
    let Details {
        detail,
        binding,
        reach,
    } = details;
    let asks = judgement.verdict.kind == VerdictKind::Ask;
    if asks && reach.is_none() {
        // A grant that agentd cannot bind would be a rule of text (I7).
        judgement.grant = None;
        judgement.scopes.retain(|scope| *scope == Scope::Once);
    }
    let about = About {
        reach: reach.filter(|_| asks && judgement.grant.is_some()),
        ..about(prepared, &judgement, binding.as_ref())
    };
    Judged::Verdict {
        verdict: judgement.verdict,
        plan: CallPlan {
            title: prepared.title.clone(),
            detail,
            effect: prepared.effect,
            idempotent: prepared.idempotent,
            sandbox,
            scopes: judgement.scopes,
            grant: judgement.grant,
            binding,
            about: Box::new(about),
            loop_request: loop_request(prepared),
        },
    }
}

/// The known facts about a call in question apart from its action.
fn about(prepared: &Prepared, judgement: &Judgement, binding: Option<&Binding>) -> About {
    if judgement.verdict.kind != VerdictKind::Ask {
        return About::default();
    }
    let mut risks = judgement.risks.clone();
    risks.extend(binding.iter().flat_map(|binding| partly_watched(binding)).map(|root| {
        format!("it runs code from {root}, which has more files than agentd can watch (tools.max_watched): a change may go unnoticed")
    }));
    About {
        risks,
        rule: Some(judgement.verdict.rule.clone()),
        reason: Some(judgement.verdict.reason.clone()).filter(|reason| !reason.is_empty()),
        directory: binding.map(|binding| binding.cwd.clone()),
        said: prepared.said(),
        watches: binding
            .map(|binding| binding.trees.keys().cloned().collect())
            .unwrap_or_default(),
        reach: None,
        likeness: binding.map(likeness),
    }
}
