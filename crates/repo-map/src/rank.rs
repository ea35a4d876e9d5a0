//! Ranks definitions: those in files that others use come first, relative to what the reader works on.
//!
//! PageRank over files, as in aider's repository map, but with the names between them as separate nodes: a file passes
//! its weight to the names it uses, a name to the files that define it. So the work grows with the number of tags, not
//! with the product of users and definers.

use crate::tags::Tags;
use std::collections::{BTreeMap, BTreeSet};

/// The share of a file's weight that passes to the names it uses.
const DAMPING: f64 = 0.85;
/// The most rounds; after some twenty the order hardly changes.
const ROUNDS: u32 = 30;
/// The iteration ends when a round moves less than this.
const ENOUGH: f64 = 1e-6;
/// The factor for a file that the reader works on.
const FOCUS: f64 = 50.0;
const NAMED: f64 = 10.0;
/// The factor for a long name of several words, which is more specific.
const TELLING: f64 = 4.0;
/// The factor for a name that is marked as private.
const PRIVATE: f64 = 0.1;
/// Names that more files than this define count less.
const COMMON: usize = 5;
/// The factor for a file's uses of names that it defines itself.
const OWN: f64 = 0.1;

/// The current work of the reader.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Focus {
    /// Paths of files.
    pub files: BTreeSet<String>,
    /// Names that were mentioned.
    pub names: BTreeSet<String>,
}

/// A definition with its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The index of the file.
    pub file: usize,
    /// The index of the definition in the file.
    pub definition: usize,
    /// Its weight; the sum over all definitions is about 1.
    pub weight: f64,
}

/// The graph of files and names, with uses and definitions as edges.
struct Graph {
    /// By file: the names it uses, and the share of its weight that each gets; the shares add up to 1.
    uses: Vec<Vec<(usize, f64)>>,
    /// By name: the files that define it.
    definers: Vec<Vec<usize>>,
    /// By file: its initial weight; the sum is 1.
    bias: Vec<f64>,
}

/// All definitions, the highest weight first; equal weights in the order of files and lines.
#[must_use]
pub fn rank(files: &[(&str, &Tags)], focus: &Focus) -> Vec<Ranked> {
    let names = names(files);
    let graph = Graph::new(files, &names, focus);
    let (weights, inflow) = graph.settle();
    let mut ranked = Vec::new();
    for (file, (path, tags)) in files.iter().enumerate() {
        let own = weights.get(file).copied().unwrap_or_default();
        let all = tags.definitions.len().max(1);
        for (at, definition) in tags.definitions.iter().enumerate() {
            let name = names.get(definition.name.as_str()).copied().unwrap_or_default();
            let shared = graph.definers.get(name).map_or(1, Vec::len).max(1);
            let used = inflow.get(name).copied().unwrap_or_default() / count(shared);
            // An unused definition still gets a share of its file's weight, so that a focused file shows its contents.
            let mut weight = used + own * 0.05 / count(all);
            if focus.names.contains(&definition.name) {
                weight = weight.mul_add(NAMED, 1.0 / count(shared));
            }
            if focus.files.contains(*path) {
                weight *= NAMED;
            }
            ranked.push(Ranked {
                file,
                definition: at,
                weight,
            });
        }
    }
    ranked.sort_by(|one, other| {
        let place = |ranked: &Ranked| (ranked.file, ranked.definition);
        other
            .weight
            .total_cmp(&one.weight)
            .then_with(|| place(one).cmp(&place(other)))
    });
    ranked
}

/// The names that files define, numbered.
fn names<'a>(files: &[(&str, &'a Tags)]) -> BTreeMap<&'a str, usize> {
    let mut names = BTreeMap::new();
    for definition in files.iter().flat_map(|(_, tags)| &tags.definitions) {
        let next = names.len();
        names.entry(definition.name.as_str()).or_insert(next);
    }
    names
}

