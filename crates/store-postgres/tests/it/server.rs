//! A throw-away server: one for the process, with a database for each test.

use crate::kit::{Kit, moving_clock};
use agentd_store::{Backend, Options, StoreError};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// The account that Debian's package creates: PostgreSQL refuses to run as root.
const ACCOUNT: &str = "postgres";

/// A running server; it ends with the process that started it.
pub(crate) struct Server {
    dir: TempDir,
    child: Child,
}

/// Where the programs are: the newest of Debian's directories, or the path.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut versions: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    versions.sort();
    versions.pop()
}

/// Ends the server and removes its files when this process, and with it the pipe, is gone.
const RUN: &str = r#""$@" & server=$!; read -r _; kill -QUIT $server; wait $server; rm -rf "$0""#;

/// A command that runs as an unprivileged user.
#[expect(clippy::disallowed_methods, reason = "the test starts its own server")]
fn command(program: &Path) -> Command {
    let root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = Command::new("setpriv");
    if root {
        command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups"]);
    }
    command.arg(program);
    command.env("LC_ALL", "C.UTF-8").current_dir("/");
    command
}

impl Server {
    /// Creates a cluster and starts it, with more settings.
    #[expect(clippy::disallowed_methods, reason = "the test starts its own server")]
    pub(crate) fn start(settings: &[&str]) -> Option<Self> {
        let bin = programs()?;
        let dir = tempfile::tempdir().unwrap();
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            let id = |flag: &str| {
                let out = Command::new("id").args([flag, ACCOUNT]).output().unwrap();
                String::from_utf8(out.stdout).unwrap().trim().parse().ok()
            };
            chown(dir.path(), Some(id("-u")?), Some(id("-g")?)).unwrap();
        }
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let cluster = dir.path().join("cluster");
        let made = command(&bin.join("initdb"))
            .args(["-U", "agentd", "-A", "trust", "-E", "UTF8", "--no-sync", "-D"])
            .arg(&cluster)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let mut server = command(Path::new("sh"));
        server.args(["-c", RUN]).arg(dir.path()).arg(bin.join("postgres"));
        server.arg("-D").arg(&cluster).arg("-k").arg(dir.path());
        for setting in ["listen_addresses=", "max_connections=200"]
            .iter()
            .chain(settings)
        {
            server.args(["-c", setting]);
        }
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        server.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let child = server.spawn().unwrap();
        Some(Self { dir, child })
    }

    /// The server that all tests of this process share.
    fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        SERVER.get_or_init(|| Self::start(&[])).as_ref()
    }

    pub(crate) fn url(&self, database: &str) -> String {
        let host = self.dir.path().display().to_string().replace('/', "%2F");
        format!("postgres://agentd@{host}/{database}")
    }

    /// Runs statements, once the server accepts connections.
    pub(crate) async fn run(&self, database: &str, sql: &str) {
        let url = self.url(database);
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(120);
        loop {
            match tokio_postgres::connect(&url, NoTls).await {
                Ok((client, connection)) => {
                    tokio::spawn(connection);
                    return client.batch_execute(sql).await.unwrap();
                }
                Err(error) => {
                    let log = || std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
                    assert!(tokio::time::Instant::now() < deadline, "{error}: {}", log());
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// A database of a test.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) name: String,
    pub(crate) server: &'static Server,
}

impl Database {
    /// `None`: PostgreSQL is not installed, which is reported.
    pub(crate) async fn create(test: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let Some(server) = Server::shared() else {
            agentd_process_tests::skipped("PostgreSQL is not installed (apt-get install postgresql)", test);
            return None;
        };
        let name = format!("test{}", COUNT.fetch_add(1, Ordering::SeqCst));
        server.run("postgres", &format!("CREATE DATABASE {name}")).await;
        Some(Self {
            url: server.url(&name),
            name,
            server,
        })
    }

    pub(crate) async fn open(&self, options: Options) -> Result<Arc<dyn Backend>, StoreError> {
        agentd_store_postgres::open(&self.url, None, options).await
    }

    pub(crate) async fn kit(&self) -> Kit {
        let (clock, now) = moving_clock();
        let options = Options {
            clock,
            readers: 8,
            read_timeout: std::time::Duration::from_secs(300),
            ..Options::default()
        };
        Kit::new(
            tempfile::tempdir().unwrap(),
            self.open(options).await.unwrap(),
            now,
        )
    }
}
