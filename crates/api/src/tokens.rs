//! The tokens that this daemon accepts: found by the hash of what a client presents, ended by revocation or time.

use agentd_actor_kit::Clock;
use agentd_protocol::{Fault, Labels, Principal, Timestamp, TokenRights};
use agentd_store::backend::damaged_token;
use agentd_store::{Backend, StoreError, StoredToken};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tokio::sync::{OnceCell, watch};

use crate::methods::Scope;

/// What every token begins with, so that people and redaction recognize one.
const PREFIX: &str = "agentd_";
/// A longer text is no token and is not hashed.
const LONGEST: usize = 256;
/// How often the last use of a token is written.
const WRITTEN_MS: u64 = 60_000;
/// The longest sleep before the clock is read again.
const NAP: Duration = Duration::from_secs(3_600);

/// The text of a new token. It has neither `Debug` nor `Serialize` (I8).
pub(crate) struct Secret(String);

impl Secret {
    /// 256 random bits.
    pub(crate) fn random() -> Result<Self, Fault> {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits).map_err(|error| {
            Fault::internal(
                "no_entropy",
                format!("cannot get random bytes from the system: {error}"),
            )
        })?;
        let mut text = PREFIX.to_owned();
        for byte in bits {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// The secret that a client presents; `None`: it is too long for a token or a code.
    pub(crate) fn read(text: &str) -> Option<Self> {
        (text.len() <= LONGEST).then(|| Self(text.to_owned()))
    }

    /// The text itself, for the one answer that has it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    pub(crate) fn hash(&self) -> [u8; 32] {
        hash(&self.0)
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// A token that was accepted, until it ends.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) name: String,
    pub(crate) scopes: Vec<Scope>,
    /// The labels that every session in its reach has; empty: all sessions.
    pub(crate) labels: Labels,
    /// Where and how its sessions may work.
    pub(crate) rights: TokenRights,
    hash: [u8; 32],
    expires: Option<Timestamp>,
    used: AtomicU64,
    written: AtomicU64,
    revoked: watch::Sender<bool>,
    clock: Clock,
}

impl Held {
    fn new(token: StoredToken, clock: Clock) -> Self {
        let used = token.used.map_or(0, |used| used.0);
        Self {
            // A scope of a later version means nothing here (I7).
            scopes: token
                .scopes
                .iter()
                .filter_map(|name| Scope::parse(name))
                .collect(),
            name: token.name,
            labels: token.labels,
            rights: token.rights.unwrap_or_default(),
            hash: token.hash,
            expires: token.expires,
            used: AtomicU64::new(used),
            written: AtomicU64::new(used),
            revoked: watch::channel(token.revoked.is_some()).0,
            clock,
        }
    }

    /// The SHA-256 of its text.
    pub(crate) const fn hash(&self) -> [u8; 32] {
        self.hash
    }

    pub(crate) fn is_live(&self) -> bool {
        !*self.revoked.borrow() && self.expires.is_none_or(|end| self.clock.now() < end)
    }

    /// Returns when it is revoked or expires.
    pub(crate) async fn ended(&self) {
        let mut revoked = self.revoked.subscribe();
        tokio::select! {
            // The sender lives as long as this borrow.
            _ = revoked.wait_for(|revoked| *revoked) => {}
            () = self.expiry() => {}
        }
    }

    async fn expiry(&self) {
        let Some(end) = self.expires else {
            return std::future::pending().await;
        };
        loop {
            match end.since_ms(self.clock.now()) {
                0 => return,
                left => tokio::time::sleep(Duration::from_millis(left).min(NAP)).await,
            }
        }
    }

    /// When it was last used.
    pub(crate) fn last_used(&self) -> Option<Timestamp> {
        Some(Timestamp(self.used.load(Ordering::Relaxed))).filter(|used| used.0 > 0)
    }

