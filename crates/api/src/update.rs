//! `session.update`.

use crate::answers::Answers as _;
use crate::api::Api;
use crate::sight::Caller;
use crate::validate;
use agentd_protocol::{Budget, BudgetChange, Done, Fault, UpdateParams};
use agentd_turn::{Command, SETTINGS_CHANGED, ShownSettings, settings_changed};

/// How often a change of the budget starts again from the settings that another client has changed meanwhile.
const TRIES: u32 = 5;

impl Api {
    pub(crate) async fn update(&self, who: &Caller, mut params: UpdateParams) -> Result<Done, Fault> {
        params.budget = params.budget.filter(|change| *change != BudgetChange::default());
        let nothing = UpdateParams {
            session: params.session.clone(),
            expect: params.expect.clone(),
            ..UpdateParams::default()
        };
        if params == nothing {
            return Err(Fault::invalid("nothing_to_update", "no new value was given")
                .hint("give title, model, mode, labels or budget"));
        }
        if let Some(labels) = &params.labels {
            validate::labels(labels)?;
            who.keeps(labels)?;
        }
        if let Some(change) = &params.budget {
            validate::budget(&change.over(Budget::default()))?;
            self.below_ceiling(change)?;
        }
        params.title = params.title.as_deref().map(validate::title).transpose()?;
        if let Some(name) = &params.model {
            params.model = Some(self.model(Some(name)).await?);
        }
        // With an `expect` of the client, the client starts again.
        let merges = params.budget.is_some() && params.expect.is_none();
        let mut tries = if merges { TRIES } else { 1 };
        loop {
            tries -= 1;
            match self.update_once(who, params.clone()).await {
                Err(fault) if fault.code == SETTINGS_CHANGED && tries > 0 => {}
                done => return done,
            }
        }
    }

    /// Carries out checked changes, if the settings on which they rest are still those of the session.
    async fn update_once(&self, who: &Caller, params: UpdateParams) -> Result<Done, Fault> {
        let session = self.session(who, &params.session).await?;
        let mut expect = self
            .expected(who, &params.session, params.expect.as_deref())
            .await?;
        let budget = match params.budget {
            Some(change) => {
                let row = self.row(session).await?;
                let shown = Box::new(ShownSettings::from(&row.summary));
                expect = Some(agreed(expect, shown)?);
                Some(change.over(row.summary.budget))
            }
            None => None,
        };
        let (mode, labels) = (params.mode, params.labels);
        let expect = match self.may_have(who, session, mode, budget.as_ref()).await? {
            Some(judged) => Some(agreed(expect, judged)?),
            None => expect,
        };
        let command = Command::Update {
            expect,
            title: params.title,
            model: params.model,
            mode,
            labels,
            budget,
        };
        let done = self.route(who, session, command, None).await?.done();
        if mode.is_some() {
            self.followed(*session).await?;
        }
        Ok(done)
    }

    /// Refuses a budget above the operator's. What does not change is not judged.
    fn below_ceiling(&self, change: &BudgetChange) -> Result<(), Fault> {
        let loaded = self.loaded();
        let asked = change.over(loaded.settings.budget.session.budget());
        let Some(above) = loaded.above_ceiling(&asked) else {
            return Ok(());
        };
        let message = format!(
            "the operator's limit {} is {}; it was set in {}",
            above.key, above.limit, above.origin
        );
        let hint = "ask for less, or have the operator raise the limit and restart agentd";
        Err(Fault::denied("above_ceiling", message).hint(hint))
    }
}

/// The settings that all parts of an update rest on.
fn agreed(expect: Option<Box<ShownSettings>>, seen: Box<ShownSettings>) -> Result<Box<ShownSettings>, Fault> {
    match expect {
        Some(expected) if expected != seen => Err(settings_changed()),
        _ => Ok(seen),
    }
}
