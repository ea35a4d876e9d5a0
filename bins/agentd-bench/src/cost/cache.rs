//! Prompt caches by the published rules of the providers.

use super::request::Block;
use anyhow::{Result, ensure};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The most marks of a request.
const MARKS: usize = 4;
/// Blocks that the provider looks at from a mark backwards, the marked one included.
const LOOK_BACK: usize = 20;
/// A lifetime longer than this costs more.
const SHORT_MS: u64 = 300_000;

/// The rules of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// Entries end at marks. A prefix of fewer than `min` tokens is not kept.
    Marks { min: u64 },
    /// Each request is kept; hits have at least `min` tokens, in multiples of `step`. Writing costs nothing more.
    Prefix { min: u64, step: u64 },
}

/// How the tokens of requests are billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Used {
    /// Neither read from the cache nor written to it.
    pub(super) fresh: u64,
    pub(super) read: u64,
    pub(super) write: u64,
    /// Written for an hour.
    pub(super) write_long: u64,
}

impl Used {
    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            fresh: self.fresh + other.fresh,
            read: self.read + other.read,
            write: self.write + other.write,
            write_long: self.write_long + other.write_long,
        }
    }
}

/// A cache: its entries by the hash of their prefix.
#[derive(Debug)]
pub(super) struct Cache {
    rules: Rules,
    entries: HashMap<u64, Entry>,
    /// The blocks of the last request, for caches that keep parts of blocks.
    last: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    lives_ms: u64,
    until: u64,
}

impl Cache {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            entries: HashMap::new(),
            last: Vec::new(),
        }
    }

    /// Serves a request at this time.
    ///
    /// # Errors
    /// The provider would refuse it: too many marks.
    pub(super) fn request(&mut self, blocks: &[Block], now: u64) -> Result<Used> {
        let prefixes = prefixes(blocks);
        let total = prefixes.last().map_or(0, |prefix| prefix.tokens);
        match self.rules {
            Rules::Marks { min } => self.marked(blocks, &prefixes, min, now),
            Rules::Prefix { min, step } => {
                let hit = prefixes.iter().rev().find(|prefix| self.alive(prefix.hash, now));
                let read = hit.map_or(0, |hit| hit.tokens).max(self.like_the_last(blocks));
                let read = read / step * step;
                let read = if read < min { 0 } else { read };
                for prefix in &prefixes {
                    self.keep(prefix.hash, SHORT_MS, now);
                }
                self.last = blocks.iter().map(|block| block.text.clone()).collect();
                Ok(Used {
                    read,
                    fresh: total - read,
                    ..Used::default()
                })
            }
        }
    }

    /// Tokens that the request has in common with the one before it, to the byte.
    fn like_the_last(&self, blocks: &[Block]) -> u64 {
        let mut tokens = 0;
        for (last, block) in self.last.iter().zip(blocks) {
            let same = last.bytes().zip(block.text.bytes()).take_while(|(a, b)| a == b);
            let same = same.count();
            if same < block.text.len() {
                return tokens + same as u64 / 4;
            }
            tokens += block.tokens();
        }
        tokens
    }

    fn marked(&mut self, blocks: &[Block], prefixes: &[Prefix], min: u64, now: u64) -> Result<Used> {
        let all = blocks.iter().zip(prefixes).enumerate();
        let marks: Vec<(usize, u64, &Prefix)> = all
            .filter_map(|(at, (block, prefix))| Some((at, block.mark_ms?, prefix)))
            .collect();
        ensure!(
            marks.len() <= MARKS,
            "{} cache marks, at most {MARKS} are allowed",
            marks.len()
        );
        let mut read = 0;
        for (at, ..) in &marks {
            let seen = prefixes.iter().take(at + 1).rev().take(LOOK_BACK);
            let hit = seen.into_iter().find(|prefix| self.alive(prefix.hash, now));
            if let Some(hit) = hit {
                self.refresh(hit.hash, now);
                read = read.max(hit.tokens);
            }
        }
        let mut used = Used {
            read,
            ..Used::default()
        };
        let mut done = read;
        for (_, lives_ms, prefix) in &marks {
            if prefix.tokens < min {
                continue;
            }
            self.keep(prefix.hash, *lives_ms, now);
            let new = prefix.tokens.saturating_sub(done);
            if *lives_ms > SHORT_MS {
                used.write_long += new;
            } else {
                used.write += new;
            }
            done = done.max(prefix.tokens);
        }
        used.fresh = prefixes
            .last()
            .map_or(0, |whole| whole.tokens.saturating_sub(done));
        Ok(used)
    }

    fn alive(&self, hash: u64, now: u64) -> bool {
        self.entries.get(&hash).is_some_and(|entry| now <= entry.until)
    }

    /// A hit starts the lifetime again.
    fn refresh(&mut self, hash: u64, now: u64) {
        if let Some(entry) = self.entries.get_mut(&hash) {
            entry.until = now + entry.lives_ms;
        }
    }

    fn keep(&mut self, hash: u64, lives_ms: u64, now: u64) {
        let until = now + lives_ms;
        self.entries.insert(hash, Entry { lives_ms, until });
    }
}

