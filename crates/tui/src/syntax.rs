//! Colours of source code. The grammars are loaded when the first block of code is shown, and the work for one block is
//! bounded: what lies behind the bound has no colours.

use crate::theme::{Theme, Token};
use ratatui::style::Style;
use ratatui::text::Span;
use std::cell::RefCell;
use std::path::Path;
use std::sync::LazyLock;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// The most lines of a block that get colours, and the longest line.
const MOST_LINES: usize = 300;
const LONGEST_LINE: usize = 500;

static GRAMMARS: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// What the scopes of a grammar mean; the first that fits the innermost scope counts.
static MEANINGS: LazyLock<Vec<(Scope, Token)>> = LazyLock::new(|| {
    let meanings = [
        ("comment", Token::Comment),
        ("punctuation.definition.comment", Token::Comment),
        ("string", Token::Text),
        ("punctuation.definition.string", Token::Text),
        ("constant", Token::Number),
        ("keyword.operator", Token::Plain),
        ("keyword", Token::Keyword),
        ("storage.type.numeric", Token::Number),
        ("storage", Token::Keyword),
        ("variable.language", Token::Keyword),
        ("variable.function", Token::Function),
        ("variable", Token::Plain),
        ("entity.name.function", Token::Function),
        ("support.function", Token::Function),
        ("support.macro", Token::Function),
        ("entity.name.tag", Token::Keyword),
        ("entity.other.attribute-name", Token::Type),
        ("entity.name", Token::Type),
        ("entity.other.inherited-class", Token::Type),
        ("support", Token::Type),
        ("markup.inserted", Token::Text),
        ("markup.deleted", Token::Keyword),
        ("markup.heading", Token::Function),
    ];
    let read = meanings
        .into_iter()
        .filter_map(|(name, token)| Some((Scope::new(name).ok()?, token)));
    read.collect()
});

fn meaning(stack: &ScopeStack) -> Token {
    let known = |scope: &Scope| {
        let fits = MEANINGS.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope));
        fits.map(|(_, token)| *token)
    };
    stack
        .as_slice()
        .iter()
        .rev()
        .find_map(known)
        .unwrap_or(Token::Plain)
}

/// Gives colours to the lines of a text, from its beginning on.
#[derive(Debug, Clone)]
struct Painter {
    state: ParseState,
    stack: ScopeStack,
    left: usize,
}

impl Painter {
    fn new(grammar: &SyntaxReference) -> Self {
        Self {
            state: ParseState::new(grammar),
            stack: ScopeStack::new(),
            left: MOST_LINES,
        }
    }

    /// The next line, without its line break.
    fn line(&mut self, line: &str, theme: Theme) -> Vec<Span<'static>> {
        let plain = || vec![Span::styled(line.to_owned(), theme.token(Token::Plain))];
        if self.left == 0 || line.len() > LONGEST_LINE {
            return plain();
        }
        self.left -= 1;
        let Ok(changes) = self.state.parse_line(&format!("{line}\n"), &GRAMMARS) else {
            self.left = 0;
            return plain();
        };
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut put = |from: usize, to: usize, style: Style| {
            let text = line.get(from..to.min(line.len())).unwrap_or_default();
            match spans.last_mut() {
                _ if text.is_empty() => {}
                Some(last) if last.style == style => last.content.to_mut().push_str(text),
                Some(_) | None => spans.push(Span::styled(text.to_owned(), style)),
            }
        };
        let mut done = 0;
        for (at, change) in changes {
            put(done, at, theme.token(meaning(&self.stack)));
            done = done.max(at);
            if self.stack.apply(&change).is_err() {
                self.left = 0;
                break;
            }
        }
        put(done, line.len(), theme.token(meaning(&self.stack)));
        spans
    }
}

/// A block as it was painted last, to continue there when more of it arrives.
#[derive(Debug)]
struct Kept {
    language: String,
    theme: Theme,
    text: String,
    lines: Vec<Vec<Span<'static>>>,
    painter: Painter,
}

