//! `session.create`: from the parameters and the settings to the session's first event.

use crate::answers::Answers as _;
use crate::api::{Api, struck};
use crate::directories::WorkDir;
use crate::idempotency::Keyed;
use crate::lowered::lowered;
use crate::offered_tools::with_depth;
use crate::prompting::{fitting, mode_of, telling, turns_of};
use crate::sight::Caller;
use crate::validate;
use crate::words::unknown;
use crate::workspaces::Place;
use agentd_fault_points as fault;
use agentd_prompt::AgentDefinition;
use agentd_protocol::{
    Budget, CreateParams, Created, Fault, FaultClass, LoopLimits, SessionCreated, SessionId, nearest,
};
use agentd_settings::{CLIENT, LimitOverrides};
use agentd_tools::is_usual;
use agentd_turn::{Command, NewInput};
use serde_json::Value;
use std::path::Path;

/// The project name of a session in the root directory.
const NO_PROJECT: &str = "root";

impl Api {
    pub(crate) async fn create(&self, who: &Caller, mut params: CreateParams) -> Result<Value, Fault> {
        let (key, _turn) = match self
            .keyed(who, "session.create", params.key.as_deref(), &params)
            .await?
        {
            Keyed::Before(answer) => return Ok(answer),
            Keyed::New(key, turn) => (key, turn),
        };
        self.may_begin(who, &params).await?;
        params.labels = who.given(params.labels)?;
        let nobody_named_it = params.title.is_none();
        let directory = self.directory_of(who, &mut params).await?;
        if let Some(directory) = &directory {
            directory.text().clone_into(&mut params.workdir);
        }
        let (params, notices) = self.typed_prompt(who, params).await?;
        let session = self.parts.clock.stamp().session();
        let unowned = self.unowned(session);
        let made = self.made(who, session, &params, directory).await;
        let (mut created, mut more) = match made {
            Ok(made) => made,
            Err(fault) => {
                self.abandon(session).await;
                unowned.keep();
                return Err(fault);
            }
        };
        let (name, own) = (created.title.clone(), created.workspace.is_some());
        more.extend(notices);
        created.derived_title = nobody_named_it;
        let first = params.prompt.map(|content| NewInput {
            content,
            delivery: None,
            key: params.key,
            model: None,
        });
        let seen = who.new_session(session, &created.labels)?;
        let command = Command::Create { created, first };
        unowned.keep();
        let reply = self.route(who, seen, command, key.clone()).await;
        let outcome = reply.and_then(|reply| {
            let (input, seq) = reply.created()?;
            Ok(Created {
                session,
                name,
                input,
                seq,
                notices: more,
            })
        });
        // After a timeout, the session may exist all the same: the next clean-up decides.
        if own
            && outcome
                .as_ref()
                .is_err_and(|fault| fault.class != FaultClass::Timeout)
        {
            self.abandon(session).await;
        }
        self.settle(key, outcome).await
    }

    /// Refuses a session that this node does not take, and one whose parent does not exist.
    async fn may_begin(&self, who: &Caller, params: &CreateParams) -> Result<(), Fault> {
        validate::requires(&params.requires)?;
        let Some(parent) = params.parent else {
            return self.takes_new_sessions(&params.requires);
        };
        if !params.requires.is_empty() {
            let message = "a sub-agent runs on the node of its parent, so it cannot require labels";
            return Err(Fault::invalid("requires_of_child", message));
        }
        let above = self.existing(who, parent).await?;
        above.map(drop).ok_or_else(|| unknown(&parent.to_string()))
    }

    /// The first event of a new session, whose directory exists then, and notices for the person.
    async fn made(
        &self,
        who: &Caller,
        session: SessionId,
        params: &CreateParams,
        directory: Option<WorkDir>,
    ) -> Result<(Box<SessionCreated>, Vec<String>), Fault> {
        self.check(params)?;
        who.new_session(session, &params.labels)?;
        let place = self.working_place(who, session, params, directory).await?;
        let mut notices = place.notices.clone();
        let created = Box::new(self.prepared(who, params, place).await?);
        notices.extend(lowered(params, &created.limits, &created.budget));
        fault::point(fault::SESSION_CREATE).map_err(struck)?;
        Ok((created, notices))
    }

    /// The session's settings with all the sources of its prompt.
    pub(crate) async fn prepared(
        &self,
        who: &Caller,
        params: &CreateParams,
        place: Place,
    ) -> Result<SessionCreated, Fault> {
        let mut created = self.first_event(params, place).await?;
        // A default of the node or of an agent that is less strict was not asked for, so it is no error.
        created.mode = created.mode.stricter(who.rights().ceiling());
        self.offer_way_out_of_plan_mode(&mut created).await?;
        let map = self.map_part(&created, params.preset).await?;
        if let Some(prompt) = &mut created.prompt {
            prompt.parts.extend(map);
        }
        Ok(created)
    }

