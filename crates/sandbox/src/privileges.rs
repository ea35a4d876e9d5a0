//! Drops the privileges of a confined warden and everything that it starts.

use crate::bounds::Bounds;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

const OPEN_FILES: u64 = 65_536;
/// `RLIMIT_NPROC` counts per user, not per session; it does not restrict root.
const PROCESSES: u64 = 4_096;

/// Drops every privilege of the calling thread for good, and sets its limits.
pub(crate) fn drop_all() -> Result<(), String> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: Errno| format!("{what}: {error}")
    };
    umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    limit(&[
        (Resource::Core, 0),
        (Resource::Nofile, OPEN_FILES),
        (Resource::Nproc, PROCESSES),
    ])
    .map_err(failed("limits"))?;
    set_no_new_privs(true).map_err(failed("no_new_privs"))?;
    clear_ambient_capability_set().map_err(failed("ambient capabilities"))?;
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        match capability_is_in_bounding_set(one) {
            Ok(true) => match remove_capability_from_bounding_set(one) {
                // A process that may not do this has no capability to lose.
                Ok(()) | Err(Errno::PERM) => {}
                Err(error) => return Err(failed("bounding set")(error)),
            },
            Ok(false) => {}
            // The kernel knows no further capabilities.
            Err(_) => break,
        }
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(failed("capabilities"))?;
    if capabilities(None).map_err(failed("capabilities"))? == none {
        Ok(())
    } else {
        Err("some capabilities remain".to_owned())
    }
}

/// Sets the limits that the kernel itself enforces per process. The memory limit is twice the bound: the watch reports a
/// process that exceeds the bound, and this limit stops one that grows faster than the watch looks.
pub(crate) fn bind(bounds: Bounds) -> Result<(), Errno> {
    limit(&[
        (Resource::Fsize, bounds.file),
        (Resource::Data, bounds.memory.saturating_mul(2)),
    ])
}

fn limit(limits: &[(Resource, u64)]) -> Result<(), Errno> {
    for (resource, most) in limits {
        setrlimit(*resource, lowered(getrlimit(*resource), *most))?;
    }
    Ok(())
}

fn lowered(now: Rlimit, most: u64) -> Rlimit {
    let at_most = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    Rlimit {
        current: at_most(now.current),
        maximum: at_most(now.maximum),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_lowered_and_never_raised() {
        let limits = |current, maximum| Rlimit { current, maximum };
        assert_eq!(lowered(limits(None, None), 5), limits(Some(5), Some(5)));
        assert_eq!(lowered(limits(Some(3), Some(9)), 5), limits(Some(3), Some(5)));
    }
}
