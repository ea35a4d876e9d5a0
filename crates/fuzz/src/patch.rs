//! Patches: an accepted patch only names files below the directory.

use agentd_settings::ToolsConfig;
use agentd_tools::{Registry, Subject};
use serde_json::json;
use std::path::{Component, Path};
use std::sync::OnceLock;

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| Registry::builtin(&ToolsConfig::default()))
}

fn stays_below(path: &str) -> bool {
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    Path::new(path).components().all(inside)
}

pub(crate) fn holds(bytes: &[u8]) {
    let patch = String::from_utf8_lossy(bytes);
    let Ok(prepared) = registry().prepare("ApplyPatch", &json!({ "patch": patch })) else {
        return;
    };
    if let Subject::Paths { paths, .. } = &prepared.subject {
        assert!(!paths.is_empty(), "a patch of nothing");
        for path in paths {
            assert!(stays_below(path), "{path:?} leads out of the directory");
        }
    }
    assert!(!prepared.title.contains('\n'));
}
