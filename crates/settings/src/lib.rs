//! The daemon's configuration: its types, the layers it comes from, and where each key was set.
//!
//! Nothing is read but the files that the caller names: the environment and the flags come in as values. A value that
//! is unknown, of the wrong type or out of range stops the start (I7: nothing is guessed), and keys are never printed
//! with a password in them (I8).
//!
//! Flow: `Sources` -> `load` -> layers merged key by key -> checked -> `Loaded{settings, origins}`.

mod builtin;
mod check;
mod daemon;
mod duration;
mod error;
mod layer;
mod load;
mod models;
mod origin;
mod preset;
mod session;
mod settings;
mod suggest;
mod unsupported;
mod view;

pub use daemon::{LimitsConfig, LogConfig, NodeConfig, StoreConfig};
pub use error::{Problem, SettingsError};
pub use load::{Loaded, Sources, load};
pub use models::{
    Credential, CredentialSource, Dialect, ModelChoice, ModelConfig, ProviderConfig, RetryConfig,
    ToolProtocol,
};
pub use origin::Origin;
pub use preset::LimitOverrides;
pub use session::{
    BudgetConfig, ContextConfig, LoopConfig, Network, PermissionConfig, RuleConfig, SandboxChoice,
    SandboxConfig, SessionBudget, ToolsConfig,
};
pub use settings::{SHIPPED, Settings};
pub use view::mask_url;

#[cfg(test)]
mod tests;
