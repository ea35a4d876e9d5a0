//! A call of a tool, and its progress reports.

use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A call of a server's tool that was already judged and allowed.
#[derive(Debug, Clone)]
pub struct Call {
    /// The name of the tool for models.
    pub name: String,
    /// Its arguments, checked against its schema.
    pub arguments: Map<String, Value>,
    /// How long it may take; at most the server's own limit.
    pub time: Option<Duration>,
    /// The most bytes of text for the model.
    pub max_bytes: usize,
    /// Receives its progress.
    pub on_progress: OnProgress,
}

/// A progress report of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// The progress so far.
    pub progress: f64,
    /// The final value, if the server knows it.
    pub total: Option<f64>,
    /// The server's message, on one line.
    pub message: String,
}

/// Receives the progress of a call; must not block.
#[derive(Clone)]
pub struct OnProgress(Arc<dyn Fn(Heard) + Send + Sync>);

impl OnProgress {
    /// Calls `f`.
    pub fn new(f: impl Fn(Heard) + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    pub(crate) fn report(&self, heard: Heard) {
        (self.0)(heard);
    }
}

impl Default for OnProgress {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for OnProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnProgress")
    }
}
