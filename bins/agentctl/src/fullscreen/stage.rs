//! The loop that all full-screen views share: keys, signals, frames, and what a view waits for itself.

use crate::clock::now;
use crate::ctx::Ctx;
use crate::dial::Dial;
use crate::failure::Failure;
use crate::follow::{Follower, Wanted};
use crate::fullscreen::terminal::FullScreen;
use crate::fullscreen::{TAIL, session, theme};
use crate::interactive::{Signals, TerminalSignal};
use agentd_client::Client;
use agentd_protocol::{SessionId, Timestamp};
use agentd_tui::Depth;
use crossterm::event::Event as Typing;
use ratatui::Frame;
use std::time::Duration;
use tokio::time::Instant;

/// A view with what it needs: the connection, its requests.
pub(crate) trait Stage {
    /// Its own events, in addition to keys and signals.
    type News;

    /// Draws a frame.
    fn draw(&mut self, frame: &mut Frame<'_>);

    /// When the screen changes next although nothing happens.
    fn next_change(&self) -> Option<Timestamp>;

    /// Waits for news. Cancel-safe.
    async fn next(&mut self) -> Self::News;

    /// Takes them in; false if they are the last.
    fn news(&mut self, news: Self::News) -> Result<bool, Failure>;

    /// Takes in what was typed; false if the person leaves.
    async fn typing(&mut self, screen: &mut FullScreen, typing: Typing) -> Result<bool, Failure>;
}

/// Shows a view until the person leaves, its news end, or a signal ends this program.
pub(crate) async fn hold<S: Stage>(stage: &mut S, ctx: &Ctx) -> Result<(), Failure> {
    let mouse = ctx.environment.get("AGENTCTL_MOUSE") == Some("1");
    let colours = theme(&ctx.environment, ctx.global.color).depth;
    let mut screen = FullScreen::take(mouse, colours == Depth::Ansi)?;
    let mut signals = Signals::listen().map_err(Failure::Output)?;
    loop {
        screen.draw(|frame| stage.draw(frame))?;
        let wake = screen.due().or_else(|| stage.next_change().map(at));
        tokio::select! {
            biased;
            signal = signals.next() => match signal {
                TerminalSignal::Continued => screen.clear()?,
                TerminalSignal::Interrupt | TerminalSignal::Terminated => return Ok(()),
            },
            typing = screen.next() => {
                let Some(typing) = typing else { return Ok(()) };
                screen.pressed();
                // A size that changed and changed back looks the same, but the terminal has cut what it showed.
                if matches!(typing, Typing::Resize(..)) {
                    screen.clear()?;
                }
                let stays = stage.typing(&mut screen, typing).await?;
                // Ctrl-C goes to every program of the terminal's foreground group.
                if screen.was_lent() {
                    signals.forget_interrupt();
                }
                if !stays {
                    return Ok(());
                }
            }
            () = until(wake) => screen.touch(),
            news = stage.next() => {
                screen.touch();
                if !stage.news(news)? {
                    return Ok(());
                }
            }
        }
    }
}

/// Shows another session; the view below comes back when the person leaves it. Returns why it could not be shown.
pub(crate) async fn visit(
    screen: &mut FullScreen,
    ctx: &Ctx,
    dial: &Dial,
    client: &Client,
    session: SessionId,
) -> Result<Option<String>, Failure> {
    let wanted = Wanted {
        session: session.to_string(),
        after: 0,
        tail: Some(TAIL),
        deltas: true,
        decides: true,
    };
    let shown = async {
        let row = client.get(&wanted.session).await?;
        let follower = Follower::attach(dial.clone(), client.clone(), wanted).await?;
        screen.leave();
        session::follow(ctx, dial.clone(), follower, &row, None, (true, false)).await
    };
    // A session that is visited from a session makes this recursive.
    let failed = Box::pin(shown).await.err();
    screen.back()?;
    Ok(failed.map(|failure| failure.fault().message))
}

/// The moment on the clock that waits use.
fn at(moment: Timestamp) -> Instant {
    Instant::now() + Duration::from_millis(moment.since_ms(now()))
}

/// Waits for a moment, or for ever.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
