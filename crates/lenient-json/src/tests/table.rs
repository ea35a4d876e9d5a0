//! What models wrote, and how it is read.

use crate::{Ending, decode};
use serde_json::{Value, json};

/// The object and the repairs, or the error.
fn read(text: &str, ending: Ending) -> Result<(Value, String), String> {
    decode(text, ending)
        .map(|decoded| (Value::Object(decoded.object), decoded.repairs.to_string()))
        .map_err(|fault| fault.to_string())
}

#[track_caller]
fn repaired(text: &str, expected: &Value, repairs: &str) {
    let expected = Ok((expected.clone(), repairs.to_owned()));
    assert_eq!(read(text, Ending::Own), expected, "{text}");
}

#[track_caller]
fn refused(text: &str, why: &str) {
    assert_eq!(read(text, Ending::Own), Err(why.to_owned()), "{text}");
}

#[test]
fn valid_objects_are_read_as_they_are() {
    repaired("{}", &json!({}), "");
    repaired(" {\"a\": 1}\n", &json!({"a": 1}), "");
    repaired(
        r#"{"a": "\ud83d\ude00", "b": [1, -2.5e3, null, true]}"#,
        &json!({"a": "😀", "b": [1, -2.5e3, null, true]}),
        "",
    );
    repaired(r#"{"big": 18446744073709551615}"#, &json!({"big": u64::MAX}), "");
}

#[test]
fn mistakes_in_strings_are_repaired() {
    repaired(
        "{\"a\": \"x\ny\"}",
        &json!({"a": "x\ny"}),
        "escaped control characters in a string",
    );
    repaired(
        "{\"a\": \"x\r\n\ty\u{0}\"}",
        &json!({"a": "x\r\n\ty\u{0}"}),
        "escaped control characters in a string",
    );
    repaired(
        r#"{"a": "\ud83d"}"#,
        &json!({"a": "\u{fffd}"}),
        "replaced half of a surrogate pair",
    );
    repaired(
        r#"{"a": "\ude00 x"}"#,
        &json!({"a": "\u{fffd} x"}),
        "replaced half of a surrogate pair",
    );
    repaired(
        r#"{"a": "\ud83d\ud83d\ude00"}"#,
        &json!({"a": "\u{fffd}😀"}),
        "replaced half of a surrogate pair",
    );
    repaired(
        r#"{"a": "\ud83d\n"}"#,
        &json!({"a": "\u{fffd}\n"}),
        "replaced half of a surrogate pair",
    );
    repaired(
        r#"{"a": "it\'s"}"#,
        &json!({"a": "it's"}),
        "replaced the escape \\'",
    );
    repaired(
        "{'a': 'say \"hi\"'}",
        &json!({"a": "say \"hi\""}),
        "replaced single quotes",
    );
    repaired(
        r"{'a': 'it\'s'}",
        &json!({"a": "it's"}),
        "replaced single quotes, replaced the escape \\'",
    );
}

#[test]
fn mistakes_around_values_are_repaired() {
    repaired("{\"a\": 1,}", &json!({"a": 1}), "removed a trailing comma");
    repaired(
        "{\"a\": [1, 2, ], }",
        &json!({"a": [1, 2]}),
        "removed a trailing comma",
    );
    repaired(
        "{a: 1, b_2: {c-d: 2}}",
        &json!({"a": 1, "b_2": {"c-d": 2}}),
        "quoted a key",
    );
    repaired(
        "{'a': True, 'b': None, 'c': False}",
        &json!({"a": true, "b": null, "c": false}),
        "replaced single quotes, replaced a Python constant",
    );
    repaired(
        "{\"a\": {\"b\": \"c\"}",
        &json!({"a": {"b": "c"}}),
        "added a missing closing brace",
    );
    repaired(
        "{\"a\": {\"b\": \"c\"",
        &json!({"a": {"b": "c"}}),
        "added a missing closing brace",
    );
    repaired(
        "{\"a\": [1]\n",
        &json!({"a": [1]}),
        "added a missing closing brace",
    );
    repaired(
        "{\"a\": true",
        &json!({"a": true}),
        "added a missing closing brace",
    );
    repaired("{\"a\": 1}}", &json!({"a": 1}), "removed an extra closing brace");
}

#[test]
fn what_surrounds_the_object_is_removed() {
    repaired(
        "```json\n{\"a\": 1}\n```",
        &json!({"a": 1}),
        "removed a Markdown fence",
    );
    repaired("```\n{\"a\": 1}", &json!({"a": 1}), "removed a Markdown fence");
    repaired("{\"a\": 1}```", &json!({"a": 1}), "removed a Markdown fence");
    repaired("\u{feff}{\"a\": 1}", &json!({"a": 1}), "");
    repaired("{}{\"a\": 1}", &json!({"a": 1}), "removed an empty object");
    repaired("{} {}\n{\"a\": 1}", &json!({"a": 1}), "removed an empty object");
    repaired("{\"a\": 1}{}", &json!({"a": 1}), "removed an empty object");
    repaired(
        "{\"a\": 1}{\"a\": 1}",
        &json!({"a": 1}),
        "removed a repetition of the object",
    );
    repaired("{}{}", &json!({}), "removed a repetition of the object");
    repaired(
        r#""{\"a\": 1}""#,
        &json!({"a": 1}),
        "decoded an object that was encoded twice",
    );
    repaired(
        r#""{\"a\": 1,}""#,
        &json!({"a": 1}),
        "removed a trailing comma, decoded an object that was encoded twice",
    );
    repaired(
        "{\"a\": 1}<|im_end|>",
        &json!({"a": 1}),
        "removed tokens of the model's template",
    );
    repaired(
        "{\"a\": 1}\n</tool_call>",
        &json!({"a": 1}),
        "removed tokens of the model's template",
    );
}

#[test]
fn a_text_that_ends_too_early_is_refused_with_its_place() {
    refused(
        "{\"path\": \"a\", \"content\": \"half of i",
        "the string that begins here does not end (line 1, column 26, at \"\\\"half of i\")",
    );
    refused(
        "{\"a\": \"x\\",
        "the text ends within an escape (line 1, column 9, at \"\\\\\")",
    );
    refused(
        "{\"a\": 1",
        "the object that begins here does not end (line 1, column 1, at \"{\\\"a\\\": 1\")",
    );
    refused("{\"a\":", "a value is missing (line 1, column 6, at the end)");
    refused(
        "{\"a\": \"b\",",
        "the object that begins here does not end (line 1, column 1, at \"{\\\"a\\\": \\\"b\\\",\")",
    );
    refused(
        "{\"a\"",
        "a colon is missing after the key (line 1, column 5, at the end)",
    );
    refused(
        "{",
        "the object that begins here does not end (line 1, column 1, at \"{\")",
    );
    refused(
        "{\"a\": [\"b\"",
        "the list that begins here does not end (line 1, column 7, at \"[\\\"b\\\"\")",
    );
    refused(
        "{\"a\": [{\"b\": \"c\"",
        "the object that begins here does not end (line 1, column 8, at \"{\\\"b\\\": \\\"c\\\"\")",
    );
}

#[test]
fn what_may_mean_several_things_is_refused_with_its_place() {
    refused(
        "{\"a\": 1}{\"a\": 2}",
        "a second, different object begins here; make one call for each object (line 1, column 9, at \"{\\\"a\\\": 2}\")",
    );
    refused(
        "{\"c\": \"echo \"hi\"\"}",
        "a comma or a closing bracket is missing; perhaps a quote within a string is not escaped \
         (line 1, column 14, at \"hi\\\"\\\"}\")",
    );
    refused(
        "{\n  \"c\": \"a\\d\"\n}",
        "this escape is not one of JSON; write a backslash as \\\\ (line 2, column 10, at \"\\\\d\\\"\\n}\")",
    );
    refused(
        r#"{"a": "\u12"}"#,
        "\\u needs four hexadecimal digits (line 1, column 8, at \"\\\\u12\\\"}\")",
    );
    refused(
        "{\"a\": 01}",
        "this is not a number of JSON (line 1, column 7, at \"01}\")",
    );
    refused(
        "{\"a\": hello}",
        "this is not a value of JSON; a text needs double quotes (line 1, column 7, at \"hello}\")",
    );
    refused(
        "{\"a\": 1,, \"b\": 2}",
        "a key in double quotes is missing (line 1, column 9, at \", \\\"b\\\": 2}\")",
    );
    refused(
        "{\"a\": NaN}",
        "this is not a value of JSON; a text needs double quotes (line 1, column 7, at \"NaN}\")",
    );
    refused(
        "[{\"a\": 1}]",
        "this is not an object in braces (line 1, column 1, at \"[{\\\"a\\\": 1}]\")",
    );
    refused(
        "12",
        "this is not an object in braces (line 1, column 1, at \"12\")",
    );
    refused("", "a value is missing (line 1, column 1, at the end)");
    refused(
        "\"ls\"",
        "this is not a value of JSON; a text needs double quotes (line 1, column 1, at \"ls\")",
    );
    refused(
        "{\"a\": 1} and more",
        "this is not a value of JSON; a text needs double quotes (line 1, column 10, at \"and more\")",
    );
    refused(
        "{\"ä\": \"é\", 5: 1}",
        "a key in double quotes is missing (line 1, column 12, at \"5: 1}\")",
    );
}

#[test]
fn nothing_is_added_to_a_text_that_was_cut_off() {
    let cut = read("{\"a\": {\"b\": \"c\"}", Ending::Cut);
    let why = "the object that begins here does not end (line 1, column 1, at \"{\\\"a\\\": {\\\"b\\\": \\\"c\\\"}\")";
    assert_eq!(cut, Err(why.to_owned()));
    let whole = read("{\"a\": 1,}", Ending::Cut);
    assert_eq!(
        whole,
        Ok((json!({"a": 1}), "removed a trailing comma".to_owned()))
    );
}
