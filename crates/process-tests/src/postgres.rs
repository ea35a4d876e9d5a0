//! A throw-away PostgreSQL server, with Debian's programs.
#![expect(
    clippy::expect_used,
    reason = "this is support for tests, which fails by panicking"
)]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The account that Debian's package creates: PostgreSQL refuses to run as root.
const ACCOUNT: &str = "postgres";
/// Why a test is skipped.
const MISSING: &str = "PostgreSQL is not installed (apt-get install postgresql)";
/// How long a server may take to accept connections.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server in a temporary directory. It ends with the process that started it.
#[derive(Debug)]
pub struct Postgres {
    dir: TempDir,
    child: Child,
}

/// A database of a server.
#[derive(Debug, Clone)]
pub struct Database<'a> {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// The server.
    pub server: &'a Postgres,
}

/// Where the programs are: the newest of Debian's directories.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let versions = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    let mut versions: Vec<PathBuf> = versions.filter(|bin| bin.join("initdb").exists()).collect();
    versions.sort();
    versions.pop()
}

/// Starts the server, and again after each line on standard input, which first ends it at once: a crash of the server.
/// When this process, and with it the pipe, is gone, it ends the server and removes its files.
const RUN: &str = r#"while :; do
  "$@" & server=$!
  if read -r _; then kill -QUIT $server; wait $server; else break; fi
done
kill -QUIT $server; wait $server; rm -rf "$0""#;

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A command that runs as an unprivileged user.
#[expect(clippy::disallowed_methods, reason = "the test starts its own server")]
fn command(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if is_root() {
        command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups"]);
    }
    command.arg(program);
    command.env("LC_ALL", "C.UTF-8").current_dir("/");
    command
}

#[expect(clippy::disallowed_methods, reason = "the test asks for the account's ids")]
fn id(flag: &str) -> Option<u32> {
    let out = Command::new("id").args([flag, ACCOUNT]).output().ok()?;
    String::from_utf8(out.stdout).ok()?.trim().parse().ok()
}

/// A directory that the account of PostgreSQL owns.
fn directory() -> Option<TempDir> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    if is_root() {
        chown(dir.path(), Some(id("-u")?), Some(id("-g")?)).expect("the directory changes hands");
    }
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("others may enter");
    Some(dir)
}

