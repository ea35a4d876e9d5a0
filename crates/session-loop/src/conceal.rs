//! Removes the credentials that this process knows from what people write (I8): a key that someone pastes by mistake
//! would stay in the log forever and go to the model.

use agentd_protocol::{Block, SessionCreated};
use agentd_text::redact_known;
use agentd_turn::{Command, NewInput};
use std::borrow::Cow;

/// The command in a form that may be written to the log.
pub(crate) fn command(mut command: Command) -> Command {
    match &mut command {
        Command::Create { created, first } => {
            settings(created);
            if let Some(first) = first {
                input(first);
            }
        }
        Command::Send(new) => input(new),
        Command::Decide { answer, message, .. } => {
            maybe(answer);
            maybe(message);
        }
        Command::CancelTurn { reason, .. } => maybe(reason),
        Command::Pause { reason } | Command::Resume { reason, .. } | Command::Close { reason, .. } => {
            text(reason);
        }
        Command::Update { title, .. } => maybe(title),
        // The commands in it were redacted when they came into the log.
        Command::ChildEnded { ended, .. } => text(&mut ended.text),
        Command::CancelInput(_)
        | Command::Transfer(_)
        | Command::Tell
        | Command::Follow
        | Command::Rework(_)
        | Command::Compact
        | Command::Summarize => {}
    }
    command
}

/// A session's first event in a form that may be written to the log; its prompt is built from this.
pub(crate) fn created(created: &SessionCreated) -> SessionCreated {
    let mut created = created.clone();
    settings(&mut created);
    created
}

fn settings(created: &mut SessionCreated) {
    text(&mut created.title);
    maybe(&mut created.system_prompt);
    maybe(&mut created.append_system_prompt);
    for part in created.prompt.iter_mut().flat_map(|prompt| &mut prompt.parts) {
        text(&mut part.text);
    }
}

fn input(new: &mut NewInput) {
    for block in &mut new.content {
        if let Block::Text { text: said } = block {
            text(said);
        }
    }
}

fn maybe(said: &mut Option<String>) {
    if let Some(said) = said {
        text(said);
    }
}

fn text(said: &mut String) {
    if let Cow::Owned(safe) = redact_known(said) {
        *said = safe;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i8_a_known_credential_in_what_people_say_is_not_written_down() {
        agentd_text::register_secret("pasted-by-mistake-1");
        let says = |text: &str| {
            Command::Send(NewInput {
                content: vec![Block::text(text)],
                delivery: None,
                key: None,
                model: None,
            })
        };
        let spoken = says("my key is pasted-by-mistake-1, use it");
        assert_eq!(command(spoken), says("my key is [redacted], use it"));
        let plain = says("api_key = \"abcdefgh12345\"");
        assert_eq!(command(plain.clone()), plain, "what only looks like one stays");
    }
}
