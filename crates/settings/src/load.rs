//! Merges all layers key by key.

use crate::check::check;
use crate::defaults::SHIPPED;
use crate::error::{Problem, SettingsError};
use crate::layer::{Leaf, dotted, from_text, from_value};
use crate::origin::Origin;
use crate::preset;
use crate::settings::Settings;
use agentd_protocol::without_types;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The sources of the layers above the defaults, lowest first.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Optional files: the system's, then the user's.
    pub optional: Vec<PathBuf>,
    /// The file of `--config`; it must exist.
    pub file: Option<PathBuf>,
    /// The environment; only `AGENTD_SECTION__KEY` counts.
    pub environment: Vec<(String, String)>,
    /// Flags as `(section.key, value)`.
    pub flags: Vec<(String, String)>,
}

impl Sources {
    /// The default files: `/etc/agentd/config.toml`, then `agentd/config.toml` in the user's configuration directory.
    #[must_use]
    pub fn standard(config_home: Option<&Path>, file: Option<PathBuf>) -> Self {
        let system = PathBuf::from("/etc/agentd/config.toml");
        let user = config_home.map(|home| home.join("agentd").join("config.toml"));
        Self {
            optional: [Some(system), user].into_iter().flatten().collect(),
            file,
            ..Self::default()
        }
    }

    /// All files, whether they exist or not, lowest layer first.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.optional.iter().chain(&self.file).map(PathBuf::as_path)
    }
}

/// The settings, and where each key was set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// The origin of each key: `loop.max_turns`, `permission.rules[0]`.
    pub origins: BTreeMap<String, Origin>,
}

impl From<Settings> for Loaded {
    /// Settings without recorded origins: none of them counts as an operator's limit.
    fn from(settings: Settings) -> Self {
        Self {
            settings,
            origins: BTreeMap::new(),
        }
    }
}

impl Loaded {
    /// The files that set something; empty if all values are defaults.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let files = self.origins.values().filter_map(|origin| match origin {
            Origin::File(path, _) => Some(path.display().to_string()),
            _ => None,
        });
        let files: BTreeSet<String> = files.collect();
        files.into_iter().collect()
    }
}

/// Reads the layers, merges them and checks the result.
///
/// # Errors
/// A file cannot be read, or a key is unknown, of the wrong type, or out of range.
pub fn load(sources: &Sources) -> Result<Loaded, SettingsError> {
    let mut problems = Vec::new();
    let mut layers =
        vec![from_text(SHIPPED, &Origin::Shipped).map_err(|problem| SettingsError::Invalid(vec![problem]))?];
    for (path, text) in texts(sources)? {
        match from_text(&text, &|line| Origin::File(path.clone(), line)) {
            Ok(leaves) => layers.push(leaves),
            Err(problem) => problems.push(problem),
        }
    }
    let environment = sources.environment.iter().filter_map(|(name, raw)| {
        let rest = name.strip_prefix("AGENTD_").filter(|rest| rest.contains("__"))?;
        let path: Vec<String> = rest.split("__").map(str::to_lowercase).collect();
        Some(from_value(&path, raw, &Origin::Environment(name.clone())))
    });
    let flags = sources.flags.iter().map(|(key, raw)| {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        from_value(&path, raw, &Origin::Flag(key.clone()))
    });
    for leaves in environment.chain(flags) {
        match leaves {
            Ok(leaves) => layers.push(leaves),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(SettingsError::Invalid(problems));
    }
    let loaded = merge_with_preset(&layers).map_err(|problem| SettingsError::Invalid(vec![problem]))?;
    let problems = check(&loaded);
    if problems.is_empty() {
        Ok(loaded)
    } else {
        Err(SettingsError::Invalid(problems))
    }
}

fn texts(sources: &Sources) -> Result<Vec<(PathBuf, String)>, SettingsError> {
    let mut texts = Vec::new();
    for path in sources.files() {
        let optional = sources.file.as_deref() != Some(path);
        match std::fs::read_to_string(path) {
            Ok(text) => texts.push((path.to_owned(), text)),
            Err(error) if optional && error.kind() == ErrorKind::NotFound => {}
            Err(source) => {
                return Err(SettingsError::Unreadable {
                    path: path.to_owned(),
                    source,
                });
            }
        }
    }
    Ok(texts)
}

fn merge_with_preset(layers: &[Vec<Leaf>]) -> Result<Loaded, Problem> {
    let plain = merge(layers.iter().flatten())?;
    let preset = plain.settings.r#loop.preset;
    let stands_for: Vec<Leaf> = preset::layer(preset)
        .into_iter()
        .map(|(section, key, value)| Leaf {
            path: vec![section.to_owned(), key.to_owned()],
            value,
            origin: Origin::Preset(preset),
            elements: Vec::new(),
        })
        .collect();
    let (shipped, above) = layers.split_at(layers.len().min(1));
    merge(
        shipped
            .iter()
            .flatten()
            .chain(&stands_for)
            .chain(above.iter().flatten()),
    )
}

fn merge<'a>(leaves: impl Iterator<Item = &'a Leaf>) -> Result<Loaded, Problem> {
    let mut table = Table::new();
    let mut origins = BTreeMap::new();
    for leaf in leaves {
        insert(&mut table, &mut origins, leaf);
    }
    let settings = table.try_into().map_err(|error: toml::de::Error| Problem {
        origin: None,
        key: String::new(),
        what: without_types(error.message(), "a table"),
        fix: "the shipped config/agentd.toml shows every key".to_owned(),
    })?;
    Ok(Loaded { settings, origins })
}

fn insert(table: &mut Table, origins: &mut BTreeMap<String, Origin>, leaf: &Leaf) {
    let Some((last, parents)) = leaf.path.split_last() else {
        return;
    };
    let mut place = table;
    for part in parents {
        let next = place
            .entry(part.clone())
            .or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(next) = next else { return };
        place = next;
    }
    let key = dotted(&leaf.path);
    match (place.get_mut(last), &leaf.value) {
        (Some(Value::Array(rules)), Value::Array(more)) if key == "permission.rules" => {
            for (rule, origin) in more.iter().zip(&leaf.elements) {
                origins.insert(format!("{key}[{}]", rules.len()), origin.clone());
                rules.push(rule.clone());
            }
        }
        (Some(Value::Table(_)), Value::Table(empty)) if empty.is_empty() => {}
        _ => {
            place.insert(last.clone(), leaf.value.clone());
            origins.insert(key, leaf.origin.clone());
        }
    }
}
