//! Finds the keys of a provider.

use super::{Lookup, read_bounded};
use crate::secret::Secret;
use crate::spec::Credential;
use agentd_settings::{Credential as CredentialConfig, CredentialSource, ProviderConfig};

/// The longest key file.
const LONGEST_KEY: u64 = 64 << 10;

/// All keys that exist, and what is missing; if a required key is missing, an error that lists every fix.
pub(super) fn credentials(
    provider: &ProviderConfig,
    env: Lookup<'_>,
) -> Result<(Vec<Credential>, Vec<String>), String> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for config in &provider.credentials {
        match secret(config, env) {
            Ok(secret) if !secret.is_empty() => found.push(Credential {
                name: config.name.clone(),
                found_in: config
                    .env
                    .clone()
                    .or_else(|| config.file.clone())
                    .unwrap_or_default(),
                secret,
            }),
            Ok(_) => missing.push(format!("credential {} is empty", config.name)),
            Err(reason) => missing.push(reason),
        }
    }
    if found.is_empty() && !missing.is_empty() {
        Err(missing.join("; "))
    } else {
        Ok((found, missing))
    }
}

/// Words in the names of headers whose values are secret.
const SECRET_HEADERS: [&str; 7] = [
    "auth",
    "key",
    "token",
    "secret",
    "cookie",
    "password",
    "credential",
];

/// The keys among the configured headers; if a scheme such as `Bearer` precedes a key, both forms.
pub(super) fn in_headers(provider: &ProviderConfig) -> impl Iterator<Item = Secret> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        SECRET_HEADERS.iter().any(|word| name.contains(word))
    };
    let values = provider.headers.iter().filter(move |(name, _)| is_secret(name));
    values.flat_map(|(_, value)| {
        let bare = value.trim().split_once(' ').map(|(_, bare)| bare);
        [Some(value.as_str()), bare]
            .into_iter()
            .flatten()
            .map(Secret::new)
            .filter(|secret| !secret.is_empty())
    })
}

pub(super) fn secret(config: &CredentialConfig, env: Lookup<'_>) -> Result<Secret, String> {
    match config.source() {
        Some(CredentialSource::Env(variable)) => env(variable)
            .filter(|value| !value.trim().is_empty())
            .map(|value| Secret::new(&value))
            .ok_or_else(|| format!("set {variable} in the environment of agentd and restart it")),
        Some(CredentialSource::File(path)) => read_bounded(path, LONGEST_KEY).map(|text| Secret::new(&text)),
        Some(CredentialSource::Exec(_)) => Err(format!(
            "credential {}: this version does not support exec; use env or file",
            config.name
        )),
        None => Err(format!(
            "credential {} needs exactly one of env, file and exec",
            config.name
        )),
    }
}
