//! Answers requests until there are no more.

use agentd_repo_map::{MAX_REQUEST, Reply, Request, TagFinder, greeting};
use std::io::{BufRead, Error, ErrorKind, Read as _, Result, Write};
use std::time::{Duration, Instant};

/// How long a file may take: less than the daemon waits for the answer, so that the program survives slow files.
const WITHIN: Duration = Duration::from_secs(8);

/// Greets, and answers each request. Returns at the end of the input.
///
/// # Errors
/// The input is no request, or the other side is gone.
pub(crate) fn serve(
    mut input: impl BufRead,
    mut output: impl Write,
    finder: &mut dyn TagFinder,
) -> Result<()> {
    say(&mut output, &greeting())?;
    let mut source = Vec::new();
    while let Some(request) = request(&mut input)? {
        source.clear();
        source.resize(request.bytes, 0);
        input.read_exact(&mut source)?;
        let began = Instant::now();
        let found = finder.tags(request.language, &source, &|| began.elapsed() >= WITHIN);
        say(&mut output, &found.map_or(Reply::TooHard, Reply::Tags).line())?;
    }
    Ok(())
}

/// The next request; `None` at the end of the input.
fn request(input: &mut impl BufRead) -> Result<Option<Request>> {
    let mut line = Vec::new();
    if input.take(MAX_REQUEST).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let read = std::str::from_utf8(&line).ok().and_then(Request::read);
    read.map(Some).ok_or_else(|| Error::from(ErrorKind::InvalidData))
}

fn say(output: &mut impl Write, line: &str) -> Result<()> {
    output.write_all(line.as_bytes())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_repo_map::{Language, MAX_FILE_BYTES, MapError, Tags, is_greeting};

    /// Remembers what it got, and gives up on empty files.
    #[derive(Default)]
    struct Recorder(Vec<(Language, usize)>);

    impl TagFinder for Recorder {
        fn tags(
            &mut self,
            language: Language,
            source: &[u8],
            _: &dyn Fn() -> bool,
        ) -> Result<Tags, MapError> {
            self.0.push((language, source.len()));
            match source {
                [] => Err(MapError::TooHard),
                _ => Ok(Tags::default()),
            }
        }
    }

    use std::result::Result;

    fn asked(language: Language, source: &[u8]) -> Vec<u8> {
        let line = super::Request {
            language,
            bytes: source.len(),
        }
        .line();
        [line.as_bytes(), source].concat()
    }

    fn served(input: &[u8]) -> (Vec<(Language, usize)>, Vec<String>, bool) {
        let (mut finder, mut output) = (Recorder::default(), Vec::new());
        let done = serve(input, &mut output, &mut finder).is_ok();
        let text = String::from_utf8(output).unwrap();
        (finder.0, text.lines().map(str::to_owned).collect(), done)
    }

    #[test]
    fn files_are_answered_one_after_another() {
        // A file that looks like a request is still a file.
        let sly = asked(Language::C, b"x");
        let input = [
            asked(Language::Rust, &sly),
            asked(Language::Go, b""),
            asked(Language::Java, &vec![b' '; MAX_FILE_BYTES]),
        ]
        .concat();
        let (files, said, done) = served(&input);
        assert_eq!(
            files,
            [
                (Language::Rust, sly.len()),
                (Language::Go, 0),
                (Language::Java, MAX_FILE_BYTES)
            ]
        );
        assert!(done && is_greeting(&said[0]));
        let empty = Reply::Tags(Tags::default());
        let replies: Vec<_> = said[1..].iter().map(|line| Reply::read(line)).collect();
        assert_eq!(replies, [Some(empty.clone()), Some(Reply::TooHard), Some(empty)]);
    }

    #[test]
    fn i6_what_is_no_request_ends_it() {
        let line = |bytes| {
            let request = Request {
                language: Language::C,
                bytes,
            };
            request.line().into_bytes()
        };
        let endless = vec![b'{'; 10_000];
        for input in [
            &b"what is this?\n"[..],
            &line(MAX_FILE_BYTES + 1),
            &endless,
            &line(9),
            b"\xff\n",
        ] {
            let (files, said, done) = served(input);
            assert_eq!((files.len(), said.len(), done), (0, 1, false));
        }
    }
}