    /// Notes a use. Returns its time if it is to be written.
    fn touch(&self) -> Option<Timestamp> {
        let now = self.clock.now();
        self.used.fetch_max(now.0, Ordering::Relaxed);
        let written = self.written.load(Ordering::Relaxed);
        let due = written == 0 || now.0.saturating_sub(written) >= WRITTEN_MS;
        // Of several uses at once, one is written.
        let mine = || {
            self.written
                .compare_exchange(written, now.0, Ordering::Relaxed, Ordering::Relaxed)
        };
        (due && mine().is_ok()).then_some(now)
    }
}

/// The tokens that are not revoked, as the store has them.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    loaded: OnceCell<()>,
    table: RwLock<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// A look-up by hash takes the same time for every input, because no one can choose a hash.
    by_hash: HashMap<[u8; 32], Arc<Held>>,
    by_name: HashMap<String, Arc<Held>>,
    /// Tokens that were revoked here while the store, as last read, still has them as live.
    revoked: HashSet<[u8; 32]>,
}

impl Table {
    fn end(&mut self, held: &Held) {
        self.by_hash.remove(&held.hash);
        self.by_name.remove(&held.name);
        held.revoked.send_replace(true);
    }
}

impl Tokens {
    /// Reads the store on the first call.
    pub(crate) async fn ready(&self, backend: &Arc<dyn Backend>, clock: Clock) -> Result<(), Fault> {
        let load = async || {
            let settled = unless_damaged(backend.settle_token_rights().await)?;
            if !settled.is_empty() {
                let names = settled.join(", ");
                tracing::warn!(
                    names,
                    "tokens of an earlier version keep their scopes; their sessions now work only in workspaces from \
                     workspace.urls, with a mode that asks: to have others, create them anew with --dir, --source and --mode"
                );
            }
            for token in backend.tokens().await? {
                if token.revoked.is_none() {
                    self.accept(token, clock);
                }
            }
            Ok(())
        };
        self.loaded.get_or_try_init(load).await.copied()
    }

    /// Reads the store again: other nodes create and revoke tokens, too.
    pub(crate) async fn reread(&self, backend: &Arc<dyn Backend>, clock: Clock) -> Result<(), Fault> {
        for token in backend.tokens().await? {
            match token.revoked {
                Some(_) => self.over(&token.hash),
                None => self.accept(token, clock),
            }
        }
        Ok(())
    }

    /// Accepts a token from now on, unless it was revoked here. The streams of a known one stay as they are.
    pub(crate) fn accept(&self, token: StoredToken, clock: Clock) {
        let mut table = self.write();
        if table.by_hash.contains_key(&token.hash) || table.revoked.contains(&token.hash) {
            return;
        }
        agentd_text::register_token_name(&token.name);
        let held = Arc::new(Held::new(token, clock));
        // Another node may have given the name to a new token.
        if let Some(before) = table.by_name.get(&held.name).cloned() {
            table.end(&before);
        }
        table.by_name.insert(held.name.clone(), Arc::clone(&held));
        table.by_hash.insert(held.hash, held);
    }

    /// Accepts it no longer, whatever the store says, and ends its streams.
    pub(crate) fn revoke(&self, name: &str) {
        let mut table = self.write();
        let called = |held: &&Arc<Held>| held.name == name || damaged_token("", &held.hash) == name;
        let held = table.by_hash.values().find(called).cloned();
        if let Some(held) = held {
            table.revoked.insert(held.hash);
            table.end(&held);
        }
    }

    /// The store has it as revoked.
    fn over(&self, hash: &[u8; 32]) {
        let mut table = self.write();
        table.revoked.remove(hash);
        if let Some(held) = table.by_hash.get(hash).cloned() {
            table.end(&held);
        }
    }

    /// The live token that a principal stands for.
    pub(crate) fn of(&self, who: &Principal) -> Option<Arc<Held>> {
        let held = self.named(who.as_token()?)?;
        held.is_live().then_some(held)
    }

