//! Makes paths that models write relative to the working directory. Pure.

use crate::error::SandboxError;
use std::path::{Component, Path, PathBuf};

/// The path relative to `root`, without `.` and `..`; `.` for `root` itself. Works on the text alone: what the permission
/// check sees is exactly what is opened.
pub(crate) fn relative(root: &Path, path: &str) -> Result<PathBuf, SandboxError> {
    let bad = |why| {
        Err(SandboxError::BadPath {
            path: path.chars().take(200).collect(),
            why,
        })
    };
    if path.is_empty() {
        return bad("it is empty");
    }
    if path.contains('\0') {
        return bad("it contains a NUL character");
    }
    let outside = || SandboxError::Outside {
        path: path.to_owned(),
        root: root.to_owned(),
    };
    let given = Path::new(path);
    let mut clean = PathBuf::new();
    // Cleans an absolute path before the comparison, so that `/root/../etc` does not pass for one inside.
    for component in given.components() {
        match component {
            Component::Prefix(_) | Component::CurDir => {}
            Component::RootDir => clean.push("/"),
            Component::ParentDir => {
                if !clean.pop() {
                    return Err(outside());
                }
            }
            Component::Normal(name) => clean.push(name),
        }
    }
    let inside = if given.is_absolute() {
        clean.strip_prefix(root).map_err(|_| outside())?.to_owned()
    } else {
        clean
    };
    Ok(if inside.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        inside
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_inside_are_made_relative_and_clean() {
        for (path, expected) in [
            ("a", "a"),
            (".", "."),
            ("./a//b/", "a/b"),
            ("a/../b", "b"),
            ("a/..", "."),
            ("/work/x", "x"),
            ("/work", "."),
            ("/work/../work/x/.", "x"),
            ("..a/b..", "..a/b.."),
        ] {
            assert_eq!(
                relative(Path::new("/work"), path).unwrap(),
                Path::new(expected),
                "{path}"
            );
        }
    }

    #[test]
    fn paths_outside_are_refused() {
        for path in [
            "..",
            "../x",
            "a/../../x",
            "/etc/passwd",
            "/",
            "/work/../etc",
            "/workshop",
            "/..",
        ] {
            let refused = relative(Path::new("/work"), path);
            assert!(
                matches!(refused, Err(SandboxError::Outside { .. })),
                "{path}: {refused:?}"
            );
        }
        assert!(matches!(
            relative(Path::new("/work"), ""),
            Err(SandboxError::BadPath { .. })
        ));
        assert!(matches!(
            relative(Path::new("/work"), "a\0b"),
            Err(SandboxError::BadPath { .. })
        ));
    }
}
