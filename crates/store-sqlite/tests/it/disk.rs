//! Tests the store on a failing disk: power loss at any moment, no space, a failed sync, read-only, slow.
//!
//! The program under test is this one, started again. It appends to three logs and records each acknowledgement in the
//! disk's own list of changes, so both are in one order.

mod check;
mod work;

use agentd_faulty_disk::{Disk, Fault, Image, Loss, Record};
use check::{Acknowledged, check};
use std::time::Duration;
use work::{Ended, Machine, Work};

/// A mounted disk with the program. If the kernel does not support it, reports that the test is skipped.
fn machine(test: &str) -> Option<Machine> {
    Machine::new()
        .map_err(|why| agentd_process_tests::skipped(&why, test))
        .ok()
}

/// The program under test; without its environment variables it does nothing.
#[tokio::test]
async fn child() {
    work::child().await;
}

/// The tested moments: at first each, later a sample.
fn moments(records: usize, about: usize) -> impl Iterator<Item = usize> {
    let stride = (records / about).max(1);
    (0..=records).filter(move |at| *at < 60 || at % stride == 0 || *at == records)
}

#[tokio::test]
async fn i1_i2_a_power_loss_at_any_moment_loses_nothing_acknowledged_and_leaves_no_gap() {
    let Some(machine) = machine("power loss") else {
        return;
    };
    let work = Work {
        appends: 60,
        bytes: 30_000,
        blob_at: 20,
    };
    assert_eq!(machine.run(work), Ended::Done);
    let records = machine.disk.records();
    let syncs = records
        .iter()
        .filter(|record| matches!(record, Record::Sync { .. }))
        .count();
    assert!(
        syncs > 180,
        "each append was synced, and the log was written back: {syncs}"
    );
    for at in moments(records.len(), 100) {
        let before = &records[..at];
        for loss in [Loss::Everything, Loss::Some(at as u64), Loss::Some(!(at as u64))] {
            let image = Image::after_power_loss(before, loss);
            check(
                &image,
                &Acknowledged::of(before),
                work,
                &format!("after {at} changes, {loss:?}"),
            )
            .await;
        }
    }
}

#[tokio::test]
async fn i1_i6_no_space_at_any_write_is_refused_loses_nothing_and_goes_on_by_itself() {
    let work = Work {
        appends: 2,
        bytes: 1_500,
        blob_at: 2,
    };
    for after in 0.. {
        let Some(machine) = machine("no space") else {
            return;
        };
        machine.disk.set(Fault::Full {
            after,
            times: 1 + after % 3,
        });
        let ended = machine.run(work);
        let refused = machine.disk.counts().refused;
        assert_eq!(ended, Ended::Done, "no space after {after} writes");
        let records = machine.disk.records();
        let done = Acknowledged::of(&records);
        assert!(done.all(work), "{done:?}");
        let image = Image::after_power_loss(&records, Loss::Everything);
        check(&image, &done, work, &format!("no space after {after} writes")).await;
        if refused == 0 {
            assert!(after > 40, "every write was refused once: {after}");
            return;
        }
    }
}

#[tokio::test]
async fn i1_a_sync_that_fails_stops_the_store_and_what_it_lost_costs_nothing_acknowledged_later() {
    let work = Work {
        appends: 6,
        bytes: 3_000,
        blob_at: 2,
    };
    for after in 0.. {
        let Some(machine) = machine("a sync that fails") else {
            return;
        };
        machine.disk.set(Fault::SyncFails { after });
        let first = machine.run(work);
        let failed = machine.disk.counts().refused;
        // A new process reads the log back; the old one never retries a failed sync.
        if failed > 0 && first != Ended::Done {
            assert_eq!(
                machine.run(work),
                Ended::Done,
                "after the failed sync {after}: {first:?}"
            );
        }
        let records = machine.disk.records();
        for at in moments(records.len(), 16).filter(|at| *at > records.len() / 2) {
            let before = &records[..at];
            let image = Image::after_power_loss(before, Loss::Everything);
            let case = format!(
                "sync {after} failed, then a power loss after {at} of {} changes",
                records.len()
            );
            check(&image, &Acknowledged::of(before), work, &case).await;
        }
        if failed == 0 {
            assert!(after > 20, "every sync failed once: {after}");
            return;
        }
    }
}

#[tokio::test]
async fn i1_a_disk_that_becomes_read_only_stops_the_store_and_all_is_there_when_it_can_be_written_again() {
    let Some(machine) = machine("read-only") else {
        return;
    };
    let work = Work {
        appends: 4,
        bytes: 3_000,
        blob_at: 2,
    };
    assert_eq!(machine.run(work), Ended::Done);
    machine.disk.set(Fault::ReadOnly);
    let more = Work { appends: 8, ..work };
    let Ended::Stopped(why) = machine.run(more) else {
        panic!("a read-only disk was written");
    };
    assert!(
        why.contains("agentd.") || why.contains("read"),
        "it says what is wrong: {why}"
    );
    machine.disk.set(Fault::None);
    assert_eq!(machine.run(more), Ended::Done);
    let records = machine.disk.records();
    let image = Image::after_power_loss(&records, Loss::Everything);
    check(&image, &Acknowledged::of(&records), more, "written again").await;
}

#[tokio::test]
async fn i6_on_a_disk_with_slow_syncs_appends_wait_together_and_none_is_given_up() {
    let Some(machine) = machine("slow") else { return };
    let disk = machine.disk.clone();
    disk.set(Fault::Slow {
        write: Duration::from_millis(1),
        sync: Duration::from_secs(2),
    });
    let work = Work {
        appends: 3,
        bytes: 500,
        blob_at: 0,
    };
    assert_eq!(machine.run_together(work, 40), Ended::Done);
    let syncs = disk.counts().syncs;
    assert!(syncs < 40, "120 appends of 40 sessions took {syncs} syncs");
    let records = disk.records();
    let said = records
        .iter()
        .filter(|record| matches!(record, Record::Said(_)))
        .count();
    assert_eq!(said, 120);
}

#[test]
fn a_kernel_without_fuse_is_told_from_a_disk_that_works() {
    let missing = agentd_faulty_disk::Mounted::new(&Disk::new(), std::path::Path::new("/proc/no-such-place"));
    assert!(missing.is_err());
}
