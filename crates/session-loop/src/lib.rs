//! session-loop