impl Postgres {
    /// Creates a cluster and starts it with these additional settings. `None`: PostgreSQL is not installed.
    ///
    /// # Panics
    /// It is installed and does not start.
    #[must_use]
    pub fn start(settings: &[&str]) -> Option<Self> {
        let bin = programs()?;
        let dir = directory()?;
        let made = command(&bin.join("initdb"))
            .args(["-U", "agentd", "-A", "trust", "-E", "UTF8", "--no-sync", "-D"])
            .arg(dir.path().join("cluster"))
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "{made:?}");
        Some(Self::launch(&bin, dir, settings))
    }

    /// A standby of this server, for which it waits with every commit from now on.
    ///
    /// # Panics
    /// The standby does not start.
    #[must_use]
    pub fn standby(&self) -> Self {
        self.run("postgres", "SELECT 1");
        let bin = programs().expect("this server was started");
        let dir = directory().expect("this server has an account");
        let made = command(&bin.join("pg_basebackup"))
            .args(["-R", "-X", "stream", "-c", "fast", "--no-sync", "-d"])
            .arg(self.url("postgres"))
            .arg("-D")
            .arg(dir.path().join("cluster"))
            .output()
            .expect("pg_basebackup runs");
        assert!(made.status.success(), "{made:?}");
        let standby = Self::launch(&bin, dir, &[]);
        self.run("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.run("postgres", "SELECT pg_reload_conf()");
        let deadline = Instant::now() + PATIENCE;
        let state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while self.run("postgres", state) != "1" {
            assert!(Instant::now() < deadline, "the standby does not follow");
        }
        standby
    }

    /// Makes a standby the server.
    pub fn promote(&self) {
        let seconds = PATIENCE.as_secs();
        let promoted = self.run("postgres", &format!("SELECT pg_promote(true, {seconds})"));
        assert_eq!(promoted, "t", "{}", self.log());
    }

    fn launch(bin: &Path, dir: TempDir, settings: &[&str]) -> Self {
        let mut server = command(Path::new("sh"));
        server.args(["-c", RUN]).arg(dir.path()).arg(bin.join("postgres"));
        server
            .arg("-D")
            .arg(dir.path().join("cluster"))
            .arg("-k")
            .arg(dir.path());
        for setting in ["listen_addresses=", "max_connections=200"]
            .iter()
            .chain(settings)
        {
            server.args(["-c", setting]);
        }
        let log = File::create(dir.path().join("log")).expect("a log");
        server.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let child = server.spawn().expect("the server starts");
        Self { dir, child }
    }

    /// The server that all tests of this process share.
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();
        SERVER.get_or_init(|| Self::start(&[])).as_ref()
    }

    /// A server for one test, which may crash it or change its settings. `None`: PostgreSQL is not installed, which is
    /// reported.
    #[must_use]
    pub fn own(test: &str) -> Option<Self> {
        let started = Self::start(&[]);
        if started.is_none() {
            crate::skipped(MISSING, test);
        }
        started
    }

    /// The host in its URLs: the directory of its socket.
    #[must_use]
    pub fn host(&self) -> String {
        self.dir.path().display().to_string().replace('/', "%2F")
    }

    /// The URL of a database.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://agentd@{}/{database}", self.host())
    }

    /// The socket at which it listens.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join(".s.PGSQL.5432")
    }

    /// Runs statements once the server accepts connections, and returns what they print, one line for each row.
    ///
    /// # Panics
    /// A statement fails, or the server does not start.
    pub fn run(&self, database: &str, sql: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let out = self.psql(database, sql);
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            if out.status.success() {
                return String::from_utf8_lossy(&out.stdout).trim_end().to_owned();
            }
            // psql exits with 2 when there is no connection.
            let retry = out.status.code() == Some(2) && Instant::now() < deadline;
            assert!(retry, "{said}: {}", self.log());
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    #[expect(clippy::disallowed_methods, reason = "the test asks its own server")]
    fn psql(&self, database: &str, sql: &str) -> Output {
        Command::new("psql")
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql])
            .arg(self.url(database))
            .output()
            .expect("psql runs")
    }

    /// Ends the server at once, without a clean stop, and starts it again. Returns when it runs again.
    ///
    /// # Panics
    /// The process that runs the server is gone, or the server does not come back.
    pub fn crash(&self) {
        use std::io::Write as _;
        let start = || self.run("postgres", "SELECT pg_postmaster_start_time()");
        let (before, deadline) = (start(), Instant::now() + PATIENCE);
        let mut pipe = self.child.stdin.as_ref().expect("a pipe");
        pipe.write_all(b"\n").expect("the server is running");
        while start() == before {
            assert!(
                Instant::now() < deadline,
                "the server does not end: {}",
                self.log()
            );
        }
    }

    /// A new database.
    pub fn create(&self, name: &str) -> Database<'_> {
        self.run("postgres", &format!("CREATE DATABASE {name}"));
        Database {
            url: self.url(name),
            name: name.to_owned(),
            server: self,
        }
    }

    /// A new database on the shared server. `None`: PostgreSQL is not installed, which is reported.
    pub fn database(test: &str) -> Option<Database<'static>> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let Some(server) = Self::shared() else {
            crate::skipped(MISSING, test);
            return None;
        };
        Some(server.create(&format!("test{}", COUNT.fetch_add(1, Ordering::SeqCst))))
    }
}

impl Database<'_> {
    /// Runs statements in this database.
    pub fn run(&self, sql: &str) -> String {
        self.server.run(&self.name, sql)
    }

    /// What the server has logged so far, about all its databases.
    #[must_use]
    pub fn server_log(&self) -> String {
        self.server.log()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Its end is not ours to report.
        let _ = self.child.wait();
    }
}
