//! A fake server.

use crate::launch::{Child, Launch, Process};
use crate::spec::{Command, ServerSpec, Transport};
use crate::{Limits, McpError};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The reaction of the server to a message.
pub(super) enum Act {
    Say(Value),
    Die(&'static str),
}

type Behaviour = dyn Fn(usize, &Value) -> Option<Vec<Act>> + Send + Sync;

/// Fakes servers: handles every message that `behaviour` leaves out as a correct server does.
pub(super) struct Fake {
    behaviour: Box<Behaviour>,
    /// The directories of the servers that were started.
    pub(super) started: watch::Sender<Vec<String>>,
    /// All messages that they received.
    pub(super) heard: watch::Sender<Vec<Value>>,
    /// The number of ended servers.
    pub(super) ended: watch::Sender<usize>,
}

impl Fake {
    pub(super) fn new(
        behaviour: impl Fn(usize, &Value) -> Option<Vec<Act>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            behaviour: Box::new(behaviour),
            started: watch::Sender::default(),
            heard: watch::Sender::default(),
            ended: watch::Sender::default(),
        })
    }

    pub(super) fn good() -> Arc<Self> {
        Self::new(|_, _| None)
    }

    pub(super) fn starts(&self) -> usize {
        self.started.borrow().len()
    }

    /// Waits until a server receives a message of a method.
    pub(super) async fn told(&self, method: &str) -> Value {
        let mut heard = self.heard.subscribe();
        let of = |message: &&Value| message["method"] == method;
        let all = heard
            .wait_for(|all| all.iter().any(|message| of(&message)))
            .await
            .unwrap();
        all.iter().find(of).unwrap().clone()
    }
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}

struct Played {
    over: watch::Receiver<Option<&'static str>>,
    task: JoinHandle<()>,
    fake: Arc<Fake>,
}

impl Drop for Played {
    fn drop(&mut self) {
        self.task.abort();
        self.fake.ended.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl Process for Played {
    async fn ended(&mut self) -> String {
        let word = self.over.wait_for(Option::is_some).await;
        word.map_or_else(
            |_| "it is over".to_owned(),
            |word| word.unwrap_or_default().to_owned(),
        )
    }

    async fn end(&mut self, _: Duration) {
        self.task.abort();
    }
}

/// Starts fake servers.
#[derive(Debug)]
pub(super) struct Stage(pub(super) Arc<Fake>);

#[async_trait]
impl Launch for Stage {
    async fn launch(&self, _: &str, _: &Command, workdir: &Path) -> Result<Child, McpError> {
        let fake = Arc::clone(&self.0);
        let number = fake.starts();
        fake.started
            .send_modify(|all| all.push(workdir.to_string_lossy().into_owned()));
        let (stdin, input) = duplex(1 << 16);
        let (output, stdout) = duplex(1 << 16);
        let (word, over) = watch::channel(None);
        let task = tokio::spawn(play(Arc::clone(&fake), number, input, output, word));
        Ok(Child {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            process: Box::new(Played { over, task, fake }),
        })
    }
}

async fn play(
    fake: Arc<Fake>,
    number: usize,
    input: DuplexStream,
    mut output: DuplexStream,
    word: watch::Sender<Option<&'static str>>,
) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let acts = (fake.behaviour)(number, &message).unwrap_or_else(|| as_good(&message));
        fake.heard.send_modify(|all| all.push(message));
        for act in acts {
            match act {
                Act::Say(value) => {
                    let line = format!("{value}\n");
                    if output.write_all(line.as_bytes()).await.is_err() {
                        return;
                    }
                }
                Act::Die(why) => {
                    word.send_replace(Some(why));
                    return;
                }
            }
        }
    }
    word.send_replace(Some("its input was closed"));
}

fn as_good(message: &Value) -> Vec<Act> {
    let reply = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "fake", "version": "1" },
        }),
        Some("tools/list") => json!({ "tools": [tool("echo")] }),
        Some("tools/call") => {
            json!({ "content": [{ "type": "text", "text": message["params"]["arguments"].to_string() }] })
        }
        Some("ping") => json!({}),
        _ => return Vec::new(),
    };
    vec![result(message, &reply)]
}

/// An answer to a request.
pub(super) fn result(request: &Value, result: &Value) -> Act {
    Act::Say(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
}

fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": "says it again",
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
        "annotations": { "readOnlyHint": true, "destructiveHint": false },
    })
}

/// Tools of these names.
pub(super) fn offered(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| tool(name)).collect()
}

/// The spec of a fake server.
pub(super) fn spec(name: &str) -> ServerSpec {
    let command = Command::new(vec!["played".to_owned()]);
    ServerSpec {
        limits: Limits {
            start: Duration::from_secs(10),
            call: Duration::from_secs(60),
            idle: Duration::from_secs(600),
        },
        ..ServerSpec::new(name, Transport::Stdio(command))
    }
}
