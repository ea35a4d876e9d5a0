//! The scripted answers of the models in these tests.

use agentd_provider::{
    ModelSpec, Registry as Models, Script, ScriptedCall, ScriptedConversation, ScriptedTurn,
};
use std::sync::Arc;

/// The first prompt of a session in which the model talks for ten seconds.
pub(super) const TALK: &str = "talk";
/// The first prompt of a session in which the model talks for ten seconds, reads a file, and reports its content.
pub(super) const READ: &str = "read";
/// The model of most sessions.
pub(super) const MODEL: &str = "scripted";
/// A model of another provider, which accepts one call at a time.
pub(super) const NARROW: &str = "narrow";

pub(super) fn models() -> Models {
    let script = Script {
        conversations: vec![
            ScriptedConversation {
                when: TALK.into(),
                turns: vec![talk()],
                after: None,
            },
            ScriptedConversation {
                when: READ.into(),
                turns: vec![read(), said()],
                after: None,
            },
        ],
        ..Script::default()
    };
    let mut models = Models::default();
    let narrow = ModelSpec {
        provider: NARROW.into(),
        max_concurrent: 1,
        ..ModelSpec::scripted(NARROW, Arc::new(script.clone()))
    };
    models.insert(narrow, "for tests");
    models.insert_scripted_default(MODEL, script, "for tests");
    models
}

/// Ten pieces, one per second.
fn talk() -> ScriptedTurn {
    ScriptedTurn {
        text: "a long story, told slow ".repeat(10),
        delay_ms: 1_000,
        ..ScriptedTurn::default()
    }
}

fn read() -> ScriptedTurn {
    ScriptedTurn {
        calls: vec![ScriptedCall {
            name: "Read".into(),
            input: serde_json::json!({ "file_path": "a.txt" }),
        }],
        ..talk()
    }
}

fn said() -> ScriptedTurn {
    ScriptedTurn {
        text: "It says: {{last_result}}".into(),
        ..ScriptedTurn::default()
    }
}
