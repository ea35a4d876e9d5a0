//! Fakes of the supervisor, the gate and the node.

use super::log::Log;
use agentd_actor_kit::{GateMsg, LiveStatus, SupervisorMsg, SupervisorStats};
use agentd_api::{NodeView, Reload};
use agentd_policy::{Judgement, Subject};
use agentd_protocol::*;
use agentd_store::{IdempotencyKey, Outcome};
use agentd_tools::ToolEntry;
use agentd_turn::{Command, NewInput, Reply, ShownSettings, settings_changed};
use async_trait::async_trait;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The commands that the fake supervisor received, and its prepared answers.
#[derive(Debug, Default)]
pub(crate) struct Played {
    pub(crate) routed: u64,
    /// Updates that name the settings that they rest on.
    pub(crate) guarded: u64,
    pub(crate) overlay: BTreeMap<SessionId, LiveStatus>,
    pub(crate) faulted: Vec<SessionId>,
    pub(crate) evicted: Vec<SessionId>,
}

#[derive(Debug)]
pub(crate) struct Supervisor;

#[derive(Debug)]
pub(crate) struct Player {
    pub(crate) log: Log,
    pub(crate) played: Arc<Mutex<Played>>,
}

/// The sender of a command, and its session.
struct Order {
    session: SessionId,
    by: Principal,
}

fn decided(
    (approval, decision, scope): (ApprovalId, Decision, Scope),
    (answer, message, basis): (Option<String>, Option<String>, Option<Basis>),
) -> ApprovalDecided {
    ApprovalDecided {
        approval,
        decision,
        answer,
        scope,
        everywhere: false,
        message,
        basis,
    }
}

impl Player {
    async fn carry_out(
        &self,
        order: &Order,
        command: Command,
        keys: Option<IdempotencyKey>,
    ) -> Result<Reply, Fault> {
        let session = order.session;
        match command {
            Command::Create { created, first } => self.create(order, *created, first, keys).await,
            Command::Send(new) => self.send(order, new, keys).await,
            Command::Decide {
                approval,
                decision,
                scope,
                answer,
                message,
                basis,
            } => {
                let row = self.row(session).await;
                if row.open_approvals.iter().all(|open| open.approval != approval) {
                    return Err(Fault::conflict("approval_decided", "it was decided already"));
                }
                let edit = |row: &mut Summary| row.open_approvals.retain(|open| open.approval != approval);
                let decided = decided((approval, decision, scope), (answer, message, basis));
                self.done(order, decided.into(), edit).await
            }
            Command::Update {
                expect,
                labels,
                mode,
                budget,
                ..
            } => self.update(order, expect, (labels, mode, budget)).await,
            Command::Close { reason, .. } => {
                let closed = SessionClosed { reason };
                self.done(order, closed.into(), |row| row.status.state = RunState::Closed)
                    .await
            }
            Command::CancelTurn { .. } => Err(Fault::conflict("no_turn", "no turn runs")),
            Command::CancelInput(_)
            | Command::Pause { .. }
            | Command::Resume { .. }
            | Command::Rework(_)
            | Command::Compact
            | Command::Summarize
            | Command::ChildEnded { .. }
            | Command::Transfer(_)
            | Command::Tell
            | Command::Follow => Ok(Reply::Done { seq: 1 }),
        }
    }

    async fn update(
        &self,
        order: &Order,
        expect: Option<Box<ShownSettings>>,
        (labels, mode, budget): (Option<Labels>, Option<PermissionMode>, Option<Budget>),
    ) -> Result<Reply, Fault> {
        let session = order.session;
        self.played.lock().unwrap().guarded += u64::from(expect.is_some());
        let now = ShownSettings::from(&self.row(session).await);
        if expect.is_some_and(|expected| *expected != now) {
            return Err(settings_changed());
        }
        let carried = labels.clone().unwrap_or_default();
        let updated = SessionUpdated {
            title: None,
            model: None,
            mode,
            labels,
            budget,
            summary: None,
        };
        self.done(order, updated.into(), |row| {
            row.budget = budget.unwrap_or(row.budget);
            row.labels = carried;
            row.mode = mode.unwrap_or(row.mode);
        })
        .await
    }

    async fn send(&self, order: &Order, new: NewInput, keys: Option<IdempotencyKey>) -> Result<Reply, Fault> {
        let input = self.log.clock.stamp().input();
        let seq = self.row(order.session).await.seq + 1;
        let keys = kept(
            keys,
            &json!(Sent {
                input,
                seq,
                said: None,
                notices: Vec::new(),
            }),
        );
        let bodies = vec![accepted(new, input)];
        let sent = self
            .log
            .write(order.session, &order.by, bodies, keys, |_| {})
            .await;
        Ok(Reply::Sent {
            input,
            seq: sent.map_err(lost)?,
        })
    }

    async fn create(
        &self,
        order: &Order,
        created: SessionCreated,
        first: Option<NewInput>,
        keys: Option<IdempotencyKey>,
    ) -> Result<Reply, Fault> {
        let session = order.session;
        let input = first.as_ref().map(|_| self.log.clock.stamp().input());
        let mut bodies: Vec<EventBody> = vec![created.clone().into()];
        bodies.extend(first.zip(input).map(|(first, input)| accepted(first, input)));
        let (name, seq) = (created.title.clone(), bodies.len() as Seq);
        let keys = kept(
            keys,
            &json!(Created {
                session,
                name,
                input,
                seq,
                notices: Vec::new(),
            }),
        );
        let edit = |row: &mut Summary| {
            row.name = created.title;
            row.model = created.model;
            row.labels = created.labels;
            row.workdir = created.workdir;
        };
        let seq = self
            .log
            .write(session, &order.by, bodies, keys, edit)
            .await
            .map_err(lost)?;
        Ok(Reply::Created { input, seq })
    }

