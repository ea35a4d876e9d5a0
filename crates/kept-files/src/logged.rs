//! Folds the kept files of a session from its log. Pure.

use agentd_checkpoint::Tree;
use agentd_protocol::{EffectClass, Event, EventBody, Seq};

/// The most later calls that are named.
const NAMED: usize = 12;
/// The most characters of a call's title.
const TITLE: usize = 120;

/// The kept files of a session, folded from its log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logged {
    /// The packs, each as its blobs, the oldest first.
    pub packs: Vec<Vec<String>>,
    /// The files that were kept last, and the event that says so.
    pub last: Option<(Seq, Tree)>,
    /// The calls after that which may have changed files.
    later: Vec<String>,
    unnamed: usize,
}

impl Logged {
    /// Folds one more event.
    #[expect(clippy::wildcard_enum_match_arm, reason = "few events are about files")]
    pub fn note(&mut self, event: &Event) {
        match &event.body {
            // Whoever wrote an imported log could name blobs of others.
            EventBody::SessionImported(_) => *self = Self::default(),
            EventBody::WorkspaceCheckpointed(taken) => {
                let Ok(tree) = Tree::parse(&taken.tree) else {
                    return;
                };
                let same = self.last.as_ref().is_some_and(|(_, last)| *last == tree);
                if let Some(kept) = &taken.kept {
                    self.packs.extend(kept.packs.iter().cloned());
                } else if !same {
                    return;
                }
                self.last = Some((event.seq, tree));
                (self.later, self.unnamed) = (Vec::new(), 0);
            }
            EventBody::ToolStarted(started) if started.effect != EffectClass::Read => {
                self.changed(&started.title);
            }
            EventBody::SubagentFinished(_) => self.changed("the work of a sub-agent"),
            EventBody::JobFinished(_) => self.changed("a background job"),
            EventBody::UndoApplied(_) => self.changed("an undo"),
            _ => {}
        }
    }

    fn changed(&mut self, what: &str) {
        if self.later.len() < NAMED {
            self.later.push(what.chars().take(TITLE).collect());
        } else {
            self.unnamed += 1;
        }
    }

    /// What happened after the files were kept, in words.
    pub(crate) fn missing(&self) -> Vec<String> {
        let mut missing = self.later.clone();
        if self.unnamed > 0 {
            missing.push(format!("{} more calls", self.unnamed));
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{KeptFiles, WorkspaceCheckpointed};
    use serde_json::json;

    fn event(seq: Seq, body: &serde_json::Value) -> Event {
        let mut whole = json!({
            "v": 1, "session": "01930000-0000-7000-8000-000000000001", "seq": seq, "at": "2026-01-01T00:00:00.000Z",
            "by": "agentd",
        });
        let (Some(all), Some(more)) = (whole.as_object_mut(), body.as_object()) else {
            panic!("objects");
        };
        all.extend(more.clone());
        serde_json::from_value(whole).unwrap()
    }

    fn checkpoint(seq: Seq, tree: char, packs: &[&str]) -> Event {
        let kept = (!packs.is_empty()).then(|| KeptFiles {
            packs: packs.iter().map(|name| vec![(*name).to_owned()]).collect(),
            bytes: 1,
        });
        let taken = WorkspaceCheckpointed {
            tree: tree.to_string().repeat(40),
            left_out: Vec::new(),
            kept,
            not_kept: None,
        };
        let mut event = event(seq, &json!({"type": "workspace.checkpointed", "tree": "x"}));
        event.body = EventBody::from(taken);
        event
    }

    fn call(seq: Seq, title: &str, effect: &str) -> Event {
        let id = "01930000-0000-7000-8000-000000000002";
        event(
            seq,
            &json!({"type": "tool.started", "tool_call": id, "title": title, "effect": effect, "sandbox": "confined"}),
        )
    }

    #[test]
    fn i4_the_newest_kept_files_count_and_later_calls_are_named() {
        let mut logged = Logged::default();
        for event in [
            checkpoint(1, 'a', &["base", "one"]),
            call(2, "Bash make", "exec"),
            checkpoint(3, 'b', &["two"]),
            call(4, "Read x", "read"),
            call(5, "Write x", "write"),
            // These files are not in the store.
            checkpoint(6, 'c', &[]),
        ] {
            logged.note(&event);
        }
        assert_eq!(logged.packs, [["base"], ["one"], ["two"]]);
        assert_eq!(logged.last.as_ref().map(|(seq, _)| *seq), Some(3));
        assert_eq!(logged.missing(), ["Write x"]);
        // The same files again are kept already.
        logged.note(&checkpoint(7, 'b', &[]));
        assert_eq!(logged.last.as_ref().map(|(seq, _)| *seq), Some(7));
        assert!(logged.missing().is_empty());
        for seq in 8..28 {
            logged.note(&call(seq, "Bash make", "exec"));
        }
        assert_eq!(logged.missing().len(), NAMED + 1);
        assert_eq!(logged.missing().last().map(String::as_str), Some("8 more calls"));
    }

    #[test]
    fn i6_packs_that_an_imported_log_names_are_never_read() {
        let mut logged = Logged::default();
        logged.note(&checkpoint(1, 'a', &["someone else's"]));
        logged.note(&event(
            2,
            &json!({"type": "session.imported", "from": "01930000-0000-7000-8000-000000000003"}),
        ));
        assert_eq!(logged, Logged::default());
    }
}
