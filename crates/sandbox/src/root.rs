//! Builds the file system of an isolated session by system calls: applies a [`View`] in mount and process namespaces that
//! belong to the caller alone.
//!
//! It opens every source, without following links, before it mounts anything. It attaches and changes everything by
//! descriptor, so renaming a path in the meantime cannot change what is mounted or where.

use crate::mounts::{Access, Mount, View};
use crate::tree::{attach, below, clone, copy, file_system, restrict, seal};
use agentd_file_work::mount_points;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, chmodat, fstat, mkdirat, openat, openat2, symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{chdir, fchdir, pivot_root};
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Devices that every program may use.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links below `/dev`.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Below `/proc`: the kernel checks the user id there and not a capability, so root could write.
const KERNEL: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];
/// Below `/proc`: paths that reveal what is not the session's.
const SECRET: [&str; 4] = ["kcore", "keys", "timer_list", "sched_debug"];
/// The mode of the covers that hide other paths; no process without capabilities can open them.
const NOTHING: Mode = Mode::empty();
const DIRECTORY: Mode = Mode::from_raw_mode(0o755);

/// The failed step, for a person.
type Failed = String;

fn failed(what: &str, path: &Path) -> impl FnOnce(Errno) -> Failed {
    let what = format!("{what} {}", path.display());
    move |errno| format!("{what}: {errno}")
}

/// Builds the view and makes it the root of the calling process.
pub(crate) fn enter(view: &View) -> Result<(), Failed> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(failed("detach the mounts at", Path::new("/")))?;
    let points =
        mount_points(&fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?);
    let sources = sources(&view.mounts)?;
    let devices = devices()?;
    let root = Root::over(&view.base, &view.workdir)?;
    root.kernel(devices)?;
    for (mount, source) in view.mounts.iter().zip(sources) {
        root.carry_out(mount, source, &points)?;
    }
    root.become_root()
}

/// Detached copies of all bind sources.
fn sources(mounts: &[Mount]) -> Result<Vec<Option<OwnedFd>>, Failed> {
    let source = |mount: &Mount| match mount {
        Mount::Bind { from, .. } => copy(from).map(Some).map_err(failed("copy the mount", from)),
        Mount::Link { .. } | Mount::Hide { .. } => Ok(None),
    };
    mounts.iter().map(source).collect()
}

/// Copies of the devices that exist.
fn devices() -> Result<Vec<(&'static str, OwnedFd)>, Failed> {
    let mut found = Vec::new();
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        match copy(&path) {
            Ok(device) => found.push((name, device)),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed("copy the device", &path)(errno)),
        }
    }
    Ok(found)
}

struct Root<'a> {
    root: OwnedFd,
    workdir: &'a Path,
}

impl<'a> Root<'a> {
    fn over(base: &Path, workdir: &'a Path) -> Result<Self, Failed> {
        let root = file_system(
            "tmpfs",
            &[("mode", "755"), ("size", "4m")],
            MountAttrFlags::MOUNT_ATTR_NOSUID,
        );
        let root = root.map_err(failed("create a root directory for", base))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat2(CWD, base, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
            .and_then(|place| attach(&root, place))
            .map_err(failed("attach the root directory at", base))?;
        Ok(Self { root, workdir })
    }

    /// Opens a path of the new root; links resolve inside of that.
    fn find(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let Some(inside) = self.inside(path) else {
            return openat2(&self.root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT);
        };
        let workdir = openat2(
            &self.root,
            self.workdir,
            flags,
            Mode::empty(),
            ResolveFlags::IN_ROOT,
        )?;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        openat2(workdir, inside, flags | OFlags::NOFOLLOW, Mode::empty(), resolve)
    }

    /// Other sessions can reach what is below the working directory.
    fn inside<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let inside = path.strip_prefix(self.workdir).ok()?;
        (!inside.as_os_str().is_empty()).then_some(inside)
    }

    /// Opens the place of a mount; creates it if missing, but never below the working directory.
    fn place(&self, path: &Path, directory: bool) -> Result<Option<OwnedFd>, Errno> {
        match self.find(path) {
            Err(Errno::NOENT) if self.inside(path).is_some() => Ok(None),
            Err(Errno::NOENT) => self.make(path, directory).map(Some),
            found => found.map(Some),
        }
    }

