//! `rule.list`, `rule.remove`: the permanent rules that people added.

use crate::api::{Api, COMMAND, fault_of};
use crate::sight::Caller;
use crate::words::cut;
use agentd_actor_kit::{GateMsg, Read};
use agentd_protocol::{Event, EventBody, Fault, Grant, RemoveRuleParams, RuleRow, SessionId};
use agentd_store::{Range, StoreError};

impl Api {
    /// The always-rules in force, in the order of their creation. Reads the stream of rules from its start: the gate
    /// keeps the rules but not who added them.
    pub(crate) async fn rules(&self) -> Result<Vec<RuleRow>, Fault> {
        let (mut rows, mut after) = (Vec::<RuleRow>::new(), 0);
        loop {
            let range = Range::after(after);
            let load = |done| Read::Load {
                session: SessionId::NIL,
                range,
                done,
            };
            let page = match self.read(load).await {
                Ok(page) => page,
                Err(fault) if fault.class == nothing().class => return Ok(rows),
                Err(fault) => return Err(fault),
            };
            for (seq, line) in &page.events {
                after = *seq;
                let event: Event = serde_json::from_slice(line).map_err(|error| {
                    Fault::internal("bad_rule", format!("cannot read rule {seq}: {error}"))
                })?;
                fold(&mut rows, event);
            }
            if !page.more {
                return Ok(rows);
            }
        }
    }

    /// Removes an always-rule. Answers when the gate no longer judges any call by it.
    pub(crate) async fn remove_rule(&self, who: &Caller, params: RemoveRuleParams) -> Result<RuleRow, Fault> {
        let word = params.rule.trim();
        let number = word.parse().ok();
        let rows = self.rules().await?;
        let unknown = || {
            let message = format!("there is no always-rule {:?}", cut(word));
            Fault::not_found("unknown_rule", message).hint(
                "`agentctl rules ls` lists them; change rules of the configuration in the configuration",
            )
        };
        let named = |row: &RuleRow| Some(row.number) == number || row.rule == word;
        let mut named = rows.into_iter().filter(named);
        let row = named.next().ok_or_else(unknown)?;
        if named.next().is_some() {
            let message = format!(
                "{:?} was allowed more than once, with different reaches",
                cut(word)
            );
            return Err(Fault::conflict("ambiguous_rule", message)
                .hint("give the number of one of them; `agentctl rules ls` lists them"));
        }
        let (grant, by) = (grant_of(&row), who.principal().clone());
        let remove = |done| GateMsg::RemoveRule { grant, by, done };
        let removed = self.parts.gate.call(COMMAND, remove).await.map_err(fault_of)?;
        match removed {
            Ok(true) => {
                tracing::info!(rule = row.rule, by = %who, "removed an always-rule");
                Ok(row)
            }
            Ok(false) => Err(unknown()),
            Err(why) => Err(Fault::unavailable("rule_not_removed", why).hint("try again")),
        }
    }
}

/// The store's fault for a stream that was never written.
fn nothing() -> Fault {
    StoreError::NotFound(SessionId::NIL).into()
}

fn grant_of(row: &RuleRow) -> Grant {
    Grant {
        rule: row.rule.clone(),
        reach: row.reach.clone(),
    }
}

fn fold(rows: &mut Vec<RuleRow>, event: Event) {
    match event.body {
        EventBody::RuleAdded(added) => {
            rows.retain(|row| (&row.rule, &row.reach) != (&added.rule, &added.reach));
            rows.push(RuleRow {
                number: event.seq,
                rule: added.rule,
                added_at: event.at,
                by: event.by,
                approval: added.approval,
                reach: added.reach,
            });
        }
        EventBody::RuleRemoved(removed) => {
            rows.retain(|row| (&row.rule, &row.reach) != (&removed.rule, &removed.reach));
        }
        _ => {}
    }
}
