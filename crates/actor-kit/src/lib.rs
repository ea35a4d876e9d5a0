//! actor-kit
