//! The plain shell language that a rule may allow: bare words and simple quotes, joined by `&& || ; |` and newlines.
//!
//! This parser is strict on purpose. Anything that it does not know is not plain, so a person is asked. The grammar's parser
//! must agree with it word for word before anything is allowed.

/// Why a command is not plain, worded to end "the command has …".
pub(crate) type NotPlain = &'static str;

/// Words that begin a compound command.
const RESERVED: [&str; 17] = [
    "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "for", "case", "esac", "select",
    "function", "coproc", "in", "time",
];
const NULL_DEVICE: &str = "/dev/null";

#[derive(Default)]
struct Reader {
    segments: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// The current segment has a redirection.
    redirected: bool,
    /// The last operator needs a command after it.
    open: bool,
}

/// The commands of a plain text, each as a list of words.
pub(crate) fn segments(text: &str) -> Result<Vec<Vec<String>>, NotPlain> {
    let mut reader = Reader::default();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if reader.word.is_none()
            && let Some(length) = redirection(rest)
        {
            reader.redirected = true;
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        let used = match c {
            ' ' | '\t' => reader.end_word(),
            '\'' | '"' => reader.quoted(c, rest)?,
            '\n' => reader.end_line()?,
            ';' => reader.end_command(false)?,
            '|' if rest.starts_with("||") => reader.end_command(true)? + 1,
            '|' => reader.end_command(true)?,
            '&' if rest.starts_with("&&") => reader.end_command(true)? + 1,
            c => reader.bare(c)?,
        };
        rest = rest.get(used..).unwrap_or_default();
    }
    reader.end_line()?;
    if reader.open || reader.segments.is_empty() {
        Err("an unfinished or empty part")
    } else {
        Ok(reader.segments)
    }
}

impl Reader {
    fn end_word(&mut self) -> usize {
        self.words.extend(self.word.take());
        1
    }

    fn end_line(&mut self) -> Result<usize, NotPlain> {
        self.end_word();
        if self.words.is_empty() && !self.redirected {
            return Ok(1);
        }
        self.end_command(false)
    }

    fn end_command(&mut self, open: bool) -> Result<usize, NotPlain> {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        let Some(first) = words.first() else {
            return Err("an unfinished or empty part");
        };
        if first.contains('=') {
            return Err("an assignment");
        }
        if first.is_empty() || RESERVED.contains(&first.as_str()) {
            return Err("a shell keyword");
        }
        self.segments.push(words);
        self.redirected = false;
        self.open = open;
        Ok(1)
    }

    fn quoted(&mut self, quote: char, rest: &str) -> Result<usize, NotPlain> {
        let inner = rest.get(1..).unwrap_or_default();
        let end = inner.find(quote).ok_or("an unclosed quote")?;
        let inner = inner.get(..end).unwrap_or_default();
        if inner.chars().any(crate::path::hidden) {
            return Err("a control or invisible character");
        }
        if quote == '"' && inner.contains(['$', '`', '\\', '!']) {
            return Err("an expansion or escape inside double quotes");
        }
        self.word.get_or_insert_with(String::new).push_str(inner);
        Ok(end + 2)
    }

    fn bare(&mut self, c: char) -> Result<usize, NotPlain> {
        match c {
            '$' | '`' => return Err("an expansion or substitution"),
            '<' | '>' => return Err("a redirection"),
            '&' => return Err("a background job"),
            '(' | ')' => return Err("a subshell or function"),
            '*' | '?' | '[' | ']' | '{' | '}' => return Err("a file pattern or braces"),
            '\\' => return Err("a backslash"),
            '#' => return Err("a comment"),
            '!' => return Err("an exclamation mark"),
            c if crate::path::hidden(c) => return Err("a control or invisible character"),
            c if c.is_alphanumeric() || "_-./:,@%+=^~".contains(c) => {}
            _ => return Err("an unusual character"),
        }
        self.word.get_or_insert_with(String::new).push(c);
        Ok(c.len_utf8())
    }
}

/// The length of a harmless redirection at the start of `text`: to or from the null device, or one output to the other.
fn redirection(text: &str) -> Option<usize> {
    let length = ["2>&1", "1>&2", ">&2"]
        .into_iter()
        .find(|form| text.starts_with(form))
        .map(str::len)
        .or_else(|| {
            let operator = ["&>", "2>>", "1>>", ">>", "2>", "1>", ">", "<"]
                .into_iter()
                .find(|form| text.starts_with(form))?;
            let rest = text.get(operator.len()..)?;
            let target = rest.trim_start_matches([' ', '\t']);
            target
                .starts_with(NULL_DEVICE)
                .then(|| text.len() - target.len() + NULL_DEVICE.len())
        })?;
    let next = text.get(length..)?.chars().next();
    next.is_none_or(|c| " \t\n;|&".contains(c)).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_commands_are_split_into_words() {
        let expect =
            |text: &str, expected: &[&[&str]]| assert_eq!(segments(text).unwrap(), expected, "{text:?}");
        expect("cargo test -p a", &[&["cargo", "test", "-p", "a"]]);
        expect("a 'b c' \"d e\"f ''", &[&["a", "b c", "d ef", ""]]);
        expect(
            "a && b || c; d | e\n\nf;\n",
            &[&["a"], &["b"], &["c"], &["d"], &["e"], &["f"]],
        );
        expect("a >/dev/null 2>&1 | b 2> /dev/null", &[&["a"], &["b"]]);
        expect("a &&\nb", &[&["a"], &["b"]]);
    }

    #[test]
    fn everything_else_is_not_plain() {
        for text in [
            "",
            ";",
            "a &",
            "a & b",
            "a && ",
            "| a",
            "a ;; b",
            "a > x",
            "a >/dev/nullx",
            "a < x",
            "$a",
            "`a`",
            "a *",
            "a {b,c}",
            "a\\ b",
            "A=b c",
            "(a)",
            "a()",
            "! a",
            "a # b",
            "if a",
            "time a",
            "a 'b",
            "a \"$b\"",
            "a\r",
            "a\u{a0}b",
            "a |& b",
            "a <<b",
            "a <<<b",
            "[ a ]",
            "a\0",
            "a \u{202e}b",
            ">/dev/null",
        ] {
            assert!(segments(text).is_err(), "{text:?}");
        }
    }
}
