//! Shows untrusted text to a person who must see all of it: names invisible characters, counts long runs, and marks
//! characters that look like others.
//!
//! A mark is enclosed in `⟨⟩`. If the text itself contains one of these brackets, its code point is shown instead, so
//! a mark cannot be forged.

use unicode_width::UnicodeWidthChar as _;

/// The most spaces shown as such at the start of a line.
const INDENT: usize = 16;
/// The most spaces inside a line.
const SPACES: usize = 6;
/// The most spaces at the end of a line.
const TRAILING: usize = 2;
const TABS: usize = 8;
/// The most repetitions of one character.
const SAME: usize = 64;
/// The most combining characters on one base. Real scripts need no more.
const STACKED: usize = 2;
/// The most repetitions of one line.
const LINES: usize = 3;

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// Whether this is our mark in place of something invisible.
    pub(crate) mark: bool,
}

/// The lines of a text as pieces. Runs of blank or equal lines are counted.
pub(crate) fn lines(text: &str) -> Vec<Vec<Piece>> {
    let mut shown = Vec::new();
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut rest = text.split('\n').peekable();
    while let Some(line) = rest.next() {
        let blank = is_blank(line);
        let alike = |next: &&str| if blank { is_blank(next) } else { *next == line };
        let mut count = 1_usize;
        while rest.next_if(alike).is_some() {
            count += 1;
        }
        match (blank, count) {
            (true, 2..) => shown.push(vec![mark(format!("{count} blank lines"))]),
            (false, count) if count > LINES => {
                shown.push(pieces(line));
                shown.push(vec![mark(format!("the same line {} more times", count - 1))]);
            }
            (_, count) => shown.extend(std::iter::repeat_with(|| pieces(line)).take(count)),
        }
    }
    shown
}

/// A text on one line of about `max` characters. A count in the middle replaces what is left out, so that both ends
/// stay visible.
#[must_use]
pub fn brief(text: &str, max: usize) -> String {
    let whole = text.trim();
    let mut shown = String::new();
    for (index, line) in lines(whole).iter().enumerate() {
        if index > 0 {
            shown.push('⏎');
        }
        shown.extend(line.iter().map(|piece| piece.text.as_str()));
    }
    let count = shown.chars().count();
    if count <= max {
        return shown;
    }
    let (head, tail) = (max * 3 / 5, max * 2 / 5);
    let first: String = shown.chars().take(head).collect();
    let last: String = shown.chars().skip(count.saturating_sub(tail)).collect();
    format!("{first}⟨… {} bytes in total …⟩{last}", whole.len())
}

fn is_blank(line: &str) -> bool {
    line.chars().all(|c| matches!(c, ' ' | '\t'))
}

fn mark(name: impl AsRef<str>) -> Piece {
    Piece {
        text: format!("⟨{}⟩", name.as_ref()),
        mark: true,
    }
}

fn plain(text: impl Into<String>) -> Piece {
    Piece {
        text: text.into(),
        mark: false,
    }
}

/// One line as pieces.
pub(crate) fn pieces(line: &str) -> Vec<Piece> {
    let chars: Vec<char> = line.chars().collect();
    let alike = foreign(&chars);
    let mut shown = Shown::default();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let count = chars
            .iter()
            .skip(at)
            .zip(alike.iter().skip(at))
            .take_while(|(next, _)| **next == c)
            .count();
        let most = if at == 0 {
            INDENT
        } else if at + count == chars.len() {
            TRAILING
        } else {
            SPACES
        };
        shown.run(c, count, most, alike.get(at) == Some(&true));
        at += count;
    }
    shown.pieces
}

#[derive(Default)]
struct Shown {
    pieces: Vec<Piece>,
    /// Combining characters since the last base; `None` without a base, where one would alter what precedes the line.
    stacked: Option<usize>,
}

impl Shown {
    fn run(&mut self, c: char, count: usize, most: usize, alike: bool) {
        match (c, name(c)) {
            (' ', _) if count > most => self.mark(format!("{count} spaces")),
            ('\t', _) if count <= TABS => {
                let tab = Piece {
                    text: "⇥   ".to_owned(),
                    mark: true,
                };
                self.pieces.extend(std::iter::repeat_n(tab, count));
            }
            ('\t', _) => self.mark(format!("{count} tabs")),
            (_, Some(name)) if count == 1 => self.mark(name),
            (_, Some(name)) => self.mark(format!("{name}, {count} times")),
            _ if c.width() == Some(0) => self.combining(c, count),
            _ => self.visible(c, count, alike),
        }
    }

