use super::*;
use crate::theme::{Depth, Ground};

fn shown(text: &str, width: usize) -> String {
    let lines = markdown(
        text,
        width,
        Theme::new(Depth::Ansi, Ground::Dark),
        &Code::default(),
    );
    let lines: Vec<String> = lines
        .iter()
        .map(|line| line.to_string().trim_end().to_owned())
        .collect();
    lines.join("\n")
}

#[test]
fn blocks_are_laid_out() {
    let text = "# Title\n\nSome *text* with `code`.\n\n1. first\n2. second\n   - deep item that wraps\n\n> quoted\n\n\
                ```rust\nfn main() {}\n```\nafter";
    assert_eq!(
        shown(text, 20),
        "Title\n\nSome text with code.\n\n1. first\n2. second\n   • deep item that\n     wraps\n\n▎ quoted\n\n\
         rust\n│ fn main() {}\n\nafter"
    );
}

#[test]
fn tables_have_columns_and_narrow_ones_are_cut() {
    let text = "| a | long heading |\n|---|---|\n| 1 | x |\n";
    assert_eq!(shown(text, 40), "a  long heading\n───────────────\n1  x");
    assert_eq!(shown(text, 12), "a  long hea…\n────────────\n1  x");
}

#[test]
fn links_show_where_they_lead() {
    assert_eq!(shown("[here](http://x.y)", 60), "here (http://x.y)");
    assert_eq!(shown("<http://x.y>", 60), "http://x.y");
    assert_eq!(shown("<script>alert()</script>", 60), "<script>alert()</script>");
}