impl Graph {
    fn new(files: &[(&str, &Tags)], names: &BTreeMap<&str, usize>, focus: &Focus) -> Self {
        let mut definers: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
        for (file, (_, tags)) in files.iter().enumerate() {
            for definition in &tags.definitions {
                if let Some(definers) = names
                    .get(definition.name.as_str())
                    .and_then(|name| definers.get_mut(*name))
                    && definers.last() != Some(&file)
                {
                    definers.push(file);
                }
            }
        }
        let uses = files
            .iter()
            .enumerate()
            .map(|(file, (_, tags))| uses(file, tags, names, &definers, focus))
            .collect();
        Self {
            uses,
            definers,
            bias: bias(files, focus),
        }
    }

    /// Passes weights around until they converge. Returns those of the files, and the flow through each name.
    fn settle(&self) -> (Vec<f64>, Vec<f64>) {
        let mut weights = self.bias.clone();
        let mut inflow = vec![0.0; self.definers.len()];
        for _ in 0..ROUNDS {
            inflow.fill(0.0);
            let mut idle = 0.0;
            for (weight, uses) in weights.iter().zip(&self.uses) {
                if uses.is_empty() {
                    idle += weight;
                }
                for (name, part) in uses {
                    if let Some(inflow) = inflow.get_mut(*name) {
                        *inflow += weight * part;
                    }
                }
            }
            let mut next: Vec<f64> = self
                .bias
                .iter()
                .map(|bias| bias * (1.0 - DAMPING + DAMPING * idle))
                .collect();
            for (inflow, definers) in inflow.iter().zip(&self.definers) {
                let part = DAMPING * inflow / count(definers.len().max(1));
                for file in definers {
                    if let Some(weight) = next.get_mut(*file) {
                        *weight += part;
                    }
                }
            }
            let moved: f64 = weights
                .iter()
                .zip(&next)
                .map(|(one, other)| (one - other).abs())
                .sum();
            weights = next;
            if moved < ENOUGH {
                break;
            }
        }
        (weights, inflow)
    }
}

/// The names that a file uses, and the share of its weight that each gets.
fn uses(
    file: usize,
    tags: &Tags,
    names: &BTreeMap<&str, usize>,
    definers: &[Vec<usize>],
    focus: &Focus,
) -> Vec<(usize, f64)> {
    let mut uses = Vec::new();
    for reference in &tags.references {
        let Some(name) = names.get(reference.name.as_str()).copied() else {
            continue;
        };
        let shared = definers.get(name).map(Vec::as_slice).unwrap_or_default();
        let own = if shared.contains(&file) { OWN } else { 1.0 };
        let weight = telling(&reference.name, shared.len(), focus) * own * f64::from(reference.count).sqrt();
        uses.push((name, weight));
    }
    let all: f64 = uses.iter().map(|(_, weight)| weight).sum();
    for (_, weight) in &mut uses {
        *weight /= all;
    }
    uses
}

/// How specific a name is.
fn telling(name: &str, shared: usize, focus: &Focus) -> f64 {
    let mut weight = 1.0;
    if focus.names.contains(name) {
        weight *= NAMED;
    }
    let words = name.contains('_')
        || name.contains('-')
        || (name.chars().any(char::is_lowercase) && name.chars().skip(1).any(char::is_uppercase));
    if words && name.len() >= 8 {
        weight *= TELLING;
    }
    if name.starts_with('_') {
        weight *= PRIVATE;
    }
    if shared > COMMON {
        weight *= count(COMMON) / count(shared);
    }
    weight
}

fn bias(files: &[(&str, &Tags)], focus: &Focus) -> Vec<f64> {
    let mut bias: Vec<f64> = files
        .iter()
        .map(|(path, _)| {
            let stem = path.rsplit('/').next().unwrap_or(path);
            let stem = stem.split('.').next().unwrap_or(stem);
            if focus.files.contains(*path) || focus.names.contains(stem) {
                FOCUS
            } else {
                1.0
            }
        })
        .collect();
    let all: f64 = bias.iter().sum();
    for weight in &mut bias {
        *weight /= all;
    }
    bias
}

/// The number of files is far below the limit of exact integers in a float.
#[expect(clippy::cast_precision_loss, reason = "numbers of files and names are small")]
const fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests;
