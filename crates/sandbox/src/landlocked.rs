//! Landlock, the kernel's file rules, for the calling thread and everything that it starts.

use crate::confinement::Confinement;
use crate::controlling::OWN_PROGRAM;
use crate::forwarder::PORT;
use agentd_protocol::SandboxLevel;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use std::path::Path;

/// The minimum: with older ABIs a process can truncate a file that it may not write.
const NEEDED: ABI = ABI::V3;
/// Used where the kernel supports it: devices, TCP, signals and abstract sockets.
const WANTED: ABI = ABI::V6;

/// Devices that every program may use.
const DEVICES: [&str; 6] = [
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];
/// The parts of /proc without secrets. The rest of /proc shows other processes.
const MACHINE: [&str; 10] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel",
    "/proc/sys/vm",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
];
/// Namespaces make these private to a session.
const OWN: [&str; 3] = ["/dev/pts", "/dev/ptmx", "/dev/shm"];

/// Restricts the calling thread. Returns the version of the kernel's ABI, or why this failed.
pub(crate) fn restrict(walls: &Confinement, workdir: &Path, network: bool) -> Result<u32, String> {
    let abi = apply(walls, workdir, network).map_err(|error| {
        let why = readable(&error.to_string());
        format!("Landlock is not available (it needs ABI 3, Linux 6.2, and lsm=landlock): {why}")
    })?;
    abi.ok_or_else(|| "the kernel does not enforce Landlock".to_owned())
}

/// Restricts where the calling thread, and everything that it starts, may write, and what it connects to. It confines the
/// broker, which does for commands what they may not do themselves. Reading is unaffected.
pub(crate) fn restrict_broker(walls: &Confinement, workdir: &Path, network: bool) -> Result<(), String> {
    apply_to_broker(walls, workdir, network).map_err(|error| {
        format!(
            "cannot confine the broker with Landlock: {}",
            readable(&error.to_string())
        )
    })
}

/// An error of Landlock without the flags that it was about, which only a developer can read.
fn readable(error: &str) -> String {
    let Some((told, _)) = error.split_once("BitFlags<") else {
        return error.to_owned();
    };
    let told = told.trim_end_matches([':', ' ']);
    format!("{told} (this kernel lacks some that agentd needs)")
}

fn apply_to_broker(walls: &Confinement, workdir: &Path, network: bool) -> Result<(), RulesetError> {
    let write = AccessFs::from_write(WANTED);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(write)?
        .handle_access(AccessNet::from_all(WANTED))?
        .scope(Scope::AbstractUnixSocket)?
        .create()?
        .no_new_privs(true)
        .add_rules(path_beneath_rules(DEVICES, write))?;
    if walls.level == SandboxLevel::Isolated {
        rules = rules.add_rules(path_beneath_rules(OWN, write))?;
    }
    if network {
        rules = rules.add_rule(NetPort::new(PORT, AccessNet::ConnectTcp))?;
    }
    for root in writable(walls, workdir) {
        let Ok(root) = PathFd::new(root) else { continue };
        rules = rules.add_rule(PathBeneath::new(root, write))?;
    }
    rules.restrict_self().map(drop)
}

/// The directories in which commands write.
fn writable<'a>(walls: &'a Confinement, workdir: &'a Path) -> impl Iterator<Item = &'a Path> {
    let annex = walls.annex.write.iter().map(std::path::PathBuf::as_path);
    [workdir, walls.temp_inside()].into_iter().chain(annex)
}

fn apply(walls: &Confinement, workdir: &Path, network: bool) -> Result<Option<u32>, RulesetError> {
    let (all, read) = (AccessFs::from_all(WANTED), AccessFs::from_read(WANTED));
    let isolated = walls.level == SandboxLevel::Isolated;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?
        .no_new_privs(true)
        .add_rules(path_beneath_rules(&walls.read, read))?
        .add_rules(path_beneath_rules(&walls.annex.read, read))?
        .add_rules(path_beneath_rules(DEVICES, all))?
        .add_rules(path_beneath_rules(MACHINE, read))?
        // This program is executed and then becomes the commands that have a terminal.
        .add_rules(path_beneath_rules([OWN_PROGRAM], read))?;
    if isolated {
        rules = rules
            .add_rules(path_beneath_rules(OWN, all))?
            .add_rules(path_beneath_rules(["/proc"], read))?;
    }
    if network {
        rules = rules.add_rule(NetPort::new(PORT, AccessNet::ConnectTcp))?;
    }
    for root in writable(walls, workdir) {
        let Ok(root) = PathFd::new(root) else { continue };
        rules = rules.add_rule(PathBeneath::new(root, all))?;
    }
    let status = rules.restrict_self()?;
    let enforced = status.no_new_privs && status.ruleset != landlock::RulesetStatus::NotEnforced;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if enforced => Some(effective_abi as u32),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_landlock_shows_no_flags() {
        let dump = "partially incompatible access-rights: BitFlags<AccessFs>(0b1000, IoctlDev)";
        assert_eq!(
            readable(dump),
            "partially incompatible access-rights (this kernel lacks some that agentd needs)"
        );
        assert_eq!(readable("Operation not permitted"), "Operation not permitted");
    }
}
