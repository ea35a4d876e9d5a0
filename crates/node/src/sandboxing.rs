//! Chooses the sandbox for commands on this node, from the settings and from what works on this machine.

use crate::error::NodeError;
use crate::paths::Paths;
use agentd_permission_gate::configured_rules;
use agentd_policy::{Policy, RISK_OF_NONE, Wanted, choose_level, gaps_in_words, level_in_words};
use agentd_protected::{DeniedWrites, ProtectedPaths};
use agentd_protocol::SandboxLevel;
use agentd_proxy::{Proxy, Rules};
use agentd_sandbox::{
    Bounds, Environment, Findings, Hidden, Network, ProbeSpec, Refusal, Sandboxing, half_of_the_machine,
    note_choice, probe, readable,
};
use agentd_settings::{PermissionConfig, RuleConfig, SandboxChoice, SandboxConfig, Sources};
use agentd_web::SystemResolver;
use agentd_workspace::WORKSPACES;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Decides once. A missing sandbox does not prevent the start: agentd then refuses sessions and gives the reason.
pub(crate) async fn decide(
    settings: &SandboxConfig,
    (protected, hidden): (ProtectedPaths, Hidden),
    environment: &Environment,
    paths: &Paths,
) -> Result<Sandboxing, NodeError> {
    let temp = paths.data_dir.join("tmp");
    // Temporary files of sessions do not survive the daemon.
    match tokio::fs::remove_dir_all(&temp).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(NodeError::path(&temp, error));
        }
        _ => {}
    }
    let found = found(settings, environment, paths).await?;
    let choice = match &found {
        Some(found) => choose_level(wanted(settings.level), settings.require, found),
        None => Ok(SandboxLevel::None),
    };
    let choice = choice.and_then(|level| with_network(settings, level));
    note_choice(&paths.data_dir, &choice).map_err(|error| NodeError::path(&paths.data_dir, error))?;
    if let Ok(level) = &choice {
        let (sandbox, gaps) = (
            level_in_words(*level, found.as_ref()),
            gaps_in_words(*level, found.as_ref()),
        );
        if *level == SandboxLevel::None {
            tracing::warn!(%sandbox, %gaps, "no sandbox: {RISK_OF_NONE}");
        } else if gaps.is_empty() {
            tracing::info!(%sandbox, "all protections of the sandbox are in force");
        } else {
            tracing::warn!(%sandbox, %gaps, "some protections of the sandbox are missing");
        }
    }
    Ok(match choice {
        Ok(SandboxLevel::None) => Sandboxing::None,
        Ok(level) => Sandboxing::Walls {
            level,
            builder: found.as_ref().map(|found| found.builder).unwrap_or_default(),
            temp,
            hidden,
            read: without(readable(environment, &extra(settings)), &paths.data_dir),
            protected,
            broker: found.is_some_and(|found| found.broker.works()),
            workspaces: real_workspaces(&paths.data_dir),
        },
        Err(why) => {
            tracing::warn!(message = %why.message, fix = %why.fix, "cannot create sessions");
            Sandboxing::Missing(why)
        }
    })
}

/// The sandbox mechanisms that work here. `None` if the settings ask for no sandbox.
async fn found(
    settings: &SandboxConfig,
    environment: &Environment,
    paths: &Paths,
) -> Result<Option<Findings>, NodeError> {
    let wanted = wanted(settings.level);
    if wanted == Wanted::Exactly(SandboxLevel::None) && settings.require == SandboxLevel::None {
        return Ok(None);
    }
    let spec = ProbeSpec {
        exe: "/proc/self/exe".into(),
        environment: environment.clone(),
        read: extra(settings),
        data_dir: paths.data_dir.clone(),
    };
    let found = probe(&spec)
        .await
        .map_err(|error| NodeError::Unsupported(error.to_string()))?;
    tracing::info!(?found, "detected the sandbox features of this machine");
    Ok(Some(found))
}

/// A list of hosts is enforceable only if commands have no other network access.
fn with_network(settings: &SandboxConfig, level: SandboxLevel) -> Result<SandboxLevel, Refusal> {
    if settings.network == agentd_settings::Network::None || level == SandboxLevel::Isolated {
        return Ok(level);
    }
    Err(Refusal {
        message: "sandbox.network lists hosts, which needs the level isolated; isolated does not work on this machine"
            .to_owned(),
        fix: "run `agentctl doctor` to see what isolated needs, or set sandbox.network = \"none\""
            .to_owned(),
    })
}

/// The paths that deny rules of the configuration hide from commands.
pub(crate) fn hidden(
    permission: &PermissionConfig,
    environment: &BTreeMap<String, String>,
    within: Duration,
) -> Result<Hidden, NodeError> {
    let home = environment.get("HOME").map(String::as_str);
    let rules = configured_rules(permission).map_err(|error| NodeError::Rules(error.to_string()))?;
    let policy = Policy::new(home).with(rules);
    if !policy.has_denied_reads() {
        return Ok(Hidden::default());
    }
    let hidden = Hidden::by(move |workdir, path| {
        policy.denies_reading(&workdir.to_string_lossy(), &path.to_string_lossy())
    });
    Ok(match within {
        Duration::ZERO => hidden,
        within => hidden.with_history(crate::workspaces::environment(environment), within),
    })
}

