//! Runs the suites on recordings, which are not part of the repository: `AGENTD_FIXTURES` names their directory.

use std::path::Path;

#[test]
fn i4_every_recording_decodes_and_every_request_is_rebuilt() {
    let Some(fixtures) = std::env::var_os("AGENTD_FIXTURES") else {
        // Recordings are not part of the repository, so their absence is reported but is no failure.
        eprintln!("SKIPPED recordings: AGENTD_FIXTURES is not set, so there is nothing to check");
        return;
    };
    let reports = agentd_conformance::run(Path::new(&fixtures), &[]).unwrap();
    assert!(
        reports.iter().any(|report| report.suite == "model-streams"),
        "no recordings in {fixtures:?}"
    );
    for report in &reports {
        assert_eq!(report.failures, [], "{}", report.summary());
    }
    let checks: usize = reports.iter().map(|report| report.passed).sum();
    assert!(checks > 0, "nothing was checked");
}

#[test]
fn a_suite_that_cannot_run_is_skipped_and_a_missing_one_is_an_error() {
    let dir = std::env::temp_dir().join(format!("conformance-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("apply-patch")).unwrap();
    std::fs::create_dir_all(dir.join("of-tomorrow/001_one")).unwrap();
    let lines: Vec<String> = agentd_conformance::run(&dir, &[])
        .unwrap()
        .iter()
        .map(agentd_conformance::Report::summary)
        .collect();
    let missing = agentd_conformance::run(&dir, &["model-streams".to_owned()]);
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(
        lines,
        [
            "apply-patch: 0 passed, 0 failed, 1 skipped",
            "of-tomorrow: 0 passed, 0 failed, 1 skipped"
        ]
    );
    assert!(missing.is_err());
}

/// Writes a scenario: the files before, the patch, the files afterwards.
fn scenario(
    dir: &Path,
    name: &str,
    input: &[(&str, &str)],
    patch: &str,
    expected: &[(&str, &str)],
) -> std::io::Result<()> {
    let dir = dir.join("apply-patch").join(name);
    std::fs::create_dir_all(&dir)?;
    std::fs::write(
        dir.join("patch.txt"),
        format!("*** Begin Patch\n{patch}*** End Patch\n"),
    )?;
    for (kind, files) in [("input", input), ("expected", expected)] {
        for (path, content) in files {
            let path = dir.join(kind).join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(&dir))?;
            std::fs::write(path, content)?;
        }
    }
    Ok(())
}

#[test]
fn a_patch_must_give_the_expected_files_or_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let a = [("d/a", "1\n")];
    let update = "*** Update File: d/a\n@@\n-1\n+2\n";
    scenario(dir, "1_applied", &a, update, &[("d/a", "2\n")]).unwrap();
    scenario(dir, "2_refused", &a, "*** Delete File: missing\n", &a).unwrap();
    scenario(
        dir,
        "3_replaced",
        &a,
        "*** Add File: d/a\n+3\n",
        &[("d/a", "3\n")],
    )
    .unwrap();
    scenario(dir, "4_other", &a, update, &[("d/a", "3\n")]).unwrap();
    scenario(dir, "5_not_refused", &a, "*** Delete File: missing\n", &[]).unwrap();
    scenario(dir, "6_not_applied", &[], "*** Add File: d/a\n+1\n", &[]).unwrap();
    std::fs::create_dir_all(dir.join("apply-patch/7_nothing")).unwrap();
    let report = agentd_conformance::run(dir, &["apply-patch".to_owned()])
        .unwrap()
        .remove(0);
    assert_eq!(report.summary(), "apply-patch: 3 passed, 4 failed, 0 skipped");
    let found: Vec<(&str, bool)> = report
        .failures
        .iter()
        .zip([
            r#"d/a: expected "3\n", found "2\n""#,
            "it must be applied, but: missing does not exist.",
            "it must be refused, but: Applied the patch:",
            "there is no patch.txt",
        ])
        .map(|(finding, part)| (finding.place.as_str(), finding.difference.starts_with(part)))
        .collect();
    assert_eq!(
        found,
        [
            ("4_other", true),
            ("5_not_refused", true),
            ("6_not_applied", true),
            ("7_nothing", true)
        ]
    );
}
