//! The status line on a terminal: drawn below everything else, and removed before other output.

use crate::follow::News;
use crate::render::{Paint, StatusLine};
use agentd_protocol::{Delta, Timestamp};

/// A status line and its position.
#[derive(Debug)]
pub(crate) struct Footer {
    line: StatusLine,
    /// Text is streaming: that shows progress, and a status line below it would only flicker.
    lively: bool,
    /// The output that removes the line from the terminal.
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

    /// Lets the line be shown again, until more text streams.
    pub(crate) fn calm(&mut self) {
        self.lively = false;
    }

    /// The output that draws the line on a terminal of this width; `column` is where the cursor is.
    pub(crate) fn show(&mut self, columns: usize, column: usize, now: Timestamp, paint: Paint) -> String {
        let text = self.line.text(now, columns.saturating_sub(1));
        // A cursor beyond the last column cannot be restored to that position.
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

    /// The output that removes the line.
    pub(crate) fn hide(&mut self) -> String {
        std::mem::take(&mut self.hide)
    }
}
