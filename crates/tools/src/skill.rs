//! The tool Skill: reads a skill of the operator, or else of the project.

use crate::catalog::object;
use crate::context::{ToolContext, ToolLimits};
use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Tool, word};
use agentd_prompt::{Places, ReadJudge, skill};
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The name of the tool that reads skills.
pub const SKILL: &str = "Skill";

/// Reads the instructions of a skill.
pub(crate) struct Skill;

impl Tool for Skill {
    fn name(&self) -> &'static str {
        SKILL
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["read_skill", "use_skill"],
            title: "Read a skill".into(),
            description: "Reads the instructions of a skill that the system prompt lists.".to_owned(),
            schema: object(
                &json!({ "name": { "type": "string", "minLength": 1, "maxLength": 64 } }),
                &["name"],
            ),
            example: json!({ "name": "release" }),
            effect: EffectClass::None,
            idempotent: true,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::nothing(word(input, "name")))
    }

    fn runs(&self) -> Runs {
        Runs::Files(|call, ctx, _| run(call, ctx).into())
    }

    fn filtered(&self) -> bool {
        true
    }
}

fn run(prepared: &Prepared, ctx: &ToolContext) -> ToolOutcome {
    let places = Places {
        operator: ctx.limits.operator_directory.as_ref().map(PathBuf::from),
        project: ctx.limits.project_skills,
        judge: judge(ctx),
        ..Places::default()
    };
    let name = prepared.text("name");
    match skill(&places, ctx.workdir.path(), name) {
        Ok(skill) => {
            let text = format!("The skill {name}, from {}:\n\n{}", skill.path, skill.text);
            ToolOutcome::text(ToolStatus::Ok, cut(text, ctx.limits.max_bytes))
        }
        Err(why) => refuse(Code::InvalidArgs, format!("Skill: {why}.")),
    }
}

/// A skill of the project is a file like any other: a session that may not read the file cannot read the skill either.
fn judge(ctx: &ToolContext) -> ReadJudge {
    let (files, workdir) = (ctx.files.clone(), ctx.workdir.path().to_owned());
    ReadJudge::new(move |real| match real.strip_prefix(&workdir) {
        Ok(inner) if !files.lets_read(inner) => Err("the rules do not allow reading it".to_owned()),
        Ok(_) | Err(_) => Ok(()),
    })
}

fn cut(mut text: String, max_bytes: u64) -> String {
    let max = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    if text.len() > max {
        let end = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n[cut here: the skill exceeds the limit for results]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_skill_is_cut_at_a_character() {
        assert_eq!(cut("abc".into(), 3), "abc");
        assert!(cut("a你b".into(), 3).starts_with("a\n[cut here"));
    }
}
