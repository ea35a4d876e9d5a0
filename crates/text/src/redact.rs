//! The single filter in front of every log: removes known secrets and anything that looks like one.

mod decoded;
mod known;

use known::{Known, SHORTEST};
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{LazyLock, PoisonError, RwLock};

/// The replacement for a secret.
const GONE: &str = "[redacted]";

/// The known credentials of this process.
static KNOWN: RwLock<Option<Known>> = RwLock::new(None);

/// The names of this daemon's tokens, which are no secrets: `token:NAME` says who did something.
static NAMES: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());

/// This product's own tokens. No code and no other text looks like one, so they go from tool output as well.
const OWN: &str = "agentd_[0-9a-f]{64}";
static OWN_TEXT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(OWN).ok());
static OWN_BYTES: LazyLock<Option<regex::bytes::Regex>> =
    LazyLock::new(|| regex::bytes::Regex::new(OWN).ok());

/// Patterns of credentials. The first group, if any, is kept; the rest is replaced.
static LOOKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        // Without Unicode, except for any other character: that takes a fifth of the time to compile, and each program does
        // so when it starts.
        "(?-u)",
        // Common prefixes of keys.
        r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bxox[abprs]-[A-Za-z0-9-]{10,}",
        r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}|\bglpat-[A-Za-z0-9_-]{16,}",
        r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",
        // Headers and URLs.
        r"|(?i)((?:\bbearer|\bbasic)(?u-i:[\x09-\x0d [^\x00-\x7f]])+)[A-Za-z0-9._~+/=-]{8,}",
        r"|(://(?u-i:[^/:@\x09-\x0d ]{0,64}):)(?u-i:[^/@\x09-\x0d ]{1,256})(?P<at>@)",
        // Assignments, also in JSON and with escaped quotes.
        r#"|((?:api[_-]?key|secret|token|passw(?:or)?d|credential|private[_-]?key)"#,
        r#"(?u-i:[0-9A-Za-z_[^\x00-\x7f]])*\\?["']?(?u-i:[\x09-\x0d [^\x00-\x7f]])*[:=]"#,
        r#"(?u-i:[\x09-\x0d [^\x00-\x7f]])*\\?["']?)(?u-i:[^"'\\,;&\x09-\x0d ]{8,})"#,
        // Key files.
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?su:.)*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
    ))
    .ok()
});

/// Registers a credential, so that [`redact`] removes it whatever it looks like. Ignores empty and very short ones.
pub fn register_secret(secret: &str) {
    let secret = secret.trim();
    if secret.len() < SHORTEST {
        return;
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    *known = Known::with(known.take(), secret);
}

/// Registers the name of a token, so that [`redact`] leaves `token:NAME`.
pub fn register_token_name(name: &str) {
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    names.insert(name.to_owned());
}

/// Whether this is the name of a token, apart from punctuation behind it.
fn is_token_name(value: &str) -> bool {
    let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
    let mut value = value;
    loop {
        if names.contains(value) {
            return true;
        }
        match value.strip_suffix(|last: char| last.is_ascii_punctuation()) {
            Some(shorter) => value = shorter,
            None => return false,
        }
    }
}

/// Removes known credentials, and tokens of this product. Text that only looks like another credential stays: in a file under edit it is more often code than
/// a key.
#[must_use]
pub fn redact_known(text: &str) -> Cow<'_, str> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let ranges = known.as_ref().map(|known| known.ranges(text.as_bytes()));
    let safe = match ranges.filter(|ranges| !ranges.is_empty()) {
        // The ranges begin and end between characters, and lossy conversion keeps what is valid.
        Some(ranges) => {
            let safe = without(text.as_bytes(), &ranges);
            Cow::Owned(
                String::from_utf8(safe)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            )
        }
        None => Cow::Borrowed(text),
    };
    match OWN_TEXT.as_ref().map(|own| own.replace_all(&safe, GONE)) {
        Some(Cow::Owned(safe)) => Cow::Owned(safe),
        Some(Cow::Borrowed(_)) | None => safe,
    }
}

