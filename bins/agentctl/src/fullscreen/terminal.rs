//! The terminal while it is drawn on. It is given back on every way out: a return, a panic, a signal, a stop.

use crate::failure::Failure;
use crate::fullscreen::palette::Frames;
use crossterm::cursor::{MoveTo, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event, EventStream,
    KeyEventKind, poll,
};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use futures_util::StreamExt as _;
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};
use rustix::process::{Signal, getpgrp, kill_process_group};
use std::io::{Write as _, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The shortest time between two frames that keys cause, and from any frame to one without a key. Together they are at
/// most 60 a second, and a key does not wait for a frame of what streams.
const KEY_FRAME: Duration = Duration::from_millis(17);
const FRAME: Duration = Duration::from_millis(33);
/// Frames without a key take at most one part in this number of the time. A key does not wait for the next one.
const SHARE: u32 = 4;
/// How long the thread behind the last stream of keys gets to end.
const SETTLE: Duration = Duration::from_millis(5);

/// Whether the terminal is in our hands.
static HELD: AtomicBool = AtomicBool::new(false);
/// Whether it tells about the mouse.
static MOUSE: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

type Drawn = Terminal<CrosstermBackend<Frames>>;

fn drawn(few_colours: bool) -> std::io::Result<Drawn> {
    Terminal::new(CrosstermBackend::new(Frames::new(few_colours)))
}

/// The terminal, until it is dropped.
pub(crate) struct FullScreen {
    terminal: Drawn,
    keys: Option<EventStream>,
    /// The last frame, and the last one that a key caused.
    drawn: Option<Instant>,
    drawn_for_key: Option<Instant>,
    /// The time that it took.
    took: Duration,
    stale: Stale,
    few_colours: bool,
    /// Whether another program had the terminal.
    lent: bool,
}

/// Whether the screen shows something old, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stale {
    No,
    News,
    Key,
}

fn take() -> Result<(), Failure> {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
    // An `EventStream` that is dropped leaves a wake-up behind. The next read would return at it and drop the notice of a
    // key that is there as well, which epoll gives only once. So it is read here; raw mode then repeats the notice.
    poll(SETTLE).map_err(Failure::Output)?;
    enable_raw_mode().map_err(Failure::Output)?;
    HELD.store(true, Ordering::SeqCst);
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste).map_err(Failure::Output)?;
    if MOUSE.load(Ordering::SeqCst) {
        execute!(stdout(), EnableMouseCapture).map_err(Failure::Output)?;
    }
    Ok(())
}

fn give_back() {
    if HELD.swap(false, Ordering::SeqCst) {
        // Nothing helps if the terminal is gone.
        if MOUSE.load(Ordering::SeqCst) {
            let _ = execute!(stdout(), DisableMouseCapture);
        }
        let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.keys = None;
        give_back();
    }
}

impl FullScreen {
    /// Takes the terminal: whether the mouse is wanted, and whether it has only 16 colours.
    pub(crate) fn take(mouse: bool, few_colours: bool) -> Result<Self, Failure> {
        MOUSE.store(mouse, Ordering::SeqCst);
        take()?;
        let terminal = drawn(few_colours)
            .map_err(Failure::Output)
            .inspect_err(|_| give_back())?;
        let mut screen = Self {
            terminal,
            keys: Some(EventStream::new()),
            drawn: None,
            drawn_for_key: None,
            took: Duration::ZERO,
            stale: Stale::Key,
            few_colours,
            lent: false,
        };
        screen.clear()?;
        Ok(screen)
    }

    /// Something changed: the next frame is due.
    pub(crate) fn touch(&mut self) {
        self.stale = self.stale.max(Stale::News);
    }

    /// A key was pressed: the next frame is due soon.
    pub(crate) const fn pressed(&mut self) {
        self.stale = Stale::Key;
    }

    /// The next key, paste or new size; `None` if the terminal is gone. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        match &mut self.keys {
            Some(keys) => keys.next().await?.ok(),
            None => std::future::pending().await,
        }
    }

    /// When the next frame is due, if anything changed.
    pub(crate) fn due(&self) -> Option<Instant> {
        let earliest = match self.stale {
            Stale::No => return None,
            Stale::News => self.drawn.map(|drawn| drawn + FRAME.max(self.took * SHARE)),
            Stale::Key => self.drawn_for_key.map(|drawn| drawn + KEY_FRAME),
        };
        Some(earliest.unwrap_or_else(Instant::now))
    }

    /// Draws a frame if one is due.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        if self.due().is_none_or(|due| due > Instant::now()) {
            return Ok(());
        }
        let begun = Instant::now();
        self.terminal.draw(draw).map_err(Failure::Output)?;
        self.drawn = Some(Instant::now());
        self.took = begun.elapsed();
        if self.stale == Stale::Key {
            self.drawn_for_key = self.drawn;
        }
        self.stale = Stale::No;
        Ok(())
    }

    /// Redraws the whole screen with the next frame.
    pub(crate) fn clear(&mut self) -> Result<(), Failure> {
        self.stale = Stale::Key;
        // `Terminal::clear` asks the terminal for the cursor's position, and the reader of the keys may take its answer.
        execute!(stdout(), Clear(ClearType::All)).map_err(Failure::Output)?;
        self.terminal = drawn(self.few_colours).map_err(Failure::Output)?;
        Ok(())
    }

    /// Gives the terminal away, for another view or for the shell.
    pub(crate) fn leave(&mut self) {
        self.keys = None;
        give_back();
    }

    /// Gives it to another program.
    pub(crate) fn lend(&mut self) {
        self.leave();
        self.lent = true;
    }

    /// Whether another program had it since the last call.
    pub(crate) const fn was_lent(&mut self) -> bool {
        std::mem::replace(&mut self.lent, false)
    }

    /// Takes it again.
    pub(crate) fn back(&mut self) -> Result<(), Failure> {
        self.keys = None;
        take()?;
        self.keys = Some(EventStream::new());
        self.clear()
    }

    /// Stops this program as Ctrl-Z does everywhere else, and continues later.
    pub(crate) fn suspend(&mut self) -> Result<(), Failure> {
        self.leave();
        let stopped = kill_process_group(getpgrp(), Signal::TSTP);
        self.back()?;
        stopped.map_err(|error| Failure::Output(error.into()))
    }

    /// Shows this instead of the view until a key is pressed; false if the terminal is gone.
    pub(crate) async fn instead(&mut self, shown: &str, after: &str) -> Result<bool, Failure> {
        let mut out = stdout();
        execute!(out, Clear(ClearType::All), MoveTo(0, 0)).map_err(Failure::Output)?;
        let written = out.write_all(shown.as_bytes()).and_then(|()| out.flush());
        written.map_err(Failure::Output)?;
        let pressed = loop {
            match self.next().await {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => break true,
                Some(_) => {}
                None => break false,
            }
        };
        let written = out.write_all(after.as_bytes());
        written.map_err(Failure::Output)?;
        self.clear()?;
        Ok(pressed)
    }

    /// Puts a text on the terminal's clipboard (OSC 52).
    pub(crate) fn copy(&mut self, base64: &str) -> Result<(), Failure> {
        let mut out = stdout();
        write!(out, "\x1b]52;c;{base64}\x07")
            .and_then(|()| out.flush())
            .map_err(Failure::Output)
    }
}
