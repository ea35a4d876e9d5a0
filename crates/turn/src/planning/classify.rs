//! Guesses an input's intent from its words: cheap, deterministic, good enough to decide whether a plan is worth it.

use agentd_protocol::Intent;

/// An intent with the reason for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Classified {
    pub(crate) label: Intent,
    pub(crate) confidence: f64,
    pub(crate) reason: String,
}

/// Words that ask to make or fix something.
const DOING: [&str; 50] = [
    "add",
    "fix",
    "implement",
    "write",
    "refactor",
    "change",
    "rename",
    "remove",
    "delete",
    "update",
    "create",
    "build",
    "make",
    "test",
    "port",
    "migrate",
    "upgrade",
    "replace",
    "optimize",
    "debug",
    "mend",
    "install",
    "run",
    "merge",
    "修复",
    "实现",
    "添加",
    "增加",
    "修改",
    "重构",
    "删除",
    "编写",
    "写一个",
    "创建",
    "更新",
    "重命名",
    "优化",
    "调试",
    "迁移",
    "替换",
    "生成",
    "运行",
    "测试",
    "升级",
    "改成",
    "改为",
    "开发",
    "部署",
    "安装",
    "完成",
];
/// Words that ask how things are.
const ASKING: [&str; 30] = [
    "explain",
    "describe",
    "analyze",
    "analyse",
    "summarize",
    "summarise",
    "overview",
    "where",
    "how",
    "why",
    "which",
    "understand",
    "architecture",
    "review",
    "find",
    "list",
    "show",
    "what",
    "解释",
    "分析",
    "说明",
    "总结",
    "在哪",
    "怎么",
    "如何",
    "为什么",
    "架构",
    "结构",
    "介绍一下",
    "概述",
];
/// Words that ask about the agent itself.
const ABILITIES: [&str; 14] = [
    "what can you do",
    "who are you",
    "what are you",
    "your capabilities",
    "can you help",
    "how do you work",
    "which tools do you have",
    "what tools do you have",
    "你能做什么",
    "你是谁",
    "你会什么",
    "你有什么功能",
    "你可以做什么",
    "你能干什么",
];
/// Small talk.
const CHAT: [&str; 16] = [
    "hi",
    "hello",
    "hey",
    "thanks",
    "thank you",
    "good morning",
    "good evening",
    "how are you",
    "bye",
    "ok",
    "你好",
    "您好",
    "谢谢",
    "再见",
    "早上好",
    "嗨",
];
/// Other words of small talk.
const FILLERS: [&str; 8] = ["there", "today", "doing", "and", "so", "very", "much", "again"];
/// The longest text that counts as small talk, in characters.
const SHORT: usize = 40;

/// Classifies an input by its text, or by the beginning of it.
pub(crate) fn classify(text: &str) -> Classified {
    let lower = text.trim().to_lowercase();
    let found = |label, confidence, reason: String| Classified {
        label,
        confidence,
        reason,
    };
    if lower.is_empty() {
        return found(Intent::Uncertain, 1.0, "it has no words".to_owned());
    }
    if let Some(word) = ABILITIES.iter().find(|word| lower.contains(*word)) {
        return found(
            Intent::CapabilityQuery,
            0.9,
            format!("it asks about the agent: {word:?}"),
        );
    }
    let doing = DOING.iter().find(|word| says(&lower, word));
    let asking = ASKING.iter().find(|word| says(&lower, word));
    let short = lower.chars().count() <= SHORT;
    if let Some(word) = only_talk(&lower).filter(|_| short && asking.is_some()) {
        return found(
            Intent::GeneralChat,
            0.9,
            format!("it says {word:?} and nothing else"),
        );
    }
    if doing.is_none() && asking.is_none() && short {
        let bare = lower.trim_end_matches(['!', '.', '?', '！', '。', '？', '~', ' ']);
        if let Some(word) = CHAT.iter().find(|word| bare == **word || says(bare, word)) {
            return found(Intent::GeneralChat, 0.9, format!("it is short and says {word:?}"));
        }
    }
    let question = lower.ends_with(['?', '？']);
    match (doing, asking) {
        (Some(word), None) => found(Intent::CodingTask, 0.9, format!("it says {word:?}")),
        (Some(word), Some(_)) if !question => found(
            Intent::CodingTask,
            0.7,
            format!("it says {word:?} and is not a question"),
        ),
        (_, Some(word)) => found(Intent::RepoAnalysis, 0.7, format!("it says {word:?}")),
        (None, None) if names_code(&lower) => found(Intent::CodingTask, 0.5, "it names code".to_owned()),
        (None, None) => found(
            Intent::Uncertain,
            0.5,
            "none of the known words is in it".to_owned(),
        ),
    }
}

