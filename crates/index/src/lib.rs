//! The search index of source trees.