/// Like [`redact_known`], for bytes that need not be valid UTF-8.
#[must_use]
pub fn redact_known_bytes(bytes: Vec<u8>) -> Vec<u8> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let ranges = known.as_ref().map(|known| known.ranges(&bytes));
    let safe = match ranges.filter(|ranges| !ranges.is_empty()) {
        Some(ranges) => without(&bytes, &ranges),
        None => bytes,
    };
    match OWN_BYTES
        .as_ref()
        .map(|own| own.replace_all(&safe, GONE.as_bytes()))
    {
        Some(Cow::Owned(safe)) => safe,
        Some(Cow::Borrowed(_)) | None => safe,
    }
}

/// The text with a note in place of each range.
fn without(text: &[u8], ranges: &[(usize, usize)]) -> Vec<u8> {
    let (mut safe, mut from) = (Vec::with_capacity(text.len()), 0);
    for (start, end) in ranges {
        safe.extend_from_slice(text.get(from..*start).unwrap_or_default());
        safe.extend_from_slice(GONE.as_bytes());
        from = *end;
    }
    safe.extend_from_slice(text.get(from..).unwrap_or_default());
    safe
}

/// Removes known credentials and text that looks like one.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let without_known = redact_known(text);
    let Some(looks) = LOOKS.as_ref() else {
        return without_known;
    };
    let hide = |found: &Captures<'_>| {
        let kept = [1, 2, 4].into_iter().find_map(|group| found.get(group));
        let (kept, at) = (
            kept.map_or("", |group| group.as_str()),
            found.name("at").map_or("", |at| at.as_str()),
        );
        let whole = found.get(0).map_or("", |whole| whole.as_str());
        if kept == "token:" && whole.strip_prefix(kept).is_some_and(is_token_name) {
            return whole.to_owned();
        }
        format!("{kept}{GONE}{at}")
    };
    match without_known {
        Cow::Borrowed(text) => looks.replace_all(text, hide),
        Cow::Owned(text) => Cow::Owned(looks.replace_all(&text, hide).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i8_a_known_secret_is_redacted_whatever_its_form() {
        register_secret("correct horse battery");
        assert_eq!(
            redact("the word is correct horse battery!"),
            "the word is [redacted]!"
        );
        register_secret("correct horse battery staple");
        assert_eq!(redact("correct horse battery staple."), "[redacted].");
        register_secret(r#"quote"and\slash"#);
        assert_eq!(
            redact(r#"{"key":"quote\"and\\slash"}"#),
            r#"{"key":"[redacted]"}"#
        );
        register_secret("short");
        assert_eq!(redact("in short"), "in short");
    }

    #[test]
    fn i8_text_that_looks_like_a_secret_is_redacted() {
        let key = format!("key sk-{} end", "a1B2".repeat(8));
        for (text, wanted) in [
            (key.as_str(), "key [redacted] end"),
            ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[redacted]"),
            (
                "authorization: Bearer abcdef.ghijkl",
                "authorization: Bearer [redacted]",
            ),
            (
                r#"{"api_key":"abcdefgh1234","n":1}"#,
                r#"{"api_key":"[redacted]","n":1}"#,
            ),
            ("PASSWORD=hunter2hunter2 next", "PASSWORD=[redacted] next"),
            ("https://ana:secretsecret@host/x", "https://ana:[redacted]@host/x"),
            ("AKIAABCDEFGHIJKLMNOP", "[redacted]"),
            ("token\u{a0}: abcdefgh1234", "token\u{a0}: [redacted]"),
            ("token_größe=abcdefgh1234", "token_größe=[redacted]"),
            ("Bearer\u{a0}abcdefghijkl", "Bearer\u{a0}[redacted]"),
            ("Secret密钥=pässwörter", "Secret密钥=[redacted]"),
        ] {
            assert_eq!(redact(text), wanted);
        }
        // A credential that is too long for the part before a password is not kept as such.
        let url = format!("https://sk-proj-{}:x@host", "a1".repeat(50));
        assert_eq!(redact(&url), "https://[redacted]:x@host");
        let pem = "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b";
        assert_eq!(redact(pem), "a [redacted] b");
    }

    #[test]
    fn i8_tool_output_loses_only_known_secrets() {
        register_secret("open sesame 4711");
        let code = "let token = \"abcdefgh12345\"; // open sesame 4711";
        let safe = "let token = \"abcdefgh12345\"; // [redacted]";
        assert_eq!(redact_known(code), safe);
        let bytes = |text: &str| [b"\xff", text.as_bytes()].concat();
        assert_eq!(redact_known_bytes(bytes(code)), bytes(safe));
        assert_eq!(redact_known_bytes(vec![0xff, 1]), [0xff, 1]);
    }

    #[test]
    fn i8_our_tokens_are_redacted_everywhere_and_their_names_stay() {
        let token = format!("agentd_{}", "0123abcd".repeat(8));
        let said = format!("x={token}.");
        assert_eq!(redact_known(&said), "x=[redacted].");
        assert_eq!(redact_known_bytes(said.clone().into_bytes()), b"x=[redacted].");
        assert_eq!(redact(&said), "x=[redacted].");
        let line = r#"{"by":"token:nightly-pipeline","n":"(token:nightly-pipeline)"}"#;
        assert_ne!(redact(line), line, "positive control");
        register_token_name("nightly-pipeline");
        assert_eq!(redact(line), line);
        assert_eq!(redact("token:nightly-pipeline2"), "token:[redacted]");
    }

    #[test]
    fn ordinary_text_is_untouched_and_not_copied() {
        let text = "tokens: 12 of 200000, the secret of success is work; see src/token.rs:12, \
                    http://127.0.0.1:11434/v1/models";
        assert!(matches!(redact(text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn redacted_json_is_still_json() {
        let line =
            serde_json::json!({"text": "api_key = \"abcdefgh12345\" and token: 'zzzzzzzzzz'"}).to_string();
        let safe = redact(&line).into_owned();
        assert!(serde_json::from_str::<serde_json::Value>(&safe).is_ok(), "{safe}");
        assert!(
            !safe.contains("abcdefgh12345") && !safe.contains("zzzzzzzzzz"),
            "{safe}"
        );
    }

    /// Ways in which a model or a command printed a key that plain redaction let through (GitHub's own masking of secrets
    /// misses base64 and case, as its documentation says).
    #[test]
    fn i8_redteam_an_encoded_secret_is_redacted() {
        let secret = "tr0ub4dor&3-Is~Key?";
        let codings = || {
            vec![
                ("base64", "dHIwdWI0ZG9yJjMtSXN+S2V5Pw=="),
                ("base64 behind one byte", "eHRyMHViNGRvciYzLUlzfktleT8="),
                ("base64 behind two bytes", "eHl0cjB1YjRkb3ImMy1Jc35LZXk/"),
                ("base64 for addresses", "dHIwdWI0ZG9yJjMtSXN-S2V5Pw"),
                ("hex", "747230756234646f7226332d49737e4b65793f"),
                ("HEX", "747230756234646F7226332D49737E4B65793F"),
                ("upper case", "TR0UB4DOR&3-IS~KEY?"),
                ("lower case", "tr0ub4dor&3-is~key?"),
            ]
        };
        let shown = |coded: &str| redact_known(&format!("<{coded}>")).into_owned();
        for (coding, coded) in codings() {
            assert_eq!(shown(coded), format!("<{coded}>"), "positive control: {coding}");
        }
        register_secret(secret);
        for (coding, coded) in codings() {
            let shown = shown(coded);
            assert!(shown.contains(GONE), "{coding}: {shown}");
            // Adjacent characters that also hold bits of their neighbours may be left.
            assert!(shown.len() <= GONE.len() + 8, "{coding}: {shown}");
        }
    }

    /// The secret behind escapes that other filters let through, mixed and nested.
    fn escaped(secret: &str) -> Vec<(&'static str, String)> {
        let url: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let lower = url.to_lowercase();
        let twice = url.replace('%', "%25");
        let thrice = url.replace('%', "%2525");
        let json: String = secret
            .chars()
            .map(|c| format!("\\u{:04x}", u32::from(c)))
            .collect();
        let json_twice = json.replace('\\', "\\\\");
        let braces: String = secret
            .chars()
            .map(|c| format!("\\u{{{:x}}}", u32::from(c)))
            .collect();
        let hex: String = secret.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        let octal: String = secret.bytes().map(|byte| format!("\\{byte:03o}")).collect();
        let decimal: String = secret.chars().map(|c| format!("&#{};", u32::from(c))).collect();
        let entities: String = secret
            .chars()
            .map(|c| format!("&#x{:X};", u32::from(c)))
            .collect();
        vec![
            ("one character of a URL", secret.replace('-', "%2D")),
            ("a URL", url),
            ("a URL in lower case", lower),
            ("a URL in a URL", twice),
            ("a URL in a URL in a URL", thrice),
            ("one character of JSON", secret.replace('w', "\\u0077")),
            ("JSON", json.clone()),
            ("JSON in JSON", json_twice),
            ("JSON in a URL", json.replace('\\', "%5C")),
            ("JavaScript", braces),
            ("a string of C", hex.clone()),
            ("a string of C in JSON", hex.replace('\\', "\\\\")),
            ("a string of a shell", octal),
            ("HTML, decimal", decimal),
            ("HTML, hexadecimal", entities),
            ("HTML, named", secret.replace('&', "&amp;")),
            ("a form", secret.replace(' ', "+")),
            (
                "several",
                secret
                    .replace('-', "%2D")
                    .replace('w', "\\u0077")
                    .replace('&', "&amp;"),
            ),
        ]
    }

    /// The secret broken by the ends of lines.
    fn wrapped(secret: &str) -> Vec<(&'static str, String)> {
        let base64 = "dzFyZS10YXAmS2V5Lzk9eitRfsOkIWxvbmcgZW5vdWdo";
        let wrapped = |width: usize, end: &str| {
            let lines = base64.as_bytes().chunks(width).map(String::from_utf8_lossy);
            lines.collect::<Vec<_>>().join(end)
        };
        vec![
            ("broken by lines", secret.replace("Key", "K\n  ey")),
            ("continued lines of a shell", secret.replace("Key", "K\\\ney")),
            ("quoted-printable lines", secret.replace("Key", "K=\r\ney")),
            ("base64 in lines", wrapped(8, "\r\n")),
            ("base64 in indented lines", wrapped(16, "\n    ")),
            ("base64 in lines of JSON", wrapped(16, "\\n")),
            ("base64 in lines of JSON in JSON", wrapped(16, "\\\\r\\\\n")),
            (
                "base64 in lines of a URL",
                wrapped(16, "%0D%0A").replace('+', "%2B"),
            ),
        ]
    }

    #[test]
    fn i8_redteam_48_an_escaped_or_wrapped_secret_is_redacted() {
        let secret = "w1re-tap&Key/9=z+Q~\u{e4}!long enough";
        let codings = [escaped(secret), wrapped(secret)].concat();
        let shown = |coded: &str| redact_known(&format!("<{coded}>")).into_owned();
        for (coding, coded) in &codings {
            assert_eq!(shown(coded), format!("<{coded}>"), "positive control: {coding}");
        }
        register_secret(secret);
        for (coding, coded) in &codings {
            let shown = shown(coded);
            assert!(
                shown.contains(GONE) && shown.len() <= GONE.len() + 8,
                "{coding}: {shown}"
            );
            let bytes = redact_known_bytes(format!("<{coded}>").into_bytes());
            assert_eq!(String::from_utf8_lossy(&bytes), shown, "{coding}");
        }
        let around = format!("größe \u{1f511} %41 {} &amp; ende\n", secret.replace('-', "%2D"));
        assert_eq!(
            redact_known(&around),
            "größe \u{1f511} %41 [redacted] &amp; ende\n"
        );
    }

    #[test]
    fn i8_a_secret_of_several_lines_is_redacted() {
        let secret = "first line of it\nsecond line of it\n";
        register_secret(secret);
        for text in [
            secret.to_owned(),
            secret.replace('\n', "\\n"),
            secret.replace('\n', "\r\n"),
        ] {
            let shown = redact_known(&text).into_owned();
            assert!(shown.starts_with(GONE) && !shown.contains("line"), "{shown:?}");
        }
    }
}