/// The first of the phrases that a text consists of, if it has nothing but small talk: its words may be those of questions.
fn only_talk(text: &str) -> Option<&'static str> {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let all = words(text);
    let (mut rest, mut first) = (all.as_slice(), None);
    while let Some((word, after)) = rest.split_first() {
        let phrase = CHAT.iter().find(|phrase| rest.starts_with(&words(phrase)));
        rest = match phrase {
            Some(phrase) => rest.get(words(phrase).len()..).unwrap_or_default(),
            None if FILLERS.contains(&word.as_str()) => after,
            None => return None,
        };
        first = first.or(phrase.copied());
    }
    first
}

/// Whether a text contains a word: as a whole word in Latin script, anywhere in scripts without spaces.
fn says(text: &str, word: &str) -> bool {
    if !word.is_ascii() {
        return text.contains(word);
    }
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() || !c.is_ascii());
        edge(before) && edge(after)
    })
}

fn names_code(text: &str) -> bool {
    let endings = [
        ".rs", ".py", ".js", ".ts", ".go", ".java", ".c", ".cpp", ".h", ".toml", ".json", ".md", "()", "::",
    ];
    text.split_whitespace()
        .map(|word| word.trim_end_matches(['.', ',', ';', ':', ')']))
        .any(|word| endings.iter().any(|ending| word.ends_with(ending)) || word.contains("::"))
}

/// Whether a turn with this intent starts with a plan when planning is on.
pub(crate) const fn plans(intent: Intent) -> bool {
    match intent {
        Intent::CodingTask | Intent::Uncertain => true,
        Intent::RepoAnalysis | Intent::CapabilityQuery | Intent::GeneralChat => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_five_labels_are_told_apart_in_both_languages() {
        use Intent::{CapabilityQuery, CodingTask, GeneralChat, RepoAnalysis, Uncertain};
        let rows = [
            ("Fix the failing test in src/lib.rs", CodingTask),
            ("please add a --json flag and explain it", CodingTask),
            ("修复这个错误", CodingTask),
            ("给函数添加测试", CodingTask),
            ("src/main.rs:10", Uncertain),
            ("src/main.rs crashes", CodingTask),
            ("How does the parser work?", RepoAnalysis),
            ("where is the config read?", RepoAnalysis),
            ("分析一下这个项目的架构", RepoAnalysis),
            ("What can you do?", CapabilityQuery),
            ("你能做什么？", CapabilityQuery),
            ("hi!", GeneralChat),
            ("Thanks.", GeneralChat),
            ("how are you", GeneralChat),
            ("Hi there, how are you today?", GeneralChat),
            ("how are you parsing the file?", RepoAnalysis),
            ("how are the tests run?", RepoAnalysis),
            ("你好", GeneralChat),
            ("the blue one", Uncertain),
            ("", Uncertain),
        ];
        for (text, label) in rows {
            let classified = classify(text);
            assert_eq!(classified.label, label, "{text:?}: {}", classified.reason);
        }
    }

    #[test]
    fn talk_and_questions_get_no_plan() {
        assert!(plans(Intent::CodingTask) && plans(Intent::Uncertain));
        for intent in [Intent::RepoAnalysis, Intent::CapabilityQuery, Intent::GeneralChat] {
            assert!(!plans(intent));
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_label_with_a_reason(text in "\\PC{0,120}") {
            let classified = classify(&text);
            prop_assert!((0.0..=1.0).contains(&classified.confidence) && !classified.reason.is_empty());
        }
    }
}
