//! Which sandbox this node runs commands in: what the settings ask for, against what works on this machine.

use crate::error::NodeError;
use crate::paths::Paths;
use agentd_protocol::SandboxLevel;
use agentd_sandbox::{
    Bounds, Environment, ProbeSpec, Refusal, Sandboxing, Wanted, choose, half_of_the_machine,
    note_choice, probe, readable,
};
use agentd_settings::{SandboxChoice, SandboxConfig};
use std::path::{Path, PathBuf};

/// Decides it, once. A sandbox that is missing does not stop the start: sessions are refused then, and told why.
pub(crate) async fn decide(
    settings: &SandboxConfig,
    environment: &Environment,
    paths: &Paths,
) -> Result<Sandboxing, NodeError> {
    let temp = paths.data_dir.join("tmp");
    // The temporary files of sessions do not outlive the daemon.
    match tokio::fs::remove_dir_all(&temp).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(NodeError::path(&temp, error));
        }
        _ => {}
    }
    let choice = chosen(settings, environment, paths).await?;
    note_choice(&paths.data_dir, &choice).map_err(|error| NodeError::path(&paths.data_dir, error))?;
    Ok(match choice {
        Ok(SandboxLevel::None) => Sandboxing::None,
        Ok(level) => {
            tracing::info!(?level, "commands run behind walls");
            Sandboxing::Walls {
                level,
                temp,
                read: without(readable(environment, &extra(settings)), &paths.data_dir),
            }
        }
        Err(why) => {
            tracing::warn!(message = %why.message, fix = %why.fix, "no session can be created");
            Sandboxing::Missing(why)
        }
    })
}

async fn chosen(
    settings: &SandboxConfig,
    environment: &Environment,
    paths: &Paths,
) -> Result<Result<SandboxLevel, Refusal>, NodeError> {
    let wanted = wanted(settings.level);
    if wanted == Wanted::Exactly(SandboxLevel::None) && settings.require == SandboxLevel::None {
        return Ok(Ok(SandboxLevel::None));
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
    tracing::info!(?found, "what can confine commands here");
    Ok(choose(wanted, settings.require, &found))
}

/// What the commands of one session may use.
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

/// A rule for a directory holds for all below it, so one that holds our data is left out.
fn without(mut read: Vec<PathBuf>, data_dir: &Path) -> Vec<PathBuf> {
    read.retain(|path| !data_dir.starts_with(path));
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i8_commands_never_read_the_data_directory() {
        let read = ["/usr", "/srv", "/opt"].map(PathBuf::from).to_vec();
        assert_eq!(
            without(read, Path::new("/srv/agentd/data")),
            ["/usr", "/opt"].map(PathBuf::from)
        );
    }
}
