//! Terminal colours, if wanted.

/// Colours words for one output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Paint that colours, or none.
    #[must_use]
    pub const fn new(on: bool) -> Self {
        Self { on }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Bold text.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Text that matters less.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// Success.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Failure.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }

    /// What needs a person.
    #[must_use]
    pub fn warn(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// What structures the output.
    #[must_use]
    pub fn accent(self, text: &str) -> String {
        self.wrap("36", text)
    }
}
