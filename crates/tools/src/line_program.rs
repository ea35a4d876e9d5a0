//! A program that parses files under a warden. It gets a request and the content of a file on its standard input, and
//! answers in lines. Its start, its answers and its restarts are bounded: the files may be hostile.

use agentd_sandbox::{CommandSpec, Heard, Piped, Running, WardenSlot};
use std::time::Duration;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::unix::pipe;
use tokio::time::timeout;

/// How long the start of the warden and of the program may take together.
const START_WITHIN: Duration = Duration::from_secs(10);
/// How often it is started, at first and after files that it failed on.
const MAX_STARTS: u32 = 4;
/// So many answers earn one more start: one bad file in a large tree costs no other file.
const ANSWERS_PER_START: u32 = 100;

/// The limits of an answer about one file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerLimits {
    /// Its size.
    pub(crate) bytes: u64,
    /// How long it may take.
    pub(crate) within: Duration,
}

/// The starts of a program for one piece of work.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    made: u32,
    earned: u32,
    answers: u32,
}

impl Starts {
    /// Takes a start; false if too many files made it fail.
    pub(crate) const fn take(&mut self) -> bool {
        let may = self.made < MAX_STARTS + self.earned;
        if may {
            self.made += 1;
        }
        may
    }

    /// Counts an answer.
    pub(crate) const fn answered(&mut self) {
        self.answers += 1;
        if self.answers == ANSWERS_PER_START {
            self.answers = 0;
            if self.earned < self.made {
                self.earned += 1;
            }
        }
    }

    /// Whether it was started at most once.
    pub(crate) const fn is_first(&self) -> bool {
        self.made <= 1
    }
}

/// A running program. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct LineProgram {
    stdin: pipe::Sender,
    stdout: BufReader<pipe::Receiver>,
    running: Running,
    /// Its error output has ended.
    ended: bool,
    limits: AnswerLimits,
}

impl LineProgram {
    /// Starts a program whose first line passes `greets`. The error says why it did not start.
    pub(crate) async fn start(
        warden: &WardenSlot,
        command: CommandSpec,
        limits: AnswerLimits,
        greets: fn(&str) -> bool,
    ) -> Result<Self, String> {
        let start = async {
            let started = async { warden.get().await?.run_piped(command).await };
            let Piped {
                stdin,
                stdout,
                running,
            } = started.await.map_err(|error| error.to_string())?;
            let mut program = Self {
                stdin,
                stdout: BufReader::new(stdout),
                running,
                ended: false,
                limits,
            };
            let mut greeted = false;
            let first = program.exchange(&[], |line| {
                greeted = greets(line);
                true
            });
            first.await.ok_or("it did not greet")?;
            greeted
                .then_some(program)
                .ok_or_else(|| "it is another program, or of another version".to_owned())
        };
        let slow = |_| "it did not start in time".to_owned();
        timeout(START_WITHIN, start).await.map_err(slow)?
    }

    /// Sends a request, and passes each line of the answer to `last`, until one is the last. `None` if there is no
    /// answer within the bounds; then the program is no longer usable.
    pub(crate) async fn exchange(&mut self, say: &[u8], last: impl FnMut(&str) -> bool) -> Option<()> {
        let Self {
            stdin,
            stdout,
            running,
            ended,
            limits,
        } = self;
        let errors = async {
            let mut buffer = vec![0; 4096];
            while !*ended {
                *ended = !matches!(running.hear(&mut buffer).await, Ok(Heard::Output(_)));
            }
            // The rest of its output may still be in the pipe.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            talked = talk(stdin, stdout, *limits, (say, last)) => talked,
            () = errors => None,
        }
    }
}

