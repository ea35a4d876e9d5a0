//! Checks of an input before it is sent.

use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::render::one_line;
use agentd_client::Client;
use agentd_protocol::{Block, Fault, FaultClass, ListParams, RunState, SessionId};

/// Checks the input's size. The daemon refuses a large input too; here the fault comes before the transfer.
pub(crate) fn check_size(client: &Client, prompt: &[Block]) -> Result<(), Failure> {
    let size: usize = prompt
        .iter()
        .map(|block| {
            if let Block::Text { text } = block {
                text.len()
            } else {
                0
            }
        })
        .sum();
    let most = client.welcome().limits.max_input_bytes;
    if u64::try_from(size).unwrap_or(u64::MAX) > most {
        let fault = Fault::limit(
            "input_too_large",
            format!("the prompt has {size} bytes; the daemon accepts at most {most}"),
        );
        return Err(fault
            .hint("give the agent the path in the prompt and let it read the file")
            .into());
    }
    Ok(())
}

/// The daemon's built-in commands, without those defined by files.
const COMMANDS: [&str; 7] = ["plan", "mode", "model", "compact", "todo", "undo", "help"];

/// The command that a text begins with, as `attach` would read it.
fn command_of(prompt: &[Block]) -> Option<&str> {
    let Some(Block::Text { text }) = prompt.first() else {
        return None;
    };
    let word = text
        .trim_start()
        .strip_prefix('/')?
        .split(char::is_whitespace)
        .next()?;
    COMMANDS.into_iter().find(|known| *known == word)
}

/// Warns a person whose command will be sent to the model as text.
pub(crate) fn say_if_text(ctx: &mut Ctx, prompt: &[Block], commands: bool) {
    if let Some(word) = command_of(prompt).filter(|_| !commands) {
        ctx.out.status(&format!(
            "note: /{word} is sent as text; use --commands to run it as a command"
        ));
    }
}

/// Checks that no live session has this name: if two had it, neither could be addressed by it.
pub(crate) async fn name_is_free(client: &Client, name: &str) -> Result<(), Failure> {
    let name = name.trim();
    let taken = match client.get(name).await.map_err(Fault::from) {
        Ok(row) => (row.name == name && row.status.state != RunState::Closed).then_some(row.session),
        // Several sessions have it already; some of them may be closed.
        Err(fault) if fault.class == FaultClass::Conflict => {
            let live = client.list(&ListParams::default()).await?;
            live.into_iter()
                .find(|row| row.name == name)
                .map(|row| row.session)
        }
        // The name is free, or it is invalid and the daemon will give a better message.
        Err(_) => None,
    };
    taken.map_or(Ok(()), |session| Err(taken_by(name, session).into()))
}

fn taken_by(name: &str, session: SessionId) -> Fault {
    let (name, id) = (one_line(name, 60), session.short());
    let message = format!("the session {id} already has the name {name:?}");
    Fault::conflict("name_taken", message).hint(format!(
        "continue it with `agentctl run --session {id}`, close it with `agentctl close {id}`, or choose another name"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_begins_with_a_command_is_detected() {
        let read = |text: &str| command_of(&[Block::text(text)]).map(str::to_owned);
        for (text, word) in [
            ("/plan", "plan"),
            (" /mode yolo", "mode"),
            ("/undo\nand more", "undo"),
        ] {
            assert_eq!(read(text).as_deref(), Some(word), "{text}");
        }
        for text in [
            "plan",
            "//plan",
            "/plans",
            "/ plan",
            "/etc/hosts",
            "/tmp is full",
            "",
            "see /plan",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
