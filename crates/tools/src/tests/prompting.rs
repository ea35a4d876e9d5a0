//! The system prompt and the tools agree.

use super::*;
use agentd_prompt::{Layers, OfferedTools, build};
use agentd_protocol::{PermissionMode, PromptPart, PromptPartKind, PromptSources, Timestamp};

/// Words that a prompt contains only with one of these tools. Names that are also ordinary words are not searched.
const ABOUT: [(&str, &[&str]); 4] = [
    ("sub-agent", &["Task"]),
    ("background jobs", &["Job", "BashStart"]),
    ("sandbox", &["Bash", "Job", "BashStart"]),
    ("the tool Skill", &["Skill"]),
];
const WORDS: [&str; 12] = [
    "Read",
    "Write",
    "Edit",
    "Ls",
    "Glob",
    "Grep",
    "Bash",
    "Job",
    "Plan",
    "Skill",
    "Task",
    "UndoPatch",
];

fn prompt(template: &str, tools: &[String]) -> String {
    let skills = PromptPart {
        kind: PromptPartKind::Skills,
        source: "skills".to_owned(),
        text: "- release: Cut a release".to_owned(),
        note: None,
    };
    build(&Layers {
        left_out: &[],
        workdir: "/w",
        platform: "linux",
        created_at: Timestamp(1),
        replace: None,
        mode: PermissionMode::Plan,
        tools: OfferedTools(tools),
        sources: &PromptSources {
            template: template.to_owned(),
            parts: vec![skills],
        },
        append: None,
    })
    .shown
    .text
}

/// Every set of tools that lacks one, has only one, or is one of many chosen by their numbers.
fn toolsets(names: &[String]) -> Vec<Vec<String>> {
    let pick = |keep: &dyn Fn(usize) -> bool| {
        let kept = names.iter().enumerate().filter(|(at, _)| keep(*at));
        kept.map(|(_, name)| name.clone()).collect()
    };
    let mut sets = vec![Vec::new(), names.to_vec()];
    for at in 0..names.len() {
        sets.push(pick(&|other| other != at));
        sets.push(pick(&|other| other == at));
        sets.push(pick(&|other| (other * 7 + at) % 3 == 0));
    }
    sets
}

#[test]
fn a_prompt_speaks_only_of_tools_that_the_session_offers() {
    let registry = Registry::builtin(&ToolLimits::default());
    let names: Vec<String> = registry
        .specs()
        .map(|spec| spec.name.clone().into_owned())
        .collect();
    let mut named = 0;
    for template in ["", "anthropic", "openai", "gemini", "chat", "local"] {
        for tools in toolsets(&names) {
            let text = prompt(template, &tools);
            assert!(!text.contains(['{', '}']), "{text}");
            for name in names.iter().filter(|name| !WORDS.contains(&name.as_str())) {
                let offered = tools.contains(name);
                assert!(
                    offered || !text.contains(name.as_str()),
                    "{template} {tools:?}: {name}"
                );
                named += usize::from(offered && text.contains(name.as_str()));
            }
            for (words, one_of) in ABOUT {
                let offered = one_of
                    .iter()
                    .any(|tool| tools.iter().any(|offered| offered == tool));
                assert_eq!(text.contains(words), offered, "{template} {tools:?}: {words}");
            }
        }
    }
    assert!(named > 100, "the prompts name tools");
}
