//! Where the launcher lies, and how it is called.

use std::path::PathBuf;

use super::plans::Place;
use crate::exit::Failure;

/// Name of the static program.
const NAME: &str = "cold-launch";

/// The launcher beside this program, else the one in PATH.
pub(crate) fn find() -> Result<PathBuf, Failure> {
    let beside = std::env::current_exe().ok().and_then(|me| Some(me.parent()?.join(NAME)));
    if let Some(path) = beside.filter(|p| p.is_file()) {
        return Ok(path);
    }
    cold_bench::command::from_argv(vec![NAME.into()]).map(|(path, _)| path).map_err(|_| {
        Failure::from(anyhow::anyhow!("{NAME} is neither beside cold nor in PATH"))
            .hint("`make install` puts it beside cold; in a source tree `cargo build -p cold-launch`")
    })
}

/// How something else calls it so that it finds the plans of this place; flags and `--` are to follow.
pub(super) fn line(place: &Place) -> Result<Vec<String>, Failure> {
    let mut words = vec![find()?.to_string_lossy().into_owned()];
    if let Some(dir) = place.named()? {
        words.extend(["--store".to_owned(), dir.to_string_lossy().into_owned()]);
    }
    Ok(words)
}
