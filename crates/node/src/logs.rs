//! The destinations of log lines: the console in short form, `logs/agentd.log` in full; both redacted.

use crate::error::NodeError;
use crate::paths::Paths;
use crate::rotated::Rotated;
use agentd_settings::LogConfig;
use std::io::{self, IsTerminal as _, Write};
use std::sync::Mutex;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

/// A writer that hides secrets. The formatter passes it complete lines.
struct Redacting<W>(W);

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(agentd_text::redact(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Sets up logging for the process. `filter` from the command line takes precedence over the configuration; `verbose`
/// shows more on the console.
///
/// # Errors
/// The log file cannot be opened, or the filter is invalid.
pub fn start_logging(
    paths: &Paths,
    config: &LogConfig,
    filter: Option<&str>,
    verbose: u8,
) -> Result<(), NodeError> {
    let path = paths.logs().join("agentd.log");
    let file = Rotated::open(&path, config.max_bytes, config.files).map_err(|e| NodeError::path(&path, e))?;
    let level = filter.unwrap_or(&config.level);
    // ractor's own spans cost memory and add nothing to ours.
    let parse = |level: &str| {
        EnvFilter::try_new(format!("{level},ractor=warn,hyper=warn,reqwest=warn")).map_err(|e| {
            NodeError::Unsupported(format!(
                "invalid log filter {level:?}: {e}; example: info,agentd_store=debug"
            ))
        })
    };
    let console_level = match (filter, verbose) {
        (Some(filter), _) => filter,
        (None, 0) => "warn",
        (None, 1) => "info",
        (None, _) => "debug",
    };
    let to_file = fmt::layer()
        .with_ansi(false)
        .with_file(true)
        .with_line_number(true)
        .with_writer(Mutex::new(Redacting(file)))
        .with_filter(parse(level)?);
    let to_console = fmt::layer()
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .with_writer(|| Redacting(io::stderr()))
        .with_filter(parse(console_level)?);
    // A second call in one process, as in tests, keeps the first subscriber.
    let _ = tracing_subscriber::registry()
        .with(to_file)
        .with(to_console)
        .try_init();
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(())
}
