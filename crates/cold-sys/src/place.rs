//! Where `cold` keeps what outlives a run.

use std::ffi::OsString;
use std::path::PathBuf;

/// Root's directory, and that of plans for all users.
pub const SYSTEM_STATE: &str = "/var/lib/coldstart";

/// [`SYSTEM_STATE`] for root, else `$XDG_STATE_HOME/coldstart` (`~/.local/state/coldstart`); `None` for
/// a user of whom neither variable tells a directory. `variable` reads the environment.
///
/// Decided by the effective user: under `sudo` with the user's HOME, root's files must not lie where
/// the user can write.
pub fn state_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from(SYSTEM_STATE));
    }
    user_state_directory(variable)
}

fn user_state_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The XDG specification: a relative path is invalid and must be ignored.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("coldstart"))
}

#[cfg(test)]
mod tests {
    use super::user_state_directory;

    #[test]
    fn a_users_state_lies_where_xdg_says() {
        let with = |state: &'static str, home: &'static str| {
            let variable = move |name: &str| match name {
                "XDG_STATE_HOME" => Some(state.into()),
                "HOME" => Some(home.into()),
                _ => None,
            };
            user_state_directory(variable).map(|p| p.display().to_string())
        };
        assert_eq!(with("/s", "/home/u").as_deref(), Some("/s/coldstart"));
        assert_eq!(with("relative", "/home/u").as_deref(), Some("/home/u/.local/state/coldstart"));
        assert_eq!(with("", ""), None);
        assert_eq!(user_state_directory(|_| None), None);
    }
}
