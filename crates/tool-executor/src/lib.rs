//! tool-executor
