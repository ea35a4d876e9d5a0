//! Submodules, whose contents a workspace does not have. The session's own index keeps them, so that commits do not remove
//! them; agentd's own index does not, because git would look into them.

use crate::error::{WorkspaceError, at};
use crate::make::Making;
use crate::state::OWN_GIT;
use agentd_git::{Run, git};
use std::fs;
use std::path::{Path, PathBuf};

/// The session's index before it gets its git directory. Names that end like this are agentd's own.
const GIVEN: &str = "given.index";
/// The submodules to name.
const NAMED: usize = 5;
/// The most characters of a name to show.
const MAX_NAME: usize = 80;

impl Making<'_> {
    /// Keeps the submodules in the session's index, as what need not be in the work tree, and takes them out of agentd's own.
    /// Says that their contents are missing.
    pub(crate) async fn submodules(&mut self) -> Result<(), WorkspaceError> {
        let own = self.dir.join(OWN_GIT);
        let (from, given) = (own.join("index"), self.given_index());
        let to = given.clone();
        self.on_disk(move || fs::copy(&from, &to).map(drop).map_err(at(&to)))
            .await?;
        let names = without_submodules(self, &own, &own.join("index"), &self.tree).await?;
        if names.is_empty() {
            return Ok(());
        }
        let words = ["update-index", "-z", "--skip-worktree", "--stdin"];
        let run = Run::new(&self.tree, self.within(), words)
            .repository(&own, Some(&self.tree))
            .variable("GIT_INDEX_FILE", &given)
            .input(names.join(&0));
        git(&self.all.0.environment, run).await?;
        self.leave_out(said(&names));
        Ok(())
    }

    /// The index that the session gets.
    pub(crate) fn given_index(&self) -> PathBuf {
        self.dir.join(GIVEN)
    }

    /// Notes for the person and for the model what of the source is not there.
    pub(crate) fn leave_out(&mut self, what: String) {
        self.notices.push(format!("left out: {what}"));
        self.record.workspace.left_out.push(what);
    }
}

/// The missing submodules in words.
fn said(names: &[Vec<u8>]) -> String {
    let shown = |name: &Vec<u8>| -> String {
        let name = String::from_utf8_lossy(name);
        name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect()
    };
    let mut words: Vec<String> = names.iter().take(NAMED).map(shown).collect();
    if let Some(more) = names.len().checked_sub(NAMED).filter(|more| *more > 0) {
        words.push(format!("{more} more"));
    }
    format!(
        "the contents of submodules (their directories are empty, and commits keep them as they are): {}",
        words.join(", ")
    )
}

/// Takes the submodules out of an index. Returns their paths.
pub(crate) async fn without_submodules(
    making: &Making<'_>,
    own: &Path,
    index: &Path,
    tree: &Path,
) -> Result<Vec<Vec<u8>>, WorkspaceError> {
    let run = |words: &[&str]| {
        Run::new(tree, making.within(), words)
            .repository(own, Some(tree))
            .variable("GIT_INDEX_FILE", index)
    };
    let environment = &making.all.0.environment;
    let listed = git(environment, run(&["ls-files", "--stage", "-z"])).await?;
    let entries = listed.output.split(|byte| *byte == 0);
    let submodules = entries.filter(|entry| entry.starts_with(b"160000 "));
    let names: Vec<Vec<u8>> = submodules
        .filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1))
        .map(<[u8]>::to_vec)
        .collect();
    if !names.is_empty() {
        let words = ["update-index", "-z", "--force-remove", "--stdin"];
        git(environment, run(&words).input(names.join(&0))).await?;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_submodules_are_named_and_the_others_counted() {
        let names = |count: usize| -> Vec<Vec<u8>> {
            (1..=count)
                .map(|number| format!("m{number}").into_bytes())
                .collect()
        };
        assert!(said(&names(1)).ends_with("keep them as they are): m1"));
        assert!(said(&names(NAMED)).ends_with(": m1, m2, m3, m4, m5"));
        assert!(said(&names(NAMED + 2)).ends_with("m5, 2 more"));
        let odd = [b"a\nb\x1b[31m".to_vec(), vec![b'x'; 200]];
        let text = said(&odd);
        assert!(
            text.contains(": ab[31m, xxx") && !text.contains(&"x".repeat(MAX_NAME + 1)),
            "{text}"
        );
    }
}
