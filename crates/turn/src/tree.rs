//! Trees of agents: a call becomes a sub-agent (`delegate`), which follows its parent's state (`following`), spends from
//! the tree's budget (`shared_budget`) and reports its end (`completion_report`).

pub(crate) mod completion_report;
pub(crate) mod delegate;
pub(crate) mod following;
pub(crate) mod shared_budget;
