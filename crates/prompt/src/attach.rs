//! Reads what mentions attach: files, parts of files, and directory listings, all beneath the working directory.

use crate::mention::Mention;
use agentd_protocol::image_media_type;
use agentd_sandbox::{Beneath, EntryKind, SandboxError};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The most directory entries that are listed.
const MAX_ENTRIES: usize = 200;

/// A mention that names something in the working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MentionedPath {
    /// The mention.
    pub mention: Mention,
    /// Its path, normalised and relative to the working directory.
    pub path: String,
    /// The resolved path, which differs if `path` is a link.
    pub real: String,
    /// Whether it is a directory.
    pub directory: bool,
}

/// The limits of attachments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachLimits {
    /// The most lines of one file.
    pub lines: usize,
    /// The most bytes of one file.
    pub bytes: usize,
    /// The most bytes of all files together.
    pub all: usize,
    /// The most bytes of one image.
    pub image: usize,
}

/// The content of all attachments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attached {
    /// The content of text files and directories, and the reasons why others are not attached.
    pub text: String,
    /// Images in order: the path as mentioned, and the bytes, at most one more than the limit, which shows an excess.
    pub images: Vec<(String, Vec<u8>)>,
}

/// The content of one attachment.
enum Piece {
    Text(String),
    Image(Vec<u8>),
}

/// The mentions that name a file or a directory; the others are plain text. Blocks: it accesses the file system.
#[must_use]
pub fn places_of(workdir: &Path, mentions: Vec<Mention>) -> Vec<MentionedPath> {
    let Ok(beneath) = Beneath::open(workdir) else {
        return Vec::new();
    };
    let place = |mention: Mention| {
        let inner = beneath.relative(&mention.path).ok()?;
        let (real, directory) = match beneath.open_file(&inner) {
            Ok(opened) => (opened.real, false),
            Err(_) if beneath.entry(&inner).ok()?.kind == EntryKind::Directory => (inner.clone(), true),
            Err(_) => return None,
        };
        Some(MentionedPath {
            path: show(&inner),
            real: show(&real),
            directory,
            mention,
        })
    };
    mentions.into_iter().filter_map(place).collect()
}

fn show(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        path.display().to_string()
    }
}

/// The content of these places, for the model. Blocks: it reads files.
#[must_use]
pub fn attached(workdir: &Path, places: &[MentionedPath], limits: AttachLimits) -> Attached {
    let Ok(beneath) = Beneath::open(workdir) else {
        return Attached::default();
    };
    let (mut text, mut images) = (String::new(), Vec::new());
    let mut left = limits.all;
    for place in places {
        let piece = match read(&beneath, place, limits, left) {
            Ok(Piece::Text(piece)) => piece,
            Ok(Piece::Image(bytes)) => {
                images.push((place.path.clone(), bytes));
                continue;
            }
            Err(why) => format!("[{} is not attached: {why}]", place.path),
        };
        left = left.saturating_sub(piece.len());
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&piece);
    }
    Attached { text, images }
}

fn read(
    beneath: &Beneath,
    place: &MentionedPath,
    limits: AttachLimits,
    left: usize,
) -> Result<Piece, String> {
    let path = PathBuf::from(&place.path);
    if place.directory {
        return list(beneath, &path, &place.path).map(Piece::Text);
    }
    let opened = beneath.open_file(&path).map_err(|error| error.to_string())?;
    if show(&opened.real) != place.real {
        return Err("it now leads to another place".to_owned());
    }
    // The mentioned lines may be far into the file; this bounds how far to read.
    let most = limits.all.saturating_mul(16).max(limits.image.saturating_add(1));
    let mut bytes = Vec::new();
    let taken = opened
        .file
        .take(u64::try_from(most).unwrap_or(u64::MAX))
        .read_to_end(&mut bytes);
    taken.map_err(|error| error.to_string())?;
    if image_media_type(&bytes).is_some() {
        bytes.truncate(limits.image.saturating_add(1));
        return Ok(Piece::Image(bytes));
    }
    let room = limits.bytes.min(left);
    if room == 0 {
        return Err("there is no space left for it".to_owned());
    }
    if bytes.contains(&0) {
        return Err("it is not text".to_owned());
    }
    lines(place, &String::from_utf8_lossy(&bytes), (limits.lines, room)).map(Piece::Text)
}

/// The mentioned lines of a text, within the limits of lines and bytes.
fn lines(place: &MentionedPath, content: &str, (most, room): (usize, usize)) -> Result<String, String> {
    let (first, last) = place.mention.lines.map_or((1, usize::MAX), |(first, last)| {
        (
            usize::try_from(first).unwrap_or(usize::MAX),
            usize::try_from(last).unwrap_or(usize::MAX),
        )
    });
    let last = last.min(first.saturating_add(most).saturating_sub(1));
    let (mut piece, mut shown, mut more) = (String::new(), 0_usize, false);
    for (line, number) in content.split_inclusive('\n').zip(1_usize..) {
        if number < first {
            continue;
        }
        if number > last || piece.len() + line.len() > room {
            more = place.mention.lines.is_none() || number <= last;
            break;
        }
        piece.push_str(line);
        shown = number;
    }
    if shown == 0 && !content.is_empty() {
        return Err(if more {
            "its line is too long".to_owned()
        } else {
            format!("it has no line {first}")
        });
    }
    let inside = piece.trim_end_matches('\n').replace("</file>", "<\\/file>");
    let cut = if more {
        "\n[cut here: read the rest with Read]"
    } else {
        ""
    };
    Ok(format!(
        "<file path=\"{}\" lines=\"{first}-{shown}\">\n{inside}{cut}\n</file>",
        place.path
    ))
}

