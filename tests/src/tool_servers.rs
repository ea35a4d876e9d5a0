//! The tool servers of the protocol's own project, from npm. Their files live in `target/mcp`; CI puts them there.

use crate::skip::skipped;
use std::path::{Path, PathBuf};

/// How their files get here.
const INSTALL: &str = "mkdir -p target/mcp && cp tests/mcp/package*.json target/mcp/ && \
                       npm ci --prefix target/mcp --ignore-scripts";

/// Where the servers are installed. `None`, and a loud word about it: they are not.
pub fn tool_servers(test: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let dir = root.join("target/mcp");
    let all = ["everything", "filesystem"]
        .iter()
        .all(|name| tool_server(&dir, name).is_file());
    if !all {
        skipped(
            test,
            &format!(
                "the tool servers are not in {}; install them with: {INSTALL}",
                dir.display()
            ),
        );
        return None;
    }
    Some(dir)
}

/// The program of one of them, for node.
pub fn tool_server(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!(
        "node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
    ))
}
