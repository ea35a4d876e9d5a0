//! Images on terminals that draw them themselves. The terminal gets the file as it is, and only when a person asks: this
//! program decodes nothing that a session contains. docs/decisions/images.md has the reasons.

use crate::environment::Environment;
use crate::failure::Failure;
use crate::fullscreen::terminal::FullScreen;
use agentd_protocol::image_media_type;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crossterm::terminal::{WindowSize, window_size};

/// A way to send an image to a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// That of kitty, also in Ghostty and Konsole.
    Kitty,
    /// That of iTerm2, also in WezTerm, mintty and the terminal of VS Code.
    Iterm,
}

/// Bytes of one chunk of kitty's protocol.
const CHUNK: usize = 4_096;
/// The size of a cell in pixels where the terminal does not tell it.
const CELL: (u32, u32) = (8, 16);

/// The protocol of the terminal. Its variables tell it; a question to the terminal could remain without an answer.
fn protocol(environment: &Environment) -> Option<Protocol> {
    match environment.get("AGENTCTL_IMAGES") {
        Some("kitty") => return Some(Protocol::Kitty),
        Some("iterm") => return Some(Protocol::Iterm),
        Some(_) => return None,
        // By default, tmux and screen do not pass images on.
        None if environment.get("TMUX").is_some() || environment.get("STY").is_some() => return None,
        None => {}
    }
    let term = environment.get("TERM").unwrap_or_default();
    if environment.get("KITTY_WINDOW_ID").is_some() || term.contains("kitty") || term.contains("ghostty") {
        return Some(Protocol::Kitty);
    }
    let program = environment
        .get("TERM_PROGRAM")
        .or_else(|| environment.get("LC_TERMINAL"));
    match program? {
        "ghostty" => Some(Protocol::Kitty),
        "iTerm.app" | "iTerm2" | "WezTerm" | "mintty" | "vscode" => Some(Protocol::Iterm),
        _ => None,
    }
}

/// The sequences that draw an image that fits the window, and those that remove it.
fn sequences(
    protocol: Protocol,
    content: &[u8],
    window: &WindowSize,
) -> Result<(String, &'static str), String> {
    let kind = image_media_type(content).ok_or("this is no PNG, JPEG, GIF or WebP image")?;
    let (columns, rows) = (window.columns.max(2), window.rows.max(4) - 2);
    let data = STANDARD.encode(content);
    if protocol == Protocol::Iterm {
        let drawn = format!(
            "\x1b]1337;File=inline=1;size={};width={columns};height={rows};preserveAspectRatio=1:{data}\x07",
            content.len()
        );
        return Ok((drawn, ""));
    }
    if kind != "image/png" {
        return Err(format!("this terminal shows PNG images, and this one is {kind}"));
    }
    let (columns, rows) = fit(content, (columns, rows), window);
    let mut drawn = String::with_capacity(data.len() + data.len() / 64 + 64);
    let chunks: Vec<&[u8]> = data.as_bytes().chunks(CHUNK).collect();
    for (n, chunk) in chunks.iter().enumerate() {
        let more = u8::from(n + 1 < chunks.len());
        let control = if n == 0 {
            format!("a=T,f=100,q=2,C=1,c={columns},r={rows},")
        } else {
            String::new()
        };
        let chunk = String::from_utf8_lossy(chunk);
        drawn.push_str(&format!("\x1b_G{control}m={more};{chunk}\x1b\\"));
    }
    Ok((drawn, "\x1b_Ga=d,q=2\x1b\\"))
}

/// The cells that a PNG takes: its proportions stay, and it is not enlarged.
fn fit(png: &[u8], most: (u16, u16), window: &WindowSize) -> (u32, u32) {
    let number = |at: usize| {
        let bytes = png.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(1, u32::from_be_bytes).clamp(1, 1 << 20)
    };
    let (width, height) = (number(16), number(20));
    let cell = |pixels: u16, cells: u16, usual: u32| {
        let size = u32::from(pixels).checked_div(u32::from(cells)).unwrap_or(0);
        if size == 0 { usual } else { size }
    };
    let cell = (
        cell(window.width, window.columns, CELL.0),
        cell(window.height, window.rows, CELL.1),
    );
    let (most_x, most_y) = (u32::from(most.0) * cell.0, u32::from(most.1) * cell.1);
    // Scaled by the side that is too long by more.
    let scaled = |length: u32, by: u32, of: u32| {
        u32::try_from(u64::from(length) * u64::from(by) / u64::from(of)).unwrap_or(1)
    };
    let (x, y) = if width <= most_x && height <= most_y {
        (width, height)
    } else if u64::from(width) * u64::from(most_y) > u64::from(height) * u64::from(most_x) {
        (most_x, scaled(height, most_x, width))
    } else {
        (scaled(width, most_y, height), most_y)
    };
    (x.div_ceil(cell.0).max(1), y.div_ceil(cell.1).max(1))
}

/// The sequence for tmux to pass on.
fn through_tmux(sequences: &str) -> String {
    let whole = sequences.split_inclusive("\x1b\\");
    whole
        .map(|one| format!("\x1bPtmux;{}\x1b\\", one.replace('\x1b', "\x1b\x1b")))
        .collect()
}

