//! What a launcher may do by whose rights.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use cold_model::Bytes;
use cold_plan::plan::{FileKind, Identity, Op, PlanFile, Step};
use cold_testbed::SlowDisk;
use cold_testbed::disk::{self, Preset};

use crate::world::{LAUNCHER, MIB, add_whole, cached, evict, file, gone, launch, plan, save, text};

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
    std::fs::copy(LAUNCHER, &program).expect("copied");
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
        assert!(evict(&data), "nobody else knows the file");
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

#[test]
fn metadata_is_read_from_the_device_by_root_and_by_nobody_else() {
    const FIRST: u64 = 200 * MIB;
    if !cold_testbed::need_root() {
        return;
    }
    let slow = SlowDisk::create(Preset::Fast, Bytes(320 << 20)).expect("a test disk");
    let dir = open_directory();
    let at = dir.path().join("plan");
    let program = dir.path().join("cold-launch");
    std::fs::copy(LAUNCHER, &program).expect("copied");
    let write = |shift: u64, owner: u32| {
        let mut p = plan();
        let path = slow.info().device.clone();
        let identity = Identity::default();
        p.files.push(PlanFile { path, kind: FileKind::BlockDevice, identity, need_ns: 0, uses: 1 });
        let read = |i: u64| FIRST + shift + i * MIB;
        let step =
            |i| Step { op: Op::Read, critical: true, file: 0, offset: read(i), bytes: 4096, need_ns: 0 };
        p.steps.extend((0..16).map(step));
        save(&p, &at);
        std::os::unix::fs::chown(&at, Some(owner), None).expect("given");
        (0..16).map(read).collect::<Vec<u64>>()
    };
    let asked = |wanted: &[u64]| {
        let reads = slow.log().expect("a log").into_iter().filter(|q| q.op == disk::Op::Read);
        let mut places: Vec<u64> = reads.map(|q| q.offset).filter(|o| wanted.contains(o)).collect();
        places.sort_unstable();
        places
    };
    let wanted = write(0, 0);
    let out = launch(&at, &[], &["sleep", "0.5"]);
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(0), String::new()));
    gone(dir.path());
    assert_eq!(asked(&wanted), wanted);
    let wanted = write(512 << 10, NOBODY);
    let mut user = Command::new(&program);
    user.arg("--plan").arg(&at).args(["--", "sleep", "0.5"]).uid(NOBODY).gid(NOBODY).current_dir("/");
    let out = user.output().expect("runs");
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(0), String::new()));
    gone(dir.path());
    assert_eq!(asked(&wanted), [0_u64; 0]);
    assert_eq!(std::fs::metadata(&at).expect("stat").uid(), NOBODY);
}
