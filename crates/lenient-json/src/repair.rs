//! The mistakes that have only one possible meaning.

use std::fmt;

/// One kind of repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repair {
    /// A Markdown fence around the object.
    Fence,
    /// A line break or another control character within a string.
    ControlCharacter,
    /// Half of a surrogate pair.
    LoneSurrogate,
    /// The escape `\'`, which JSON does not know.
    Escape,
    /// A comma before a closing bracket.
    TrailingComma,
    /// Single quotes around a string.
    SingleQuotes,
    /// A key without quotes.
    BareKey,
    /// `True`, `False` or `None`.
    PythonWord,
    /// Closing braces are missing at the end.
    MissingBrace,
    /// More closing braces than opening ones.
    ExtraBrace,
    /// An empty object next to the real one.
    EmptyObject,
    /// The same object several times.
    Repeated,
    /// The object was written as a string.
    EncodedTwice,
    /// Control tokens of the model's template around the object.
    TemplateToken,
}

impl Repair {
    const fn words(self) -> &'static str {
        match self {
            Self::Fence => "removed a Markdown fence",
            Self::ControlCharacter => "escaped control characters in a string",
            Self::LoneSurrogate => "replaced half of a surrogate pair",
            Self::Escape => "replaced the escape \\'",
            Self::TrailingComma => "removed a trailing comma",
            Self::SingleQuotes => "replaced single quotes",
            Self::BareKey => "quoted a key",
            Self::PythonWord => "replaced a Python constant",
            Self::MissingBrace => "added a missing closing brace",
            Self::ExtraBrace => "removed an extra closing brace",
            Self::EmptyObject => "removed an empty object",
            Self::Repeated => "removed a repetition of the object",
            Self::EncodedTwice => "decoded an object that was encoded twice",
            Self::TemplateToken => "removed tokens of the model's template",
        }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// The repairs of one text, each kind once, in the order of their discovery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repairs(Vec<Repair>);

impl Repairs {
    pub(crate) fn add(&mut self, repair: Repair) {
        if !self.0.contains(&repair) {
            self.0.push(repair);
        }
    }

    /// Adds the repairs of another text.
    pub fn extend(&mut self, others: &Self) {
        others.0.iter().for_each(|repair| self.add(*repair));
    }

    /// Whether nothing had to be repaired.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The repairs.
    #[must_use]
    pub fn as_slice(&self) -> &[Repair] {
        &self.0
    }
}

impl fmt::Display for Repairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, repair) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{repair}")?;
        }
        Ok(())
    }
}
