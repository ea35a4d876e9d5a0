use super::*;
use futures_util::FutureExt as _;

fn wanted(seat: &Seat<i32>) -> bool {
    seat.wanted().now_or_never().is_some()
}

fn seats(most: usize, reserved: usize) -> Arc<Seats<i32>> {
    Seats::new(Shares {
        most,
        reserved,
        strangers: most,
        grace: Duration::ZERO,
    })
}

#[test]
fn i6_connections_without_hello_close_before_idle_ones() {
    let seats = seats(3, 0);
    let [idle, mute, busy] = [1, 2, 3].map(|process| Arc::new(seats.take(process).unwrap()));
    idle.greeted();
    let work = busy.work();
    let first = Arc::new(seats.take(9).unwrap());
    let first_work = first.work();
    assert!(wanted(&mute) && !wanted(&idle));
    let second = Arc::new(seats.take(9).unwrap());
    let second_work = second.work();
    assert!(wanted(&idle) && !wanted(&busy));
    // All are busy: no seat is available until one of them becomes idle.
    assert!(seats.take(8).is_none());
    drop(work);
    assert!(seats.take(8).is_some());
    assert!(wanted(&busy));
    drop((first_work, second_work));
}

#[test]
fn i6_the_process_with_most_seats_gives_one_up_first() {
    let seats = seats(3, 0);
    let [old, a, b] = [1, 2, 2].map(|process| seats.take(process).unwrap());
    for seat in [&old, &a, &b] {
        seat.greeted();
    }
    let _new = seats.take(3).unwrap();
    assert!(wanted(&a) && !wanted(&b) && !wanted(&old));
}

#[test]
fn i6_some_seats_are_reserved_for_processes_without_one() {
    let seats = seats(4, 1);
    let work = || {
        let seat = Arc::new(seats.take(1)?);
        Some(seat.work())
    };
    let all: Vec<Work<i32>> = std::iter::from_fn(work).take(9).collect();
    assert_eq!(all.len(), 3);
    let other = Arc::new(seats.take(2).unwrap());
    let _work = other.work();
    assert!(seats.take(3).is_none());
}

#[test]
fn i6_connections_that_do_not_close_are_bounded() {
    let seats = seats(1, 0);
    let all: Vec<Seat<i32>> = std::iter::from_fn(|| seats.take(1)).take(1_000).collect();
    assert_eq!(all.len(), 1 + CLOSING);
    drop(all);
    assert!(seats.take(1).is_some());
}

#[test]
fn i6_strangers_hold_only_their_share() {
    let seats = Seats::new(Shares {
        most: 4,
        reserved: 0,
        strangers: 2,
        grace: Duration::ZERO,
    });
    let known = [1, 2].map(|client| Arc::new(seats.take(client).unwrap()));
    for seat in &known {
        seat.belongs_to(9);
    }
    let strangers = [3, 4].map(|client| seats.take(client).unwrap());
    assert!(!wanted(&strangers[0]), "the share is not yet exceeded");
    let third = seats.take(5).unwrap();
    assert!(wanted(&strangers[0]) && !wanted(&strangers[1]) && !wanted(&third));
    assert!(known.iter().all(|seat| !wanted(seat)), "they are known");
}

#[test]
fn i6_a_client_that_still_sends_its_request_can_be_replaced() {
    let seats = seats(2, 0);
    let [slow, busy] = [1, 2].map(|client| Arc::new(seats.take(client).unwrap()));
    slow.belongs_to(1);
    busy.belongs_to(2);
    let (work, _busy) = (slow.work(), busy.work());
    assert!(seats.take(3).is_none(), "positive control: both are busy");
    let reading = slow.reading();
    let new = seats.take(3).unwrap();
    assert!(wanted(&slow) && !wanted(&busy));
    drop((work, reading, new));
}

#[tokio::test(start_paused = true)]
async fn i6_a_stranger_keeps_its_seat_for_the_grace_and_no_longer() {
    const GRACE: Duration = Duration::from_secs(1);
    let seats = Seats::new(Shares {
        most: 1,
        reserved: 0,
        strangers: 1,
        grace: GRACE,
    });
    let first = seats.take(1).unwrap();
    assert!(seats.take(2).is_none());
    let began = Instant::now();
    let second = seats.wait(2).await;
    assert_eq!(began.elapsed(), GRACE);
    assert!(wanted(&first));
    // One that leaves gives its seat at once.
    drop(second);
    drop(first);
    let began = Instant::now();
    drop(seats.wait(3).await);
    assert_eq!(began.elapsed(), Duration::ZERO);
}