    fn make(&self, path: &Path, directory: bool) -> Result<OwnedFd, Errno> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL);
        };
        let mut at = PathBuf::from("/");
        for part in above.components() {
            if let Component::Normal(part) = part {
                let dir = self.find(&at)?;
                at.push(part);
                made(mkdirat(dir, part, DIRECTORY))?;
            }
        }
        let dir = self.find(above)?;
        if directory {
            made(mkdirat(dir, name, DIRECTORY))?;
        } else {
            self.empty_file(above, name, Mode::from_raw_mode(0o644))?;
        }
        self.find(path)
    }

    fn empty_file(&self, dir: &Path, name: &OsStr, mode: Mode) -> Result<(), Errno> {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(self.find(dir)?, name, flags, mode).map(drop)
    }

    fn carry_out(&self, mount: &Mount, source: Option<OwnedFd>, points: &[PathBuf]) -> Result<(), Failed> {
        match (mount, source) {
            (Mount::Link { to, at }, _) => {
                let made = symlinkat(to, &self.root, at.strip_prefix("/").unwrap_or(at));
                made.map_err(failed("create the link", at))
            }
            (Mount::Bind { from, at, access }, Some(source)) => self
                .bind(&source, (from, at, *access), points)
                .map_err(failed("mount", at)),
            (Mount::Bind { at, .. }, None) => Err(failed("mount", at)(Errno::BADF)),
            (Mount::Hide { at, directory }, _) => self.hide(at, *directory).map_err(failed("hide", at)),
        }
    }

    fn bind(
        &self,
        source: &OwnedFd,
        (from, at, access): (&Path, &Path, Access),
        points: &[PathBuf],
    ) -> Result<(), Errno> {
        let directory = FileType::from_raw_mode(fstat(source)?.st_mode).is_dir();
        let Some(place) = self.place(at, directory)? else {
            // It was removed after the scan; if it returns, the filter refuses access.
            return Ok(());
        };
        attach(source, place)?;
        restrict(source, access)?;
        for point in points.iter().filter_map(|point| point.strip_prefix(from).ok()) {
            if !point.as_os_str().is_empty() {
                below(source, point, access)?;
            }
        }
        Ok(())
    }

    fn hide(&self, at: &Path, directory: bool) -> Result<(), Errno> {
        // Paths outside the view need no cover.
        let place = match self.find(at) {
            Err(Errno::NOENT) => return Ok(()),
            found => found?,
        };
        let name = if directory { "dir" } else { "file" };
        let cover = clone(&self.find(&Path::new(COVERS).join(name))?)?;
        attach(&cover, place)?;
        restrict(&cover, Access::Read)
    }

    /// Mounts what does not depend on the session: `/proc`, `/dev`, and the covers.
    fn kernel(&self, devices: Vec<(&str, OwnedFd)>) -> Result<(), Failed> {
        let step = |what: &'static str| move |errno: Errno| format!("mount {what}: {errno}");
        let covers = Path::new(COVERS);
        self.make(&covers.join("dir"), true)
            .and_then(|dir| chmodat(dir, ".", NOTHING, AtFlags::empty()))
            .and_then(|()| self.empty_file(covers, OsStr::new("file"), NOTHING))
            .map_err(step("covers"))?;
        self.proc()
            .map_err(step("/proc (a container must run without masked paths)"))?;
        self.dev(devices).map_err(step("/dev"))
    }

    fn mounted(&self, at: &str, mount: &OwnedFd) -> Result<(), Errno> {
        let at = Path::new(at);
        let place = match self.find(at) {
            Err(Errno::NOENT) => self.make(at, true)?,
            found => found?,
        };
        attach(mount, place)
    }

    fn proc(&self) -> Result<(), Errno> {
        let none = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let proc = file_system("proc", &[], none)?;
        self.mounted("/proc", &proc)?;
        no_user_namespaces(&proc);
        for name in KERNEL {
            let at = Path::new("/proc").join(name);
            if let Ok(place) = self.find(&at) {
                let own = clone(&place)?;
                attach(&own, place)?;
                restrict(&own, Access::Read)?;
            }
        }
        for name in SECRET {
            self.hide(&Path::new("/proc").join(name), false)?;
        }
        Ok(())
    }

    fn dev(&self, devices: Vec<(&str, OwnedFd)>) -> Result<(), Errno> {
        let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let dev = file_system("tmpfs", &[("mode", "755"), ("size", "64k")], quiet)?;
        self.mounted("/dev", &dev)?;
        for (name, device) in devices {
            let at = Path::new("/dev").join(name);
            attach(&device, self.make(&at, false)?)?;
        }
        for (name, to) in DEVICE_LINKS {
            symlinkat(to, &self.find(Path::new("/dev"))?, name)?;
        }
        let shared = quiet | MountAttrFlags::MOUNT_ATTR_NODEV;
        self.mounted("/dev/shm", &file_system("tmpfs", &[("mode", "1777")], shared)?)?;
        let terminals = [("ptmxmode", "666"), ("mode", "620")];
        self.mounted("/dev/pts", &file_system("devpts", &terminals, quiet)?)?;
        seal(&dev)
    }

    /// Leaves the machine's file system for good.
    fn become_root(&self) -> Result<(), Failed> {
        let step = |what: &'static str| move |errno: Errno| format!("{what}: {errno}");
        seal(&self.root).map_err(step("make the root directory read-only"))?;
        fchdir(&self.root)
            .and_then(|()| pivot_root(".", "."))
            .and_then(|()| unmount(".", UnmountFlags::DETACH))
            .and_then(|()| chdir("/"))
            .map_err(step("change the root directory"))?;
        chdir(self.workdir).map_err(failed("enter", self.workdir))
    }
}

/// The directory of the covers for hidden paths.
const COVERS: &str = "/run/agentd/hidden";

/// Forbids descendants to create further user namespaces. The system call filter refuses them, too, so the sandbox holds
/// even where the kernel has no such limit.
fn no_user_namespaces(proc: &OwnedFd) {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(limit) = openat(proc, "sys/user/max_user_namespaces", flags, Mode::empty()) {
        let _ = rustix::io::write(limit, b"0");
    }
}

/// Accepts a directory that exists already.
fn made(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::EXIST) => Ok(()),
        other => other,
    }
}