/// All blocks up to one.
#[derive(Debug)]
struct Prefix {
    hash: u64,
    tokens: u64,
}

fn prefixes(blocks: &[Block]) -> Vec<Prefix> {
    let (mut hasher, mut tokens) = (DefaultHasher::new(), 0);
    let grow = |block: &Block| {
        block.text.hash(&mut hasher);
        tokens += block.tokens();
        Prefix {
            hash: hasher.finish(),
            tokens,
        }
    };
    blocks.iter().map(grow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of this many tokens.
    fn block(name: char, tokens: usize, mark_ms: Option<u64>) -> Block {
        Block {
            text: name.to_string().repeat(tokens * 4),
            answered: false,
            mark_ms,
        }
    }

    fn used(fresh: u64, read: u64, write: u64) -> Used {
        Used {
            fresh,
            read,
            write,
            write_long: 0,
        }
    }

    const RULES: Rules = Rules::Marks { min: 1_024 };

    #[test]
    fn nothing_is_cached_below_the_minimum_or_without_marks() {
        let mut cache = Cache::new(RULES);
        for _ in 0..2 {
            let short = [block('a', 1_023, Some(SHORT_MS))];
            assert_eq!(cache.request(&short, 0).unwrap(), used(1_023, 0, 0));
            let unmarked = [block('b', 5_000, None)];
            assert_eq!(cache.request(&unmarked, 0).unwrap(), used(5_000, 0, 0));
        }
        let least = [block('a', 1_024, Some(SHORT_MS))];
        assert_eq!(cache.request(&least, 0).unwrap(), used(0, 0, 1_024));
        assert_eq!(cache.request(&least, 0).unwrap(), used(0, 1_024, 0));
    }

    #[test]
    fn a_mark_finds_entries_up_to_twenty_blocks_back() {
        for (between, read) in [(19, 2_000), (20, 0)] {
            let mut cache = Cache::new(RULES);
            let mut blocks = vec![block('a', 2_000, Some(SHORT_MS))];
            cache.request(&blocks, 0).unwrap();
            blocks[0].mark_ms = None;
            blocks.extend((0..between).map(|_| block('b', 1, None)));
            blocks.last_mut().unwrap().mark_ms = Some(SHORT_MS);
            assert_eq!(cache.request(&blocks, 0).unwrap().read, read, "{between}");
        }
    }

    #[test]
    fn an_entry_lives_for_its_time_since_its_last_hit() {
        let mut cache = Cache::new(RULES);
        let blocks = [block('a', 2_000, Some(SHORT_MS))];
        assert_eq!(cache.request(&blocks, 0).unwrap().write, 2_000);
        assert_eq!(cache.request(&blocks, SHORT_MS).unwrap().read, 2_000);
        assert_eq!(cache.request(&blocks, 2 * SHORT_MS).unwrap().read, 2_000);
        assert_eq!(cache.request(&blocks, 3 * SHORT_MS + 1).unwrap().read, 0);
        let hour = [block('b', 2_000, Some(12 * SHORT_MS))];
        assert_eq!(cache.request(&hour, 0).unwrap().write_long, 2_000);
        assert_eq!(cache.request(&hour, 12 * SHORT_MS).unwrap().read, 2_000);
    }

    #[test]
    fn five_marks_are_refused() {
        let four = vec![block('a', 1, Some(SHORT_MS)); 4];
        assert!(Cache::new(RULES).request(&four, 0).is_ok());
        let five = vec![block('a', 1, Some(SHORT_MS)); 5];
        assert!(Cache::new(RULES).request(&five, 0).is_err());
    }

    #[test]
    fn an_automatic_cache_keeps_whole_steps_of_each_request() {
        let mut cache = Cache::new(Rules::Prefix {
            min: 1_024,
            step: 128,
        });
        let mut blocks = vec![block('a', 1_100, None)];
        assert_eq!(cache.request(&blocks, 0).unwrap(), used(1_100, 0, 0));
        blocks.push(block('b', 10, None));
        assert_eq!(cache.request(&blocks, 0).unwrap(), used(86, 1_024, 0));
        let mut half = block('a', 1_100, None);
        half.text.push('b');
        assert_eq!(cache.request(&[half], 0).unwrap(), used(77, 1_024, 0));
    }
}
