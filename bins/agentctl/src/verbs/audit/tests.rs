//! Reports on intact and broken files.

use super::*;
use agentd_audit::{Link, seal};
use agentd_protocol::AuditBroken;
use std::path::Path;

fn write(dir: &Path, name: &str, lines: &[String]) -> PathBuf {
    let path = dir.join(name);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).unwrap();
    path
}

fn chain(count: usize) -> (Vec<String>, Link) {
    let mut prev = Link::START;
    let lines = (0..count).map(|n| {
        let (line, own) = seal(&format!("{{\"n\":{n}}}"), prev).unwrap();
        prev = own;
        line
    });
    (lines.collect(), prev)
}

fn args(head: Option<Link>) -> VerifyArgs {
    VerifyArgs {
        files: Vec::new(),
        data_dir: None,
        head,
    }
}

#[test]
fn intact_files_are_reported_with_their_head() {
    let dir = tempfile::tempdir().unwrap();
    let (lines, head) = chain(5);
    let files = [
        write(dir.path(), "audit.jsonl.1", &lines[..3]),
        write(dir.path(), "audit.jsonl", &lines[3..]),
    ];
    let checked = check(&files, &args(Some(head))).unwrap();
    assert_eq!(
        text(&checked, Paint::new(false)),
        format!("intact: 5 lines in 2 files\nhead: {head}\n")
    );
}

#[test]
fn the_first_broken_line_is_reported_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let (mut lines, _) = chain(5);
    lines[3] = lines[3].replace("\"n\":3", "\"n\":8");
    let files = [
        write(dir.path(), "audit.jsonl.1", &lines[1..3]),
        write(dir.path(), "audit.jsonl", &lines[3..]),
    ];
    let checked = check(&files, &args(None)).unwrap();
    assert!(!checked.intact);
    assert_eq!(
        checked.broken,
        Some(AuditBroken {
            file: files[1].display().to_string(),
            line: Some(1),
            what: "its hash does not match its content: it was changed".into(),
        })
    );
    assert!(text(&checked, Paint::new(false)).contains("the oldest files are missing"));
}

#[test]
fn lines_missing_at_the_end_are_detected_with_a_stored_head() {
    let dir = tempfile::tempdir().unwrap();
    let (lines, head) = chain(5);
    let files = [write(dir.path(), "audit.jsonl", &lines[..4])];
    assert!(check(&files, &args(None)).unwrap().intact);
    let checked = check(&files, &args(Some(head))).unwrap();
    assert_eq!((checked.intact, checked.lines), (false, 4));
}

#[test]
fn lines_before_the_chain_are_reported_by_number() {
    let dir = tempfile::tempdir().unwrap();
    let old = vec!["{\"old\":1}".to_owned(), "{\"old\":2}".to_owned()];
    let (lines, head) = chain(2);
    let files = [write(dir.path(), "audit.jsonl", &[old.clone(), lines].concat())];
    let checked = check(&files, &args(None)).unwrap();
    assert_eq!(
        text(&checked, Paint::new(false)),
        format!(
            "intact: 2 lines in 1 file\nbegins unsealed: lines 1 to 2 predate the chain and cannot be verified; the chain begins at line 3\nhead: {head}\n"
        )
    );
    let files = [write(dir.path(), "audit.jsonl", &old)];
    let checked = check(&files, &args(None)).unwrap();
    assert!(!checked.intact && text(&checked, Paint::new(false)).contains("no line is sealed"));
}
