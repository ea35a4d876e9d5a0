//! The system calls that commands cannot use: seccomp filters for the calling thread and everything that it starts.

use agentd_protocol::SandboxLevel;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// Refused with any arguments: other processes' memory, keys, mounts, namespaces, the kernel itself.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_migrate_pages,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Refused where the session has no IPC namespace: memory, queues and semaphores that all processes of the user share, and
/// that persist when no process is left.
const REFUSED_IN_COMMON: &[libc::c_long] = &[
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[];

/// With the position of the mode: no file may carry the rights of its owner (set-user-id, set-group-id).
#[cfg(target_arch = "x86_64")]
const MODES: &[(libc::c_long, u8)] = &[
    (libc::SYS_chmod, 1),
    (libc::SYS_creat, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_mkdir, 1),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];
#[cfg(not(target_arch = "x86_64"))]
const MODES: &[(libc::c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknodat, 2),
];

/// With the positions of flags and mode: the mode only matters when a file is created.
#[cfg(target_arch = "x86_64")]
const OPENS: &[(libc::c_long, u8, u8)] = &[(libc::SYS_open, 1, 2), (libc::SYS_openat, 2, 3)];
#[cfg(not(target_arch = "x86_64"))]
const OPENS: &[(libc::c_long, u8, u8)] = &[(libc::SYS_openat, 2, 3)];
/// Flags that create a file.
const MAKING: [i32; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// Their arguments are in memory, which a filter cannot read. Programs fall back to older calls.
const UNSEEN: [libc::c_long; 2] = [libc::SYS_clone3, libc::SYS_openat2];
/// The newest call that these rules were made for. Later ones have higher numbers, the same on all architectures: no rule
/// would match them, so they do not exist here, and programs fall back to older calls.
const NEWEST: libc::c_long = libc::SYS_mseal;

/// With the position of the pid: allowed only for the caller itself (0). Landlock does not cover these.
const ONLY_FOR_ITSELF: &[(libc::c_long, u8)] = &[
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_setpriority, 1),
];

/// With the value that selects a single process: with the others, 0 means a group, or all processes of the user.
const ONLY_ONE_PROCESS: &[(libc::c_long, u64)] = &[(libc::SYS_ioprio_set, 1), (libc::SYS_setpriority, 0)];

/// With the positions of pids: these send signals, or create a handle for sending them.
const SIGNALS: &[(libc::c_long, &[u8])] = &[
    (libc::SYS_kill, &[0]),
    (libc::SYS_pidfd_open, &[0]),
    (libc::SYS_rt_sigqueueinfo, &[0]),
    (libc::SYS_rt_tgsigqueueinfo, &[0, 1]),
    (libc::SYS_tgkill, &[0, 1]),
    (libc::SYS_tkill, &[0]),
];

/// The flags of `clone` that create namespaces.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Push characters into a terminal's input.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];
/// Sends signals to single threads.
const SET_OWNER_EXTENDED: u64 = 15;
/// The other bits are flags.
const KIND_OF_SOCKET: u64 = 0xf;
/// The kinds of sockets other than streams.
const NO_STREAMS: [i32; 4] = [
    libc::SOCK_DGRAM,
    libc::SOCK_RAW,
    libc::SOCK_RDM,
    libc::SOCK_SEQPACKET,
];
const SET_ID_BITS: [u64; 2] = [0o4000, 0o2000];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Which sockets commands may create.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sockets {
    /// Unix sockets: only where they have their own network namespace, and a broker that decides which listeners they reach.
    pub(crate) unix: bool,
    /// TCP.
    pub(crate) network: bool,
    /// Questions about network interfaces: only where all interfaces are the session's own.
    pub(crate) interfaces: bool,
}

/// Restricts the calling thread. No command may ever signal the processes and threads in `spared`.
pub(crate) fn restrict(level: SandboxLevel, allowed: Sockets, spared: &[i32]) -> Result<(), String> {
    for program in programs(level, allowed, spared).map_err(|error| format!("seccomp: {error}"))? {
        apply_filter(&program).map_err(|error| format!("seccomp is not available: {error}"))?;
    }
    Ok(())
}

fn programs(
    level: SandboxLevel,
    allowed: Sockets,
    spared: &[i32],
) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let compile = |rules, errno: i32| {
        let refuse = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
    };
    let unknown = UNSEEN.map(|call| (call, Vec::new())).into();
    Ok(vec![
        only_known_numbers(),
        compile(unknown, libc::ENOSYS)?,
        // The broker cannot read a process that hides its memory, so hiding only appears to succeed.
        compile(hiding()?, 0)?,
        compile(refusals(level, spared)?, libc::EPERM)?,
        compile(opens()?, libc::EPERM)?,
        compile(sockets(allowed)?, libc::EPERM)?,
    ])
}

