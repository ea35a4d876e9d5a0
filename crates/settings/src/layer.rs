//! One layer of the configuration, split into leaves that know where they were set.

use crate::defaults::SHIPPED;
use crate::error::Problem;
use crate::origin::Origin;
use crate::settings::Settings;
use agentd_protocol::{nearest, without_types};
use serde::Deserialize as _;
use toml::de::{DeTable, DeValue, Deserializer};
use toml::{Spanned, Table, Value};

/// One key with its value.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// The key's parts.
    pub(crate) path: Vec<String>,
    /// Its value.
    pub(crate) value: Value,
    /// Where it was set.
    pub(crate) origin: Origin,
    /// Where each element was set, for an array.
    pub(crate) elements: Vec<Origin>,
}

/// A path as one TOML key: `models."gpt-4.1".price`.
pub(crate) fn dotted(path: &[String]) -> String {
    let bare = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let quote = |part: &String| {
        if bare(part) {
            part.clone()
        } else {
            Value::String(part.clone()).to_string()
        }
    };
    path.iter().map(quote).collect::<Vec<_>>().join(".")
}

/// Whether a TOML table is a single value for us.
fn is_leaf_table(path: &[String]) -> bool {
    matches!(path, [section, key] if section == "sandbox" && key == "network")
}

/// The settings if this were the only layer above the defaults. Errors point into its text.
pub(crate) fn settings_with(layer: &Spanned<DeTable<'_>>) -> Result<Settings, toml::de::Error> {
    let mut whole = DeTable::parse(SHIPPED)?.into_inner();
    lay_over(&mut whole, layer.get_ref());
    Settings::deserialize(Deserializer::from(Spanned::new(layer.span(), whole)))
}

/// Sets the keys of `top` in `table`. A key of both gets its span from `top`.
fn lay_over<'t>(table: &mut DeTable<'t>, top: &DeTable<'t>) {
    for (key, node) in top {
        let below = table.remove(key).map(Spanned::into_inner);
        let value = match (below, node.get_ref()) {
            (Some(DeValue::Table(mut inner)), DeValue::Table(top)) => {
                lay_over(&mut inner, top);
                DeValue::Table(inner)
            }
            (_, value) => value.clone(),
        };
        table.insert(key.clone(), Spanned::new(node.span(), value));
    }
}

/// The leaves of a TOML text. `at` returns the origin of a line.
pub(crate) fn from_text(text: &str, at: &dyn Fn(usize) -> Origin) -> Result<Vec<Leaf>, Problem> {
    let ends: Vec<usize> = text.match_indices('\n').map(|(end, _)| end).collect();
    let line = |offset: usize| 1 + ends.partition_point(|end| *end < offset);
    let spanned = DeTable::parse(text).map_err(|error| Problem {
        origin: Some(at(line(error.span().map_or(0, |span| span.start)))),
        key: String::new(),
        what: format!("invalid TOML: {}", error.message()),
        fix: "fix this line".to_owned(),
    })?;
    if let Err(error) = settings_with(&spanned) {
        let offset = error.span().map_or(0, |span| span.start);
        let mut path = Vec::new();
        find(spanned.get_ref(), offset, &mut path);
        return Err(explain(error.message(), &path, Some(at(line(offset)))));
    }
    let table: Table = toml::from_str(text).unwrap_or_default();
    let mut leaves = Vec::new();
    walk(
        &table,
        spanned.get_ref(),
        &mut Vec::new(),
        &|offset| at(line(offset)),
        &mut leaves,
    );
    Ok(leaves)
}

fn walk(
    table: &Table,
    spanned: &DeTable<'_>,
    path: &mut Vec<String>,
    at: &dyn Fn(usize) -> Origin,
    leaves: &mut Vec<Leaf>,
) {
    for (key, node) in spanned {
        let Some(value) = table.get(key.get_ref().as_ref()) else {
            continue;
        };
        path.push(key.get_ref().to_string());
        match (value, node.get_ref()) {
            (Value::Table(inner), DeValue::Table(spans)) if !inner.is_empty() && !is_leaf_table(path) => {
                walk(inner, spans, path, at, leaves);
            }
            (_, other) => {
                let elements = other
                    .as_array()
                    .map(|array| array.iter().map(|item| at(item.span().start)).collect());
                leaves.push(Leaf {
                    path: path.clone(),
                    value: value.clone(),
                    origin: at(key.span().start),
                    elements: elements.unwrap_or_default(),
                });
            }
        }
        path.pop();
    }
}

/// Finds the key whose name or value contains `offset`.
fn find(table: &DeTable<'_>, offset: usize, path: &mut Vec<String>) -> bool {
    for (key, node) in table {
        path.push(key.get_ref().to_string());
        if key.span().contains(&offset) {
            return true;
        }
        match node.get_ref() {
            DeValue::Table(inner) if find(inner, offset, path) => return true,
            _ if node.span().contains(&offset) => return true,
            _ => {}
        }
        path.pop();
    }
    false
}

/// A single value from outside a file: parsed as TOML if that has the right type, else a string.
pub(crate) fn from_value(path: &[String], raw: &str, origin: &Origin) -> Result<Vec<Leaf>, Problem> {
    let read = |value: &str| from_text(&format!("{} = {value}", dotted(path)), &|_| origin.clone());
    let quoted = Value::String(raw.to_owned()).to_string();
    let is_value = toml::from_str::<Table>(&format!("value = {raw}")).is_ok_and(|table| table.len() == 1);
    if !is_value {
        return read(&quoted);
    }
    read(raw).or_else(|problem| read(&quoted).map_err(|_| problem))
}

/// Rewrites serde's message in our terms, with a remedy.
fn explain(message: &str, path: &[String], origin: Option<Origin>) -> Problem {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        let unknown = quoted.next().unwrap_or_default();
        let known: Vec<&str> = quoted.collect();
        let fix = match nearest(unknown, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("the known keys are: {}", known.join(", ")),
        };
        return Problem {
            origin,
            key: dotted(path),
            what: format!("unknown key `{unknown}`"),
            fix,
        };
    }
    let default = Table::try_from(Settings::default()).ok().and_then(|table| {
        path.iter()
            .try_fold(Value::Table(table), |value, part| value.get(part).cloned())
    });
    let fix = match default {
        Some(value) if !value.is_table() => format!("the default is `{} = {value}`", dotted(path)),
        _ => "the shipped config/agentd.toml shows every key".to_owned(),
    };
    let what = without_types(message.lines().next().unwrap_or("wrong type"), "a table");
    Problem {
        origin,
        key: dotted(path),
        what,
        fix,
    }
}
