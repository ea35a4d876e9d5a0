//! A screen with a margin: every event is shown next to its number or time, so an answer is shown only when complete.

use crate::failure::Failure;
use crate::follow::News;
use crate::interactive::screen::Screen;
use crate::output::Output;
use crate::render::{Line, Margin};
use agentd_protocol::{Delta, Event, EventBody, FailureClass};

impl Screen {
    /// Sets the margin, if any.
    pub(crate) fn beside(mut self, margin: Option<Margin>) -> Self {
        self.margin = margin;
        self
    }

    /// Shows news that gets a margin. Returns false if there is none to show, so the caller shows the news as usual.
    pub(super) fn shown_beside(&mut self, out: &mut Output, news: &News) -> Result<bool, Failure> {
        if self.margin.is_none() {
            return Ok(false);
        }
        match news {
            News::Event(event, _) => self.event_beside(out, event).map(|()| true),
            News::Delta(Delta::Text(_) | Delta::Thinking(_) | Delta::ToolOutput { .. }) => Ok(true),
            News::Synced(synced) => self.status(out, &synced.status).map(|()| true),
            News::Delta(_) | News::Lagged | News::Retrying | News::Back | News::Ended(_) => Ok(false),
        }
    }

    fn event_beside(&mut self, out: &mut Output, event: &Event) -> Result<(), Failure> {
        let mut lines = self.transcript.lines(event);
        if let EventBody::ModelFailed(failed) = &event.body
            && let (FailureClass::Cancelled, Some(partial)) = (failed.class, &failed.partial)
        {
            lines.insert(0, Line::said(partial.as_str()));
        }
        if lines.is_empty() || self.hides(event) {
            return Ok(());
        }
        self.break_line(out)?;
        let paint = out.paint();
        let text: String = lines.iter().map(|line| line.print(paint)).collect();
        let text = match &mut self.margin {
            Some(margin) => margin.beside(event, &text, paint),
            None => text,
        };
        out.raw(text.as_bytes())
    }
}