fn list(beneath: &Beneath, path: &Path, name: &str) -> Result<String, String> {
    let (entries, more) = beneath
        .list(path, MAX_ENTRIES)
        .map_err(|error: SandboxError| error.to_string())?;
    let mut text = format!("<directory path=\"{name}\">\n");
    for entry in entries {
        let mark = if entry.kind == EntryKind::Directory {
            "/"
        } else {
            ""
        };
        let _ = writeln!(text, "{}{mark}", entry.name);
    }
    if more {
        text.push_str("[there are more]\n");
    }
    text.push_str("</directory>");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mention::mentions;
    use crate::testing::project;
    use std::os::unix::fs::symlink;

    const LIMITS: AttachLimits = AttachLimits {
        lines: 5,
        bytes: 100,
        all: 200,
        image: 50,
    };

    fn attach(workdir: &Path, text: &str) -> String {
        attached(workdir, &places_of(workdir, mentions(text)), LIMITS).text
    }

    #[test]
    fn an_image_is_attached_as_its_bytes_up_to_one_more_than_the_limit() {
        let dir = project(&[("a.txt", "one")]);
        let dir = dir.path();
        let image = [b"GIF89a".as_slice(), &[0; 60]].concat();
        std::fs::write(dir.join("b.gif"), &image).unwrap();
        let places = places_of(dir, mentions("@a.txt and @b.gif"));
        let found = attached(dir, &places, LIMITS);
        assert!(found.text.contains("one") && !found.text.contains("b.gif"));
        let cut = image.get(..LIMITS.image + 1).unwrap().to_vec();
        assert_eq!(found.images, [("b.gif".to_owned(), cut)]);
    }

    #[test]
    fn files_pieces_and_directories_are_attached() {
        let dir = project(&[("src/a.rs", "one\ntwo\nthree\n"), ("src/b/c", "")]);
        let dir = dir.path();
        assert_eq!(
            attach(dir, "see @src/a.rs"),
            "<file path=\"src/a.rs\" lines=\"1-3\">\none\ntwo\nthree\n</file>"
        );
        assert_eq!(
            attach(dir, "@src/a.rs:2"),
            "<file path=\"src/a.rs\" lines=\"2-2\">\ntwo\n</file>"
        );
        assert_eq!(
            attach(dir, "@src/"),
            "<directory path=\"src\">\na.rs\nb/\n</directory>"
        );
        assert_eq!(
            attach(dir, "@src/a.rs:9"),
            "[src/a.rs is not attached: it has no line 9]"
        );
    }

    #[test]
    fn what_names_nothing_here_stays_text() {
        let outside = project(&[("key", "secret")]);
        let dir = project(&[("a", "x")]);
        symlink(outside.path().join("key"), dir.path().join("link")).unwrap();
        let text = "@types/node @../a @link @none.rs ana@a";
        assert_eq!(places_of(dir.path(), mentions(text)), []);
    }

    #[test]
    fn a_link_says_where_it_leads() {
        let dir = project(&[(".env", "KEY=1")]);
        symlink(".env", dir.path().join("notes.txt")).unwrap();
        let places = places_of(dir.path(), mentions("@notes.txt"));
        assert_eq!(
            (places[0].path.as_str(), places[0].real.as_str()),
            ("notes.txt", ".env")
        );
        let moved = MentionedPath {
            real: "other".into(),
            ..places[0].clone()
        };
        assert!(
            attached(dir.path(), &[moved], LIMITS)
                .text
                .contains("another place")
        );
    }

    #[test]
    fn sizes_have_limits_and_what_is_left_out_is_said() {
        let line = "x".repeat(39);
        let long: String = (0..9).map(|_| format!("{line}\n")).collect();
        let dir = project(&[
            ("many", "1\n2\n3\n4\n5\n6\n"),
            ("long", &long),
            ("bin", "a\0b"),
            ("end", "</file>"),
        ]);
        let dir = dir.path();
        let many = attach(dir, "@many");
        assert!(
            many.contains("lines=\"1-5\"") && many.contains("[cut here"),
            "{many}"
        );
        let long = attach(dir, "@long @many");
        assert!(
            long.contains("lines=\"1-2\""),
            "two lines of 40 bytes fit into 100: {long}"
        );
        assert!(attach(dir, "@bin").contains("not text"));
        assert_eq!(attach(dir, "@end").matches("</file>").count(), 1);
        let none = AttachLimits { all: 0, ..LIMITS };
        assert!(
            attached(dir, &places_of(dir, mentions("@end")), none)
                .text
                .contains("no space left")
        );
    }
}
