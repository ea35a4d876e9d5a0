//! Where output goes: data to stdout, messages to stderr, each in the requested format.

mod pager;

use crate::cli::{Color, Format};
use crate::clock::now;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::{Failure, FaultRow};
use crate::output::pager::Pager;
use crate::render::{Column, Paint, clean, json_for_terminal, table};
use agentd_protocol::Timestamp;
use serde::Serialize;
use std::io::{self, IsTerminal as _, Write as _};

/// The minimum visible width of a label.
const LABEL: usize = 8;

/// The capabilities of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It can only print.
    Dumb,
    /// It supports cursor movement.
    Screen,
}

/// The state of the standard streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    /// The value of COLUMNS.
    columns: Option<usize>,
    kind: Kind,
    paint: (Paint, Paint),
}

impl Terminal {
    pub(crate) fn detect(environment: &Environment, color: Color) -> Self {
        let (stdout, stderr) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let forced = ["CLICOLOR_FORCE", "FORCE_COLOR"]
            .iter()
            .any(|name| environment.get(name).is_some_and(|value| value != "0"));
        let plain = environment.get("NO_COLOR").is_some() || environment.get("TERM") == Some("dumb");
        let paint = |tty: bool| {
            Paint::new(match color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => !plain && (tty || forced),
            })
        };
        Self {
            stdin: io::stdin().is_terminal(),
            stdout,
            stderr,
            columns: environment
                .get("COLUMNS")
                .and_then(|columns| columns.trim().parse().ok())
                .filter(|columns| *columns > 0),
            kind: match environment.get("TERM") {
                None | Some("dumb") => Kind::Dumb,
                Some(_) => Kind::Screen,
            },
            paint: (paint(stdout), paint(stderr)),
        }
    }

    /// Whether a person is at the terminal, so that prompts can be read and answered.
    pub(crate) const fn interactive(&self) -> bool {
        self.stdin && self.stdout && self.stderr
    }

    /// Columns of the terminal on stdout; COLUMNS takes precedence.
    pub(crate) fn width(&self) -> Option<usize> {
        let asked = || Some(usize::from(terminal_size::terminal_size()?.0.0));
        self.stdout.then(|| self.columns.or_else(asked)).flatten()
    }

    /// Whether a person is at a terminal that can be drawn on.
    pub(crate) fn draws(&self) -> bool {
        self.interactive() && self.canvas().is_some()
    }

    /// Columns and lines of the terminal where a person reads and types.
    pub(crate) fn person(&self) -> (usize, usize) {
        let size = terminal_size::terminal_size();
        let (columns, rows) = size.map_or((100, 40), |(columns, rows)| (columns.0.into(), rows.0.into()));
        (self.columns.map_or(columns, |asked| asked.min(columns)), rows)
    }

    /// Columns and lines of the terminal on stdout, if it can erase what was written.
    pub(crate) fn canvas(&self) -> Option<(usize, usize)> {
        let size = terminal_size::terminal_size().filter(|_| self.stdout && self.kind == Kind::Screen);
        size.map(|(columns, rows)| (columns.0.into(), rows.0.into()))
    }

    /// Columns of the terminal on stdout, if it supports cursor movement.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.canvas().map(|(columns, _)| columns)
    }

    /// Lines of the terminal on stdout.
    pub(crate) fn height(&self) -> Option<usize> {
        let size = self.stdout.then(terminal_size::terminal_size).flatten();
        size.map(|(_, height)| usize::from(height.0))
    }
}

/// A row of a list: its name, its table cells and (by serde) its JSON shape.
pub(crate) trait Row: Serialize {
    /// The headings.
    fn columns(wide: bool) -> Vec<Column>;
    /// One cell per heading. Cells may hold any text; the table sanitizes them.
    fn cells(&self, wide: bool, now: Timestamp) -> Vec<String>;
    /// The output of `-o name` and `-q`.
    fn name(&self) -> String;
}

/// The two output streams and how to write to them.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) quiet: bool,
    pub(crate) terminal: Terminal,
    pager: Option<Pager>,
}

impl Output {
    pub(crate) const fn new(format: Format, quiet: bool, terminal: Terminal) -> Self {
        Self {
            format,
            quiet,
            terminal,
            pager: None,
        }
    }

    /// Sends stdout through a pager from here on. Does nothing for files, pipes and formats that programs read.
    pub(crate) fn page(&mut self, environment: &Environment) {
        let paged = self.human() && self.terminal.stdout && self.terminal.kind == Kind::Screen;
        let command = pager::chosen(environment).filter(|_| paged);
        // Without a pager the text still goes to the screen.
        self.pager = command.and_then(|command| Pager::start(command, environment).ok());
    }

    /// Waits until the user leaves the pager, if there is one.
    pub(crate) fn unpage(&mut self) -> Result<(), Failure> {
        self.pager.take().map_or(Ok(()), |mut pager| pager.end())
    }

    /// Colours for stdout.
    pub(crate) const fn paint(&self) -> Paint {
        self.terminal.paint.0
    }

    /// Colours for stderr.
    pub(crate) const fn paint_stderr(&self) -> Paint {
        self.terminal.paint.1
    }

