//! Support for the end-to-end tests: a model server and a harness that builds the binaries once.
