//! Formatting for people: pure functions from facts to text.

mod approval_row;
mod context;
mod count_row;
mod fleet;
mod hanging;
mod limit_rows;
mod margin;
mod node_rows;
mod prompt;
mod rows;
mod status_line;
mod table;

pub(crate) use agentd_text::{for_terminal as clean, json_for_terminal, one_line};
pub(crate) use agentd_viewer::{
    Early, Line, LiveOutput, LiveText, Paint, Rest, Tag, Transcript, age, below, choices_line, clock,
    clock_time, count, day, decided_by, decided_how, dollars, painted, span, summary, thoughts_of, tidy_usd,
    tokens, word,
};
pub(crate) use approval_row::ApprovalRow;
pub(crate) use context::context_text;
pub(crate) use count_row::count_rows;
pub(crate) use fleet::{fleet_line, state_tint};
pub(crate) use hanging::hanging;
pub(crate) use limit_rows::limit_lines;
pub(crate) use margin::Margin;
pub(crate) use node_rows::{DailyListRow, ModelRow, ServerListRow, ToolListRow, UsageListRow};
pub(crate) use prompt::prompt_text;
pub(crate) use rows::{SessionDetail, SessionRow};
pub(crate) use status_line::StatusLine;
pub(crate) use table::{Column, table};

#[cfg(test)]
mod tests;
