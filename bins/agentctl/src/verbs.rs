//! The functions of the verbs, one file per group, and the dispatch.

mod approvals;
mod attach;
mod audit;
mod backup;
mod before_run;
mod config;
mod context;
mod contexts;
mod daemon;
mod demo;
mod doctor;
mod events;
mod fleet_log;
pub(crate) mod help;
mod history;
pub(crate) mod lifecycle;
mod logs;
mod look;
mod migrate;
mod nodes;
mod open;
mod policy;
mod ps;
mod rules;
mod run;
mod send;
mod set;
mod token;
mod top;
mod transfer;
pub(crate) mod tree;
mod usage;
mod wait;
mod work;
mod workspace;

use crate::cli::Verb;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::verbs::lifecycle::Order;
use agentd_protocol::Decision;

/// Runs the given verb.
#[expect(clippy::cognitive_complexity, reason = "a table: one call a verb")]
pub(crate) async fn perform(verb: Verb, ctx: &mut Ctx) -> Result<Exit, Failure> {
    match verb {
        Verb::Run(args) => run::run(ctx, &args).await,
        Verb::Ps(args) => ps::ps(ctx, &args).await,
        Verb::Top(args) => top::top(ctx, &args).await,
        Verb::Show(args) => look::show(ctx, &args).await,
        Verb::Logs(args) => logs::logs(ctx, &args).await,
        Verb::Attach(args) => attach::attach(ctx, &args).await,
        Verb::Send(args) => send::send(ctx, &args).await,
        Verb::Approvals(args) => approvals::list(ctx, &args).await,
        Verb::Approve(args) => approvals::decide(ctx, &args, Decision::Allow).await,
        Verb::Deny(args) => approvals::decide(ctx, &args, Decision::Deny).await,
        Verb::Answer(args) => approvals::answer(ctx, &args).await,
        Verb::Cancel(args) => {
            let order = Order::cancel(args.cancel.reason, args.kill);
            lifecycle::each(ctx, &args.cancel.targets, &order).await
        }
        Verb::Kill(args) => lifecycle::each(ctx, &args.targets, &Order::cancel(args.reason, true)).await,
        Verb::Pause(args) => lifecycle::each(ctx, &args.targets, &Order::Pause(args.reason)).await,
        Verb::Resume(args) => lifecycle::resume(ctx, args).await,
        Verb::Set(args) => set::set(ctx, &args).await,
        Verb::Compact(args) => context::compact(ctx, &args).await,
        Verb::Close(args) => {
            lifecycle::each(ctx, &args.targets, &Order::Close(args.reason, args.force)).await
        }
        Verb::Rm(args) => lifecycle::each(ctx, &args.targets, &Order::Remove(args.force)).await,
        Verb::Wait(args) => wait::wait(ctx, &args).await,
        Verb::Diff(args) => history::diff(ctx, args).await,
        Verb::Apply(args) => work::apply(ctx, args).await,
        Verb::Branch(args) => work::branch(ctx, args).await,
        Verb::Undo(args) => history::undo(ctx, args).await,
        Verb::Rewind(args) => history::rewind(ctx, args).await,
        Verb::Fork(args) => history::fork(ctx, args).await,
        Verb::Export(args) => transfer::export(ctx, &args).await,
        Verb::Import(args) => transfer::import(ctx, &args).await,
        Verb::Backup(args) => backup::backup(ctx, &args).await,
        Verb::Migrate(args) => Err(migrate::migrate(ctx, &args)),
        Verb::Events(args) => events::events(ctx, &args).await,
        Verb::Usage(args) => usage::usage(ctx, &args).await,
        Verb::Models => look::models(ctx).await,
        Verb::Tools => look::tools(ctx).await,
        Verb::Mcp => look::servers(ctx).await,
        Verb::Rules(args) => rules::rules(ctx, &args.verb).await,
        Verb::Open(args) => open::open(ctx, &args).await,
        Verb::Token(args) => token::token(ctx, &args.verb).await,
        Verb::Context(args) => contexts::contexts(ctx, &args.verb),
        Verb::Policy(args) => policy::policy(ctx, &args.verb).await,
        Verb::Audit(args) => audit::audit(ctx, &args.verb).await,
        Verb::Doctor => doctor::doctor(ctx).await,
        Verb::Daemon(args) => daemon::daemon(ctx, args.verb).await,
        Verb::Workspace(args) => workspace::workspace(ctx, args.verb).await,
        Verb::Nodes => nodes::nodes(ctx).await,
        Verb::Node(args) => nodes::node(ctx, args.verb).await,
        Verb::Version => daemon::version(ctx).await,
        Verb::Config(args) => config::config(ctx, args.verb).await,
        Verb::Completion(args) => help::completion(ctx, args.shell),
        Verb::Help(args) => help::help(ctx, args.topic.as_deref()),
        Verb::Demo(args) => demo::demo(ctx, &args).await,
    }
}
