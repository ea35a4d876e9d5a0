//! Call ids: only the match between results and calls matters.

use serde_json::Value;

/// Ids in order of appearance.
#[derive(Debug, Default)]
pub(super) struct Ids {
    seen: Vec<String>,
}

impl Ids {
    /// Replaces the id in a field by its number.
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
