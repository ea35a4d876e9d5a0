//! `logs`: a session's log as a transcript or as its stored lines.

use crate::cli::{Format, LogsArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, News, Wanted, unreadable};
use crate::interactive::{Screen, Streams};
use crate::render::Margin;
use crate::values;
use agentd_client::Client;
use agentd_protocol::{Event, ExportParams, Seq, Timestamp};
use std::collections::VecDeque;

/// The most lines of a tool's output in a transcript; `-o wide` shows all.
const OUTPUT_LINES: usize = 10;

/// Selects the events that are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) kinds: Vec<String>,
    pub(crate) since: Option<Timestamp>,
}

impl Choice {
    pub(crate) fn takes(&self, event: &Event) -> bool {
        let kind = event.body.kind();
        let known = |asked: &String| {
            kind == asked
                || kind
                    .strip_prefix(asked.as_str())
                    .is_some_and(|rest| rest.starts_with('.'))
        };
        self.since.is_none_or(|since| event.at >= since)
            && (self.kinds.is_empty() || self.kinds.iter().any(known))
    }

    const fn takes_all(&self) -> bool {
        self.kinds.is_empty() && self.since.is_none()
    }
}

/// The destination of events.
struct Printer {
    screen: Screen,
    exact: bool,
    choice: Choice,
}

impl Printer {
    fn print(&mut self, ctx: &mut Ctx, news: &News) -> Result<(), Failure> {
        if let News::Event(event, line) = news {
            if !self.choice.takes(event) {
                return Ok(());
            }
            if self.exact {
                return ctx.out.json_line(line);
            }
        } else if self.exact || !self.choice.takes_all() {
            return Ok(());
        }
        self.screen.show(&mut ctx.out, news)
    }
}

pub(crate) async fn logs(ctx: &mut Ctx, args: &LogsArgs) -> Result<Exit, Failure> {
    let since = values::since_flag(args.since.as_deref(), "agentctl logs --since 10m ID")?;
    values::kinds(&args.kind)?;
    let choice = Choice {
        kinds: args.kind.clone(),
        since,
    };
    let exact = match ctx.out.format {
        Format::Table | Format::Wide => false,
        Format::Json | Format::Jsonl => true,
        Format::Yaml | Format::Name => {
            return Err(Failure::invalid(
                "logs can only be printed as text or jsonl",
                "use -o text or -o jsonl",
            ));
        }
    };
    let client = ctx.connect().await?;
    let row = client.get(&args.session).await?;
    let session = row.session.to_string();
    let after = match args.tail {
        Some(tail) if choice.takes_all() => args
            .after
            .max(row.seq.saturating_sub(u64::try_from(tail).unwrap_or(u64::MAX))),
        Some(_) | None => args.after,
    };
    let lines = if ctx.out.wide() { usize::MAX } else { OUTPUT_LINES };
    let margin = Margin::new(args.margin.seq, args.margin.times);
    let mut printer = Printer {
        screen: Screen::new(Streams::Together, lines, true)
            .beside(margin)
            .thinking(args.margin.show_thinking),
        exact,
        choice,
    };
    if !args.follow {
        ctx.page();
        stored(ctx, &client, &session, after, args.tail, &mut printer).await?;
        return Ok(Exit::OK);
    }
    // Without `-n` the follower replays the log, so a connection lost meanwhile does no harm.
    let after = match args.tail {
        Some(_) => stored(ctx, &client, &session, after, args.tail, &mut printer).await?,
        None => after,
    };
    let wanted = Wanted {
        session,
        after,
        tail: None,
        deltas: !exact,
        decides: false,
    };
    let follower = Follower::attach(ctx.dial()?, client, wanted).await?;
    follow(ctx, follower, &mut printer).await
}

/// Prints stored events; with `tail` only the last matching ones. Returns the last seq.
async fn stored(
    ctx: &mut Ctx,
    client: &Client,
    session: &str,
    after: Seq,
    tail: Option<usize>,
    printer: &mut Printer,
) -> Result<Seq, Failure> {
    let mut pages = Pages::new(session, after);
    let mut kept = VecDeque::new();
    while let Some(lines) = pages.next(client).await? {
        for line in lines {
            let event: Event = serde_json::from_str(&line).map_err(|error| unreadable(&error))?;
            let news = News::Event(Box::new(event), line);
            match tail {
                None => printer.print(ctx, &news)?,
                Some(most) => {
                    let chosen = matches!(&news, News::Event(event, _) if printer.choice.takes(event));
                    if chosen {
                        kept.push_back(news);
                    }
                    if kept.len() > most {
                        kept.pop_front();
                    }
                }
            }
        }
    }
    kept.iter().try_for_each(|news| printer.print(ctx, news))?;
    Ok(pages.last())
}

async fn follow(ctx: &mut Ctx, mut follower: Follower, printer: &mut Printer) -> Result<Exit, Failure> {
    loop {
        let news = follower.next().await?;
        printer.print(ctx, &news)?;
        if news.is_last() {
            return Ok(Exit::OK);
        }
    }
}

/// The stored lines of a log, page by page.
#[derive(Debug)]
pub(crate) struct Pages {
    params: ExportParams,
}

impl Pages {
    pub(crate) fn new(session: &str, after: Seq) -> Self {
        Self {
            params: ExportParams {
                session: session.to_owned(),
                after_seq: after,
                limit: 0,
            },
        }
    }

    /// The next page; `None` at the current end of the log.
    pub(crate) async fn next(&mut self, client: &Client) -> Result<Option<Vec<String>>, Failure> {
        let page = client.export(&self.params).await?;
        if page.lines.is_empty() {
            return Ok(None);
        }
        self.params.after_seq += u64::try_from(page.lines.len()).unwrap_or(u64::MAX);
        Ok(Some(page.lines))
    }

    /// The last seq read.
    pub(crate) const fn last(&self) -> Seq {
        self.params.after_seq
    }
}
