//! Checks the files that a configuration names. A daemon starts without them and fails only where it needs one, so the
//! check of a configuration reports all of them.

use crate::error::NodeError;
use agentd_provider::Script;
use agentd_settings::{CredentialSource, Dialect, Loaded, Settings};
use agentd_tools::{REMOTE_PREFIX, Registry, ToolLimits};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The longest script that is accepted.
const LONGEST_SCRIPT: u64 = 16 << 20;
/// The maximum number of files opened in the operator's directory.
const MOST_ENTRIES: usize = 1_000;

/// An unusable file: the key, the problem, and the remedy.
type Trouble = (String, String, &'static str);

/// Opens every script, program, key file and prompt file that the configuration names.
///
/// # Errors
/// The unusable files, with file and line of their keys.
pub fn check_files(loaded: &Loaded) -> Result<(), NodeError> {
    let settings = &loaded.settings;
    let troubles = [
        scripts(settings),
        keys(settings),
        hooks(settings),
        servers(settings),
        prompts(settings),
        certificates(settings),
        tools(settings),
    ];
    let lines: Vec<String> = troubles
        .into_iter()
        .flatten()
        .map(|trouble| line(loaded, &trouble))
        .collect();
    if lines.is_empty() {
        Ok(())
    } else {
        Err(NodeError::Files(lines.join("\n")))
    }
}

/// The origin of a key inside a list is that of the list.
fn line(loaded: &Loaded, (key, what, fix): &Trouble) -> String {
    let mut at = Some(key.as_str());
    let mut origin = None;
    while let (Some(known), None) = (at, origin) {
        origin = loaded.origins.get(known);
        at = known.rfind(['.', '[']).and_then(|end| known.get(..end));
    }
    let origin = origin.map(|origin| format!("{origin}: ")).unwrap_or_default();
    format!("{origin}{key}: {what}; {fix}")
}

fn certificates(settings: &Settings) -> Vec<Trouble> {
    let tls = &settings.http.tls;
    let files = [("http.tls.cert", &tls.cert), ("http.tls.key", &tls.key)];
    let fix = "make the file readable for agentd, or name another file";
    let named = files.into_iter().filter(|(_, path)| !path.is_empty());
    named
        .filter_map(|(key, path)| Some((key.to_owned(), unreadable(path, &File::open(path).err()?), fix)))
        .collect()
}

/// The tools that the configuration adds. Those of tool servers are known only when a server runs.
fn tools(settings: &Settings) -> Vec<Trouble> {
    let registry = Registry::builtin(&ToolLimits::default());
    let names = settings.tools.more.iter();
    let unknown = names.filter(|name| !name.starts_with(REMOTE_PREFIX) && registry.get(name).is_none());
    unknown
        .map(|name| {
            let key = "tools.more".to_owned();
            let fix =
                "give names of built-in tools, such as MultiEdit, or of tool servers: mcp__SERVER__TOOL";
            (key, format!("there is no tool {name:?}"), fix)
        })
        .collect()
}

fn scripts(settings: &Settings) -> Vec<Trouble> {
    let scripted = |provider: &String| {
        let provider = settings.providers.get(provider);
        provider.is_some_and(|provider| provider.dialect == Dialect::Scripted)
    };
    let named = settings
        .models
        .iter()
        .filter(|(_, model)| scripted(&model.provider) && !matches!(model.model.as_str(), "" | "builtin"));
    named
        .filter_map(|(name, model)| {
            let fix = "name a readable script file, or \"builtin\"";
            Some((format!("models.{name}.model"), script(&model.model).err()?, fix))
        })
        .collect()
}

fn script(path: &str) -> Result<(), String> {
    let text = text(path, LONGEST_SCRIPT).map_err(|error| unreadable(path, &error))?;
    Script::parse(path, &text)
        .map(drop)
        .map_err(|error| error.to_string())
}

fn keys(settings: &Settings) -> Vec<Trouble> {
    let fix = "make the file readable for agentd, or name another file";
    let mut found = Vec::new();
    let password = &settings.store.password_file;
    if !password.is_empty()
        && let Err(error) = File::open(password)
    {
        found.push((
            "store.password_file".to_owned(),
            unreadable(password, &error),
            fix,
        ));
    }
    for (name, provider) in &settings.providers {
        for credential in &provider.credentials {
            if let Some(CredentialSource::File(path)) = credential.source()
                && let Err(error) = File::open(path)
            {
                found.push((
                    format!("providers.{name}.credentials"),
                    unreadable(path, &error),
                    fix,
                ));
            }
        }
    }
    found
}

fn hooks(settings: &Settings) -> Vec<Trouble> {
    let fix = "put an executable program there, or name another program";
    let hooks = settings.hooks.run.iter().enumerate();
    hooks
        .filter_map(|(n, hook)| {
            let why = program(hook.command.first()?).err()?;
            Some((
                format!("hooks.run[{n}]"),
                format!("hook {}: {why}", hook.name),
                fix,
            ))
        })
        .collect()
}

/// Checks absolute paths only: a name on PATH is looked up when the server starts.
fn servers(settings: &Settings) -> Vec<Trouble> {
    let fix = "put an executable program there, or name another program";
    let servers = settings.mcp.servers.iter();
    servers
        .filter_map(|(name, server)| {
            let named = server.command.first().filter(|path| path.starts_with('/'))?;
            let why = program(named).err()?;
            Some((format!("mcp.servers.{name}.command"), why, fix))
        })
        .collect()
}

/// Checks the operator's directory and the instruction files in it.
fn prompts(settings: &Settings) -> Vec<Trouble> {
    let dir = &settings.agents.directory;
    if dir.is_empty() {
        return Vec::new();
    }
    let trouble = |path: &str, error: &io::Error| {
        let fix = "make it a directory whose files agentd can read, or remove the key";
        (String::from("agents.directory"), unreadable(path, error), fix)
    };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => return vec![trouble(dir, &error)],
    };
    entries
        .flatten()
        .take(MOST_ENTRIES)
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .filter_map(|path| Some(trouble(&path.display().to_string(), &File::open(&path).err()?)))
        .collect()
}

