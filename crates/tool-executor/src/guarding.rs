//! Checks protected paths again right before a call writes: the files named by git's configuration may have changed
//! since the call was judged.

use crate::addresses::kind;
use crate::run::LOOK_WITHIN;
use crate::worker::Mandate;
use agentd_file_work::FileWork;
use agentd_protected::{Named, ProtectedPaths, named_by_git};
use agentd_protocol::VerdictKind;
use agentd_tools::{Environment, Guarding, Prepared};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether the call may write the protected paths that it declares: a person approved it, or the gate now allows it.
pub(crate) async fn guarding(
    prepared: &Prepared,
    (workdir, files): (&Path, &FileWork),
    (protected, environment): (&ProtectedPaths, &Environment),
    mandate: &Mandate,
) -> Guarding {
    let written = prepared.written();
    if written.is_empty() {
        return Guarding::default();
    }
    let home = environment.iter().find(|(name, _)| *name == "HOME");
    let home = home.map(|(_, home)| PathBuf::from(home));
    let (root, near) = (workdir.to_owned(), written.clone());
    let read = move || named_by_git(&root, home.as_deref(), &near);
    let named = files.run(workdir, LOOK_WITHIN, read).await;
    // If the configuration cannot be read, every path is protected (I7).
    let named = named.unwrap_or_else(|_| Named::everything("could not read the git configuration"));
    let protected = protected.clone().with_named(named);
    if written.iter().any(|path| protected.guard(path).is_some()) && may(mandate).await {
        return Guarding::Approved;
    }
    Guarding::Refused(Arc::new(protected))
}

async fn may(mandate: &Mandate) -> bool {
    if mandate.approved {
        return true;
    }
    match &mandate.judges {
        Some((gate, request)) => kind(gate, request.as_ref().clone()).await == Some(VerdictKind::Allow),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_tools::{Registry, ToolLimits};
    use serde_json::json;
    use std::fs;

    async fn looked_at(workdir: &Path, path: &str, approved: bool) -> Guarding {
        let input = json!({ "file_path": path, "content": "x" });
        let prepared = Registry::builtin(&ToolLimits::default())
            .prepare("Write", &input)
            .unwrap();
        let mandate = Mandate {
            approved,
            ..Mandate::default()
        };
        let known = (&ProtectedPaths::default(), &Environment::default());
        let files = FileWork::of_directory(workdir);
        guarding(&prepared, (workdir, &files), known, &mandate).await
    }

    #[tokio::test]
    async fn i7_a_path_that_git_names_after_the_verdict_needs_an_approval() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".git")).unwrap();
        let refuses = |guarding: &Guarding, path: &str| match guarding {
            Guarding::Refused(protected) => protected.guard(Path::new(path)).is_some(),
            Guarding::Approved => false,
        };
        let hook = "tools/hooks/pre-commit";
        assert!(
            !refuses(&looked_at(dir.path(), hook, false).await, hook),
            "control"
        );
        fs::write(
            dir.path().join(".git/config"),
            "[core]\nhooksPath = tools/hooks\n",
        )
        .unwrap();
        assert!(refuses(&looked_at(dir.path(), hook, false).await, hook));
        let approved = looked_at(dir.path(), hook, true).await;
        assert!(matches!(approved, Guarding::Approved));
        // An approval covers only what it was given for; a plain path needs none.
        let plain = looked_at(dir.path(), "src/x", true).await;
        assert!(matches!(plain, Guarding::Refused(_)));
    }
}
