//! Names of calls: only which result belongs to which call matters.

use serde_json::Value;

/// Names in order of appearance.
#[derive(Debug, Default)]
pub(super) struct Ids {
    seen: Vec<String>,
}

impl Ids {
    /// Replaces the name in a field by its number.
    pub(super) fn number(&mut self, value: &mut Value, key: &str) {
        let Some(Value::String(id)) = value.get_mut(key) else {
            return;
        };
        let place = self.seen.iter().position(|one| one == id).unwrap_or_else(|| {
            self.seen.push(id.clone());
            self.seen.len() - 1
        });
        *id = format!("call {place}");
    }
}