    /// The token of this name, unless it is revoked.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Held>> {
        self.read().by_name.get(name).cloned()
    }

    /// The live token with this text.
    pub(crate) fn find(&self, text: &str, backend: &Arc<dyn Backend>) -> Option<Arc<Held>> {
        if text.len() > LONGEST {
            return None;
        }
        let held = self.read().by_hash.get(&hash(text)).cloned()?;
        if !held.is_live() {
            return None;
        }
        if let Some(at) = held.touch() {
            let (backend, name) = (Arc::clone(backend), held.name.clone());
            tokio::spawn(async move {
                if let Err(error) = backend.token_used(&name, at).await {
                    tracing::warn!(name, %error, "could not store the last use of a token");
                }
            });
        }
        Some(held)
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of a change of the store. A damaged page prevents the change, but not the use of the tokens that can be read.
fn unless_damaged<T: Default>(done: Result<T, StoreError>) -> Result<T, StoreError> {
    match done {
        Err(error @ StoreError::Damaged(_)) => {
            tracing::error!(%error, "the tokens in the store stay as they are; those that cannot be read open nothing");
            Ok(T::default())
        }
        done => done,
    }
}

/// The one fault of a token that is unknown, revoked or expired: it does not say which.
pub(crate) fn bad_token() -> Fault {
    Fault::denied("bad_token", "the token is not valid")
        .hint("it may be mistyped, revoked or expired; `agentctl token ls` on the daemon's machine shows which tokens are live")
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_store::MemoryStore;

    fn stored(expires: Option<Timestamp>) -> StoredToken {
        StoredToken {
            name: "ci".to_owned(),
            hash: [7; 32],
            scopes: vec!["read".to_owned(), "fly".to_owned()],
            labels: Labels::new(),
            rights: None,
            created: Timestamp(0),
            by: Principal::user("ana"),
            expires,
            used: None,
            revoked: None,
        }
    }

    #[test]
    fn i8_every_token_is_unique_and_redacted() {
        let (Ok(one), Ok(other)) = (Secret::random(), Secret::random()) else {
            panic!("no entropy")
        };
        assert_ne!(one.expose(), other.expose());
        assert_eq!(one.expose().len(), PREFIX.len() + 64);
        assert_eq!(agentd_text::redact_known(one.expose()), "[redacted]");
    }

    #[test]
    fn i7_an_unknown_scope_grants_nothing() {
        assert_eq!(Held::new(stored(None), Clock::System).scopes, [Scope::Read]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_expires_and_its_use_is_stored_once_a_minute() {
        let start = Timestamp(1_000);
        let clock = Clock::virtual_from(start);
        let held = Held::new(stored(Some(start.plus_ms(10 * 3_600_000))), clock);
        assert_eq!((held.touch(), held.touch()), (Some(start), None));
        tokio::time::advance(Duration::from_millis(WRITTEN_MS)).await;
        assert_eq!(held.touch(), Some(start.plus_ms(WRITTEN_MS)));
        assert!(held.is_live());
        held.ended().await;
        assert!(!held.is_live());
        assert_eq!(clock.now(), start.plus_ms(10 * 3_600_000));
    }

    #[tokio::test]
    async fn i7_a_token_that_was_revoked_here_stays_so_until_the_store_agrees() {
        let backend: Arc<dyn Backend> = Arc::new(MemoryStore::default());
        assert!(backend.add_token(stored(None), Timestamp(0)).await.unwrap());
        let (tokens, clock) = (Tokens::default(), Clock::System);
        tokens.ready(&backend, clock).await.unwrap();
        tokens.revoke("ci");
        // The store is read before the revocation reaches it.
        tokens.reread(&backend, clock).await.unwrap();
        assert!(tokens.named("ci").is_none());
        assert!(backend.revoke_token("ci", Timestamp(1)).await.unwrap());
        tokens.reread(&backend, clock).await.unwrap();
        assert!(tokens.named("ci").is_none() && tokens.read().revoked.is_empty());
    }

    #[test]
    fn i7_the_streams_of_a_token_end_with_it_however_often_it_was_read() {
        let (tokens, clock) = (Tokens::default(), Clock::System);
        tokens.accept(stored(None), clock);
        let first = tokens.named("ci").unwrap();
        tokens.accept(stored(None), clock);
        assert!(Arc::ptr_eq(&first, &tokens.named("ci").unwrap()));
        let hash = [8; 32];
        tokens.accept(StoredToken { hash, ..stored(None) }, clock);
        let second = tokens.named("ci").unwrap();
        assert!(!first.is_live() && second.is_live());
        tokens.over(&hash);
        assert!(!second.is_live() && tokens.named("ci").is_none());
    }
}