/// Shows the images one after the other; a key goes on. Returns why an image cannot be shown.
pub(crate) async fn show(
    screen: &mut FullScreen,
    environment: &Environment,
    images: Result<Vec<String>, String>,
) -> Result<Option<String>, Failure> {
    let Some(protocol) = protocol(environment) else {
        let hint = "this terminal is not known to show images; agentctl help terminal says which do";
        return Ok(Some(hint.to_owned()));
    };
    let images = match images {
        Ok(images) if images.is_empty() => {
            return Ok(Some("the images are not in the log any more".to_owned()));
        }
        Ok(images) => images,
        Err(why) => return Ok(Some(why)),
    };
    let window = window_size().map_err(Failure::Output)?;
    let count = images.len();
    for (n, image) in images.iter().enumerate() {
        // Decoded and encoded again: nothing but Base64 reaches the terminal.
        let content = STANDARD.decode(image).map_err(|error| error.to_string());
        let (mut drawn, mut after) = match content.and_then(|content| sequences(protocol, &content, &window))
        {
            Ok((drawn, after)) => (drawn, after.to_owned()),
            Err(why) => return Ok(Some(why)),
        };
        if environment.get("TMUX").is_some() {
            (drawn, after) = (through_tmux(&drawn), through_tmux(&after));
        }
        drawn.push_str(&format!(
            "\x1b[{};1Himage {} of {count}; any key goes on",
            window.rows,
            n + 1
        ));
        if !screen.instead(&drawn, &after).await? {
            break;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(variables: &[(&str, &str)]) -> Option<Protocol> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        protocol(&Environment::new(variables, None))
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        image.extend(width.to_be_bytes());
        image.extend(height.to_be_bytes());
        image.resize(10_000, 0);
        image
    }

    const WINDOW: WindowSize = WindowSize {
        columns: 80,
        rows: 24,
        width: 800,
        height: 480,
    };

    #[test]
    fn terminals_that_show_images_are_known_by_their_variables() {
        assert_eq!(known(&[("TERM", "xterm-kitty")]), Some(Protocol::Kitty));
        assert_eq!(known(&[("TERM_PROGRAM", "WezTerm")]), Some(Protocol::Iterm));
        assert_eq!(known(&[("LC_TERMINAL", "iTerm2")]), Some(Protocol::Iterm));
        assert_eq!(known(&[("TERM", "xterm-256color")]), None);
        let inside = [("KITTY_WINDOW_ID", "1"), ("TMUX", "/tmp/tmux")];
        assert_eq!(known(&inside), None);
        let told = [inside[1], ("AGENTCTL_IMAGES", "iterm")];
        assert_eq!(known(&told), Some(Protocol::Iterm));
        assert_eq!(
            known(&[("TERM", "xterm-kitty"), ("AGENTCTL_IMAGES", "none")]),
            None
        );
    }

    #[test]
    fn an_image_keeps_its_proportions_and_fits_the_screen() {
        // A cell is 10 x 20 pixels.
        let cells = |width, height| fit(&png(width, height), (80, 22), &WINDOW);
        assert_eq!(cells(100, 100), (10, 5));
        assert_eq!(cells(8_000, 4_400), (80, 22));
        assert_eq!(cells(8_000, 1_000), (80, 5));
        assert_eq!(cells(100, 100_000), (1, 22));
        let untold = WindowSize {
            width: 0,
            height: 0,
            ..WINDOW
        };
        assert_eq!(fit(&png(80, 32), (80, 22), &untold), (10, 2));
    }

    #[test]
    fn the_terminal_gets_the_file_as_it_is_and_nothing_else() {
        let image = png(100, 100);
        let (drawn, after) = sequences(Protocol::Kitty, &image, &WINDOW).unwrap();
        let chunks: Vec<&str> = drawn.split("\x1b\\").filter(|chunk| !chunk.is_empty()).collect();
        assert_eq!(chunks.len(), 4);
        let data: String = chunks
            .iter()
            .map(|chunk| chunk.split_once(';').unwrap().1)
            .collect();
        assert_eq!(STANDARD.decode(data).unwrap(), image);
        assert!(
            chunks[0].starts_with("\x1b_Ga=T,f=100,q=2,C=1,c=10,r=5,m=1;")
                && chunks[3].starts_with("\x1b_Gm=0;")
        );
        assert!(after.contains("a=d"));
        let (drawn, _) = sequences(Protocol::Iterm, b"GIF89a", &WINDOW).unwrap();
        assert!(
            drawn.starts_with("\x1b]1337;File=inline=1;size=6;width=80;height=22;"),
            "{drawn}"
        );
        let refused = sequences(Protocol::Kitty, b"GIF89a", &WINDOW).unwrap_err();
        assert!(refused.contains("PNG"), "{refused}");
        assert!(sequences(Protocol::Iterm, b"\x1b]0;evil", &WINDOW).is_err());
    }

    #[test]
    fn tmux_gets_each_sequence_to_pass_on() {
        let passed = through_tmux("\x1b_Gm=1;a\x1b\\\x1b_Gm=0;b\x1b\\");
        assert_eq!(
            passed,
            "\x1bPtmux;\x1b\x1b_Gm=1;a\x1b\x1b\\\x1b\\\x1bPtmux;\x1b\x1b_Gm=0;b\x1b\x1b\\\x1b\\"
        );
        assert_eq!(through_tmux(""), "");
    }
}
