//! The environment as a value: read once in `main`, passed everywhere else.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// The environment variables and the path of this program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<OsString, OsString>,
    exe: Option<PathBuf>,
}

impl Environment {
    pub(crate) fn new(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        exe: Option<PathBuf>,
    ) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            exe,
        }
    }

    /// A variable as text; an empty one counts as unset.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(&OsString::from(name))
            .and_then(|value| value.to_str())
            .filter(|value| !value.is_empty())
    }

    /// A variable as a path; an empty one counts as unset.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.variables
            .get(&OsString::from(name))
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    }

    /// All variables that are valid UTF-8.
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        self.variables
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
            .collect()
    }

    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    pub(crate) fn config_home(&self) -> Option<PathBuf> {
        self.path("XDG_CONFIG_HOME")
            .or_else(|| Some(self.path("HOME")?.join(".config")))
    }

    /// The daemon's data directory: `$XDG_DATA_HOME/agentd`, else `~/.local/share/agentd`.
    pub(crate) fn data_dir(&self) -> Option<PathBuf> {
        self.path("XDG_DATA_HOME")
            .or_else(|| Some(self.path("HOME")?.join(".local").join("share")))
            .map(|base| base.join("agentd"))
    }

    /// The default socket of this user's daemon.
    pub(crate) fn default_socket(&self) -> Option<PathBuf> {
        match self.path("XDG_RUNTIME_DIR") {
            Some(runtime) => Some(runtime.join("agentd").join("agentd.sock")),
            None => Some(self.data_dir()?.join("agentd.sock")),
        }
    }

    /// The first executable file of this name: next to this program, then along PATH.
    pub(crate) fn find_program(&self, name: &str) -> Option<PathBuf> {
        let beside = self.exe.as_ref().and_then(|exe| Some(exe.parent()?.join(name)));
        beside
            .into_iter()
            .chain(self.on_path(name))
            .find(|path| is_program(path))
    }

    /// The first executable file of this name along PATH.
    pub(crate) fn find_on_path(&self, name: &str) -> Option<PathBuf> {
        self.on_path(name).into_iter().find(|path| is_program(path))
    }

    fn on_path(&self, name: &str) -> Vec<PathBuf> {
        let path = self.variables.get(&OsString::from("PATH"));
        path.map(|path| std::env::split_paths(path).map(|dir| dir.join(name)).collect())
            .unwrap_or_default()
    }
}

fn is_program(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Environment {
        Environment::new(
            variables.iter().map(|(name, value)| (name.into(), value.into())),
            None,
        )
    }

    #[test]
    fn the_default_socket_is_in_the_runtime_directory_else_in_the_data_directory() {
        let runtime = with(&[("XDG_RUNTIME_DIR", "/run/user/1"), ("HOME", "/home/ana")]);
        assert_eq!(
            runtime.default_socket(),
            Some("/run/user/1/agentd/agentd.sock".into())
        );
        let data = with(&[
            ("XDG_DATA_HOME", "/data"),
            ("HOME", "/home/ana"),
            ("XDG_RUNTIME_DIR", ""),
        ]);
        assert_eq!(data.default_socket(), Some("/data/agentd/agentd.sock".into()));
        let home = with(&[("HOME", "/home/ana")]);
        assert_eq!(
            home.default_socket(),
            Some("/home/ana/.local/share/agentd/agentd.sock".into())
        );
        assert_eq!(with(&[]).default_socket(), None);
    }

    #[test]
    fn programs_next_to_this_one_are_found_first() {
        let (beside, path) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let put = |dir: &std::path::Path| {
            use std::os::unix::fs::PermissionsExt as _;
            let file = dir.join("agentd");
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let on_path = put(path.path());
        let variables = [("PATH".into(), path.path().as_os_str().to_owned())];
        let environment = Environment::new(variables, Some(beside.path().join("agentctl")));
        assert_eq!(environment.find_program("agentd"), Some(on_path));
        let near = put(beside.path());
        assert_eq!(environment.find_program("agentd"), Some(near));
        assert_eq!(environment.find_program("nothing"), None);
    }
}
