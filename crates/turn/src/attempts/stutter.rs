//! The stutter guard: detects a model that repeats the same few characters endlessly.

/// The longest unit to look for, in characters.
const MAX_UNIT: usize = 40;
/// The fewest consecutive repetitions.
const MIN_TIMES: u32 = 50;
/// The shortest repetition, in characters.
const MIN_CHARS: u32 = 400;
/// For brackets: no text for people or programs nests them this deep.
const MIN_CHARS_OF_BRACKETS: u32 = 2_000;
/// For numbers, rulers and indentation, which are usually data or layout rather than stutter.
const MIN_CHARS_WITHOUT_LETTERS: u32 = 4_000;
/// For repeated rows: empty rows of a table, zeros of a matrix.
const MIN_CHARS_OF_ROWS: u32 = 16_000;

/// Whether a text repeats the same unit in a row often enough to show that the model is stuck.
#[must_use]
pub fn stutters(text: &str) -> bool {
    Stutter::default().feed(text)
}

/// Watches a streamed text: counts, for each unit length, how many characters in a row equal the one a unit earlier.
/// The cost per character is constant; the text itself is not kept.
#[derive(Debug, Clone)]
pub(crate) struct Stutter {
    /// The last characters; `recent[at]` is the oldest.
    recent: [char; MAX_UNIT],
    at: usize,
    seen: usize,
    /// `runs[n - 1]`: the current run for units of n characters.
    runs: [u32; MAX_UNIT],
}

impl Default for Stutter {
    fn default() -> Self {
        Self {
            recent: ['\0'; MAX_UNIT],
            at: 0,
            seen: 0,
            runs: [0; MAX_UNIT],
        }
    }
}

impl Stutter {
    /// Takes the next piece; true when the text so far ends in a stutter, or this piece contained one.
    pub(crate) fn feed(&mut self, text: &str) -> bool {
        text.chars().any(|next| self.push(next))
    }

    fn push(&mut self, next: char) -> bool {
        let mut candidate = None;
        for (unit, run) in (1_u32..).zip(self.runs.iter_mut()) {
            let back = unit as usize;
            let before = (self.at + MAX_UNIT - back) % MAX_UNIT;
            let same = back <= self.seen && self.recent.get(before) == Some(&next);
            *run = if same { run.saturating_add(1) } else { 0 };
            if candidate.is_none() && same {
                // The run counts only repeated characters; the first unit comes before it.
                let length = run.saturating_add(unit);
                if length >= MIN_CHARS.max(unit.saturating_mul(MIN_TIMES)) {
                    candidate = Some((back, length));
                }
            }
        }
        if let Some(slot) = self.recent.get_mut(self.at) {
            *slot = next;
        }
        self.at = (self.at + 1) % MAX_UNIT;
        self.seen = self.seen.saturating_add(1);
        candidate.is_some_and(|(unit, length)| self.is_stutter(unit, length))
    }

    /// The required length depends on what is repeated.
    fn is_stutter(&self, unit: usize, length: u32) -> bool {
        let last = || (1..=unit).filter_map(|back| self.recent.get((self.at + MAX_UNIT - back) % MAX_UNIT));
        let is_bracket = |one: &char| matches!(one, '[' | ']' | '{' | '}' | '(' | ')');
        let least = if last().any(|one| one.is_alphabetic()) {
            MIN_CHARS
        } else if last().all(is_bracket) {
            MIN_CHARS_OF_BRACKETS
        } else if last().any(|one| *one == '\n') && last().any(|one| !one.is_whitespace()) {
            MIN_CHARS_OF_ROWS
        } else {
            MIN_CHARS_WITHOUT_LETTERS
        };
        length >= least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_unit_fifty_times_and_four_hundred_characters_is_a_stutter() {
        assert!(stutters(&"the ".repeat(100)));
        assert!(stutters(&format!("It works. {}", "a".repeat(400))));
        assert!(stutters(&"我".repeat(400)));
        assert!(stutters(&"I will now check the file again, and so ".repeat(50)));
        assert!(stutters(&format!(
            "{} and then it went on well",
            "no, ".repeat(120)
        )));
        assert!(stutters(&"12 ".repeat(2_000)));
    }

    #[test]
    fn less_than_that_is_none() {
        assert!(!stutters(&"the ".repeat(99)));
        assert!(!stutters(&"a".repeat(399)));
        assert!(!stutters(&"I will now check the file again, and so ".repeat(49)));
        assert!(!stutters(
            &"A unit of more than forty characters is not looked for.\n".repeat(90)
        ));
        assert!(!stutters(
            &"the "
                .repeat(60)
                .replace("the the the the the ", "the the, the the the ")
        ));
    }

    #[test]
    fn json_code_and_tables_never_trip_it() {
        let deep = format!("{}{}", "{\"a\":[".repeat(45), "]}".repeat(400));
        let matrix = format!("[{}]", vec!["[0, 0, 0, 0, 0, 0, 0, 0]"; 64].join(",\n "));
        let table = format!("| name | size |\n|{}|\n", "-".repeat(900))
            + &"|      |      |\n".repeat(80)
            + &"| --- | --- |\n".repeat(80);
        let objects: String = (0..300)
            .map(|n| format!("{{\"id\": {n}, \"ok\": true}},\n"))
            .collect();
        let code: String = (0..200)
            .map(|n| format!("    let x{n} = vec![];\n    }}\n"))
            .collect();
        for text in [
            deep,
            matrix,
            table,
            objects,
            code,
            "=".repeat(3_900),
            " ".repeat(3_900),
            "|   |   |   |\n".repeat(1_000),
            "0 0 0 0 0 0 0 0\n".repeat(900),
            "},{".repeat(500),
            "\n\t\t".repeat(500),
            "[[[[{{{{".repeat(200),
            "0,".repeat(300),
            "─".repeat(900),
            "/* ****** */\n".repeat(100),
        ] {
            assert!(!stutters(&text), "{}", text.chars().take(60).collect::<String>());
        }
    }

    #[test]
    fn a_model_that_is_stuck_in_brackets_or_blanks_is_caught() {
        for (unit, least) in [
            ("[", 2_000),
            ("{", 2_000),
            ("[{", 1_000),
            ("]}", 1_000),
            ("((", 1_000),
            ("-", 4_000),
            (" ", 4_000),
            ("\n", 4_000),
            ("{ ", 2_000),
            ("0, ", 1_334),
            ("| |\n", 4_000),
        ] {
            let text = |times| format!("The data: x{}", unit.repeat(times));
            assert!(!stutters(&text(least - 1)), "{unit:?} less than {least} times");
            assert!(stutters(&text(least)), "{unit:?} {least} times");
            assert!(stutters(&text(5_400)), "{unit:?}");
        }
        for unit in ["[", "{", "[{"] {
            assert!(stutters(&unit.repeat(3_000)), "{unit:?}");
        }
    }

    #[test]
    fn pieces_add_up_to_the_same_answer() {
        let mut guard = Stutter::default();
        let fed: Vec<bool> = (0..100).map(|_| guard.feed("the ")).collect();
        assert_eq!(fed.iter().position(|tripped| *tripped), Some(99));
    }
}
