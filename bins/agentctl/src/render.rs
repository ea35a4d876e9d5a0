//! What is shown: pure functions from facts to text.

mod amount;
mod approval;
mod clean;
mod live;
mod node_rows;
mod paint;
mod rows;
mod table;
mod transcript;

pub(crate) use amount::{age, dollars, span, tokens, word};
pub(crate) use approval::{approval_lines, choices_line};
pub(crate) use clean::{clean, json_for_terminal, one_line};
pub(crate) use live::{LiveText, Rest};
pub(crate) use node_rows::{ModelRow, ToolListRow, UsageListRow};
pub(crate) use paint::Paint;
pub(crate) use rows::{ApprovalRow, SessionDetail, SessionRow};
pub(crate) use table::table;
pub(crate) use transcript::{Line, Tag, Transcript, summary};

#[cfg(test)]
mod tests;