    /// Whether the format is for people, not programs.
    pub(crate) const fn human(&self) -> bool {
        matches!(self.format, Format::Table | Format::Wide)
    }

    pub(crate) const fn wide(&self) -> bool {
        matches!(self.format, Format::Wide)
    }

    /// Writes data unchanged.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if let Some(pager) = &mut self.pager {
            return pager.write(bytes);
        }
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(bytes)
            .and_then(|()| stdout.flush())
            .map_err(Failure::output)
    }

    /// Writes a line to stdout.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.raw(format!("{text}\n").as_bytes())
    }

    /// Writes a stored JSON line: exact for programs; on a terminal, control characters are escaped.
    pub(crate) fn json_line(&mut self, json: &str) -> Result<(), Failure> {
        if self.terminal.stdout {
            self.line(&json_for_terminal(json))
        } else {
            self.line(json)
        }
    }

    /// Writes a message to stderr, unless `-q`. Ignores a failed write.
    pub(crate) fn status(&mut self, text: &str) {
        if !self.quiet {
            self.status_always(&format!("{text}\n"));
        }
    }

    /// Writes to stderr unchanged, even with `-q`: for what a person must see.
    pub(crate) fn status_always(&mut self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }

    /// Prints a list in the requested format.
    pub(crate) fn list<R: Row>(&mut self, rows: &[R]) -> Result<(), Failure> {
        self.list_with(rows, &[], |_, _| String::new())
    }

    /// Prints a list whose table has an extra column for each name.
    pub(crate) fn list_with<R: Row>(
        &mut self,
        rows: &[R],
        names: &[String],
        cell: impl Fn(&R, &str) -> String,
    ) -> Result<(), Failure> {
        if self.quiet || self.format == Format::Name {
            return rows.iter().try_for_each(|row| self.line(&row.name()));
        }
        match self.format {
            Format::Table | Format::Wide => {
                let (wide, moment) = (self.wide(), now());
                let cells = rows.iter().map(|row| {
                    let mut cells = row.cells(wide, moment);
                    cells.extend(names.iter().map(|name| cell(row, name)));
                    cells
                });
                let cells: Vec<_> = cells.collect();
                let mut columns = R::columns(wide);
                columns.extend(names.iter().map(|name| Column::asked(name, LABEL)));
                let width = self.terminal.width().filter(|_| !wide);
                self.raw(table(&columns, &cells, width, self.paint()).as_bytes())
            }
            Format::Jsonl => rows.iter().try_for_each(|row| {
                let json = serde_json::to_string(row).map_err(unwritable)?;
                self.json_line(&json)
            }),
            Format::Json | Format::Yaml | Format::Name => self.value(rows),
        }
    }

    /// Prints one object: as text for people, by its name, or in its JSON shape.
    pub(crate) fn object<T: Serialize>(
        &mut self,
        value: &T,
        name: &str,
        text: impl FnOnce(Paint) -> String,
    ) -> Result<(), Failure> {
        if self.quiet || self.format == Format::Name {
            return self.line(name);
        }
        if self.human() {
            let text = text(self.paint());
            return self.raw(text.as_bytes());
        }
        self.value(value)
    }

    /// Prints a value as JSON or YAML.
    pub(crate) fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        match self.format {
            Format::Yaml => {
                let yaml = serde_norway::to_string(value).map_err(unwritable)?;
                let yaml = if self.terminal.stdout {
                    clean(&yaml).into_owned()
                } else {
                    yaml
                };
                self.raw(yaml.as_bytes())
            }
            Format::Jsonl => self.json_line(&serde_json::to_string(value).map_err(unwritable)?),
            Format::Json | Format::Table | Format::Wide | Format::Name => {
                self.json_line(&serde_json::to_string_pretty(value).map_err(unwritable)?)
            }
        }
    }

    /// Reports a failure on stderr and returns its exit code.
    pub(crate) fn failure(&mut self, failure: &Failure) -> Exit {
        // Closes the pager first, so that the user reads the earlier output before the error.
        drop(self.pager.take());
        if matches!(failure, Failure::Pipe) {
            return failure.exit();
        }
        let fault = failure.fault();
        let text = if matches!(self.format, Format::Json | Format::Jsonl) {
            let json = serde_json::to_string(&FaultRow::from(&fault)).unwrap_or_default();
            format!("{}\n", json_for_terminal(&json))
        } else {
            fault_text(&fault, self.paint_stderr())
        };
        self.status_always(&text);
        failure.exit()
    }
}

/// The lines `error: MESSAGE` and `hint: HINT`.
pub(crate) fn fault_text(fault: &agentd_protocol::Fault, paint: Paint) -> String {
    let mut text = format!("{} {}\n", paint.bad("error:"), clean(&fault.message));
    if let Some(hint) = &fault.hint {
        text.push_str(&format!("{} {}\n", paint.dim("hint:"), clean(hint)));
    }
    text
}

fn unwritable(error: impl std::fmt::Display) -> Failure {
    Failure::Fault(agentd_protocol::Fault::internal(
        "unwritable",
        format!("cannot write the answer: {error}"),
    ))
}
