//! Figures with their targets, as a table and as JSON.

use crate::measure::Figures;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The target of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// At least this value.
    AtLeast(f64),
    /// At most this value.
    AtMost(f64),
}

/// The figures, in the order of measuring.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<(String, Value, Option<Target>)>,
}

impl Report {
    /// Adds a figure.
    pub(crate) fn put(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.rows.push((name.into(), value.into(), None));
    }

    /// Adds a number, rounded to three decimal places.
    pub(crate) fn number(&mut self, name: impl Into<String>, value: f64) {
        self.put(name, json!((value * 1_000.0).round() / 1_000.0));
    }

    /// Adds a number with a target.
    pub(crate) fn aim(&mut self, name: impl Into<String>, value: f64, target: Target) {
        let value = json!((value * 1_000.0).round() / 1_000.0);
        self.rows.push((name.into(), value, Some(target)));
    }

    /// Adds a number with an optional target.
    pub(crate) fn maybe(&mut self, name: impl Into<String>, value: f64, target: Option<Target>) {
        match target {
            Some(target) => self.aim(name, value, target),
            None => self.number(name, value),
        }
    }

    /// Adds percentiles of values, in milliseconds. The target applies to the 99th.
    pub(crate) fn percentiles(&mut self, name: &str, values: &mut [f64], target: Option<Target>) {
        values.sort_by(f64::total_cmp);
        for percent in [50, 95] {
            self.number(format!("{name}.p{percent}"), percentile(values, percent));
        }
        self.maybe(format!("{name}.p99"), percentile(values, 99), target);
    }

    /// The figures as text, one line each.
    pub(crate) fn table(&self) -> String {
        let mut table = String::new();
        for (name, value, target) in &self.rows {
            let said = target.map(|target| target.said(value)).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = match value {
                Value::Object(columns) => writeln!(table, "{name:<20} {}", in_columns(columns)),
                _ => writeln!(table, "{name:<40} {:<14} {said}", value.to_string()),
            };
        }
        table
    }

    /// The figures as one object, with the targets in `targets`.
    pub(crate) fn json(&self) -> Value {
        let mut all = Map::new();
        let mut targets = Map::new();
        for (name, value, target) in &self.rows {
            all.insert(name.clone(), value.clone());
            if let Some(target) = target {
                targets.insert(name.clone(), json!(target.said(value)));
            }
        }
        if !targets.is_empty() {
            all.insert("targets".to_owned(), Value::Object(targets));
        }
        Value::Object(all)
    }
}

impl From<Figures> for Report {
    fn from(figures: Figures) -> Self {
        let rows = figures.into_iter().map(|(name, value)| (name, value, None));
        Self { rows: rows.collect() }
    }
}

impl Target {
    /// The target, and whether it is met or by what factor it is missed.
    fn said(self, value: &Value) -> String {
        let value = value.as_f64().unwrap_or(f64::NAN);
        let (words, factor) = match self {
            Self::AtLeast(least) => (format!(">= {least}"), least / value),
            Self::AtMost(most) => (format!("<= {most}"), value / most),
        };
        if factor <= 1.0 {
            format!("{words}  met")
        } else {
            format!("{words}  missed x{factor:.2}")
        }
    }
}

/// Several figures of one thing.
fn in_columns(columns: &Map<String, Value>) -> String {
    let column = |(name, value): (&String, &Value)| format!("{name} {:<9}", value.to_string());
    columns.iter().map(column).collect()
}

/// A percentile of sorted values.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1).min(last);
    sorted.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_target_is_reported_with_its_factor() {
        let mut report = Report::default();
        report.aim("steps", 300.0, Target::AtLeast(600.0));
        report.aim("cpu", 1.0, Target::AtMost(2.0));
        let table = report.table();
        assert!(table.contains(">= 600  missed x2.00"), "{table}");
        assert!(table.contains("<= 2  met"), "{table}");
    }

    #[test]
    fn percentiles_are_measured_values() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([50, 95, 99].map(|p| percentile(&values, p)), [50.0, 95.0, 99.0]);
        assert_eq!(percentile(&[7.0], 99), 7.0);
        assert_eq!(percentile(&[], 99), 0.0);
    }
}
