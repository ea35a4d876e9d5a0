//! model-client
