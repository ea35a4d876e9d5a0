//! Tables: one line a row, columns as wide as their cells, cut to the terminal's width.

use crate::render::one_line;
use crate::render::paint::Paint;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

const GAP: &str = "  ";
/// A column is not cut below this.
const NARROWEST: usize = 6;
/// A part of an id is of no use, so these are not cut at all.
const IDS: [&str; 4] = ["session", "approval", "parent", "id"];
/// Longer cells help nobody, even where there is no terminal.
const WIDEST: usize = 200;

/// A table with headings. With a width the widest columns are cut until a row fits.
pub(crate) fn table(columns: &[&str], rows: &[Vec<String>], width: Option<usize>, paint: Paint) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| one_line(cell, WIDEST)).collect())
        .collect();
    let headings: Vec<String> = columns.iter().map(|name| name.to_uppercase()).collect();
    let mut widths: Vec<usize> = headings.iter().map(|name| name.width()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    if let Some(total) = width {
        let narrowest: Vec<usize> = columns
            .iter()
            .zip(&widths)
            .map(|(name, width)| if IDS.contains(name) { *width } else { NARROWEST })
            .collect();
        fit(&mut widths, &narrowest, total);
    }
    let mut text = format!("{}\n", paint.bold(&line(&headings, &widths)));
    for row in &rows {
        text.push_str(&line(row, &widths));
        text.push('\n');
    }
    text
}

/// Takes columns from the widest until all fit.
fn fit(widths: &mut [usize], narrowest: &[usize], total: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > total {
        let wider = widths
            .iter_mut()
            .zip(narrowest)
            .filter(|(width, least)| **width > **least);
        match wider.map(|(width, _)| width).max() {
            Some(widest) => *widest -= 1,
            None => return,
        }
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| pad(cell, *width))
        .collect();
    padded.join(GAP).trim_end().to_owned()
}

fn pad(cell: &str, width: usize) -> String {
    let cell = cut(cell, width);
    let missing = width.saturating_sub(cell.width());
    format!("{cell}{}", " ".repeat(missing))
}

fn cut(cell: &str, width: usize) -> String {
    if cell.width() <= width {
        return cell.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for letter in cell.chars() {
        used += letter.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(letter);
    }
    kept.push('…');
    kept
}
