//! `help` and `completion`: prints their texts.

use crate::cli::{Cli, Shell};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use agentd_protocol::Fault;
use clap::CommandFactory as _;
use clap_complete::env::Shells;

pub(crate) const TOPICS: [(&str, &str); 9] = [
    ("agents", include_str!("../topics/agents.txt")),
    ("exit-codes", include_str!("../topics/exit-codes.txt")),
    ("output", include_str!("../topics/output.txt")),
    ("environment", include_str!("../topics/environment.txt")),
    ("rules", include_str!("../topics/rules.txt")),
    ("hooks", include_str!("../topics/hooks.txt")),
    ("providers", include_str!("../topics/providers.txt")),
    ("states", include_str!("../topics/states.txt")),
    ("terminal", include_str!("../topics/terminal.txt")),
];

pub(crate) fn help(ctx: &mut Ctx, asked: Option<&str>) -> Result<Exit, Failure> {
    let text = text(asked)?;
    ctx.out.raw(text.as_bytes())?;
    Ok(Exit::OK)
}

/// The text of a topic, of a verb, or of the program.
pub(crate) fn text(asked: Option<&str>) -> Result<String, Failure> {
    let mut program = Cli::command();
    let Some(asked) = asked else {
        return Ok(program.render_long_help().to_string());
    };
    let topic = TOPICS.iter().find(|(name, _)| *name == asked);
    // Built first, so that the help of a verb includes the global flags.
    program.build();
    let verb = program.find_subcommand_mut(asked);
    let verb = verb.map(|verb| verb.render_long_help().to_string());
    // A topic and a verb may have the same name.
    match (topic, verb) {
        (Some((_, text)), Some(verb)) => return Ok(format!("{text}\n{verb}")),
        (Some((_, text)), None) => return Ok((*text).to_owned()),
        (None, Some(verb)) => return Ok(verb),
        (None, None) => {}
    }
    let topics: Vec<&str> = TOPICS.iter().map(|(name, _)| *name).collect();
    let hint = format!("topics: {}; verbs: agentctl help", topics.join(", "));
    Err(
        Fault::invalid("unknown_topic", format!("unknown verb or topic {asked:?}"))
            .hint(hint)
            .into(),
    )
}

pub(crate) fn completion(ctx: &mut Ctx, shell: Shell) -> Result<Exit, Failure> {
    let script = script(shell)?;
    ctx.out.raw(&script)?;
    Ok(Exit::OK)
}

/// A completion script that calls `agentctl` itself, so that it can offer live sessions.
pub(crate) fn script(shell: Shell) -> Result<Vec<u8>, Failure> {
    let name = match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Elvish => "elvish",
        Shell::Powershell => "powershell",
    };
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells
        .completer(name)
        .ok_or_else(|| Fault::invalid("unknown_shell", format!("no completion script for {name}")))?;
    completer
        .write_registration("COMPLETE", "agentctl", "agentctl", "agentctl", &mut script)
        .map_err(Failure::Output)?;
    Ok(script)
}

#[cfg(test)]
mod tests;
