//! `set`: changes a session's settings.

use crate::cli::{ModeArg, SetArgs};
use crate::clock::now;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::SessionDetail;
use crate::values;
use agentd_client::{Client, ClientError};
use agentd_protocol::{Budget, Labels, PermissionMode, UpdateParams};
use clap::ValueEnum as _;

/// How often an update is sent, if other clients change the session at the same time.
const TRIES: u32 = 5;

pub(crate) async fn set(ctx: &mut Ctx, args: &SetArgs) -> Result<Exit, Failure> {
    // Validates the changes before any request to the daemon.
    update(&args.changes, Budget::default(), &Labels::new())?;
    let client = ctx.connect().await?;
    let id = apply(ctx, &client, args).await?;
    let detail = SessionDetail::from(client.get(&id).await?);
    if ctx.out.human() {
        let (short, state) = (detail.row.session.short(), detail.row.state);
        let what = args.changes.join(" ");
        ctx.out.status(&format!("{short} changed: {what}; it is {state}"));
    } else {
        ctx.out.object(&detail, &id, |paint| detail.text(paint, now()))?;
    }
    Ok(Exit::OK)
}

/// Sends the changes. Budget and labels start from the current ones: if another client changes a setting in between, it
/// starts again from the new ones.
async fn apply(ctx: &mut Ctx, client: &Client, args: &SetArgs) -> Result<String, Failure> {
    let mut tries = 0;
    loop {
        let row = client.get(&args.session).await?;
        let id = row.session.to_string();
        let change = update(&args.changes, row.budget, &row.labels)?;
        let whole = change.budget.is_some() || change.labels.is_some();
        let params = UpdateParams {
            session: id.clone(),
            expect: row.settings_tag.filter(|_| whole),
            ..change
        };
        if tries == 0 && params.mode == Some(PermissionMode::Yolo) {
            ctx.out.status(agentd_policy::YOLO_LIMITS);
        }
        tries += 1;
        match client.update(&params).await {
            Err(ClientError::Refused(fault)) if fault.code == "settings_changed" && tries < TRIES => {}
            done => return done.map(|_| id).map_err(Failure::from),
        }
    }
}

/// The changes as parameters. A daemon replaces labels as a whole, and an older one the budget, so both start from the current
/// values.
fn update(changes: &[String], budget: Budget, labels: &Labels) -> Result<UpdateParams, Failure> {
    let mut params = UpdateParams::default();
    for change in changes {
        let (key, value) = change
            .split_once('=')
            .ok_or_else(|| bad(change, "expected KEY=VALUE, such as name=nightly"))?;
        match key {
            "name" => params.title = Some(value.to_owned()),
            "model" => params.model = Some(value.to_owned()),
            "mode" => {
                let mode = ModeArg::from_str(value, true)
                    .map_err(|_| bad(change, "the modes are default, accept-edits, plan and yolo"))?;
                params.mode = Some(mode.into());
            }
            "budget" => {
                let from = params.budget.map_or(budget, |change| change.over(budget));
                let whole = values::budget_over(from, value).map_err(|why| bad(change, &why))?;
                params.budget = Some(whole.into());
            }
            "labels" => {
                let from = params.labels.take().unwrap_or_else(|| labels.clone());
                params.labels = Some(relabelled(from, value).map_err(|why| bad(change, &why))?);
            }
            _ => return Err(bad(change, "the keys are name, model, mode, budget and labels")),
        }
    }
    Ok(params)
}

/// Applies `team=infra,urgent-`: sets one label and removes another.
fn relabelled(mut labels: Labels, changes: &str) -> Result<Labels, String> {
    for change in changes.split(',') {
        match (change.split_once('='), change.strip_suffix('-')) {
            (Some((key, value)), _) if !key.is_empty() => {
                labels.insert(key.to_owned(), value.to_owned());
            }
            (None, Some(key)) if !key.is_empty() => {
                labels.remove(key);
            }
            _ => return Err(format!("{change:?}: expected KEY=VALUE, or KEY- to remove one")),
        }
    }
    Ok(labels)
}

fn bad(change: &str, hint: &str) -> Failure {
    Failure::invalid(format!("invalid change {change:?}"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(changes: &[&str]) -> Result<UpdateParams, Failure> {
        let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
        let budget = Budget {
            tokens: 100,
            usd: 1.0,
            ..Budget::default()
        };
        let labels = Labels::from([("team".into(), "a".into()), ("urgent".into(), "yes".into())]);
        update(&changes, budget, &labels)
    }

    #[test]
    fn unnamed_settings_do_not_change() {
        let params = changed(&[
            "name=a=b c",
            "mode=accept-edits",
            "budget=usd=5,tokens=none",
            "budget=steps=3",
        ])
        .unwrap();
        assert_eq!((params.title.as_deref(), params.model), (Some("a=b c"), None));
        assert_eq!(params.mode, Some(PermissionMode::AcceptEdits));
        let budget = Budget {
            usd: 5.0,
            steps: 3,
            ..Budget::default()
        };
        assert_eq!((params.budget, params.labels), (Some(budget.into()), None));
    }

    #[test]
    fn labels_are_set_and_removed_one_by_one() {
        let labels = changed(&["labels=team=b,urgent-,new="]).unwrap().labels.unwrap();
        assert_eq!(
            labels,
            Labels::from([("new".into(), String::new()), ("team".into(), "b".into())])
        );
    }

    #[test]
    fn an_invalid_change_names_the_expected_form() {
        for (change, hint) in [
            ("name", "KEY=VALUE"),
            ("colour=red", "the keys are"),
            ("mode=fast", "the modes are"),
            ("budget=usd=much", "amount of dollars"),
            ("budget=usd=0", "use none"),
            ("labels=x", "KEY- to remove"),
        ] {
            let failure = changed(&[change]).unwrap_err().fault();
            assert!(
                failure.hint.as_deref().is_some_and(|it| it.contains(hint)),
                "{change}: {failure:?}"
            );
        }
    }
}
