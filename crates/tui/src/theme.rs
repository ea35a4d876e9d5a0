//! Styles for the colours that a terminal has. Everything is readable without colour: words and attributes carry the
//! meaning, colour repeats it.

use agentd_protocol::{Group, RunState};
use agentd_text::Mark;
use agentd_viewer::Tag;
use ratatui::style::{Color, Modifier, Style};

/// How many colours the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// None: bold, dim, underlined and reversed text only.
    None,
    /// The 16 colours of the terminal's own palette.
    Ansi,
    /// 256 colours.
    Indexed,
    /// 24-bit colours.
    True,
}

/// Whether the terminal's background is light or dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ground {
    /// A dark background, or an unknown one.
    Dark,
    /// A light background.
    Light,
}

/// A kind of word in source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    Plain,
    Comment,
    Text,
    Number,
    Keyword,
    Function,
    Type,
}

/// The styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Theme {
    /// The colours that the terminal has.
    pub depth: Depth,
    /// The background.
    pub ground: Ground,
}

impl Theme {
    /// The theme for a terminal.
    #[must_use]
    pub const fn new(depth: Depth, ground: Ground) -> Self {
        Self { depth, ground }
    }

    fn colour(self, colour: Color) -> Style {
        if self.depth == Depth::None {
            Style::new()
        } else {
            Style::new().fg(colour)
        }
    }

    /// Text of no particular kind.
    pub(crate) const fn plain(self) -> Style {
        Style::new()
    }

    pub(crate) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What matters less.
    pub(crate) fn dim(self) -> Style {
        match (self.depth, self.ground) {
            (Depth::Indexed | Depth::True, Ground::Dark) => Style::new().fg(Color::Indexed(245)),
            (Depth::Indexed | Depth::True, Ground::Light) => Style::new().fg(Color::Indexed(241)),
            (Depth::None | Depth::Ansi, _) => Style::new().add_modifier(Modifier::DIM),
        }
    }

    pub(crate) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    pub(crate) fn bad(self) -> Style {
        self.colour(Color::Red)
    }

    /// What needs a person. Yellow cannot be read on a light background.
    pub(crate) fn warn(self) -> Style {
        match self.ground {
            Ground::Dark => self.colour(Color::Yellow),
            Ground::Light => self.colour(Color::Magenta),
        }
    }

    pub(crate) fn accent(self) -> Style {
        match self.ground {
            Ground::Dark => self.colour(Color::Cyan),
            Ground::Light => self.colour(Color::Blue),
        }
    }

    /// Code inside prose.
    pub(crate) fn code(self) -> Style {
        self.accent()
    }

    /// A word in source code. Without colours, comments are dim and keywords bold.
    pub(crate) fn token(self, token: Token) -> Style {
        if matches!(self.depth, Depth::None | Depth::Ansi) {
            return match token {
                Token::Plain => Style::new(),
                Token::Comment => self.dim(),
                Token::Keyword if self.depth == Depth::None => self.bold(),
                Token::Keyword => self.colour(Color::Magenta),
                Token::Text => self.good(),
                Token::Number | Token::Type => self.colour(Color::Cyan),
                Token::Function => self.colour(Color::Blue),
            };
        }
        let (dark, light) = match token {
            Token::Plain => return Style::new(),
            Token::Comment => return self.dim(),
            Token::Text => (150, 28),
            Token::Number => (215, 130),
            Token::Keyword => (176, 90),
            Token::Function => (111, 26),
            Token::Type => (180, 94),
        };
        Style::new().fg(Color::Indexed(if self.ground == Ground::Dark {
            dark
        } else {
            light
        }))
    }

    /// Whether there are enough colours for a background behind coloured text.
    pub(crate) const fn has_tints(self) -> bool {
        matches!(self.depth, Depth::Indexed | Depth::True)
    }

    /// The background of an added or a removed line with coloured words.
    pub(crate) fn tint(self, mark: char) -> Style {
        let (dark, light) = match mark {
            '+' => (22, 194),
            '-' => (52, 224),
            _ => return Style::new(),
        };
        Style::new().bg(Color::Indexed(if self.ground == Ground::Dark {
            dark
        } else {
            light
        }))
    }

    /// The selected row.
    pub(crate) fn selected(self) -> Style {
        match (self.depth, self.ground) {
            (Depth::Indexed | Depth::True, Ground::Dark) => Style::new().bg(Color::Indexed(237)),
            (Depth::Indexed | Depth::True, Ground::Light) => Style::new().bg(Color::Indexed(254)),
            (Depth::None | Depth::Ansi, _) => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// A bar across the screen.
    pub(crate) fn bar(self) -> Style {
        match (self.depth, self.ground) {
            (Depth::Indexed | Depth::True, Ground::Dark) => Style::new().bg(Color::Indexed(236)),
            (Depth::Indexed | Depth::True, Ground::Light) => Style::new().bg(Color::Indexed(253)),
            (Depth::None | Depth::Ansi, _) => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// A text that a search found.
    pub(crate) fn found(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    pub(crate) fn tag(self, tag: Tag) -> Style {
        match tag {
            Tag::Done => self.good(),
            Tag::Bad => self.bad(),
            Tag::Ask => self.warn(),
            Tag::Tool | Tag::Mark => self.accent(),
            Tag::Note | Tag::Thought => self.dim(),
            Tag::User => self.bold(),
            Tag::Model => self.plain(),
        }
    }

    pub(crate) fn mark(self, mark: Mark) -> Style {
        match mark {
            Mark::Plain => self.plain(),
            Mark::Label | Mark::Gutter => self.dim(),
            Mark::Risk => self.bad().add_modifier(Modifier::BOLD),
            Mark::Removed => self.bad(),
            Mark::Hidden => self.warn(),
            Mark::Added => self.good(),
        }
    }

    pub(crate) fn state(self, state: RunState) -> Style {
        match state.group() {
            Group::Running => self.good(),
            Group::Person => self.warn().add_modifier(Modifier::BOLD),
            Group::Limited | Group::Paused => self.warn(),
            Group::Failed => self.bad(),
            Group::Idle | Group::Closed => self.dim(),
        }
    }
}