/// Paints code, and remembers the last block: text that streams is painted once, not with every frame.
#[derive(Debug, Default)]
pub(crate) struct Code(RefCell<Option<Kept>>);

impl Code {
    /// The lines of a block in a language; in an unknown one, all look the same.
    pub(crate) fn block(&self, language: &str, text: &str, theme: Theme) -> Vec<Vec<Span<'static>>> {
        let grammar = Some(language).filter(|language| !language.is_empty());
        let Some(grammar) = grammar.and_then(|language| GRAMMARS.find_syntax_by_token(language)) else {
            let style = theme.code();
            let line = |line: &str| vec![Span::styled(line.to_owned(), style)];
            return text.lines().map(line).collect();
        };
        let mut kept = self.0.borrow_mut();
        let same =
            |kept: &Kept| kept.language == language && kept.theme == theme && text.starts_with(&kept.text);
        if !kept.as_ref().is_some_and(same) {
            *kept = Some(Kept {
                language: language.to_owned(),
                theme,
                text: String::new(),
                lines: Vec::new(),
                painter: Painter::new(grammar),
            });
        }
        let Some(kept) = kept.as_mut() else {
            return Vec::new();
        };
        let rest = text.get(kept.text.len()..).unwrap_or_default();
        let (whole, begun) = rest.rfind('\n').map_or(("", rest), |at| rest.split_at(at + 1));
        for line in whole.lines() {
            let line = kept.painter.line(line, theme);
            kept.lines.push(line);
        }
        kept.text.push_str(whole);
        let mut lines = kept.lines.clone();
        if !begun.is_empty() {
            lines.push(kept.painter.clone().line(begun, theme));
        }
        lines
    }
}

/// Paints the lines of a diff: what was and what is are two texts, each with its own state.
#[derive(Debug)]
pub(crate) struct Diff {
    theme: Theme,
    grammar: Option<&'static SyntaxReference>,
    before: Option<Painter>,
    after: Option<Painter>,
}

impl Diff {
    /// For the file that the first lines name.
    pub(crate) fn new(lines: &[&str], theme: Theme) -> Self {
        let header = lines.iter().take_while(|line| !line.starts_with('@'));
        let named = header.filter_map(|line| line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")));
        let path = named
            .filter(|path| *path != "/dev/null")
            .last()
            .unwrap_or_default();
        let extension = Path::new(path.trim())
            .extension()
            .and_then(|extension| extension.to_str());
        let grammar = extension
            .filter(|_| theme.has_tints())
            .and_then(|extension| GRAMMARS.find_syntax_by_extension(extension));
        Self {
            theme,
            grammar,
            before: None,
            after: None,
        }
    }

    /// The next line.
    pub(crate) fn line(&mut self, line: &str) -> Vec<Span<'static>> {
        let theme = self.theme;
        let mark = line.chars().next().unwrap_or(' ');
        let style = match mark {
            '+' => theme.good(),
            '-' => theme.bad(),
            '@' => theme.accent(),
            _ => theme.dim(),
        };
        if mark == '@' {
            let painter = self.grammar.map(Painter::new);
            (self.before, self.after) = (painter.clone(), painter);
        }
        let code = line.get(1..).filter(|_| matches!(mark, '+' | '-' | ' '));
        let (Some(code), Some(before), Some(after)) = (code, &mut self.before, &mut self.after) else {
            return vec![Span::styled(line.to_owned(), style)];
        };
        let mut spans = vec![Span::styled(mark.to_string(), style)];
        spans.extend(match mark {
            '-' => before.line(code, theme),
            '+' => after.line(code, theme),
            _ => {
                before.line(code, theme);
                after.line(code, theme)
            }
        });
        let tint = theme.tint(mark);
        spans
            .iter_mut()
            .for_each(|span| span.style = span.style.patch(tint));
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Depth, Ground};

    const DARK: Theme = Theme::new(Depth::Indexed, Ground::Dark);

