//! Asks for blocks before it is known which plan the start has.
//!
//! Until a plan is found the launcher looks the program up: directories, links, inodes, each a read that only the one
//! before makes known. On a disk with heads that takes 70 ms of a start of 600. A plan that was learnt of a program called
//! by the same word has these blocks among its first steps, so they are asked for at once, in one go. Which plan the start
//! follows is found out as ever; what was asked for in vain is at most [`MOST`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cold_plan::format::View;
use cold_plan::plan::{FileKind, Op};
use cold_plan::store::Store;
use cold_sys::open::is_known;
use cold_sys::readahead::read_ahead;
use cold_sys::search;

use crate::files::Files;
use crate::load::{self, Loaded};
use crate::options::{Options, Source};
use crate::{prepare, record};

/// The most bytes asked for. A program's plan begins with 0.5 to 3 MiB of blocks (`php` and `python3` on ext4).
const MOST: u64 = 4 << 20;

/// Asks for the first blocks of the plan that was learnt last of a program of this name, where its names are not in memory.
/// Gives that plan, which may be the one that is looked for. Only root may read the blocks; nobody else pays for trying.
pub(crate) fn ask(options: &Options) -> Option<Loaded> {
    let Source::Store { dir, .. } = &options.source else { return None };
    if !cold_sys::caps::is_root() || cold_sys::exec::has_raised_rights() {
        return None;
    }
    let word = options.command.first().filter(|word| is_to_be_read(word))?;
    let stores = load::stores(dir.as_deref());
    let (store, opened) = stores.iter().find_map(|store| Some((store, store.called(word)?)))?;
    let loaded = Loaded::map(&opened.file, opened.len, opened.path).ok()?;
    if let Some(view) = loaded.view().ok().filter(|view| is_wanted(*view, store, options)) {
        ask_for_blocks(view);
    }
    Some(loaded)
}

/// The name of the program has to be read from a disk. Asked first, because in most starts it has not.
fn is_to_be_read(word: &OsStr) -> bool {
    let known = if word.as_bytes().contains(&b'/') {
        is_known(Path::new(word))
    } else {
        let path = std::env::var_os("PATH");
        search::candidates(word, path.as_deref()).find_map(|file| is_known(&file))
    };
    known == Some(false)
}

/// The plan may be followed, and this would be no control start.
fn is_wanted(view: View<'_>, store: &Store, options: &Options) -> bool {
    prepare::usable(view).is_ok()
        && !record::is_control(&store.history_of(&view.key().to_key()), view, options.control_every)
}

/// The blocks of file systems that come before the first page of a file.
fn ask_for_blocks(view: View<'_>) {
    let Ok((places, _)) = prepare::places(view) else { return };
    let files = Files::new(view, &places, 8);
    let is_block = |file| view.file(file).is_some_and(|f| f.kind() == FileKind::BlockDevice);
    let mut left = MOST;
    for step in view.steps().take_while(|s| s.op != Op::Read || is_block(s.file)).filter(|s| s.op == Op::Read)
    {
        let bytes = u64::from(step.bytes);
        let Some(file) = files.get(step.file).filter(|_| bytes <= left) else { return };
        left -= bytes;
        // What cannot be asked for is read when it is looked up.
        if read_ahead(&file, step.offset, bytes).is_err() {
            return;
        }
    }
}
