//! The end-to-end tests, one binary: real daemons, real commands, a model server on loopback.

mod fleet;
