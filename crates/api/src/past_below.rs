//! Attributes sub-agents' changes to the turn that started them: merges their logs into the history of the session above.

use crate::api::Api;
use crate::past::{Change, Past};
use crate::sight::{Caller, Seen};
use agentd_protocol::{ChangeBelow, Fault, Seq, SessionId, TurnId, child_of};

/// The maximum number of logs that are read for one tree.
const MOST: usize = 500;

impl Past {
    /// Adds the actions of a sub-agent and of all below it, as if done where it was started.
    fn adopt(&mut self, child: SessionId, past: Self, seq: Seq, turn: Option<TurnId>) {
        let adopted = past.changes.into_iter().map(|change| {
            let own = change.undoes.into_iter();
            let own = own.map(|seq| ChangeBelow { session: child, seq });
            let covers = change.covers.into_iter();
            let covers = covers.map(|seq| ChangeBelow { session: child, seq });
            let below = ChangeBelow {
                session: child,
                seq: change.seq,
            };
            Change {
                seq,
                end: seq,
                turn,
                below: Some(change.below.unwrap_or(below)),
                covers: Vec::new(),
                covers_below: covers.chain(change.covers_below).collect(),
                undoes: Vec::new(),
                undoes_below: own.chain(change.undoes_below).collect(),
                ..change
            }
        });
        self.changes.extend(adopted);
        self.changes.sort_by_key(|change| change.at);
        let whose = |title: String| match title.ends_with(MARK) {
            true => title,
            false => format!("{title} (by {}{MARK}", child.short()),
        };
        let lasting = past.lasting.into_iter();
        self.lasting
            .extend(lasting.map(|(_, _, title)| (seq, turn, whose(title))));
        self.lasting.sort_by_key(|(seq, ..)| *seq);
    }
}

/// The suffix of the name of a sub-agent's action.
const MARK: &str = ", a sub-agent)";

impl Api {
    /// The file history in a log and the logs of all sub-agents below it. Leaves out the points of the sub-agents'
    /// conversations.
    pub(crate) async fn past_of_tree(&self, who: &Caller, session: Seen, upto: Seq) -> Result<Past, Fault> {
        let mut past = self.past(session, upto).await?;
        let mut logs = 0;
        self.adopt_all(who, session, &mut past, &mut logs).await?;
        Ok(past)
    }

    async fn adopt_all(
        &self,
        who: &Caller,
        session: Seen,
        past: &mut Past,
        logs: &mut usize,
    ) -> Result<(), Fault> {
        for (child, tool_call, seq, turn) in std::mem::take(&mut past.started) {
            // A copied log still names the sub-agents of the original session; they do not belong to the copy.
            if child_of(*session, tool_call) != child {
                continue;
            }
            *logs += 1;
            if *logs > MOST {
                let message = format!("this session has had more than {MOST} sub-agents");
                return Err(Fault::limit("too_many_subagents", message));
            }
            let Some(seen) = self.existing(who, child).await? else {
                let gone = format!("changes of a deleted session (by {}{MARK}", child.short());
                past.lasting.push((seq, turn, gone));
                continue;
            };
            let mut below = self.past(seen, 0).await?;
            Box::pin(self.adopt_all(who, seen, &mut below, logs)).await?;
            past.adopt(child, below, seq, turn);
        }
        past.with_recorded();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{FileChanged, Timestamp};

    fn change(seq: Seq, at: u64, undoes: &[Seq]) -> Change {
        Change {
            seq,
            at: Timestamp(at),
            below: None,
            turn: None,
            id: format!("{seq}@{at}"),
            files: vec![FileChanged {
                path: "a".into(),
                before_sha256: None,
                after_sha256: Some(at.to_string()),
                mode: None,
            }],
            end: seq,
            trees: None,
            within: false,
            covers: Vec::new(),
            covers_below: Vec::new(),
            undoes: undoes.to_vec(),
            undoes_below: Vec::new(),
        }
    }

    #[test]
    fn changes_of_sub_agents_are_in_order_of_time_and_undone_from_either_side() {
        let (middle, low) = (
            SessionId::from_parts(5, [1; 10]),
            SessionId::from_parts(5, [2; 10]),
        );
        let mut below = Past::default();
        below.changes = vec![change(7, 30, &[])];
        below.lasting = vec![(8, None, "Bash x".to_owned())];
        let mut between = Past::default();
        between.changes = vec![change(3, 20, &[]), change(9, 50, &[3])];
        between.adopt(low, below, 4, None);
        let mut past = Past::default();
        past.changes = vec![change(2, 10, &[]), change(11, 40, &[])];
        past.adopt(middle, between, 5, None);
        let order: Vec<u64> = past.changes.iter().map(|change| change.at.0).collect();
        assert_eq!(order, [10, 20, 30, 40, 50]);
        let deed = |session, seq| Some(ChangeBelow { session, seq });
        assert_eq!(
            (past.changes[2].seq, past.changes[2].below),
            (5, deed(low, 7)),
            "where it is undone, and where it was done"
        );
        let standing = |past: &Past| past.standing().map(|change| change.at.0).collect::<Vec<_>>();
        assert_eq!(standing(&past), [10, 30, 40, 50], "it undid its own change");
        let undo = Change {
            undoes_below: deed(low, 7).into_iter().collect(),
            ..change(12, 60, &[11])
        };
        past.changes.push(undo);
        assert_eq!(standing(&past), [10, 50, 60]);
        let stays = past.stays(|seq, _| seq == 5);
        assert_eq!(stays, [format!("Bash x (by {}, a sub-agent)", low.short())]);
    }
}
