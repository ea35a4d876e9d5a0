//! Types as the description of the API shows them.

use serde_json::{Map, Value};
use std::borrow::Cow;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

/// A type with its name and its schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown {
    name: fn() -> Cow<'static, str>,
    schema: fn() -> RefOr<Schema>,
    below: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Shown {
    pub(crate) const fn of<T: ToSchema>() -> Self {
        Self {
            name: T::name,
            schema: T::schema,
            below: T::schemas,
        }
    }

    /// The name of the type.
    pub(crate) fn name(self) -> Cow<'static, str> {
        (self.name)()
    }

    /// The schema of the type itself.
    pub(crate) fn schema(self) -> Value {
        plain(&(self.schema)())
    }

    /// Adds the schemas of the types inside.
    pub(crate) fn below(self, schemas: &mut Map<String, Value>) {
        let mut below = Vec::new();
        (self.below)(&mut below);
        for (name, schema) in below {
            schemas.entry(named(&name)).or_insert_with(|| plain(&schema));
        }
    }
}

/// The aliases of the protocol, by the names of the types that they stand for.
const ALIASES: [(&str, &str); 2] = [("u64", "Seq"), ("BTreeMap", "Labels")];

fn named(name: &str) -> String {
    let alias = ALIASES.iter().find(|(meant, _)| *meant == name);
    alias.map_or(name, |(_, alias)| alias).to_owned()
}

/// A schema as JSON, with references to aliases by their names, and formats by theirs.
fn plain(schema: &RefOr<Schema>) -> Value {
    // A schema is plain data, so this cannot fail.
    let mut schema = serde_json::to_value(schema).unwrap_or_default();
    rename(&mut schema);
    schema
}

fn rename(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref")
                && let Some((place, name)) = reference.rsplit_once('/')
            {
                *reference = format!("{place}/{}", named(name));
            }
            // utoipa misspells what the registry of formats calls uint64.
            if let Some(Value::String(format)) = fields.get_mut("format")
                && let Some(bits) = format.strip_prefix("u-int")
            {
                *format = format!("uint{bits}");
            }
            fields.values_mut().for_each(rename);
        }
        Value::Array(items) => items.iter_mut().for_each(rename),
        _ => {}
    }
}

/// No fields: the request takes none, or is carried out.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// An overview for troubleshooting, for people: its fields change between versions.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub(crate) struct Diagnostics(#[expect(dead_code, reason = "only its schema counts")] Value);

/// The settings that the daemon runs with, without secrets.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema counts")]
pub(crate) struct Settings {
    /// The files that it read.
    files: Vec<String>,
    /// All settings, as in the configuration file.
    settings: Map<String, Value>,
    /// Where each setting comes from.
    origins: std::collections::BTreeMap<String, String>,
}