/// Hides the process's memory.
fn hiding() -> Result<Rules, seccompiler::BackendError> {
    let is = |position, value: i32| {
        let value = u64::from(value.unsigned_abs());
        SeccompCondition::new(position, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
    };
    let rule = SeccompRule::new(vec![is(0, libc::PR_SET_DUMPABLE)?, is(1, 0)?])?;
    Ok(Rules::from([(libc::SYS_prctl, vec![rule])]))
}

/// Opens that create a file with the rights of its owner.
fn opens() -> Result<Rules, seccompiler::BackendError> {
    let has = |position, bit: u64| {
        SeccompCondition::new(
            position,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(bit),
            bit,
        )
    };
    let mut rules = Rules::new();
    for (call, flags, mode) in OPENS {
        for making in MAKING.map(|flag| u64::from(flag.unsigned_abs())) {
            for bit in SET_ID_BITS {
                let rule = SeccompRule::new(vec![has(*flags, making)?, has(*mode, bit)?])?;
                rules.entry(*call).or_default().push(rule);
            }
        }
    }
    Ok(rules)
}

fn refusals(level: SandboxLevel, spared: &[i32]) -> Result<Rules, seccompiler::BackendError> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let common = match level {
        SandboxLevel::Isolated => &[][..],
        SandboxLevel::Confined | SandboxLevel::None => REFUSED_IN_COMMON,
    };
    let mut rules: Rules = REFUSED
        .iter()
        .chain(REFUSED_HERE)
        .chain(common)
        .map(|call| (*call, Vec::new()))
        .collect();
    let mut refuse = |call: libc::c_long, position: u8, operator: SeccompCmpOp, value: u64| {
        let condition = SeccompCondition::new(position, SeccompCmpArgLen::Dword, operator, value)?;
        rules
            .entry(call)
            .or_default()
            .push(SeccompRule::new(vec![condition])?);
        Ok::<(), seccompiler::BackendError>(())
    };
    for flag in NAMESPACES.map(i64::from) {
        // The sign is not a flag bit.
        let flag = u64::try_from(flag).unwrap_or(0);
        refuse(libc::SYS_clone, 0, MaskedEq(flag), flag)?;
    }
    for (call, position) in MODES {
        for bit in SET_ID_BITS {
            refuse(*call, *position, MaskedEq(bit), bit)?;
        }
    }
    for (call, position) in ONLY_FOR_ITSELF {
        refuse(*call, *position, Ne, 0)?;
    }
    for (call, which) in ONLY_ONE_PROCESS {
        refuse(*call, 0, Ne, *which)?;
    }
    for (call, positions) in SIGNALS {
        for (position, pid) in positions
            .iter()
            .flat_map(|at| spared.iter().map(move |pid| (*at, *pid)))
        {
            refuse(*call, position, Eq, u64::from(pid.unsigned_abs()))?;
        }
    }
    // Signals to every process of the user.
    refuse(libc::SYS_kill, 0, Eq, u64::from(u32::MAX))?;
    for request in TERMINAL_INPUT {
        refuse(libc::SYS_ioctl, 1, Eq, request)?;
    }
    refuse(libc::SYS_fcntl, 1, Eq, SET_OWNER_EXTENDED)?;
    Ok(rules)
}

/// Refuses sockets of all families but Unix; with a network proxy, TCP is allowed as well. Landlock does not prevent
/// connecting to a Unix socket in the file system, so without the broker these are refused, too.
///
/// Of netlink only the protocol about interfaces, addresses and routes exists, for `getifaddrs`. A filter does not see what is
/// sent there, but the kernel carries out changes only for who has capabilities in the network namespace, which commands lack.
///
/// Unix datagrams are refused at every level, also as pairs, which accept another address later: `sendmsg` has it in memory,
/// which no filter sees, and all its other users would have to wait for the broker.
fn sockets(allowed: Sockets) -> Result<Rules, seccompiler::BackendError> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let condition = |position, operator, value: i32| {
        let value = u64::from(value.unsigned_abs());
        SeccompCondition::new(position, SeccompCmpArgLen::Dword, operator, value)
    };
    let (unix, inet, netlink) = (libc::AF_UNIX, libc::AF_INET, libc::AF_NETLINK);
    let refuse = |family, kinds: &[i32]| {
        let kinds = kinds.iter().map(|kind| {
            let kind = condition(1, MaskedEq(KIND_OF_SOCKET), *kind)?;
            SeccompRule::new(vec![condition(0, Eq, family)?, kind])
        });
        kinds.collect::<Result<Vec<_>, _>>()
    };
    let mut others = vec![condition(0, Ne, unix)?];
    if allowed.network {
        others.push(condition(0, Ne, inet)?);
    }
    if allowed.interfaces {
        others.push(condition(0, Ne, netlink)?);
    }
    let mut socket = vec![SeccompRule::new(others)?];
    let others = vec![condition(0, Eq, netlink)?, condition(2, Ne, libc::NETLINK_ROUTE)?];
    socket.push(SeccompRule::new(others)?);
    socket.extend(refuse(inet, &NO_STREAMS)?);
    // The kernel makes a Unix socket of the kind raw a datagram socket.
    let datagrams = [libc::SOCK_DGRAM, libc::SOCK_RAW];
    socket.extend(refuse(unix, &datagrams)?);
    if !allowed.unix {
        socket.push(SeccompRule::new(vec![condition(0, Eq, unix)?])?);
    }
    let mut pair = vec![SeccompRule::new(vec![condition(0, Ne, unix)?])?];
    pair.extend(refuse(unix, &datagrams)?);
    Ok(Rules::from([
        (libc::SYS_socket, socket),
        (libc::SYS_socketpair, pair),
    ]))
}

/// Calls with a number above the newest do not exist. On x86_64 the x32 calls have numbers far above.
fn only_known_numbers() -> BpfProgram {
    use seccompiler::sock_filter;
    const LOAD: u16 = 0x20;
    const JUMP_IF_ABOVE: u16 = 0x25;
    const RETURN: u16 = 0x06;
    const REFUSE: u32 = 0x0005_0000 | libc::ENOSYS.unsigned_abs();
    const ALLOW: u32 = 0x7fff_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD, 0, 0, 0),
        // It fits. If it did not, no call would exist.
        step(JUMP_IF_ABOVE, 0, 1, u32::try_from(NEWEST).unwrap_or(0)),
        step(RETURN, 0, 0, REFUSE),
        step(RETURN, 0, 0, ALLOW),
    ]
}
