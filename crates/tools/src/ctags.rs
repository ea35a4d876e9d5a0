//! Universal Ctags under the session's warden, for files in languages without a grammar. It receives their content and
//! opens no file. If it is not installed, these files are left out.

use crate::line_program::{AnswerLimits, LineProgram, Starts};
use crate::source_tree::{Foreign, content, open};
use crate::walk::Patience;
use agentd_repo_map::{CTAGS, CtagsReply, SourceMap, Stamp, is_universal, question};
use agentd_sandbox::{Beneath, CommandSpec, WardenSlot};
use std::time::Duration;
use tokio::runtime::Handle;

/// The limits of an answer about one file. A file that exceeds them is left out.
const ANSWER: AnswerLimits = AnswerLimits {
    bytes: 4 << 20,
    within: Duration::from_secs(5),
};

/// Asks ctags about the files that are not known yet. Returns whether all of them are settled, which they are when
/// ctags is not installed. Must not run on the runtime's threads; each wait is bounded.
pub(crate) fn ask(
    map: &mut SourceMap,
    files: Vec<Foreign>,
    workdir: &Beneath,
    warden: &WardenSlot,
    patience: &Patience,
) -> bool {
    let Ok(runtime) = Handle::try_current() else {
        return files.is_empty();
    };
    let mut running = None;
    let mut starts = Starts::default();
    for file in files {
        if patience.is_over() {
            return false;
        }
        let Some(opened) = open(workdir, &file.path) else {
            continue;
        };
        let stamp = Stamp(opened.version.stamp());
        let Some(source) = content(opened) else { continue };
        if map.knows_content(&file.name, stamp, &source) {
            continue;
        }
        if running.is_none() && starts.take() {
            running = runtime.block_on(start(workdir, warden));
        }
        // Ctags is not installed, or failed too often.
        let Some(ctags) = &mut running else {
            return starts.is_first();
        };
        let answer = runtime.block_on(answer(ctags, &file.name, &source));
        match answer {
            Some(_) => starts.answered(),
            None => running = None,
        }
        map.add_foreign(&file.name, stamp, &source, answer);
    }
    true
}

/// `None` if it is not installed.
async fn start(workdir: &Beneath, warden: &WardenSlot) -> Option<LineProgram> {
    let command = CommandSpec {
        argv: CTAGS.map(str::to_owned).to_vec(),
        cwd: workdir.path().to_owned(),
        env: Vec::new(),
    };
    LineProgram::start(warden, command, ANSWER, is_universal)
        .await
        .ok()
}

/// `None` if it does not answer; then it is no longer usable.
async fn answer(ctags: &mut LineProgram, name: &str, source: &[u8]) -> Option<CtagsReply> {
    let asked = [question(name, source.len()).as_bytes(), source].concat();
    let mut answer = CtagsReply::default();
    ctags.exchange(&asked, |line| answer.take(line)).await?;
    Some(answer)
}
