//! `policy check` and `policy dry-run`: evaluates the permission rules without running anything.

mod case;
mod dry_run;
mod explained;

use crate::cli::{CheckArgs, PolicyVerb};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::recorded;
use crate::tool_program::ToolProgram;
use crate::verbs::config::loaded;
use agentd_client::Client;
use agentd_policy::{
    BASH, CallFacts, Policy, REMOTE_PREFIX, Request, Rule, Source, Subject, ToolAnswer, ToolQuestion,
    by_text_only, explain,
};
use agentd_protocol::{EffectClass, Fault, PermissionMode, SandboxLevel};
use agentd_settings::PermissionConfig;
use case::{Case, Events};
use explained::Explained;

pub(crate) async fn policy(ctx: &mut Ctx, verb: &PolicyVerb) -> Result<Exit, Failure> {
    match verb {
        PolicyVerb::Check(args) => check(ctx, args).await,
        PolicyVerb::DryRun(args) => dry_run::dry_run(ctx, args).await,
    }
}

async fn check(ctx: &mut Ctx, args: &CheckArgs) -> Result<Exit, Failure> {
    let (policy, mode, workdir) = match &args.session {
        Some(session) => in_session(ctx, session).await?,
        None => here(ctx, args)?,
    };
    let mode = args.mode.map_or(mode, Into::into);
    let (tool, effect) = tool(ctx, args.tool.as_deref().unwrap_or(BASH)).await?;
    let subject = subject(args, &tool, effect);
    let request = Request {
        tool: &tool,
        subject: &subject,
        effect,
        mode,
        workdir: &workdir,
    };
    let limits = match subject {
        Subject::Command { .. } => by_text_only(&policy, level(ctx).await),
        _ => Vec::new(),
    };
    let explained = Explained::new(explain(&policy, &request), mode).by_text_only(limits);
    let word = explained.word();
    ctx.out.object(&explained, word, |paint| explained.text(paint))?;
    Ok(Exit::OK)
}

/// The sandbox level of the running daemon; the weaker one if that is unknown.
async fn level(ctx: &mut Ctx) -> SandboxLevel {
    let Ok(client) = ctx.connect().await else {
        return SandboxLevel::Confined;
    };
    let dir = client.status().await.ok().map(|status| status.data_dir);
    let noted = dir.and_then(|dir| recorded::choice(dir.as_ref()));
    noted.and_then(Result::ok).unwrap_or(SandboxLevel::Confined)
}

/// The policy of a daemon started here.
fn here(ctx: &Ctx, args: &CheckArgs) -> Result<(Policy, PermissionMode, String), Failure> {
    let settings = loaded(ctx, args.config.clone())?.settings;
    let policy = Policy::new(home(ctx)).with(configured(&settings.permission)?);
    let dir = args.workdir.clone().unwrap_or_else(|| ".".into());
    let dir = std::path::absolute(&dir).map_err(|error| Failure::file(&dir, &error))?;
    Ok((
        policy,
        settings.permission.mode,
        dir.to_string_lossy().into_owned(),
    ))
}

/// The policy for this session's calls.
async fn in_session(ctx: &Ctx, session: &str) -> Result<(Policy, PermissionMode, String), Failure> {
    let client = ctx.connect().await?;
    let session = client.get(session).await?.session.to_string();
    let mut case = Case::default();
    let mut log = Events::of(&session);
    while let Some(events) = log.next(&client).await? {
        events.iter().for_each(|event| case.learn(event));
    }
    let policy = case.policy(&Policy::new(home(ctx)).with(in_force(&client).await?))?;
    let (mode, workdir) = (case.mode(), case.workdir().to_owned());
    Ok((policy, mode, workdir))
}

