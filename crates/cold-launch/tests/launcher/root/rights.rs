//! What a launcher may do by whose rights.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::world::{LAUNCHER, MIB, add_whole, cached, evict, file, plan, save, text};

const NOBODY: u32 = 65534;

/// A directory in which everybody may start what root put there.
fn open_directory() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("cold-launch-").tempdir_in("/var/tmp").expect("a directory");
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("readable");
    dir
}

fn allows_set_uid(dir: &Path) -> bool {
    let flags = rustix::fs::statvfs(dir).expect("statvfs").f_flag;
    !flags.contains(rustix::fs::StatVfsMountFlags::NOSUID)
}

#[test]
fn a_set_user_id_launcher_follows_no_plan_that_its_starter_chose() {
    let dir = open_directory();
    if !cold_testbed::need_root()
        || !cold_testbed::need(allows_set_uid(dir.path()), "set-user-ID in /var/tmp")
    {
        return;
    }
    let program = dir.path().join("cold-launch");
    cold_testbed::executable(&program, std::fs::read(LAUNCHER).expect("read"));
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("set");
    let data = file(&dir.path().join("data"), MIB);
    let mut p = plan();
    add_whole(&mut p, &data, true);
    let command = ["true"].map(std::ffi::OsString::from);
    let here =
        cold_plan::scenario::Command { argv: &command, cwd: "/".as_ref(), path: Some("/bin".as_ref()) };
    p.key = cold_plan::scenario::find(&here, None).expect("a key");
    // The same plan, trusted in every respect, by file, by store and by the environment.
    let store = cold_plan::Store::at(dir.path().join("state/coldstart/plans"));
    std::fs::create_dir_all(store.directory()).expect("made");
    let at = store.path_of(&p.key);
    save(&p, &at);
    let places = [
        vec!["--plan".into(), at.clone().into_os_string()],
        vec!["--store".into(), store.directory().as_os_str().to_owned()],
        vec![],
    ];
    for options in places {
        evict(&data);
        let run = |uid: u32| {
            let mut start = Command::new(&program);
            start.args(&options).args(["--verbose", "--", "true"]).uid(uid).gid(uid).current_dir("/");
            start.env("PATH", "/bin").env("XDG_STATE_HOME", dir.path().join("state"));
            let out = start.output().expect("runs");
            assert!(out.status.success(), "{out:?}");
            text(&out.stderr)
        };
        let said = run(NOBODY);
        assert!(said.contains("set-user-ID"), "{said}");
        assert_eq!(cached(&data), 0, "{options:?}");
        // Root's own start of the same file raises nothing.
        let said = run(0);
        assert!(!said.contains("set-user-ID"), "{said}");
    }
}