    async fn done(
        &self,
        order: &Order,
        body: EventBody,
        edit: impl FnOnce(&mut Summary),
    ) -> Result<Reply, Fault> {
        let written = self
            .log
            .write(order.session, &order.by, vec![body], Vec::new(), edit)
            .await;
        Ok(Reply::Done {
            seq: written.map_err(lost)?,
        })
    }

    async fn row(&self, session: SessionId) -> Summary {
        self.log.backend.row(session).await.unwrap().unwrap().summary
    }
}

fn accepted(new: NewInput, input: InputId) -> EventBody {
    let NewInput {
        content,
        delivery,
        key,
        model,
    } = new;
    InputAccepted {
        input,
        key,
        delivery: delivery.unwrap_or(Delivery::Start),
        content,
        model,
        agent: None,
    }
    .into()
}

fn kept(key: Option<IdempotencyKey>, answer: &Value) -> Vec<IdempotencyKey> {
    let answered = |key| IdempotencyKey {
        answer: answer.to_string(),
        ..key
    };
    key.into_iter().map(answered).collect()
}

fn lost(outcome: Outcome) -> Fault {
    match outcome {
        Outcome::KeyTaken { .. } => Fault::unavailable("retry", "another player was faster"),
        other => Fault::storage("lost", format!("{other:?}")),
    }
}

impl Actor for Supervisor {
    type Msg = SupervisorMsg;
    type State = Player;
    type Arguments = Player;

    async fn pre_start(
        &self,
        _: ActorRef<SupervisorMsg>,
        args: Player,
    ) -> Result<Player, ActorProcessingErr> {
        Ok(args)
    }

    async fn handle(
        &self,
        _: ActorRef<SupervisorMsg>,
        msg: SupervisorMsg,
        player: &mut Player,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            SupervisorMsg::Route(routed) => {
                player.played.lock().unwrap().routed += 1;
                let order = Order {
                    session: routed.session,
                    by: routed.by,
                };
                let reply = player.carry_out(&order, *routed.command, routed.key).await;
                routed.done.answer(reply);
            }
            SupervisorMsg::Overlay { done } => done.answer(player.played.lock().unwrap().overlay.clone()),
            SupervisorMsg::Stats { done } => done.answer(SupervisorStats {
                hot: 2,
                ..SupervisorStats::default()
            }),
            SupervisorMsg::Revive { session, done } => {
                done.answer(player.played.lock().unwrap().faulted.contains(&session));
            }
            SupervisorMsg::Evict { session, done } => {
                player.played.lock().unwrap().evicted.push(session);
                done.answer(());
            }
            _ => {}
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Gate;

impl Actor for Gate {
    type Msg = GateMsg;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<GateMsg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<GateMsg>,
        msg: GateMsg,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            GateMsg::WhollyDenied { tools, rules, done } => {
                let denied = |tool: &String| rules.contains(&format!("deny {tool}"));
                done.answer(tools.into_iter().filter(denied).collect());
            }
            GateMsg::Judge { request, done } => {
                let secret =
                    matches!(&request.subject, Subject::Path { path, .. } if path.ends_with(".secret"));
                let kind = if secret {
                    VerdictKind::Deny
                } else {
                    VerdictKind::Allow
                };
                done.answer(Judgement {
                    verdict: Verdict {
                        kind,
                        ..Judgement::denied("test", "it is secret").verdict
                    },
                    ..Judgement::denied("test", "it is secret")
                });
            }
            GateMsg::Rules { done } => done.answer(vec!["built-in: deny Bash(sudo:*)".to_owned()]),
            _ => {}
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct View;

#[async_trait]
impl NodeView for View {
    async fn actors(&self) -> Vec<agentd_api::ActorRow> {
        Vec::new()
    }
    async fn indexes(&self) -> Vec<agentd_api::IndexRow> {
        Vec::new()
    }
    async fn models(&self) -> Vec<ModelStatus> {
        let blind = ModelStatus {
            images_known: true,
            ..model("blind")
        };
        [["scripted", "sonnet"].map(model).to_vec(), vec![blind]].concat()
    }

    fn default_model(&self) -> String {
        "scripted (a test)".to_owned()
    }

    fn restarts(&self) -> u64 {
        3
    }

    fn servers(&self) -> Vec<ServerRow> {
        Vec::new()
    }

    fn server_names(&self) -> Vec<String> {
        vec!["files".to_owned()]
    }

    fn server_tools(&self) -> Vec<ToolEntry> {
        Vec::new()
    }
}

#[async_trait]
impl Reload for View {
    async fn reload(&self, by: &Principal) -> Result<Reloaded, Fault> {
        Err(Fault::invalid("bad_settings", format!("a.toml:3: asked by {by}")))
    }
}

fn model(name: &str) -> ModelStatus {
    ModelStatus {
        name: name.to_owned(),
        provider: "scripted".into(),
        model: "builtin".into(),
        dialect: "scripted".into(),
        usable: true,
        note: String::new(),
        default: name == "scripted",
        images: false,
        images_known: false,
        context_window: 0,
        price: None,
        running: 0,
        waiting: 0,
        permits: 0,
        paused_until: None,
        circuit: CircuitState::Closed,
        credentials: Vec::new(),
        untried: false,
        last_call: None,
    }
}
