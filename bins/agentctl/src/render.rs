//! Formatting for people: pure functions from facts to text.

mod amount;
mod approval;
mod approval_row;
mod context;
mod count_row;
mod entries;
mod fleet;
mod hanging;
mod limit_rows;
mod live;
mod live_output;
mod margin;
mod node_rows;
mod paint;
mod prompt;
mod rows;
mod status_line;
mod summary;
mod table;
mod transcript;

pub(crate) use agentd_text::{for_terminal as clean, json_for_terminal, one_line};
pub(crate) use amount::{age, clock_time, count, day, dollars, span, tidy_usd, tokens, word};
pub(crate) use approval::{choices_line, painted, question_lines};
pub(crate) use approval_row::ApprovalRow;
pub(crate) use context::context_text;
pub(crate) use count_row::count_rows;
pub(crate) use entries::{decided_by, decided_how};
pub(crate) use fleet::{fleet_line, state_tint};
pub(crate) use hanging::hanging;
pub(crate) use limit_rows::limit_lines;
pub(crate) use live::{Early, LiveText, Rest, thoughts_of};
pub(crate) use live_output::LiveOutput;
pub(crate) use margin::Margin;
pub(crate) use node_rows::{DailyListRow, ModelRow, ServerListRow, ToolListRow, UsageListRow};
pub(crate) use paint::Paint;
pub(crate) use prompt::prompt_text;
pub(crate) use rows::{SessionDetail, SessionRow};
pub(crate) use status_line::StatusLine;
pub(crate) use summary::summary;
pub(crate) use table::{Column, table};
pub(crate) use transcript::{Line, Tag, Transcript, below};

#[cfg(test)]
mod tests;