fn program(path: &str) -> Result<(), String> {
    match fs::metadata(Path::new(path)) {
        Err(error) => Err(unreadable(path, &error)),
        Ok(meta) if !meta.is_file() => Err(format!("{path} is not a file")),
        Ok(meta) if meta.permissions().mode() & 0o111 == 0 => Err(format!("{path} is not executable")),
        Ok(_) => Ok(()),
    }
}

fn text(path: &str, most: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}

fn unreadable(path: &str, error: &io::Error) -> String {
    format!("cannot read {path}: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_settings::{Sources, load};

    fn checked(text: &str) -> Result<(), NodeError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agentd.toml");
        fs::write(&file, text).unwrap();
        let sources = Sources {
            file: Some(file),
            ..Sources::default()
        };
        check_files(&load(&sources).unwrap())
    }

    #[test]
    fn files_named_in_the_shipped_settings_exist() {
        checked("").unwrap();
        checked("[[hooks.run]]\nname = \"a\"\nevent = \"Stop\"\ncommand = [\"/bin/sh\"]\n").unwrap();
    }

    #[test]
    fn each_unusable_file_is_reported_with_its_place_and_a_fix() {
        let dir = tempfile::tempdir().unwrap();
        let bad = dir.path().join("bad.toml");
        fs::write(&bad, "[[turn]]\ntxet = 1\n").unwrap();
        let text = format!(
            "[models.gone]\nprovider = \"scripted\"\nmodel = \"/nowhere/s.toml\"\n\
             [models.bad]\nprovider = \"scripted\"\nmodel = {bad:?}\n\
             [[hooks.run]]\nname = \"a\"\nevent = \"Stop\"\ncommand = [\"/etc/passwd\", \"x\"]\n\
             [mcp.servers.s]\ncommand = [\"/nowhere/server\"]\n\
             [agents]\ndirectory = \"/nowhere/agents\"\n\
             [http.tls]\ncert = \"/nowhere/cert.pem\"\nkey = \"/nowhere/key.pem\"\n\
             [tools]\nmore = [\"MultiEdit\", \"Foo\", \"mcp__s__any\"]\n"
        );
        let error = checked(&text).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let told = error.to_string();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(told.matches("there is no tool").count(), 1, "{told}");
        for (place, key, what) in [
            (
                "agentd.toml:3: ",
                "models.gone.model",
                "cannot read /nowhere/s.toml",
            ),
            ("agentd.toml:6: ", "models.bad.model", "TOML parse error"),
            (
                "agentd.toml:7: ",
                "hooks.run[0]",
                "hook a: /etc/passwd is not executable",
            ),
            (
                "agentd.toml:12: ",
                "mcp.servers.s.command",
                "cannot read /nowhere/server",
            ),
            (
                "agentd.toml:14: ",
                "agents.directory",
                "cannot read /nowhere/agents",
            ),
            (
                "agentd.toml:16: ",
                "http.tls.cert",
                "cannot read /nowhere/cert.pem",
            ),
            ("agentd.toml:17: ", "http.tls.key", "cannot read /nowhere/key.pem"),
            ("agentd.toml:19: ", "tools.more", "there is no tool \"Foo\""),
        ] {
            let line = lines.iter().find(|line| line.contains(key)).unwrap();
            assert!(
                line.contains(place) && line.contains(what),
                "{place}{what}: {told}"
            );
        }
    }
}
