//! The words of a command rule: `cargo test:*`, `rm -rf:*`, `git log --oneline`.

use crate::meet::Items;
use crate::nested::base;

/// One word of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RuleWord {
    text: String,
    /// Whether `*` is a wildcard (deny and ask rules only).
    wild: bool,
}

/// The words of a command rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    words: Vec<RuleWord>,
    prefix: bool,
}

/// An error in the words, and its position.
pub(crate) type WordsError = (usize, String);

impl Words {
    /// Parses a pattern. `wildcards` says whether `*` inside a word is a wildcard.
    pub(crate) fn parse(pattern: &str, wildcards: bool) -> Result<Self, WordsError> {
        if pattern.trim() == "*" {
            return Ok(Self {
                words: Vec::new(),
                prefix: true,
            });
        }
        let (text, prefix) = match pattern.strip_suffix(":*") {
            Some(text) => (text, true),
            None => (pattern, false),
        };
        let mut words = split(text, wildcards)?;
        if words.is_empty() {
            return Err((1, "it names no command".to_owned()));
        }
        // To deny or ask, `curl *` is read broadly: any words may follow, or none.
        let open =
            wildcards && words.len() > 1 && words.last().is_some_and(|word| word.wild && word.text == "*");
        if open {
            words.pop();
        }
        Ok(Self {
            words,
            prefix: prefix || open,
        })
    }

    /// The number of words that the rule names.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether it matches every command.
    pub(crate) fn is_everything(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether more words may follow.
    pub(crate) const fn is_prefix(&self) -> bool {
        self.prefix
    }

    /// To allow: word by word from the start, exactly as written.
    pub(crate) fn covers<S: AsRef<str>>(&self, argv: &[S]) -> bool {
        let fits = if self.prefix {
            argv.len() >= self.words.len()
        } else {
            argv.len() == self.words.len()
        };
        fits && self
            .words
            .iter()
            .zip(argv)
            .all(|(word, arg)| word.text == arg.as_ref())
    }

    /// To deny or ask: the command by its file name, flags in any order and grouping, options before a subcommand skipped.
    pub(crate) fn catches<S: AsRef<str>>(&self, argv: &[S]) -> bool {
        let Some((name, rest)) = self.words.split_first() else {
            return true;
        };
        let Some((program, args)) = argv.split_first() else {
            return false;
        };
        let program = program.as_ref();
        let base = program.rsplit('/').next().unwrap_or(program);
        if !name.matches(base) && !name.matches(program) {
            return false;
        }
        if !rest.is_empty() && rest.iter().all(|word| word.text.starts_with('-')) {
            return rest.iter().all(|word| has_flag(&word.text, args));
        }
        (0..=args.len())
            .take_while(|skip| *skip == 0 || only_options(args, *skip))
            .any(|skip| {
                let args = args.get(skip..).unwrap_or_default();
                let fits = if self.prefix {
                    args.len() >= rest.len()
                } else {
                    args.len() == rest.len()
                };
                fits && rest
                    .iter()
                    .zip(args)
                    .all(|(word, arg)| word.matches(arg.as_ref()))
            })
    }
}

impl Words {
    /// The words after the program's name that have no wildcard.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        let plain = self.words.iter().skip(1).filter(|word| !word.wild);
        plain.map(|word| word.text.as_str())
    }

    /// The program's name, if it has no wildcard.
    pub(crate) fn name(&self) -> Option<&str> {
        let name = self.words.first().filter(|name| !name.wild);
        name.map(|name| name.text.as_str())
    }

    /// Whether the program's name may be one that a shell computes.
    pub(crate) fn name_meets(&self, computed: &Items) -> bool {
        let mut names = self.words.first().into_iter();
        names.any(|name| {
            let known = if name.wild {
                Items::wild(&name.text)
            } else {
                Items::exact(&name.text)
            };
            known.meets(computed)
        })
    }

