//! The one thread of the daemon that starts wardens.

use crate::fork_server::Birth;
use crate::line::Line;
use rustix::fd::OwnedFd;
use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce(&mut Line) + Send>;

/// The kernel ties "dies with its parent" to the parent's thread, and a runtime's threads come and go. This thread also
/// holds the connection to the fork server.
static THREAD: LazyLock<Result<Sender<Job>, String>> = LazyLock::new(|| {
    let (jobs, queue) = channel::<Job>();
    std::thread::Builder::new()
        .name("warden-starter".to_owned())
        .spawn(move || {
            let mut line = Line::default();
            while let Ok(job) = queue.recv() {
                job(&mut line);
            }
        })
        .map_err(|error| error.to_string())?;
    Ok(jobs)
});

/// Starts a process from a thread that lives as long as the daemon.
pub(crate) async fn spawn(mut command: Command) -> io::Result<Child> {
    let runtime = Handle::current();
    there(move |line| {
        let _inside = runtime.enter();
        // The command holds the other side's descriptors; while they are open here, their end would go unnoticed.
        let child = command.spawn()?;
        line.note(child.id());
        Ok(child)
    })
    .await
}

/// Forks a warden from the fork server. Returns the descriptor of its process.
pub(crate) async fn fork(exe: PathBuf, birth: Birth, socket: OwnedFd) -> io::Result<OwnedFd> {
    there(move |line| line.ask(&exe, &birth, &socket)).await
}

pub(crate) async fn there<T: Send + 'static>(
    work: impl FnOnce(&mut Line) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let jobs = THREAD.as_ref().map_err(|error| io::Error::other(error.clone()))?;
    let (answer, done) = oneshot::channel();
    let job = move |line: &mut Line| {
        // If the session is gone, the caller stopped waiting; then the process exits as well, when its socket closes.
        let _ = answer.send(work(line));
    };
    let gone = || io::Error::other("the thread that starts wardens has ended");
    jobs.send(Box::new(job)).map_err(|_| gone())?;
    done.await.map_err(|_| gone())?
}
