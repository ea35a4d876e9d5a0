//! What is asked of a tool, and what is heard meanwhile.

use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A call of a server's tool, judged and allowed already.
#[derive(Debug, Clone)]
pub struct Call {
    /// The name of the tool for models.
    pub name: String,
    /// Its arguments, checked against its schema.
    pub arguments: Map<String, Value>,
    /// How long it may take; at most the server's own limit.
    pub time: Option<Duration>,
    /// Bytes of its text that the model reads.
    pub max_bytes: usize,
    /// Who hears of its progress.
    pub on_progress: OnProgress,
}

/// What a server says about the progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// How far it is.
    pub progress: f64,
    /// Where it ends, if the server knows.
    pub total: Option<f64>,
    /// Its words, on one line.
    pub message: String,
}

/// Takes the progress of a call; must not block.
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
