//! The options of libtest that a program with its own `main` understands.

/// Options of libtest that take a value and have no effect here.
const WITH_VALUE: [&str; 6] = [
    "--test-threads",
    "--format",
    "--color",
    "--logfile",
    "--shuffle-seed",
    "-Z",
];

/// What the arguments ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Print the names instead of running the cases.
    pub(crate) list: bool,
    exact: bool,
    ignored: bool,
    filters: Vec<String>,
    skip: Vec<String>,
}

impl Options {
    pub(crate) fn read(words: impl IntoIterator<Item = String>) -> Self {
        let mut options = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--list" => options.list = true,
                "--exact" => options.exact = true,
                "--ignored" => options.ignored = true,
                "--skip" => options.skip.extend(words.next()),
                option if WITH_VALUE.contains(&option) => drop(words.next()),
                option if option.starts_with('-') => {
                    options
                        .skip
                        .extend(option.strip_prefix("--skip=").map(str::to_owned));
                }
                _ => options.filters.push(word),
            }
        }
        options
    }

    /// Whether a case with this name is to run. No case is ignored, so `--ignored` asks for none.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let fits = |pattern: &String| {
            if self.exact {
                name == pattern
            } else {
                name.contains(pattern.as_str())
            }
        };
        !self.ignored
            && (self.filters.is_empty() || self.filters.iter().any(fits))
            && !self.skip.iter().any(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn wanted(words: &str) -> Vec<&'static str> {
        let options = Options::read(words.split_whitespace().map(str::to_owned));
        let names = ["a::one", "a::one_more", "b::two"];
        names.into_iter().filter(|name| options.wants(name)).collect()
    }

    #[test]
    fn cases_are_chosen_as_libtest_chooses_tests() {
        assert_eq!(wanted(""), ["a::one", "a::one_more", "b::two"]);
        assert_eq!(wanted("one"), ["a::one", "a::one_more"]);
        assert_eq!(wanted("two a::one_"), ["a::one_more", "b::two"]);
        assert_eq!(wanted("--exact a::one"), ["a::one"]);
        assert_eq!(wanted("--skip one"), ["b::two"]);
        assert_eq!(wanted("--skip=more one"), ["a::one"]);
        assert_eq!(wanted("--test-threads 2 --nocapture two"), ["b::two"]);
        assert_eq!(wanted("--ignored"), [""; 0]);
    }

    #[test]
    fn a_list_is_asked_for() {
        assert!(Options::read(["--list".to_owned()]).list);
        assert!(!Options::read(["list".to_owned()]).list);
    }
}
