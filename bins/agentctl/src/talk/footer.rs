//! The status line on a terminal: drawn below everything else, and out of the way of whatever comes.

use crate::follow::News;
use crate::render::{Paint, StatusLine};
use agentd_protocol::{Delta, Timestamp};

/// A status line, and where it stands.
#[derive(Debug)]
pub(crate) struct Footer {
    line: StatusLine,
    /// Text streams: it moves by itself, and a line below it would only flicker.
    lively: bool,
    /// What takes it off the terminal.
    hide: String,
}

impl Footer {
    pub(crate) const fn new(began: Timestamp) -> Self {
        Self {
            line: StatusLine::new(began),
            lively: false,
            hide: String::new(),
        }
    }

    pub(crate) fn observe(&mut self, news: &News) {
        match news {
            News::Event(event, _) => self.line.event(event),
            News::Delta(Delta::Status(status)) => self.line.status(status),
            News::Synced(synced) => self.line.status(&synced.status),
            News::Delta(_) | News::Lagged | News::Retrying | News::Back | News::Ended(_) => {}
        }
        self.lively = matches!(news, News::Delta(Delta::Text(_)));
    }

    /// A moment has passed without news.
    pub(crate) fn calm(&mut self) {
        self.lively = false;
    }

    /// What draws it on a terminal of so many columns, where the cursor stands behind `column` others.
    pub(crate) fn show(&mut self, columns: usize, column: usize, now: Timestamp, paint: Paint) -> String {
        let text = self.line.text(now, columns.saturating_sub(1));
        // A cursor that waits behind the last column cannot be put back there.
        if self.lively || text.is_empty() || column >= columns {
            return String::new();
        }
        let text = paint.dim(&text);
        if column == 0 {
            self.hide = "\r\x1b[K".to_owned();
            return text;
        }
        self.hide = format!("\r\x1b[K\x1b[A\x1b[{}G", column + 1);
        format!("\n{text}")
    }

    /// What takes it away.
    pub(crate) fn hide(&mut self) -> String {
        std::mem::take(&mut self.hide)
    }
}
