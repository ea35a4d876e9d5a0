//! The results of fetching.

/// The result of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetch {
    /// A page.
    Page(Page),
    /// A redirect that needs permission first.
    Elsewhere(Elsewhere),
}

/// A fetched page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The final address.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// The content type that the server declares; may be empty.
    pub content_type: String,
    /// The page's title.
    pub title: Option<String>,
    /// The text; HTML as Markdown, without invisible characters.
    pub text: String,
    /// The number of bytes read.
    pub bytes: u64,
    /// Whether a part is missing: the server had more, or the conversion stopped early.
    pub cut: bool,
}

/// A redirect that was not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The redirecting address.
    pub from: String,
    /// The target.
    pub to: String,
    /// The HTTP status.
    pub status: u16,
}