    /// Checks the parameters and fills in the missing ones.
    async fn first_event(&self, params: &CreateParams, place: Place) -> Result<SessionCreated, Fault> {
        let loaded = self.loaded();
        let settings = &loaded.settings;
        self.check(params)?;
        let workdir = place.workdir;
        let project = place.project.unwrap_or_else(|| project_of(&workdir));
        let title = title_of(params, &project)?;
        let definition = self.definition(params.agent.as_deref(), &workdir).await?;
        let definition = definition.as_ref();
        let asked = params.model.as_deref();
        let model = self
            .model(asked.or_else(|| definition.and_then(|it| it.model.as_deref())))
            .await?;
        let (limits, budget) = self.limits_of(params, definition);
        self.takes_images(&model, params.prompt.as_deref().unwrap_or_default())
            .await?;
        let prompt = self
            .sources(&workdir, &params.rules, &model, params.preset, definition)
            .await?;
        let named = params.tools.is_some() || definition.is_some_and(|it| it.tools.is_some());
        let mut tools = self.narrowed(self.offered(params).await?, definition)?;
        if !named {
            let more = self.more()?;
            let preset = params.preset.unwrap_or(settings.r#loop.preset);
            tools.retain(|tool| more.contains(tool) || is_usual(tool, &prompt.template, preset));
        }
        let tools = fitting(tools, &limits, &prompt);
        let tools = with_depth(tools, settings.agents.max_depth);
        let prompt = telling(prompt, &tools);
        Ok(SessionCreated {
            title,
            project,
            workdir,
            model,
            mode: mode_of(params, definition, settings.permission.mode),
            agent: params.agent.clone(),
            labels: params.labels.clone(),
            requires: params.requires.clone(),
            parent: params.parent,
            limits,
            budget,
            tools,
            system_prompt: params.system_prompt.clone(),
            append_system_prompt: params.append_system_prompt.clone(),
            rules: params.rules.clone(),
            lineage: None,
            prompt: Some(Box::new(prompt)),
            derived_title: params.title.is_none(),
            workspace: place.workspace.map(Box::new),
        })
    }

    /// The session's limits and budget: the requested ones, below the operator's limits.
    fn limits_of(&self, params: &CreateParams, definition: Option<&AgentDefinition>) -> (LoopLimits, Budget) {
        let loaded = self.loaded();
        let mut asked = LimitOverrides {
            thinking: params.thinking,
            preset: params.preset,
            max_turns: params.max_turns.map(|turns| (turns, CLIENT.to_owned())),
            budget: params.budget,
            headless: params.headless,
        };
        asked.max_turns = turns_of(params, definition, &loaded.limits(&asked).0);
        loaded.limits(&asked)
    }

    /// Refuses invalid parameters.
    fn check(&self, params: &CreateParams) -> Result<(), Fault> {
        let loaded = self.loaded();
        let settings = &loaded.settings;
        if let Some((missing, fix)) = &self.parts.facts.no_sandbox {
            let message = format!("the sandbox that the settings require is not available: {missing}");
            return Err(Fault::denied("sandbox_missing", message).hint(fix.clone()));
        }
        if let Some(prompt) = &params.prompt {
            validate::content(prompt, settings)?;
        }
        validate::labels(&params.labels)?;
        for rule in validate::rules(&params.rules)? {
            self.rule_names_a_tool(&rule)?;
        }
        self.check_prompts(params)?;
        if let Some(budget) = &params.budget {
            validate::budget(budget)?;
        }
        if params.max_turns.is_some_and(|turns| turns < -1) {
            return Err(Fault::invalid("bad_max_turns", "max_turns must be -1, 0 or more"));
        }
        Ok(())
    }

    fn check_prompts(&self, params: &CreateParams) -> Result<(), Fault> {
        let limit = self.loaded().settings.limits.max_input_bytes;
        let texts = [
            ("system_prompt", &params.system_prompt),
            ("append_system_prompt", &params.append_system_prompt),
        ];
        for (field, text) in texts {
            let length = text
                .as_ref()
                .map_or(0, |text| u64::try_from(text.len()).unwrap_or(u64::MAX));
            if length > limit {
                let message = format!("{field} has {length} bytes, the limit is {limit}");
                return Err(Fault::limit("prompt_too_large", message));
            }
        }
        Ok(())
    }

    /// The configured name of the requested model. A model without a key is accepted: the turn reports the missing key.
    pub(crate) async fn model(&self, asked: Option<&str>) -> Result<String, Fault> {
        if asked == Some("") {
            let fault = Fault::invalid("unknown_model", "the model is an empty text");
            return Err(fault.hint("name one of `agentctl models`, or `auto`"));
        }
        let models = self.parts.view.models().await;
        let Some(name) = asked.filter(|name| !matches!(*name, "auto" | "default")) else {
            let default = models
                .into_iter()
                .find(|model| model.default)
                .map(|model| model.name);
            return default.ok_or_else(|| {
                let message = "there is no default model: no provider has a credential, and no local model server answers";
                let hint = agentd_settings::ways_to_a_model(&self.loaded().settings);
                Fault::invalid("no_model", message).hint(hint)
            });
        };
        if models.iter().any(|model| model.name == name) {
            return Ok(name.to_owned());
        }
        let message = format!("there is no model {:?}", crate::words::cut(name));
        let hint = match nearest(name, models.iter().map(|model| model.name.as_str())) {
            Some(near) => format!("did you mean {near}?"),
            None => "`agentctl models` lists them".to_owned(),
        };
        Err(Fault::invalid("unknown_model", message).hint(hint))
    }
}

/// The name of a session's project: the last part of its working directory.
fn project_of(workdir: &str) -> String {
    let last = Path::new(workdir).file_name();
    last.map_or_else(
        || NO_PROJECT.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The requested title, otherwise one made from the prompt, otherwise the project's name.
fn title_of(params: &CreateParams, project: &str) -> Result<String, Fault> {
    let Some(title) = &params.title else {
        let made = params.prompt.as_deref().and_then(validate::title_from);
        return Ok(made.unwrap_or_else(|| project.to_owned()));
    };
    validate::title(title)
}
