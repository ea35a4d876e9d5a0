//! The terminal while it is drawn on. It is given back on every way out: a return, a panic, a signal, a stop.

use crate::failure::Failure;
use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event, EventStream};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use futures_util::StreamExt as _;
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};
use rustix::process::{Signal, getpgrp, kill_process_group};
use std::io::{Stdout, Write as _, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The shortest time between two frames: 60 a second.
const FRAME: Duration = Duration::from_millis(16);

/// Whether the terminal is in our hands.
static HELD: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal, until it is dropped.
pub(crate) struct FullScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    keys: Option<EventStream>,
    drawn: Option<Instant>,
    /// Whether the screen shows something old.
    dirty: bool,
}

fn take() -> Result<(), Failure> {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
    enable_raw_mode().map_err(Failure::Output)?;
    HELD.store(true, Ordering::SeqCst);
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste).map_err(Failure::Output)
}

fn give_back() {
    if HELD.swap(false, Ordering::SeqCst) {
        // Nothing helps if the terminal is gone.
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
    pub(crate) fn take() -> Result<Self, Failure> {
        take()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()));
        let terminal = terminal.map_err(Failure::Output).inspect_err(|_| give_back())?;
        let mut screen = Self {
            terminal,
            keys: Some(EventStream::new()),
            drawn: None,
            dirty: true,
        };
        screen.clear()?;
        Ok(screen)
    }

    /// Something changed: the next frame is due.
    pub(crate) const fn touch(&mut self) {
        self.dirty = true;
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
        let earliest = self.drawn.map_or_else(Instant::now, |drawn| drawn + FRAME);
        self.dirty.then_some(earliest)
    }

    /// Draws a frame if one is due.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        if self.due().is_none_or(|due| due > Instant::now()) {
            return Ok(());
        }
        self.terminal.draw(draw).map_err(Failure::Output)?;
        self.drawn = Some(Instant::now());
        self.dirty = false;
        Ok(())
    }

    /// Redraws the whole screen with the next frame.
    pub(crate) fn clear(&mut self) -> Result<(), Failure> {
        self.dirty = true;
        // `Terminal::clear` asks the terminal for the cursor's position, and the reader of the keys may take its answer.
        execute!(stdout(), Clear(ClearType::All)).map_err(Failure::Output)?;
        self.terminal = Terminal::new(CrosstermBackend::new(stdout())).map_err(Failure::Output)?;
        Ok(())
    }

    /// Gives the terminal away, for another program or for the shell.
    pub(crate) fn leave(&mut self) {
        self.keys = None;
        give_back();
    }

    /// Takes it again.
    pub(crate) fn back(&mut self) -> Result<(), Failure> {
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

    /// Puts a text on the terminal's clipboard (OSC 52).
    pub(crate) fn copy(&mut self, base64: &str) -> Result<(), Failure> {
        let mut out = stdout();
        write!(out, "\x1b]52;c;{base64}\x07")
            .and_then(|()| out.flush())
            .map_err(Failure::Output)
    }
}