    fn style_of(lines: &[Vec<Span<'static>>], text: &str) -> Style {
        let mut spans = lines.iter().flatten();
        spans.find(|span| span.content.contains(text)).unwrap().style
    }

    #[test]
    fn words_of_many_languages_get_the_style_of_their_kind() {
        let samples = [
            ("rust", "// note\nfn main() { let x = \"text\"; }\n", "fn", "text"),
            (
                "python",
                "# note\ndef main():\n    return \"text\"\n",
                "def",
                "text",
            ),
            (
                "ts",
                "// note\nexport const x: string = \"text\";\n",
                "export",
                "text",
            ),
            ("toml", "# note\nkey = \"text\"\n", "", "text"),
            ("sh", "# note\nif true; then echo \"text\"; fi\n", "if", "text"),
        ];
        for (language, text, keyword, string) in samples {
            let lines = Code::default().block(language, text, DARK);
            assert_eq!(style_of(&lines, "note"), DARK.token(Token::Comment), "{language}");
            assert_eq!(style_of(&lines, string), DARK.token(Token::Text), "{language}");
            if !keyword.is_empty() {
                assert_eq!(
                    style_of(&lines, keyword),
                    DARK.token(Token::Keyword),
                    "{language}"
                );
            }
            let shown: Vec<String> = lines
                .iter()
                .map(|line| line.iter().map(|span| span.content.as_ref()).collect())
                .collect();
            assert_eq!(shown.join("\n"), text.trim_end(), "{language}");
        }
        let unknown = Code::default().block("no such language", "a\nb", DARK);
        assert_eq!(unknown.len(), 2);
    }

    #[test]
    fn a_block_that_grows_looks_like_the_whole_one_at_every_length() {
        let text = "/* a long\ncomment */\nfn main() {\n    let words = \"of\n two lines\";\n}\n";
        let growing = Code::default();
        for end in 0..=text.len() {
            let part = &text[..end];
            let whole = Code::default().block("rust", part, DARK);
            assert_eq!(growing.block("rust", part, DARK), whole, "{part:?}");
        }
        // Another block in between.
        growing.block("python", "x = 1\n", DARK);
        assert_eq!(
            growing.block("rust", text, DARK),
            Code::default().block("rust", text, DARK)
        );
    }

    #[test]
    fn i6_long_lines_and_many_lines_have_no_colours() {
        let long = format!("fn x() {{}} // {}\n", "x".repeat(LONGEST_LINE));
        let lines = Code::default().block("rust", &long, DARK);
        assert_eq!(lines[0].len(), 1);
        let many = Code::default().block("rust", &"fn x() {}\n".repeat(MOST_LINES + 1), DARK);
        assert!(many[MOST_LINES - 1].len() > 1);
        assert_eq!(many[MOST_LINES].len(), 1);
    }

    #[test]
    fn the_lines_of_a_diff_have_the_colours_of_both_texts() {
        let lines = [
            "--- a/x.rs",
            "+++ b/x.rs",
            "@@ -1,2 +1,2 @@",
            " /* open",
            "-fn old() {}",
            "+*/ fn new() {}",
        ];
        let mut diff = Diff::new(&lines, DARK);
        let painted: Vec<_> = lines.iter().map(|line| diff.line(line)).collect();
        // In the old text the comment is still open; in the new one it is closed.
        assert_eq!(style_of(&painted[4..5], "old").fg, DARK.token(Token::Comment).fg);
        assert_eq!(style_of(&painted[5..6], "fn").fg, DARK.token(Token::Keyword).fg);
        assert_eq!(style_of(&painted[5..6], "fn").bg, DARK.tint('+').bg);
        // With 16 colours the mark alone has a colour, and the line with it.
        let ansi = Theme::new(Depth::Ansi, Ground::Dark);
        let mut diff = Diff::new(&lines, ansi);
        let painted: Vec<_> = lines.iter().map(|line| diff.line(line)).collect();
        assert_eq!(painted[4], [Span::styled("-fn old() {}", ansi.bad())]);
    }
}
