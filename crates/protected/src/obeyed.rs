//! The names of visible files that programs obey. This is the only list.
//!
//! A name belongs here if a program reads the file because it is there, and then runs what it says or follows it as
//! instructions, although no person named the file: when someone opens or enters the directory, starts an agent or an
//! editor in it, commits, or pushes. Programs that a person starts by name (`make`, `npm run`) do not belong here.
//! A name that starts with a dot needs no entry: all of these are protected.

use crate::paths::Reason;

/// Instructions and memories of agents, in lower case.
const INSTRUCTIONS: [&str; 17] = [
    "agent.md",
    "agents.local.md",
    "agents.md",
    "agents.override.md",
    "clawdcode.md",
    "claude.local.md",
    "claude.md",
    "clude.md",
    "codebuddy.md",
    "codex.md",
    "copilot-instructions.md",
    "crush.md",
    "etcode.md",
    "gemini.md",
    "iflow.md",
    "qwen.md",
    "warp.md",
];
/// Settings from which programs start others, in lower case, without the last extension.
const RUNS: [(&str, &[&str]); 15] = [
    // Managers of git hooks.
    ("lefthook", &["yml", "yaml", "toml", "json", "jsonc"]),
    ("lefthook-local", &["yml", "yaml", "toml", "json", "jsonc"]),
    ("captainhook", &["json"]),
    ("grumphp", &["yml", "yaml"]),
    ("hk", &["pkl"]),
    ("prek", &["toml"]),
    // Agents: servers and plugins.
    ("opencode", &["json", "jsonc"]),
    ("crush", &["json"]),
    ("gemini-extension", &["json"]),
    // Environments that shells enter.
    ("mise", &["toml"]),
    ("mise.local", &["toml"]),
    // Pipelines, which start after a push.
    ("azure-pipelines", &["yml", "yaml"]),
    ("bitbucket-pipelines", &["yml"]),
    ("appveyor", &["yml"]),
    ("jenkinsfile", &[""]),
];
/// The extension of workspaces of editors: their settings and tasks come with them.
const WORKSPACE: &str = "code-workspace";

/// Why a visible file of this name is protected. Case does not matter: some file systems ignore it.
pub(crate) fn obeyed(name: &str) -> Option<Reason> {
    let name = name.to_ascii_lowercase();
    if INSTRUCTIONS.contains(&name.as_str()) {
        return Some(Reason::Instructions);
    }
    let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
    let runs = extension == WORKSPACE
        || RUNS
            .iter()
            .any(|(known, extensions)| stem == *known && extensions.contains(&extension));
    runs.then_some(Reason::Runs)
}

#[cfg(test)]
mod tests {
    use crate::ProtectedPaths;
    use std::path::Path;

    #[test]
    fn redteam_files_that_programs_obey_are_protected_by_name() {
        for (path, source) in [
            ("lefthook.yml", "lefthook: runs at each commit"),
            (
                "Lefthook-Local.TOML",
                "lefthook: overrides, and case does not matter",
            ),
            (".lefthook/pre-commit/x.sh", "lefthook: scripts"),
            (".lefthook.json", "lefthook: the hidden name"),
            ("captainhook.json", "CaptainHook"),
            ("hk.pkl", "hk"),
            (".husky/pre-push", "husky"),
            (".pre-commit-config.yaml", "pre-commit"),
            ("AGENTS.override.md", "Codex CLI: read before AGENTS.md"),
            ("sub/CLAUDE.local.md", "Claude Code: memory"),
            ("QWEN.md", "Qwen Code"),
            (".claude/settings.json", "CVE-2025-59536 (Claude Code)"),
            (".mcp.json", "CVE-2025-59536 (Claude Code)"),
            (".cursor/mcp.json", "CVE-2025-54135, CVE-2025-54136 (Cursor)"),
            (".cursorrules", "rules file backdoor (Pillar Security, 2025)"),
            (".codex/config.toml", "CVE-2025-61260 (Codex CLI)"),
            (".gemini/settings.json", "Gemini CLI: servers of the project"),
            ("gemini-extension.json", "Gemini CLI: extensions"),
            ("opencode.json", "opencode: servers and plugins"),
            (".opencode/plugin/x.ts", "opencode: plugins"),
            (".aider.conf.yml", "aider: lint-cmd, test-cmd"),
            (".continue/config.yaml", "Continue: servers"),
            (".windsurf/rules/x.md", "Windsurf"),
            (".roo/mcp.json", "Roo Code"),
            (".roomodes", "Roo Code"),
            (".kiro/settings/mcp.json", "Kiro"),
            (".amp/settings.json", "Amp"),
            (
                ".github/copilot-instructions.md",
                "CVE-2025-53773 (GitHub Copilot)",
            ),
            (
                "app.code-workspace",
                "CVE-2025-64660 (GitHub Copilot): settings of a workspace",
            ),
            ("mise.toml", "mise: hooks and environment"),
            ("azure-pipelines.yml", "runs at a push"),
            ("Jenkinsfile", "runs at a push"),
        ] {
            let guard = ProtectedPaths::default().guard(Path::new(path));
            assert!(guard.is_some(), "{path} ({source})");
        }
        for path in [
            "lefthook.rs",
            "src/claude.rs",
            "mise/mod.rs",
            "opencode.md",
            "docs/agents.html",
            "jenkins",
        ] {
            assert_eq!(
                ProtectedPaths::default().guard(Path::new(path)),
                None,
                "control: {path}"
            );
        }
    }
}
