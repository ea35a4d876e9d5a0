//! A command's family: its process group, its descendants, and what it left behind.

use crate::processes::{Process, Table, with_descendants};
use std::collections::{BTreeMap, BTreeSet};

/// The processes of one command. Ancestry is lost when a process in between ends, so members are remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Family {
    leader: i32,
    started: u64,
    /// Members seen so far: pid to start time.
    known: BTreeMap<i32, u64>,
}

impl Family {
    /// The family of a command that was just started.
    pub(crate) fn of(leader: Process) -> Self {
        Self {
            leader: leader.pid,
            started: leader.started,
            known: BTreeMap::from([(leader.pid, leader.started)]),
        }
    }

    /// Whether this process is the command itself.
    pub(crate) const fn is_led_by(&self, pid: i32) -> bool {
        self.leader == pid
    }

    /// The running members. `home` is the warden: only its descendants are considered, so a reused pid elsewhere is never a
    /// member. `others` are the leaders of the other running commands; when there are none, orphans that appeared since the
    /// start are members, too (a daemon that forked twice and left its group is such an orphan).
    pub(crate) fn living(&mut self, table: &Table, home: i32, others: &BTreeSet<i32>) -> Vec<i32> {
        let mut ours = with_descendants(table, [home]);
        ours.remove(&home);
        let seeds = ours.iter().filter_map(|pid| table.get(pid)).filter(|process| {
            let remembered = self.known.get(&process.pid) == Some(&process.started);
            let in_group = process.group == self.leader && process.started >= self.started;
            let orphan = others.is_empty() && process.parent == home && process.started >= self.started;
            remembered || in_group || orphan
        });
        let family = with_descendants(table, seeds.map(|process| process.pid).collect::<Vec<_>>());
        let living: Vec<&Process> = family
            .iter()
            .filter_map(|pid| table.get(pid))
            .filter(|process| !process.dead)
            .collect();
        self.known
            .extend(living.iter().map(|process| (process.pid, process.started)));
        living.iter().map(|process| process.pid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: i32 = 10;

    fn process(pid: i32, parent: i32, group: i32, started: u64) -> (i32, Process) {
        (
            pid,
            Process {
                pid,
                parent,
                group,
                dead: false,
                kernel: false,
                started,
                ..Process::default()
            },
        )
    }

    #[test]
    fn a_family_is_the_group_the_descendants_and_the_orphans() {
        let mut family = Family::of(process(20, HOME, 20, 100).1);
        let table = Table::from([
            process(HOME, 1, HOME, 50),
            process(20, HOME, 20, 100),
            process(21, 20, 20, 101),
            process(22, 21, 22, 102),
            process(30, HOME, 30, 103),
            process(31, HOME, 31, 99),
            process(40, 1, 20, 104),
        ]);
        assert_eq!(family.living(&table, HOME, &BTreeSet::new()), [20, 21, 22, 30]);
    }

    #[test]
    fn orphans_are_unassigned_while_another_command_runs() {
        let mut family = Family::of(process(20, HOME, 20, 100).1);
        let table = Table::from([
            process(HOME, 1, HOME, 50),
            process(20, HOME, 20, 100),
            process(25, HOME, 25, 101),
            process(30, HOME, 30, 103),
        ]);
        assert_eq!(family.living(&table, HOME, &BTreeSet::from([25])), [20]);
    }

    #[test]
    fn a_member_is_remembered_when_its_parent_is_gone_but_not_under_a_reused_pid() {
        let mut family = Family::of(process(20, HOME, 20, 100).1);
        let others = BTreeSet::from([99]);
        let home = process(HOME, 1, HOME, 50);
        let before = Table::from([home, process(20, HOME, 20, 100), process(22, 20, 22, 102)]);
        assert_eq!(family.living(&before, HOME, &others), [20, 22]);
        let after = Table::from([home, process(22, HOME, 22, 102)]);
        assert_eq!(family.living(&after, HOME, &others), [22]);
        let reused = Table::from([home, process(22, HOME, 22, 500)]);
        assert_eq!(family.living(&reused, HOME, &others), Vec::<i32>::new());
    }
}
