//! agentd

fn main() {}
