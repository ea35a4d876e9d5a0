//! Fault points.
