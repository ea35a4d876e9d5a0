//! Models with native calls, whose server left calls of their template in the text.

use super::*;
use serde_json::json;

#[track_caller]
fn call(text: &str, expected: &[(&str, Value)]) {
    calls(Mode::Template, text, "", expected);
}

#[track_caller]
fn text(text: &str) {
    stays_text(Mode::Template, text);
    stays_text(Mode::NativeOnly, text);
}

#[track_caller]
fn broken(text: &str, problem: &str) {
    asks(Mode::Template, text, Unmade::Broken, problem);
}

const LS: &str = r#"{"name": "Bash", "arguments": {"command": "ls"}}"#;

fn ls() -> [(&'static str, Value); 1] {
    [("Bash", json!({"command": "ls"}))]
}

/// Every form of a call, with nothing around it.
fn forms() -> Vec<String> {
    vec![
        format!("<tool_call>\n{LS}\n</tool_call>"),
        format!("<tool_call>{LS}"),
        format!("<tool_call>[{LS}]</tool_call>"),
        format!("<function_call>{LS}</function_call>"),
        format!("[TOOL_CALLS] [{LS}]"),
        format!("[TOOL_CALLS]{LS}"),
        "[TOOL_CALLS]Bash[ARGS]{\"command\": \"ls\"}".to_owned(),
        "[TOOL_CALLS]Bash{\"command\": \"ls\"}</s>".to_owned(),
        format!("<|tool_call|>[{LS}]"),
        format!("<|python_tag|>{LS}"),
        "<function=Bash>{\"command\": \"ls\"}</function>".to_owned(),
        "<function=Bash>\n<parameter=command>\nls\n</parameter>\n</function>".to_owned(),
        "<tool_call>\n<function=Bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>"
            .to_owned(),
        "<function=Bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>".to_owned(),
        "<function=Bash><parameter=command>ls</parameter></tool_call>".to_owned(),
        format!("```json\n{LS}\n```"),
        format!("```\n{LS}\n```"),
        format!("```tool_call\n{LS}\n```"),
        "```Bash\n{\"command\": \"ls\"}\n```".to_owned(),
        LS.to_owned(),
        format!("[{LS}]"),
        format!("{{\"type\": \"function\", \"function\": {LS}}}"),
        "<tool_call>{'name': 'Bash', 'arguments': {'command': 'ls',}}</tool_call>".to_owned(),
        "<tool_call>{\"name\": \"functions.Bash\", \"arguments\": {\"command\": \"ls\"}}</tool_call>"
            .to_owned(),
    ]
}

#[test]
fn every_form_is_a_call_as_the_whole_answer() {
    for form in forms() {
        call(&form, &ls());
        call(&format!("\n\n{form}<|im_end|>\n"), &ls());
        let said = lift_text(&form, Mode::Template).reading.repaired;
        assert!(
            said[0].starts_with("Bash: taken from the text of the answer"),
            "{said:?}"
        );
    }
}

#[test]
fn a_marked_form_is_a_call_at_the_end_of_the_answer() {
    for form in forms()
        .iter()
        .filter(|form| !form.starts_with(['{']) && !form.starts_with("[{"))
    {
        calls(Mode::Template, &format!("I look.\n\n{form}"), "I look.", &ls());
    }
    let two = [ls(), ls()].concat();
    calls(
        Mode::Template,
        &format!("Both:\n<tool_call>{LS}</tool_call>\n<tool_call>\n{LS}\n</tool_call>"),
        "Both:",
        &two,
    );
    calls(
        Mode::Template,
        &format!("Both: [TOOL_CALLS] [{LS}, {LS}]"),
        "Both:",
        &two,
    );
}

#[test]
fn parameters_keep_every_character_of_their_values() {
    let value = "  a\n\n```js\n{\"x\": '1'}\n```\n<b>";
    let text = format!(
        "<tool_call>\n<function=Write>\n<parameter=file_path>\na.md\n</parameter>\n<parameter=content>\n{value}\n\
         </parameter>\n</function>\n</tool_call>"
    );
    call(
        &text,
        &[("Write", json!({"file_path": "a.md", "content": value}))],
    );
    call("<function=Bash></function>", &[("Bash", json!({}))]);
}

#[test]
fn a_model_without_calls_in_its_text_is_asked() {
    for form in forms() {
        asks(
            Mode::NativeOnly,
            &form,
            Unmade::Unclear,
            "a call of Bash stands in the text of the answer",
        );
    }
}

#[test]
fn an_explanation_of_the_syntax_stays_text() {
    for form in forms() {
        text(&format!("To call a tool, the model writes `{form}`."));
        text(&format!("The syntax looks like this:\n\n{form}"));
        text(&format!("For example: {form}"));
        if !form.ends_with("{LS}") {
            text(&format!("{form}\n\nThis form lists the files."));
            text(&format!("It begins so:\n\n{form}\n\nThen the server parses it."));
        }
    }
    text(&format!("```python\nsend('<tool_call>{LS}</tool_call>')\n```"));
    text("The tag <tool_call> opens a call.");
    text("The tag <function=Bash opens a call.");
    text(&format!("I found this object: {LS}"));
    text("{\"name\": \"Bash\", \"version\": 5}");
    text("{\"name\": \"Frobnicate\", \"arguments\": {}}");
    text("```json\n{\"name\": \"Anna\", \"arguments\": {}}\n```");
    text("{\"command\": \"ls\"}");
    text("```bash\n{\"command\": \"ls\"}\n```");
}

#[test]
fn a_marked_call_that_cannot_be_read_is_asked_about() {
    broken(
        "<tool_call>{\"name\": \"Frob\", \"arguments\": {}}</tool_call>",
        "there is no tool \"Frob\"",
    );
    broken("<function=Frob>{}</function>", "there is no tool \"Frob\"");
    broken(
        "I write.\n<tool_call>{\"name\": \"Write\", \"arguments\": {\"content\": \"half",
        "the string that begins here does not end (line 2, column 55, at \"\\\"half\")",
    );
    broken(
        "<function=Write>\n<parameter=content>\nhalf",
        "the parameter content does not end with </parameter>",
    );
    broken(
        "<function=Write>\n<parameter=content>\na</parameter>b\n</parameter>\n</function>",
        "</function> is missing after the call of Write",
    );
    broken(
        "<tool_call>{\"name\": \"Bash\"}</tool_call>",
        "the call of Bash has no `args`",
    );
    broken(
        "[TOOL_CALLS]Bash[ARGS]{\"command\": ls}",
        "this is not a value of JSON; a text needs double quotes (line 1, column 35, at \"ls}\")",
    );
}

#[test]
fn i4_a_call_that_was_cut_off_is_never_made() {
    for form in forms() {
        for cut in 1..form.len() {
            let said = vec![Block::text(&form[..cut])];
            let lifted = lift(said.clone(), StopReason::MaxTokens, Mode::Template, &tools());
            assert_eq!(
                (lifted.content, lifted.stop),
                (said, StopReason::MaxTokens),
                "{}",
                &form[..cut]
            );
        }
    }
    let half = "<tool_call>\n{\"name\": \"Write\", \"arguments\": {\"content\": \"ha";
    let lifted = lift(
        vec![Block::text(half)],
        StopReason::MaxTokens,
        Mode::Template,
        &tools(),
    );
    assert_eq!(lifted.reading.unmade.map(|unmade| unmade.kind), Some(Unmade::Cut));
}
