//! Identifies the peer of a connection. A peer that cannot be identified is refused (I7).

use agentd_protocol::{Fault, Principal};
use nix::unistd::{Uid, User};
use tokio::net::UnixStream;

/// The users that may connect: the daemon's own and root.
#[derive(Debug)]
pub(crate) struct Users {
    uid: u32,
    own: Principal,
}

impl Users {
    /// Looks up the daemon's own user; this may read files, so it is done once.
    pub(crate) fn look_up() -> Self {
        let uid = Uid::effective();
        Self {
            uid: uid.as_raw(),
            own: principal(uid),
        }
    }

    /// The principal of a peer, or the reason for refusing it.
    pub(crate) fn admit(&self, stream: &UnixStream) -> Result<Principal, Fault> {
        let denied = |why: &str| Fault::denied("peer_refused", why);
        let peer = stream
            .peer_cred()
            .map_err(|_| denied("the operating system did not report which user you are"))?;
        let who = match peer.uid() {
            uid if uid == self.uid => self.own.clone(),
            0 => Principal::user("root"),
            _ => return Err(denied("this daemon belongs to another user")),
        };
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.ok_or_else(|| denied("the operating system did not report which process you are"))?;
        if agentd_sandbox::descends_from(pid, std::process::id()) {
            return Err(Fault::denied(
                "tool_refused",
                "a process that a tool started may not control the daemon",
            ));
        }
        Ok(who)
    }
}

fn principal(uid: Uid) -> Principal {
    match User::from_uid(uid) {
        Ok(Some(user)) => Principal::user(&user.name),
        // A user without a name (as in a container) is identified by its number.
        Ok(None) | Err(_) => Principal::user(&uid.to_string()),
    }
}
