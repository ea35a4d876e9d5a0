//! loop-supervisor
