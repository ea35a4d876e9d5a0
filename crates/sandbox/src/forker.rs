//! The one thread of the daemon that starts wardens.

use std::io;
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// The kernel ties "dies with its parent" to the parent's thread, and the threads of a runtime come and go.
static THREAD: LazyLock<Result<Sender<Job>, String>> = LazyLock::new(|| {
    let (jobs, queue) = channel::<Job>();
    std::thread::Builder::new()
        .name("warden-starter".to_owned())
        .spawn(move || {
            while let Ok(job) = queue.recv() {
                job();
            }
        })
        .map_err(|error| error.to_string())?;
    Ok(jobs)
});

/// Starts a process from a thread that lives as long as the daemon.
pub(crate) async fn spawn(mut command: Command) -> io::Result<Child> {
    let jobs = THREAD.as_ref().map_err(|error| io::Error::other(error.clone()))?;
    let (answer, started) = oneshot::channel();
    let runtime = Handle::current();
    let job = move || {
        let _inside = runtime.enter();
        let spawned = command.spawn();
        // The command holds the other side's descriptors; as long as they are open here, their end would not be seen.
        drop(command);
        // Nobody waits any more when the session is gone; then the child is, too, with its socket.
        let _ = answer.send(spawned);
    };
    let gone = || io::Error::other("the thread that starts wardens ended");
    jobs.send(Box::new(job)).map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}
