//! Tests of the demo: its projects, its parts, and that each session finds its own script.

use super::*;

#[test]
fn each_sessions_bug_is_in_its_file_once_and_its_mend_is_not() {
    for n in 1..=6 {
        let files = files();
        let Project {
            file, wrong, right, ..
        } = project(n);
        let (_, content) = files.iter().find(|(name, _)| name == file).unwrap();
        assert_eq!(
            (content.matches(wrong).count(), content.contains(right)),
            (1, false),
            "session {n}"
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "a test of shell scripts needs a shell")]
fn run_test(dir: &std::path::Path, file: &str) -> (bool, String) {
    let output = std::process::Command::new("sh")
        .args(["test.sh", file])
        .current_dir(dir)
        .output()
        .unwrap();
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

#[test]
fn each_projects_test_fails_until_the_scripted_edit_is_made() {
    for n in 1..=3 {
        let dir = std::env::temp_dir().join(format!("agentd-demo-{}-{n}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        for (name, content) in files() {
            std::fs::write(dir.join(name), content).unwrap();
        }
        let Project {
            file,
            before,
            right,
            after,
            want,
            ..
        } = project(n);
        let (green, said) = run_test(&dir, file);
        assert!(!green && said.starts_with("FAILED: "), "session {n}: {said}");
        std::fs::write(dir.join(file), format!("{before}{right}{after}")).unwrap();
        assert_eq!(
            run_test(&dir, file),
            (true, format!("ok: {file} printed '{want}'\n")),
            "session {n}"
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn a_large_demo_has_every_part_and_a_small_one_the_main_job_only() {
    let count = |wanted| (1..=50).filter(|n| part(*n) == wanted).count();
    let rare = [Part::Approval, Part::Limited, Part::Failing, Part::Lead].map(count);
    assert_eq!(rare, [7, 6, 6, 1]);
    assert_eq!(
        (1..=3).map(part).collect::<Vec<_>>(),
        [Part::Approval, Part::Overloaded, Part::Plain]
    );
    for n in 1..=50 {
        assert_eq!(model(n) == LIMITED, part(n) == Part::Limited, "{n}");
    }
}

#[test]
fn each_prompt_finds_its_own_conversation() {
    let script = script(Demo {
        sessions: 50,
        pace: Pace::Fast,
    });
    for n in 1..=50 {
        let prompt = prompt(n);
        let matching: Vec<&str> = script
            .conversations
            .iter()
            .filter(|conversation| prompt.contains(&conversation.when))
            .map(|conversation| conversation.when.as_str())
            .collect();
        assert_eq!(matching, [mark(n)]);
    }
}
