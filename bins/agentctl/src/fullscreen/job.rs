//! Other programs that get the terminal for a while: the pager, the editor, other verbs.

use crate::contexts::Address;
use crate::ctx::Ctx;
use crate::dial::Dial;
use crate::failure::Failure;
use crate::fullscreen::terminal::FullScreen;
use std::ffi::OsString;
use std::io::Write as _;
use tokio::process::Command;

/// Runs `agentctl` with these arguments against the same daemon, and comes back when it ends.
pub(crate) async fn verb(
    screen: &mut FullScreen,
    ctx: &Ctx,
    dial: &Dial,
    arguments: &[&str],
    wait: bool,
) -> Result<(), Failure> {
    let exe = std::env::current_exe().map_err(Failure::Output)?;
    let mut command = program(exe.into_os_string());
    match (&ctx.global.context, &dial.address) {
        (Some(context), _) => _ = command.arg("--context").arg(context),
        (None, Address::Socket { socket }) => _ = command.arg("--socket").arg(socket),
        (None, Address::Web { .. }) => {}
    }
    command.args(arguments);
    screen.lend();
    let done = command.status().await;
    if wait {
        prompt().await;
    }
    screen.back()?;
    done.map(drop).map_err(Failure::Output)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the person's own programs, as a shell starts them"
)]
fn program(name: OsString) -> Command {
    Command::new(name)
}

/// Leaves the output on the screen until a key is pressed.
async fn prompt() {
    print_line("Enter returns ");
    let mut line = String::new();
    let mut stdin = tokio::io::BufReader::new(tokio::io::stdin());
    let _ = tokio::io::AsyncBufReadExt::read_line(&mut stdin, &mut line).await;
}

fn print_line(text: &str) {
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Lets the person edit a text with `$VISUAL`, `$EDITOR` or `vi`; `None` if the editor failed.
pub(crate) async fn editor(
    screen: &mut FullScreen,
    ctx: &Ctx,
    text: &str,
) -> Result<Option<String>, Failure> {
    let command = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| ctx.environment.get(name));
    let command = command.unwrap_or("vi").to_owned();
    let folder = ctx
        .environment
        .path("XDG_RUNTIME_DIR")
        .unwrap_or_else(std::env::temp_dir);
    let path = folder.join(format!("agentctl-message-{}.md", std::process::id()));
    write_private(&path, text).map_err(|error| Failure::unwritable(&path, &error))?;
    let mut shell = program("sh".into());
    // The file's name is an argument, so no character of it is special to the shell.
    shell.args(["-c", &format!("{command} \"$1\""), "sh"]).arg(&path);
    screen.lend();
    let done = shell.status().await;
    screen.back()?;
    let edited = std::fs::read_to_string(&path);
    let _ = std::fs::remove_file(&path);
    let ok = done.is_ok_and(|status| status.success());
    Ok(edited.ok().filter(|_| ok))
}

fn write_private(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}
