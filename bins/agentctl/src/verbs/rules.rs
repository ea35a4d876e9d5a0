//! `rules`: lists and revokes the permanent rules that people made (`always`).

use crate::cli::RulesVerb;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Row;
use crate::render::{Column, age, clean};
use agentd_protocol::{Fault, Reach, RemoveRuleParams, RuleRow, Timestamp};

impl Row for RuleRow {
    fn columns(_wide: bool) -> Vec<Column> {
        vec![
            Column::whole("rule", 0),
            Column::whole("age", 2),
            Column::whole("by", 1),
            Column::whole("approval", 3),
            Column::text("text", 0, 30),
            Column::text("holds", 0, 30),
        ]
    }

    fn cells(&self, _wide: bool, now: Timestamp) -> Vec<String> {
        vec![
            self.number.to_string(),
            age(self.added_at, now),
            self.by.to_string(),
            self.approval.map(|approval| approval.short()).unwrap_or_default(),
            clean(&self.rule).into_owned(),
            clean(&holds(self)).into_owned(),
        ]
    }

    fn name(&self) -> String {
        self.number.to_string()
    }
}

/// Where the rule holds. What earlier versions stored holds everywhere.
fn holds(row: &RuleRow) -> String {
    row.reach
        .as_ref()
        .map_or_else(|| "everywhere".to_owned(), Reach::in_words)
}

pub(crate) async fn rules(ctx: &mut Ctx, verb: &RulesVerb) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    match verb {
        RulesVerb::Ls => {
            let rows = client.rules().await?;
            if rows.is_empty() && ctx.out.human() {
                ctx.out.status(
                    "there are no permanent rules; for rules of the configuration: agentctl config view",
                );
            } else {
                ctx.out.list(&rows)?;
            }
            Ok(Exit::OK)
        }
        RulesVerb::Rm { rules } => {
            let (mut exit, mut removed) = (Exit::OK, Vec::new());
            for rule in rules {
                match client.remove_rule(&RemoveRuleParams { rule: rule.clone() }).await {
                    Ok(row) => {
                        ctx.out.status(&format!("revoked: {}", clean(&row.rule)));
                        removed.push(row);
                    }
                    Err(error) => exit = exit.or(ctx.out.failure(&Fault::from(error).into())),
                }
            }
            if !ctx.out.human() {
                ctx.out.list(&removed)?;
            }
            Ok(exit)
        }
    }
}
