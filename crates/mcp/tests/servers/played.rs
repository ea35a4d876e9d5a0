//! Servers that misbehave.

use serde_json::{Value, json};
use std::io::{BufRead as _, Write as _};
use std::process::{ExitCode, Stdio};

/// Runs a fake server; the mode decides what it does in a call.
pub(crate) fn serve(mode: &str) -> ExitCode {
    match mode {
        "broken" => {
            eprintln!("reading the configuration\nError: no such database\n    at line 3");
            return ExitCode::from(3);
        }
        "babble" => babble(),
        "noisy" => println!("Welcome to the server!\n\n{{not json\n{{\"jsonrpc\": 1}}"),
        _ => {}
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let Some(result) = answer(mode, &message) else {
            continue;
        };
        say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
    }
    ExitCode::SUCCESS
}

fn say(message: &Value) {
    let _ = writeln!(std::io::stdout().lock(), "{message}");
}

fn answer(mode: &str, message: &Value) -> Option<Value> {
    let tool = json!({ "name": "go", "inputSchema": { "type": "object" } });
    let text = match message["method"].as_str()? {
        "initialize" => {
            return Some(json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": mode, "version": "1" },
            }));
        }
        "tools/list" => return Some(json!({ "tools": [tool] })),
        "tools/call" if mode == "writing" => {
            let path = message["params"]["arguments"]["path"].as_str()?;
            format!("{:?}", std::fs::write(path, "x").map_err(|error| error.kind()))
        }
        "tools/call" => in_call(mode),
        _ => return None,
    };
    Some(json!({ "content": [{ "type": "text", "text": text }] }))
}

fn in_call(mode: &str) -> String {
    match mode {
        "crash" => {
            eprintln!("Error: out of cheese");
            std::process::abort();
        }
        "babble-in-call" => babble(),
        "long-line" => {
            say(&json!({ "jsonrpc": "2.0", "method": "x", "params": "y".repeat(20 << 20) }));
            "after a long line".to_owned()
        }
        "huge" => "z".repeat(4 << 20),
        "asking" => loop {
            // Never reads the answers.
            say(
                &json!({ "jsonrpc": "2.0", "id": "again", "method": "ping", "params": { "_meta": { "x": "y".repeat(2000) } } }),
            );
        },
        "environment" => {
            let mut names: Vec<String> = std::env::vars()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            names.sort_unstable();
            names.join("\n")
        }
        "family" => grandchild(),
        _ => std::env::current_dir().unwrap().display().to_string(),
    }
}

fn babble() -> ! {
    let noise = vec![b'x'; 1 << 16];
    loop {
        if std::io::stdout().lock().write_all(&noise).is_err() {
            std::process::abort();
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "plays a server that leaves a process behind"
)]
fn grandchild() -> String {
    let said = std::process::Command::new("sh")
        .args(["-c", "setsid sleep 300 >/dev/null 2>&1 & echo $!"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}