    fn visible(&mut self, c: char, count: usize, alike: bool) {
        self.stacked = Some(0);
        let shown = if count > SAME { 1 } else { count };
        self.text(&c.to_string().repeat(shown));
        if let Some(ascii) = looks_like(c) {
            self.mark(format!("U+{:04X} looks like {ascii}", u32::from(c)));
        } else if alike {
            self.mark(format!(
                "U+{:04X} {}",
                u32::from(c),
                script(c).unwrap_or("letter")
            ));
        }
        if count > SAME {
            self.mark(format!("{count} times"));
        }
    }

    fn combining(&mut self, c: char, count: usize) {
        let room = self.stacked.map_or(0, |stacked| STACKED.saturating_sub(stacked));
        if count > room {
            self.mark(format!("combining U+{:04X}, {count} times", u32::from(c)));
            return;
        }
        self.stacked = self.stacked.map(|stacked| stacked + count);
        self.text(&c.to_string().repeat(count));
    }

    fn mark(&mut self, name: impl AsRef<str>) {
        self.stacked = None;
        self.pieces.push(mark(name));
    }

    fn text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(last) if !last.mark => last.text.push_str(text),
            Some(_) | None => self.pieces.push(plain(text)),
        }
    }
}

/// The name of a character that is invisible or controls a terminal; `None` for any other.
fn name(c: char) -> Option<String> {
    let number = u32::from(c);
    let what = match c {
        '\u{1b}' => return Some("ESC".to_owned()),
        '\r' => return Some("CR".to_owned()),
        '\u{8}' => return Some("backspace".to_owned()),
        '\u{e0020}'..='\u{e007e}' => {
            let hidden = char::from_u32(number - 0xe0000).unwrap_or('?');
            return Some(format!("hidden tag {hidden:?}"));
        }
        c if c.is_control() => "control",
        '\u{a0}' | '\u{202f}' | '\u{2007}' => "no-break space",
        '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{205f}' | '\u{3000}' | '\u{2800}' => "blank",
        '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => "bidi",
        '\u{2028}' | '\u{2029}' => "line separator",
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}' => {
            "zero-width"
        }
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' => "invisible",
        '\u{3164}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffc}' | '\u{1d173}'..='\u{1d17a}' => "invisible",
        '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}' => "invisible",
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' => "private use",
        // Reserved for our marks, so that a mark cannot be forged.
        '⟨' | '⟩' | '⇥' | '⏎' => "character",
        _ => return None,
    };
    Some(format!("{what} U+{number:04X}"))
}

/// The ASCII character that a non-ASCII one resembles, whatever surrounds it.
fn looks_like(c: char) -> Option<char> {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{2571}' => Some('/'),
        '\u{2216}' | '\u{29f5}' | '\u{fe68}' => Some('\\'),
        '\u{37e}' | '\u{204f}' => Some(';'),
        '\u{2024}' => Some('.'),
        '\u{2010}'..='\u{2012}' | '\u{2212}' | '\u{2d7}' | '\u{fe63}' => Some('-'),
        '\u{1c3}' => Some('!'),
        '\u{2223}' | '\u{1c0}' => Some('|'),
        '\u{2236}' | '\u{a789}' => Some(':'),
        '\u{1d400}'..='\u{1d7ff}' => Some('a'),
        _ => None,
    }
}

fn script(c: char) -> Option<&'static str> {
    match c {
        '\u{370}'..='\u{3ff}' => Some("Greek"),
        '\u{400}'..='\u{52f}' => Some("Cyrillic"),
        '\u{531}'..='\u{58f}' => Some("Armenian"),
        '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}' => Some("Cherokee"),
        _ => None,
    }
}

/// Letters of other scripts that resemble Latin ones.
const LATIN: &str = "асеорхуіјѕһԁԛԝАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧονυ";

/// Which characters imitate Latin: letters of another script in a word with Latin letters, and words that consist
/// entirely of letters that resemble Latin ones.
fn foreign(chars: &[char]) -> Vec<bool> {
    let mut flags = Vec::with_capacity(chars.len());
    for word in chars.chunk_by(|a, b| a.is_alphanumeric() == b.is_alphanumeric()) {
        let latin = word.iter().any(char::is_ascii_alphabetic);
        let doubles = word.len() > 1 && word.iter().all(|c| LATIN.contains(*c));
        flags.extend(word.iter().map(|c| script(*c).is_some() && (latin || doubles)));
    }
    flags
}
