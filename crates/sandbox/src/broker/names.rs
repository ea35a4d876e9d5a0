//! Creates, links, moves and removes names. Opens the directory, checks it, and then uses the name in that directory.

use super::Broker;
use super::bare::completes;
use super::call::At;
use super::config;
use super::judge::{Act, Kind, judge, judge_link, judge_move};
use super::places::{Checked, Spot};
use super::resolve::{Named, Object, Start, bare};
use super::target::{Target, magic};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, RenameFlags, linkat, mkdirat, mknodat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

impl Broker {
    /// Whether this change of a name is allowed. A change that would fail anyway returns that error instead.
    pub(super) fn may_name(&self, act: Act, named: &Named) -> Result<Spot, Errno> {
        let spot = self.spot(&named.path);
        let removes = matches!(act, Act::Remove | Act::RemoveDirectory);
        let refused = judge(act, spot)
            .err()
            .or_else(|| (!removes && self.completes(spot, named)).then_some(Errno::ACCESS));
        let misleads = act == Act::MakeSymlink && self.places.leads_to_denied(&named.path);
        let refused = refused.or_else(|| misleads.then_some(Errno::ACCESS));
        let Some(errno) = refused else { return Ok(spot) };
        Err(match named.stat() {
            Ok(_) if matches!(act, Act::Make | Act::MakeDirectory | Act::MakeSymlink) => Errno::EXIST,
            Err(missing) if removes => missing,
            Ok(_) | Err(_) => {
                self.refused.note(spot.refusal());
                errno
            }
        })
    }

    fn completes(&self, spot: Spot, named: &Named) -> bool {
        matches!(spot, Spot::Guarded { .. }) && !spot.is_in_git() && completes(&named.dir, bare(&named.name))
    }

    pub(super) fn make_directory(&mut self, target: Target<'_>, at: At, mode: Mode) -> Result<(), Errno> {
        let named = Start::read(target, at)?.named(Errno::EXIST)?;
        self.may_name(Act::MakeDirectory, &named)?;
        mkdirat(&named.dir, &named.name, mode.difference(target.umask()))?;
        self.made.note(&named);
        Ok(())
    }

    pub(super) fn make_node(&self, target: Target<'_>, at: At, mode: u32, device: u64) -> Result<(), Errno> {
        let kind = match FileType::from_raw_mode(mode) {
            // A mode without a type means a regular file.
            FileType::Unknown if mode & libc::S_IFMT == 0 => FileType::RegularFile,
            FileType::Unknown | FileType::Directory | FileType::Symlink => return Err(Errno::INVAL),
            kind => kind,
        };
        let named = Start::read(target, at)?.named(Errno::EXIST)?;
        self.may_name(Act::Make, &named)?;
        let mode = Mode::from_bits_retain(mode & 0o7777).difference(target.umask());
        mknodat(&named.dir, &named.name, kind, mode, device)
    }

    pub(super) fn make_symlink(&self, target: Target<'_>, leads_to: u64, at: At) -> Result<(), Errno> {
        let leads_to = target.text(leads_to)?;
        let named = Start::read(target, at)?.named(Errno::EXIST)?;
        self.may_name(Act::MakeSymlink, &named)?;
        symlinkat(leads_to, &named.dir, &named.name)
    }

    pub(super) fn link(&self, target: Target<'_>, from: At, to: At, flags: AtFlags) -> Result<(), Errno> {
        if !(AtFlags::SYMLINK_FOLLOW | AtFlags::EMPTY_PATH).contains(flags) {
            return Err(Errno::INVAL);
        }
        let follow = flags.contains(AtFlags::SYMLINK_FOLLOW);
        let object = Start::read(target, from)?.object(follow, flags.contains(AtFlags::EMPTY_PATH))?;
        let named = Start::read(target, to)?.named(Errno::EXIST)?;
        let to = self.may_name(Act::Make, &named)?;
        self.may_lead(object.moves_as(), &named.path)?;
        judge_link(object.moves_as(), self.spot_of(&object), to)?;
        linkat(
            CWD,
            magic(&object.file),
            &named.dir,
            &named.name,
            AtFlags::SYMLINK_FOLLOW,
        )
    }

    pub(super) fn rename(
        &self,
        target: Target<'_>,
        from: At,
        to: At,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        if !(RenameFlags::NOREPLACE | RenameFlags::EXCHANGE).contains(flags) {
            return Err(Errno::INVAL);
        }
        let from = Start::read(target, from)?.named(Errno::BUSY)?;
        let to = Start::read(target, to)?.named(Errno::BUSY)?;
        let kind = kind(FileType::from_raw_mode(from.stat()?.st_mode));
        let (here, there) = (self.spot(&from.path), self.spot(&to.path));
        if let Some(what) = there.checked()
            && kind == Kind::File
            && flags.is_empty()
        {
            judge(Act::Remove, here)?;
            return self.noted(there, config::replace(what, &from, &to));
        }
        self.noted(there, judge_move(kind, here, there))?;
        self.may_carry(kind, &from, &to)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            let other = FileType::from_raw_mode(to.stat()?.st_mode);
            let other = super::names::kind(other);
            judge_move(other, there, here)?;
            self.may_carry(other, &to, &from)?;
        }
        if self.completes(there, &to) {
            return Err(Errno::ACCESS);
        }
        renameat_with(&from.dir, &from.name, &to.dir, &to.name, flags)
    }

    /// Notes for the command's result why git may not write at a spot.
    fn noted(&self, spot: Spot, done: Result<(), Errno>) -> Result<(), Errno> {
        if done == Err(Errno::ACCESS) {
            self.refused.note(spot.refusal());
        }
        done
    }

    pub(super) fn remove(&self, target: Target<'_>, at: At, flags: AtFlags) -> Result<(), Errno> {
        if !AtFlags::REMOVEDIR.contains(flags) {
            return Err(Errno::INVAL);
        }
        let (act, none) = if flags.is_empty() {
            (Act::Remove, Errno::ISDIR)
        } else {
            (Act::RemoveDirectory, Errno::INVAL)
        };
        let named = Start::read(target, at)?.named(none)?;
        if self.places.is_lock_of_references(&named.path) {
            // It has no name, or is another's.
            return named.stat().and(Err(Errno::ACCESS));
        }
        if act == Act::Remove && self.spot(&named.path).checked() == Some(Checked::Config) {
            config::may_remove(&named)?;
        } else {
            self.may_name(act, &named)?;
        }
        unlinkat(&named.dir, &named.name, flags)
    }
}

fn kind(file: FileType) -> Kind {
    match file {
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        _ => Kind::File,
    }
}

impl Object {
    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    fn moves_as(&self) -> Kind {
        kind(self.kind())
    }
}
