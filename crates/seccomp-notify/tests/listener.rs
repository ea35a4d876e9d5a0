//! A filter passes a call on, and it is answered; the kernel allows one listener per thread.

use agentd_seccomp_notify::{Instruction, Listener};
use std::os::fd::AsFd as _;
use std::sync::mpsc::sync_channel;
use std::thread;

/// Passes on `mkdirat`, whose answer is a number, and `dup`, whose answer is a descriptor.
fn program() -> Vec<Instruction> {
    let step = |code, jt, jf, k| Instruction { code, jt, jf, k };
    let number = |call| u32::try_from(call).unwrap_or(u32::MAX);
    vec![
        step(0x20, 0, 0, 0),
        step(0x15, 1, 0, number(libc::SYS_mkdirat)),
        step(0x15, 0, 1, number(libc::SYS_dup)),
        step(0x06, 0, 0, 0x7fc0_0000),
        step(0x06, 0, 0, 0x7fff_0000),
    ]
}

#[test]
fn calls_are_handed_over_and_answered() {
    let (hand, handed) = sync_channel(1);
    let caller = thread::spawn(move || {
        rustix::thread::set_no_new_privs(true).unwrap();
        hand.send(Listener::install(&program()).unwrap()).unwrap();
        let make = || rustix::fs::mkdirat(rustix::fs::CWD, "/nowhere/at/all", rustix::fs::Mode::empty());
        let answers = (make(), make());
        let copied = rustix::io::dup(std::io::stdin()).is_ok();
        let second = Listener::install(&program()).map(drop);
        (answers, copied, second.map_err(|error| error.raw_os_error()))
    });
    let listener = handed.recv().unwrap();
    let first = listener.receive().unwrap();
    assert_eq!(first.call, libc::SYS_mkdirat);
    assert_eq!(
        first.args[0] & 0xffff_ffff,
        u64::from(libc::AT_FDCWD.cast_unsigned())
    );
    assert!(listener.is_waiting(first.id));
    listener.answer(first.id, Err(libc::EXDEV));
    assert!(!listener.is_waiting(first.id));
    let second = listener.receive().unwrap();
    listener.answer(second.id, Ok(0));
    let third = listener.receive().unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    listener.answer_with(third.id, file.as_fd(), true).unwrap();
    let (answers, copied, second) = caller.join().unwrap();
    assert_eq!(answers, (Err(rustix::io::Errno::XDEV), Ok(())));
    assert!(copied);
    assert_eq!(second, Err(Some(libc::EBUSY)));
}
