//! agentctl

fn main() {}
