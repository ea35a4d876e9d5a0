//! Images in an input: files that the user names, and paths that a terminal types for a file dragged into it.

use crate::failure::Failure;
use agentd_protocol::{Block, ImageSource, image_media_type};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Larger than any daemon accepts (the upper limit of `tools.max_image_bytes` is 16 MiB).
const MAX_BYTES: u64 = 16 << 20;
/// File extensions of images.
const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// Reads an image as a block of an input. The daemon checks its size.
pub(crate) fn read(path: &Path) -> Result<Block, Failure> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| Failure::file(path, &error))?;
    let hint = "use a PNG, JPEG, GIF or WebP image; convert other formats, and scale down large images";
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        let message = format!("{} is larger than {} MiB", path.display(), MAX_BYTES >> 20);
        return Err(Failure::invalid(message, hint));
    }
    let media_type = image_media_type(&bytes)
        .ok_or_else(|| Failure::invalid(format!("{} is not a supported image", path.display()), hint))?;
    Ok(Block::Image {
        media_type: media_type.to_owned(),
        source: ImageSource::Data(STANDARD.encode(&bytes)),
    })
}

/// The images in a typed line: each absolute path of an image file, bare, quoted, or with escaped blanks.
pub(crate) fn pasted(line: &str) -> Vec<(PathBuf, Block)> {
    let images = words(line).into_iter().filter_map(|word| {
        let path = PathBuf::from(word.strip_prefix("file://").unwrap_or(&word));
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        (path.is_absolute() && ENDINGS.contains(&ending.as_str())).then_some(path)
    });
    images
        .filter_map(|path| Some((read(&path).ok()?, path)))
        .map(|(block, path)| (path, block))
        .collect()
}

/// Splits a line into words as a shell does, because terminals paste paths in shell quoting.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None) => word.extend(chars.next()),
            ('\'' | '"', None) if word.is_empty() => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_paths_of_images_are_found_however_they_are_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path.display().to_string()
        };
        let (plain, blanks) = (put("a.png", b"\x89PNG\r\n\x1a\n"), put("b c.GIF", b"GIF89a"));
        let text = put("no.png", b"text");
        let line = format!(
            "what's in {plain} and '{blanks}' or {} or file://{plain}, not in {text}, a.png or {plain}x",
            blanks.replace(' ', "\\ ")
        );
        let found: Vec<String> = pasted(&line)
            .into_iter()
            .map(|(path, _)| path.display().to_string())
            .collect();
        assert_eq!(found, [plain.as_str(), &blanks, &blanks]);
    }

    #[test]
    fn a_file_that_is_not_an_image_is_refused_with_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.png");
        std::fs::write(&path, b"GIF89a").unwrap();
        assert!(matches!(read(&path), Ok(Block::Image { media_type, .. }) if media_type == "image/gif"));
        std::fs::write(&path, b"%PDF").unwrap();
        let refused = read(&path).unwrap_err().to_string();
        assert!(refused.contains("a.png is not a supported image"), "{refused}");
    }
}
