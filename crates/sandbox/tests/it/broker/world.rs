//! A working directory with a repository, a place outside of it, and a warden.

use agentd_protected::ProtectedPaths;
use agentd_protocol::SandboxLevel;
use agentd_sandbox::{
    Bounds, CaptureLimits, CollectSpec, CommandSpec, Confinement, Environment, Exit, Findings, ProbeSpec,
    SandboxError, Warden, WardenSpec, probe, readable,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

pub(super) struct World {
    dir: TempDir,
    warden: Warden,
}

impl World {
    pub(super) async fn new(level: SandboxLevel, prepare: impl FnOnce(&Path)) -> Self {
        Self::try_new(level, prepare).await.unwrap()
    }

    pub(super) async fn try_new(
        level: SandboxLevel,
        prepare: impl FnOnce(&Path),
    ) -> Result<Self, SandboxError> {
        Self::with(level, ProtectedPaths::default(), prepare).await
    }

    pub(super) async fn with(
        level: SandboxLevel,
        protected: ProtectedPaths,
        prepare: impl FnOnce(&Path),
    ) -> Result<Self, SandboxError> {
        Self::below(&std::env::temp_dir(), level, protected, prepare).await
    }

    /// The same session where the kernel cannot pass calls on.
    pub(super) async fn without_broker(level: SandboxLevel, prepare: impl FnOnce(&Path)) -> Self {
        let temp = std::env::temp_dir();
        let world = Self::walled(&temp, level, prepare, |walls| walls.broker = false).await;
        world.unwrap()
    }

    pub(super) async fn below(
        above: &Path,
        level: SandboxLevel,
        protected: ProtectedPaths,
        prepare: impl FnOnce(&Path),
    ) -> Result<Self, SandboxError> {
        Self::walled(above, level, prepare, |walls| walls.protected = protected).await
    }

    /// A session whose sandbox differs from the default.
    pub(super) async fn walled(
        above: &Path,
        level: SandboxLevel,
        prepare: impl FnOnce(&Path),
        change: impl FnOnce(&mut Confinement),
    ) -> Result<Self, SandboxError> {
        let dir = tempfile::tempdir_in(above).unwrap();
        for name in ["w", "outside", "outside/data", "open", "home"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let open = dir.path().join("open");
        std::fs::write(open.join("f"), "readable").unwrap();
        std::fs::write(dir.path().join("outside/canary"), "canary").unwrap();
        let hooks = dir.path().join("w/hooks-of-all");
        let config = format!("[core]\n\thooksPath = {}\n", hooks.display());
        std::fs::write(dir.path().join("home/.gitconfig"), config).unwrap();
        let environment = environment().with("HOME", dir.path().join("home").to_str().unwrap());
        prepare(&dir.path().join("w"));
        let spec = WardenSpec {
            exe: "/proc/self/exe".into(),
            workdir: dir.path().join("w"),
            environment: environment.clone(),
            bounds: Bounds::default(),
            network: None,
        };
        let temp = dir.path().join("temp");
        let warden = if level == SandboxLevel::None {
            std::fs::create_dir(&temp).unwrap();
            let environment = environment.with("TMPDIR", temp.to_str().unwrap());
            Warden::spawn(&WardenSpec { environment, ..spec }).await?
        } else {
            let mut walls = Confinement::new(level, temp, readable(&environment, &[open]));
            change(&mut walls);
            Warden::spawn_confined(&spec, &walls).await?.0
        };
        Ok(Self { dir, warden })
    }

    pub(super) fn inside(&self, name: &str) -> PathBuf {
        self.dir.path().join("w").join(name)
    }

    /// The script's whole output. `$OUT` is the place outside; commands may read `$OPEN`.
    pub(super) async fn says(&self, script: &str) -> String {
        self.runs(script).await.0
    }

    /// The same, and how it ended.
    pub(super) async fn runs(&self, script: &str) -> (String, Exit) {
        let place = |name: &str| self.dir.path().join(name).display().to_string();
        let command = CommandSpec {
            argv: ["bash", "-c", script].map(str::to_owned).to_vec(),
            cwd: self.inside(""),
            env: vec![
                ("OUT".to_owned(), place("outside")),
                ("OPEN".to_owned(), place("open")),
            ],
        };
        let spec = CollectSpec {
            time: Duration::from_secs(60),
            limits: CaptureLimits::default(),
            spill_dir: self.dir.path().join("spill"),
            spill_bytes: 1 << 20,
        };
        let running = self.warden.run(command).await.unwrap();
        let done = running.collect(&spec, |_| {}).await.unwrap();
        let said = String::from_utf8_lossy(done.output.head()).trim().to_owned();
        (said, done.exit)
    }
}

/// A repository with everything that accumulates when people work in it for a while.
pub(super) fn repository(dir: &Path) {
    let script = "git init -q . && git config core.hooksPath no-hooks && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && \
                  mkdir -p .git/modules/m/hooks .git/worktrees/t .git/info && touch .git/modules/m/config && \
                  echo ../.. > .git/worktrees/t/commondir && git init -q --bare fixture.git && echo 'b = 1' > AGENTS.md";
    prepared(dir, script);
}

/// A repository with a submodule.
pub(super) fn with_submodule(dir: &Path) {
    repository(dir);
    let script = "git init -q ../lib && git -C ../lib -c user.name=a -c user.email=a@b commit -q --allow-empty -m lib && \
                  git -c protocol.file.allow=always submodule --quiet add $PWD/../lib lib";
    prepared(dir, script);
}

/// Runs a script outside of the sandbox.
pub(super) fn prepared(dir: &Path, script: &str) {
    let done = command("bash")
        .args(["-c", script])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(done.status.success(), "{script}: {done:?}");
}

#[expect(clippy::disallowed_methods, reason = "a person's action outside the sandbox")]
fn command(program: &str) -> Command {
    Command::new(program)
}

pub(super) fn is_here(program: &str) -> bool {
    let script = format!("type {program} > /dev/null 2>&1");
    command("bash").args(["-c", &script]).status().unwrap().success()
}

fn environment() -> Environment {
    Environment::allowed(std::env::vars_os().filter(|(name, _)| name == "PATH"), &[])
}

pub(super) async fn find_out() -> Findings {
    let dir = tempfile::tempdir().unwrap();
    let spec = ProbeSpec {
        exe: "/proc/self/exe".into(),
        environment: environment(),
        read: Vec::new(),
        data_dir: dir.path().to_owned(),
    };
    probe(&spec).await.unwrap()
}
