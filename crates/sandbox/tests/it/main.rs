//! The sandbox with real processes and a real kernel. The program starts itself as a warden and as a daemon that is killed, so it
//! has its own `main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(agentd_sandbox::WARDEN_ARG) => agentd_sandbox::warden_main(),
        Some(deadline::DAEMON) => deadline::play_daemon(),
        Some(orphans::DAEMON) => orphans::play_daemon(),
        Some(resident::DAEMON) => resident::play_daemon(),
        Some(walls::DAEMON) => walls::play_daemon(),
        _ => agentd_process_tests::main(&[
            bounds::group(),
            broker::group(),
            deadline::group(),
            history::group(),
            network::group(),
            orphans::group(),
            resident::group(),
            strays::group(),
            terminal::group(),
            unattended::group(),
            walls::group(),
        ]),
    }
}

/// Cases that are told what the kernel offers. They do not run where `$found` is `None`.
#[cfg(test)]
macro_rules! cases_with {
    ($found:ident, $($name:ident),* $(,)?) => {
        [$((stringify!($name), || Box::pin(async {
            if let Some(found) = $found().await {
                $name(found).await;
            }
        }))),*]
    };
}

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod broker;
#[cfg(test)]
mod deadline;
#[cfg(test)]
mod history;
#[cfg(test)]
mod network;
#[cfg(test)]
mod orphans;
#[cfg(test)]
mod resident;
#[cfg(test)]
mod strays;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod unattended;
#[cfg(test)]
mod walls;
