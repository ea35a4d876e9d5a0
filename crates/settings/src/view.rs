//! The settings as text, for `config view --show-origin` and `--print-config`.

use crate::layer::dotted;
use crate::load::Loaded;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// A URL with its password hidden, safe for logs.
#[must_use]
pub fn mask_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else {
        return url.to_owned();
    };
    let name = user.split(':').next().unwrap_or_default();
    let tail = rest.get(user.len()..).unwrap_or_default();
    format!("{scheme}://{name}:***{tail}")
}

/// The settings for display: passwords in URLs are hidden, and each key has its origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The files that were read.
    pub files: Vec<String>,
    /// The settings.
    pub settings: Table,
    /// Where each key was set.
    pub origins: BTreeMap<String, String>,
}

impl Loaded {
    /// The settings for users and other programs.
    #[must_use]
    pub fn shown(&self) -> Shown {
        let origins = self.origins.iter();
        let mut settings = Table::try_from(&self.settings).unwrap_or_default();
        settings.iter_mut().for_each(|(_, value)| mask(value));
        Shown {
            files: self.files(),
            settings,
            origins: origins
                .map(|(key, origin)| (key.clone(), origin.to_string()))
                .collect(),
        }
    }
}

impl Shown {
    /// The settings as TOML, one key per line, with their origins if requested.
    #[must_use]
    pub fn text(&self, show_origin: bool) -> String {
        let mut text = String::new();
        self.write(&self.settings, &mut Vec::new(), show_origin, &mut text);
        text
    }

    fn write(&self, table: &Table, path: &mut Vec<String>, show_origin: bool, text: &mut String) {
        for (name, value) in table {
            path.push(name.clone());
            let key = dotted(path);
            match value {
                Value::Table(inner) if key != "sandbox.network" => self.write(inner, path, show_origin, text),
                Value::Array(items) if items.len() > 1 => {
                    text.push_str(&format!("{key} = [{}\n", self.comment(&key, show_origin)));
                    for (index, item) in items.iter().enumerate() {
                        let origin = self.comment(&format!("{key}[{index}]"), show_origin);
                        text.push_str(&format!("    {item},{origin}\n"));
                    }
                    text.push_str("]\n");
                }
                Value::Array(items) if key == "permission.rules" && !items.is_empty() => {
                    let origin = self.comment("permission.rules[0]", show_origin);
                    text.push_str(&format!("{key} = {value}{origin}\n"));
                }
                Value::String(_)
                | Value::Integer(_)
                | Value::Float(_)
                | Value::Boolean(_)
                | Value::Datetime(_)
                | Value::Array(_)
                | Value::Table(_) => {
                    text.push_str(&format!("{key} = {value}{}\n", self.comment(&key, show_origin)));
                }
            }
            path.pop();
        }
    }

    fn comment(&self, key: &str, show_origin: bool) -> String {
        match self.origins.get(key) {
            Some(origin) if show_origin => format!("  # {origin}"),
            _ => String::new(),
        }
    }
}

fn mask(value: &mut Value) {
    match value {
        Value::String(text) => *text = mask_url(text),
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| mask(value)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}
