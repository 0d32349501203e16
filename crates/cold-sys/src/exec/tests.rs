use std::path::Path;

use super::*;

/// The words behind the place that may be overwritten.
fn words(command: Command) -> Vec<Vec<u8>> {
    // SAFETY: an array of C strings that ends with a null, made by the caller.
    unsafe {
        let mut at = command.slots.add(1);
        let mut words = Vec::new();
        while !(*at).is_null() {
            words.push(CStr::from_ptr(*at).to_bytes().to_vec());
            at = at.add(1);
        }
        words
    }
}

fn command(words: &[&str]) -> Option<Command> {
    Command::of(&words.iter().map(OsString::from).collect::<Vec<_>>())
}

#[test]
fn a_command_has_a_word_and_no_zero_byte() {
    assert_eq!(words(command(&["a", "", "b c"]).expect("a command")), [&b"a"[..], b"", b"b c"]);
    assert!(command(&[]).is_none());
    assert!(command(&["a", "b\0c"]).is_none());
}

#[test]
fn a_command_begins_behind_the_programs_name_and_ends_with_the_words() {
    let main = command(&["cold-launch", "--", "ls", "-l"]).expect("a command");
    // SAFETY: four words and a null, as of `main`.
    let main = unsafe { Words::of_main(4, main.slots.add(1)) };
    assert_eq!(main.arguments().collect::<Vec<_>>(), ["--", "ls", "-l"]);
    assert_eq!(
        (main.get(0), main.get(3), main.get(4)),
        (Some(OsStr::new("cold-launch")), Some(OsStr::new("-l")), None)
    );
    assert_eq!(words(main.command(2).expect("behind the dashes")), [b"ls", b"-l"]);
    assert_eq!(words(main.command(3).expect("the last")), [b"-l"]);
    assert!(main.command(0).is_none() && main.command(4).is_none());
    // SAFETY: no word is looked at.
    let none = unsafe { Words::of_main(-1, std::ptr::null_mut()) };
    assert!(none.get(0).is_none() && none.arguments().next().is_none() && none.command(1).is_none());
}

#[test]
fn parts_fit_to_the_last_byte_or_not_at_all() {
    let mut buffer = [b'x'; 6];
    let joined = join(&mut buffer, &[b"ab", b"/", b"cd", b"\0"]).expect("fits");
    // SAFETY: it ends with the zero byte.
    assert_eq!(unsafe { CStr::from_ptr(joined) }.to_bytes(), b"ab/cd");
    assert!(join(&mut [0; 5], &[b"ab", b"/", b"cd", b"\0"]).is_none());
}

/// What a copy of this process in `dir`, with this PATH, comes to by `replace`: the status that the program ends with,
/// or the reason why there is none. The second is what the C library's own call comes to.
fn becomes(dir: &Path, path: Option<&str>, words: &[&str]) -> (c_int, c_int) {
    let command = command(words).expect("a command");
    let dir = CString::new(dir.as_os_str().as_bytes()).expect("a path");
    let path = path.map(|path| CString::new(path).expect("a value"));
    let of = |own: bool| {
        // SAFETY: the copy calls the functions below, none of which needs another thread, and ends.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: C strings that live as long as the copy; its environment is its own.
            unsafe {
                libc::chdir(dir.as_ptr());
                match &path {
                    Some(path) => libc::setenv(c"PATH".as_ptr(), path.as_ptr(), 1),
                    None => libc::unsetenv(c"PATH".as_ptr()),
                };
                let reason = if own {
                    command.replace()
                } else {
                    let first = command.slots.add(1);
                    libc::execvp(*first, first);
                    crate::error::errno()
                };
                libc::_exit(reason);
            }
        }
        let mut status = 0;
        // SAFETY: a child of this test, and a place to write to.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        libc::WEXITSTATUS(status)
    };
    (of(true), of(false))
}

#[test]
fn a_program_is_found_and_refused_as_by_the_c_library() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path();
    // By another process: while one that a test beside this forks holds it for writing it is not executed.
    let put = |rel: &str, text: &str, mode: &str| {
        let from = dir.join("text");
        std::fs::write(&from, text).expect("written");
        let mut install = std::process::Command::new("install");
        let status = install.args(["-D", "-m", mode]).args([from, dir.join(rel)]).status();
        assert!(status.expect("runs").success(), "{rel}");
    };
    put("plain/it", "exit 1\n", "644");
    put("right/it", "exit $(($# + 200))\n", "755");
    put("later/it", "exit 3\n", "755");
    put("here", "exit 4\n", "755");
    put("broken/it", "#!/no/such/interpreter\n", "755");
    put("directory/it/x", "", "644");
    let it: &[&str] = &["it", "a", "b"];
    let long = "n".repeat(250);
    let deep = format!("{}:right", "d/".repeat(2100));
    let cases: [(Option<&str>, &[&str], c_int); 15] = [
        (Some("right:later"), it, 202),
        (Some("none:plain:right"), it, 202),
        (Some("plain:none"), it, libc::EACCES),
        (Some("none:here"), it, libc::ENOTDIR),
        (Some("broken:right"), it, 202),
        (Some("directory:right"), it, 202),
        (Some(&deep), it, 202),
        (Some("none::right"), &["here"], 4),
        (Some(""), &["here"], 4),
        (Some("right"), &["here"], libc::ENOENT),
        (Some("right"), &[&long], libc::ENOENT),
        (Some("right"), &[""], libc::ENOENT),
        (Some("right"), &["./plain/it"], libc::EACCES),
        (Some("right"), &["right/it", "a", "b", "c"], 203),
        (None, &["sh", "-c", "exit 9"], 9),
    ];
    for (path, words, expected) in cases {
        let shown = path.map(|path| path.chars().take(20).collect::<String>());
        assert_eq!(becomes(dir, path, words), (expected, expected), "{words:?} along {shown:?}");
    }
}