/// What deny rules of the configuration forbid to write: commands must not write it either.
pub(crate) fn denied_writes(
    permission: &PermissionConfig,
    home: Option<&str>,
) -> Result<DeniedWrites, NodeError> {
    let rules = configured_rules(permission).map_err(|error| NodeError::Rules(error.to_string()))?;
    Ok(DeniedWrites::new(Policy::new(home).with(rules).denied_writes()))
}

/// The configured rules that deny reading: the sandbox is built from them.
pub(crate) fn denied_reads(permission: &PermissionConfig, home: Option<&str>) -> Vec<String> {
    let rules = permission.builtin.iter().chain(&permission.rules);
    rules
        .map(RuleConfig::text)
        .filter(|text| {
            let rule = agentd_policy::Rule::parse(text, agentd_policy::Source::Operator);
            rule.is_ok_and(|rule| Policy::new(home).with(vec![rule]).has_denied_reads())
        })
        .collect()
}

/// The proxy to the listed hosts, if the setting `key` lists any.
pub(crate) fn network(key: &str, setting: &agentd_settings::Network) -> Result<Option<Network>, NodeError> {
    let hosts = setting
        .hosts()
        .map_err(|entry| NodeError::Unsupported(format!("{key}: {entry:?} is not a host")))?;
    Ok(hosts.map(|hosts| {
        Network::through(Arc::new(Proxy::new(
            Rules::new(hosts),
            Arc::new(SystemResolver::default()),
        )))
    }))
}

/// The resource limits of one session's commands.
pub(crate) fn bounds(settings: &SandboxConfig) -> Bounds {
    let memory = match settings.max_memory_bytes {
        0 => half_of_the_machine(),
        bytes => bytes,
    };
    Bounds {
        processes: settings.max_processes,
        memory,
        file: settings.max_file_bytes,
        new_files: settings.max_new_files,
        new_bytes: settings.max_new_bytes,
        free: settings.min_free_bytes,
    }
}

fn extra(settings: &SandboxConfig) -> Vec<PathBuf> {
    settings.read.iter().map(PathBuf::from).collect()
}

const fn wanted(choice: SandboxChoice) -> Wanted {
    match choice {
        SandboxChoice::Auto => Wanted::Best,
        SandboxChoice::Isolated => Wanted::Exactly(SandboxLevel::Isolated),
        SandboxChoice::Confined => Wanted::Exactly(SandboxLevel::Confined),
        SandboxChoice::None => Wanted::Exactly(SandboxLevel::None),
    }
}

/// The directory of the workspaces by its real path, which the working directories of sessions begin with.
fn real_workspaces(data_dir: &Path) -> PathBuf {
    let dir = data_dir.join(WORKSPACES);
    agentd_tools::Beneath::open_anywhere(&dir).map_or(dir, |opened| opened.path().to_owned())
}

/// Read access to a directory includes everything below it, so this drops directories that contain our data.
fn without(mut read: Vec<PathBuf>, data_dir: &Path) -> Vec<PathBuf> {
    read.retain(|path| !data_dir.starts_with(path));
    read
}

/// The places that are protected in every working directory: among others the daemon's data, settings and socket.
pub(crate) fn protected_places(
    environment: &BTreeMap<String, String>,
    paths: &Paths,
    sources: &Sources,
) -> agentd_protected::Places {
    let path = |name: &str| environment.get(name).map(Path::new);
    let settings = path("XDG_CONFIG_HOME").map(|dir| dir.join("agentd"));
    let files = sources.files().filter_map(|file| std::path::absolute(file).ok());
    let own = [Some(paths.data_dir.clone()), Some(paths.socket.clone()), settings];
    agentd_protected::Places::of(path("HOME"), own.into_iter().flatten().chain(files))
        .with_workspaces(paths.data_dir.join(WORKSPACES))
        .followed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_a_list_of_hosts_below_isolated_is_refused() {
        let listed = SandboxConfig {
            network: agentd_settings::Network::Hosts(vec!["crates.io".to_owned()]),
            ..SandboxConfig::default()
        };
        assert_eq!(
            with_network(&listed, SandboxLevel::Isolated),
            Ok(SandboxLevel::Isolated)
        );
        for level in [SandboxLevel::Confined, SandboxLevel::None] {
            let refusal = with_network(&listed, level).unwrap_err();
            assert!(
                refusal.message.contains("needs the level isolated"),
                "{refusal:?}"
            );
            assert_eq!(with_network(&SandboxConfig::default(), level), Ok(level));
        }
        assert!(network("sandbox.network", &listed.network).unwrap().is_some());
    }

    #[test]
    fn i8_commands_never_read_the_data_directory() {
        let read = ["/usr", "/srv", "/opt"].map(PathBuf::from).to_vec();
        assert_eq!(
            without(read, Path::new("/srv/agentd/data")),
            ["/usr", "/opt"].map(PathBuf::from)
        );
    }
}