    /// A command with this program and the arguments of another.
    pub(crate) fn with_name(&self, argv: &[String]) -> Option<Vec<String>> {
        let name = self.words.first()?.text.clone();
        let args = argv.iter().skip(1).cloned();
        Some(std::iter::once(name).chain(args).collect())
    }

    /// The word at which this command occurs in a text: its words in order, its flags in any order. The first word of the
    /// text is the program that got it, which counts only together with others.
    pub(crate) fn found_in<'a>(&self, tokens: &'a [String]) -> Option<&'a str> {
        let (name, args) = self.words.split_first()?;
        let from = usize::from(args.is_empty());
        let all = tokens.get(from..)?;
        let at = all
            .iter()
            .position(|token| name.matches(token) || name.matches(base(token)))?;
        let rest = all.get(at + 1..).unwrap_or_default();
        let (flags, words): (Vec<_>, Vec<_>) = args.iter().partition(|word| word.text.starts_with('-'));
        let mut after = rest.iter();
        let found = flags.iter().all(|flag| has_flag(&flag.text, rest))
            && words
                .iter()
                .all(|word| after.any(|token| word.matches(token) || word.matches(base(token))));
        found.then(|| all.get(at).map(String::as_str)).flatten()
    }

    /// Whether all of them occur in this order in a list of words, possibly with others between them.
    pub(crate) fn occur_in(&self, mut all: &[String]) -> bool {
        !self.words.is_empty()
            && self.words.iter().all(|word| {
                let at = all
                    .iter()
                    .position(|other| word.matches(other) || word.matches(base(other)));
                at.and_then(|at| all.get(at + 1..))
                    .map(|rest| all = rest)
                    .is_some()
            })
    }
}

impl RuleWord {
    fn matches(&self, text: &str) -> bool {
        if self.wild {
            wild_match(&self.text, text)
        } else {
            self.text == text || (is_cmdlet(&self.text) && self.text.eq_ignore_ascii_case(text))
        }
    }
}

/// Whether it has the form of PowerShell's commands, `Verb-Noun`, whose case PowerShell ignores. To deny and to ask, so do we.
fn is_cmdlet(word: &str) -> bool {
    let letters = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_alphabetic());
    word.split_once('-')
        .is_some_and(|(verb, noun)| letters(verb) && letters(noun))
}

/// Whether the first `count` arguments are options, each with at most one value.
fn only_options<S: AsRef<str>>(args: &[S], count: usize) -> bool {
    let option = |arg: Option<&S>| arg.is_some_and(|arg| arg.as_ref().starts_with('-'));
    let last = count.saturating_sub(1);
    option(args.get(last)) || (last > 0 && option(args.get(last - 1)))
}

/// Whether `args` contain a flag, or every letter of a group of short flags.
fn has_flag<S: AsRef<str>>(flag: &str, args: &[S]) -> bool {
    if flag.starts_with("--") {
        return args
            .iter()
            .any(|arg| arg.as_ref().split('=').next() == Some(flag));
    }
    let letters = flag.strip_prefix('-').unwrap_or_default();
    args.iter().any(|arg| arg.as_ref() == flag)
        || (!letters.is_empty()
            && letters.chars().all(|letter| {
                args.iter().any(|arg| {
                    let arg = arg.as_ref();
                    arg.starts_with('-') && !arg.starts_with("--") && arg.contains(letter)
                })
            }))
}

/// `*` matches any run of characters.
fn wild_match(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

/// Splits a rule into words as the shell would: white space, single and double quotes.
fn split(text: &str, wildcards: bool) -> Result<Vec<RuleWord>, WordsError> {
    let mut words = Vec::new();
    let mut word: Option<RuleWord> = None;
    let mut quote: Option<char> = None;
    for (at, c) in text.chars().enumerate() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (Some(_), c) => push(&mut word, c, false),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_with(|| RuleWord {
                    text: String::new(),
                    wild: false,
                });
            }
            (None, c) if c.is_ascii_whitespace() => words.extend(word.take()),
            (None, '*') if !wildcards => {
                return Err((
                    at + 1,
                    "`*` inside an allow rule is not a wildcard; only `:*` at the end is".to_owned(),
                ));
            }
            (None, '&' | '|' | ';' | '<' | '>' | '$' | '`' | '\\' | '(' | ')') => {
                return Err((
                    at + 1,
                    format!("a rule cannot contain {c:?}; quote it if it is part of a word of the command"),
                ));
            }
            (None, c) => push(&mut word, c, c == '*'),
        }
    }
    if quote.is_some() {
        return Err((text.chars().count(), "a quote is not closed".to_owned()));
    }
    words.extend(word);
    Ok(words)
}