/// The daemon's rules for every session: built-in, the operator's, and those that people made permanent.
async fn in_force(client: &Client) -> Result<Vec<Rule>, Failure> {
    let unknown = || Fault::version("bad_answer", "the daemon does not report its rules");
    let facts = client.diagnostics().await?;
    let lines = facts
        .get("rules")
        .and_then(|rules| rules.as_array())
        .ok_or_else(unknown)?;
    lines
        .iter()
        .map(|line| {
            let (source, rule) = line
                .as_str()
                .and_then(|line| line.split_once(": "))
                .ok_or_else(unknown)?;
            let source = match source {
                "built-in" => Source::Builtin,
                "operator" => Source::Operator,
                _ => Source::Always,
            };
            read(rule, source)
        })
        .collect()
}

/// The rules of a configuration.
fn configured(config: &PermissionConfig) -> Result<Vec<Rule>, Failure> {
    let builtin = config.builtin.iter().map(|rule| (rule, Source::Builtin));
    let operator = config.rules.iter().map(|rule| (rule, Source::Operator));
    builtin
        .chain(operator)
        .map(|(rule, source)| read(&rule.text(), source))
        .collect()
}

fn read(rule: &str, source: Source) -> Result<Rule, Failure> {
    Rule::parse(rule, source)
        .map_err(|error| Failure::invalid(error.to_string(), "`agentctl help rules` explains them"))
}

fn home(ctx: &Ctx) -> Option<&str> {
    ctx.environment.get("HOME")
}

/// A tool's canonical name and effect. Rejects an unknown tool, because a verdict for a misspelt name means nothing.
async fn tool(ctx: &Ctx, asked: &str) -> Result<(String, EffectClass), Failure> {
    if let Some(effect) = obvious(asked) {
        return Ok((asked.to_owned(), effect));
    }
    let question = ToolQuestion::Tool(asked.to_owned());
    known(ToolProgram::new(&ctx.environment).answer(question).await?)
}

/// The effect of a tool that need not be looked up. A tool that is not built in may have any effect.
fn obvious(asked: &str) -> Option<EffectClass> {
    (asked == BASH || asked.starts_with(REMOTE_PREFIX)).then_some(EffectClass::Exec)
}

fn known(answer: ToolAnswer) -> Result<(String, EffectClass), Failure> {
    match answer {
        ToolAnswer::Tool { name, effect } | ToolAnswer::Call(CallFacts { name, effect, .. }) => {
            Ok((name, effect))
        }
        ToolAnswer::Refused(why) => Err(Failure::invalid(
            why,
            "server tools are named mcp__SERVER__TOOL; `agentctl tools` lists the tools of a daemon",
        )),
    }
}

/// The target of the call that the arguments describe.
fn subject(args: &CheckArgs, tool: &str, effect: EffectClass) -> Subject {
    match (&args.command, &args.path, &args.url) {
        (Some(command), ..) => Subject::Command {
            command: command.clone(),
        },
        (None, Some(path), _) => Subject::Path {
            write: effect != EffectClass::Read,
            path: path.clone(),
        },
        (None, None, Some(url)) => Subject::Url(url.clone()),
        (None, None, None) if tool.starts_with(REMOTE_PREFIX) => Subject::Remote {
            arguments: "{}".to_owned(),
            version: String::new(),
            undeclared: Vec::new(),
        },
        (None, None, None) => Subject::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_settings::ToolsConfig;
    use agentd_tools::Registry;

    fn asked(name: &str) -> Result<(String, EffectClass), Failure> {
        let tools = Registry::builtin(&ToolsConfig::default());
        known(tools.answer(&ToolQuestion::Tool(name.to_owned())))
    }

    #[test]
    fn an_unknown_tool_is_refused_with_a_suggestion() {
        for name in ["Bash", "read", "SemanticSearch"] {
            assert!(asked(name).is_ok(), "{name}");
        }
        assert_eq!(asked("read").unwrap(), ("Read".to_owned(), EffectClass::Read));
        assert!(obvious("mcp__any__tool").is_some());
        let why = asked("Reed").unwrap_err().to_string();
        assert!(why.contains("Did you mean `Read`?"), "{why}");
    }

    #[test]
    fn what_is_obvious_is_what_the_tools_say() {
        assert_eq!(obvious(BASH), Some(asked(BASH).unwrap().1));
        assert_eq!(obvious("Read"), None);
    }
}