/// One exchange: writes `say`, and reads lines until `last` returns true.
async fn talk(
    stdin: &mut (impl AsyncWrite + Unpin),
    stdout: &mut (impl AsyncBufRead + Unpin),
    limits: AnswerLimits,
    (say, mut last): (&[u8], impl FnMut(&str) -> bool),
) -> Option<()> {
    let talk = async {
        stdin.write_all(say).await.ok()?;
        let mut limited = stdout.take(limits.bytes);
        let mut line = Vec::new();
        loop {
            line.clear();
            if limited.read_until(b'\n', &mut line).await.ok()? == 0 {
                return None;
            }
            if last(&String::from_utf8_lossy(&line)) {
                return Some(());
            }
        }
    };
    timeout(limits.within, talk).await.ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{DuplexStream, duplex};
    use tokio::time::Instant;

    const WITHIN: Duration = Duration::from_secs(5);

    /// Talks to a peer; returns the lines, and whether one was the last (`.`).
    async fn said(most: u64, say: &[u8], peer: impl AsyncFnOnce(DuplexStream)) -> (Vec<String>, bool) {
        let (ours, theirs) = duplex(1 << 20);
        let (read, mut write) = tokio::io::split(ours);
        let mut lines = Vec::new();
        let take = |line: &str| {
            lines.push(line.trim_end().to_owned());
            line == ".\n"
        };
        let limits = AnswerLimits {
            bytes: most,
            within: WITHIN,
        };
        let mut read = BufReader::new(read);
        let theirs = async {
            peer(theirs).await;
            std::future::pending::<()>().await;
        };
        let talked = tokio::select! {
            talked = talk(&mut write, &mut read, limits, (say, take)) => talked.is_some(),
            () = theirs => false,
        };
        (lines, talked)
    }

    #[tokio::test]
    async fn an_answer_ends_with_its_last_line() {
        let (lines, talked) = said(100, b"ask", async |mut peer| {
            let mut asked = [0; 3];
            peer.read_exact(&mut asked).await.unwrap();
            assert_eq!(&asked, b"ask");
            peer.write_all(b"one\n\xff\n.\nnext").await.unwrap();
        })
        .await;
        assert_eq!(
            (lines, talked),
            (vec!["one".into(), "\u{fffd}".into(), ".".into()], true)
        );
    }

    #[tokio::test]
    async fn i6_an_answer_has_a_bound() {
        let answer = |most| {
            said(most, b"", async |mut peer| {
                peer.write_all(b"12345678\n.\n").await.unwrap();
            })
        };
        assert!(answer(11).await.1);
        assert!(!answer(10).await.1, "the last line is cut");
        let endless = said(1_000, b"", async |mut peer| {
            // Until the other side has enough.
            let _ = peer.write_all(&[b'x'; 4_000]).await;
        });
        assert!(!endless.await.1);
    }

    #[tokio::test(start_paused = true)]
    async fn i6_one_that_never_answers_or_reads_costs_the_time_of_one_file() {
        let silent = async |say: &[u8]| {
            let began = Instant::now();
            let (lines, talked) = said(100, say, async |mut peer| {
                peer.write_all(b"wait\n").await.unwrap();
                // Open until the talk is over.
                std::future::pending::<()>().await;
            })
            .await;
            assert_eq!((lines.len() <= 1, talked), (true, false));
            began.elapsed()
        };
        assert_eq!(silent(b"ask").await, WITHIN);
        // More than the pipe holds: it blocks at the request.
        assert_eq!(silent(&vec![0; 2 << 20]).await, WITHIN);
    }

    #[tokio::test]
    async fn one_that_ends_gives_no_answer() {
        let (lines, talked) = said(100, b"", async |mut peer| peer.write_all(b"half").await.unwrap()).await;
        assert_eq!((lines, talked), (vec!["half".to_owned()], false));
    }

    #[test]
    fn i6_restarts_are_bounded_and_answers_earn_more() {
        let mut starts = Starts::default();
        assert!(starts.take() && starts.is_first());
        assert_eq!((1..10).filter(|_| starts.take()).count(), 3);
        for _ in 1..ANSWERS_PER_START {
            starts.answered();
        }
        assert!(!starts.take() && !starts.is_first());
        starts.answered();
        assert!(starts.take() && !starts.take());
        // Answers without failures are no licence to fail later.
        let mut starts = Starts::default();
        assert!(starts.take());
        (0..100 * ANSWERS_PER_START).for_each(|_| starts.answered());
        assert!((0..100).filter(|_| starts.take()).count() <= 8);
    }
}