fn push(word: &mut Option<RuleWord>, c: char, wild: bool) {
    let word = word.get_or_insert_with(|| RuleWord {
        text: String::new(),
        wild: false,
    });
    word.text.push(c);
    word.wild |= wild;
}

/// The words as the pattern of an exact rule; `None` when no such pattern parses back to the same words.
pub(crate) fn exact_pattern(argv: &[String]) -> Option<String> {
    let quote = |word: &String| {
        let plain = !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || "_-./:,@%+=^~".contains(c));
        if plain { word.clone() } else { format!("'{word}'") }
    };
    let pattern = argv.iter().map(quote).collect::<Vec<_>>().join(" ");
    let words = Words::parse(&pattern, false).ok()?;
    (!words.prefix && words.len() == argv.len() && words.covers(argv)).then_some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: &str, command: &str, covers: bool, catches: bool) {
        let argv: Vec<&str> = command.split(' ').collect();
        let loose = Words::parse(rule, true).unwrap();
        assert_eq!(loose.catches(&argv), catches, "{rule} catches {command}");
        let strict = Words::parse(rule, false);
        assert_eq!(
            strict.is_ok_and(|rule| rule.covers(&argv)),
            covers,
            "{rule} covers {command}"
        );
    }

    #[test]
    fn a_prefix_is_words_and_not_letters() {
        check("npm:*", "npm run x", true, true);
        check("npm:*", "npmx run", false, false);
        check("cargo test:*", "cargo test -p a", true, true);
        check("cargo test:*", "cargo test2", false, false);
        check("cargo test", "cargo test -p a", false, false);
        check("*", "anything at all", true, true);
    }

    #[test]
    fn to_deny_flags_come_in_any_order_and_commands_by_any_path() {
        check("rm -rf:*", "rm -v -f x -r", false, true);
        check("rm -rf:*", "/bin/rm -fvr x", false, true);
        check("rm -rf:*", "rm -r x", false, false);
        check("git push:*", "git -C /x push", false, true);
        check("git push:*", "git commit push", false, false);
        check("mkfs*:*", "mkfs.ext4 /dev/sda", false, true);
        check("format *:", "format c:", false, true);
        check("format *:", "format src", false, false);
    }

    #[test]
    fn an_exact_pattern_reads_back_as_the_same_words() {
        let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            exact_pattern(&argv(&["cargo", "test"])),
            Some("cargo test".to_owned())
        );
        assert_eq!(
            exact_pattern(&argv(&["echo", "a b*", ""])),
            Some("echo 'a b*' ''".to_owned())
        );
        assert_eq!(exact_pattern(&argv(&["echo", "it's"])), None);
        assert_eq!(
            exact_pattern(&argv(&["echo", "x:*"])),
            Some("echo 'x:*'".to_owned())
        );
        assert_eq!(exact_pattern(&[]), None);
    }

    #[test]
    fn commands_of_powershell_are_found_in_any_case_to_deny_and_never_to_allow() {
        check(
            "invoke-webrequest:*",
            "Invoke-WebRequest https://a.example",
            false,
            true,
        );
        check("Invoke-WebRequest:*", "INVOKE-WEBREQUEST x", false, true);
        check("invoke-webrequest:*", "invoke-webrequest x", true, true);
        check("curl:*", "CURL x", false, false);
        check("rm -rf:*", "rm -RF x", false, false);
    }
}
