//! agentd-bench

fn main() {}
