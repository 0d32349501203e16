//! What needs root to be set up: other users, a server that never answers, a control group.

mod early;
mod first;
mod full;
mod harm;
mod metadata;
mod nodes;
mod rights;
mod signals;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cold_plan::plan::{FileKind, Gate, Identity, Op};
use fuser::{
    Config, Errno, FileAttr, FileType, Filesystem, Generation, INodeNo, LockOwner, MountOption, OpenFlags,
    ReplyAttr, ReplyEntry, ReplyOpen, Request, Session,
};

use cold_testbed::attempts;

use crate::world::{
    LAUNCHER, MIB, WAITS, add, add_lookup, add_whole, calm, came, directory, evict, file, followed, gone,
    launch, launcher, plan, save, text,
};

const NOBODY: u32 = 65534;

/// Copies the launcher to where everybody can execute it.
fn for_everybody(dir: &Path) -> PathBuf {
    let copy =
        PathBuf::from("/tmp").join(format!("cold-launch-{}", dir.file_name().expect("named").display()));
    cold_testbed::executable(&copy, std::fs::read(LAUNCHER).expect("read"));
    copy
}

/// A plan of single pages, one after the other, which takes the disk seconds.
fn slow_plan(at: &Path, data: &Path, gate: Gate) {
    let mut p = plan();
    p.knobs.in_flight_bytes = 4096;
    p.knobs.gate = gate;
    let meta = std::fs::metadata(data).expect("stat");
    let pages: Vec<(u64, u32)> = (0..4096).map(|i| (i * 8192, 4096)).collect();
    add(&mut p, data, Identity::of(&meta, [0; 20]), &pages, gate != Gate::None);
    save(&p, at);
}

#[test]
fn root_does_not_follow_a_users_plan() {
    cold_testbed::needs_root!();
    let dir = directory();
    let at = dir.path().join("plan");
    save(&plan(), &at);
    std::os::unix::fs::chown(&at, Some(NOBODY), None).expect("given away");
    let out = launch(&at, &[], &["echo", "ran"]);
    assert_eq!(text(&out.stdout), "ran\n");
    assert!(text(&out.stderr).contains("it belongs to user 65534, not to 0"), "{}", text(&out.stderr));
}

#[test]
fn an_ordinary_user_reads_other_peoples_files_ahead() {
    cold_testbed::needs_root!();
    let dir = tempfile::Builder::new().prefix("cold-launch-").tempdir_in("/var/tmp").expect("a directory");
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("readable");
    let at = dir.path().join("plan");
    let data = file(&dir.path().join("data"), 4 * MIB);
    let mut p = plan();
    add_whole(&mut p, &data, true);
    p.knobs.gate = cold_plan::plan::Gate::Arrived;
    save(&p, &at);
    let program = for_everybody(dir.path());
    let run = || {
        let mut command = Command::new(&program);
        command.arg("--plan").arg(&at).args(["--verbose", "--", "id", "-u"]).uid(NOBODY).gid(NOBODY);
        command.current_dir("/").output().expect("runs")
    };
    attempts(|| {
        evict(&data);
        let out = run();
        assert_eq!(text(&out.stdout), "65534\n");
        let said = calm(&out)?;
        assert!(said.contains("4194304 of 4194304"), "{said}");
        came(&data, 1024)?;
        // Also without being told by cachestat, which answers owners only.
        let warm = text(&run().stderr);
        if !warm.contains("cached already") {
            came(&data, 1024)?;
            panic!("{warm}");
        }
        Ok(())
    });
    std::fs::remove_file(&program).expect("removed");
}

/// A file system that knows its root and one file, and never answers to any name but `ok`, which it opens.
struct Deaf {
    asked: mpsc::Sender<()>,
}

impl Deaf {
    fn attr(ino: INodeNo, kind: FileType) -> FileAttr {
        let epoch = std::time::UNIX_EPOCH;
        FileAttr {
            ino,
            size: MIB,
            blocks: MIB / 512,
            atime: epoch,
            mtime: epoch,
            ctime: epoch,
            crtime: epoch,
            kind,
            perm: 0o755,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Deaf {
    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<fuser::FileHandle>, reply: ReplyAttr) {
        let kind = if ino == INodeNo::ROOT { FileType::Directory } else { FileType::RegularFile };
        reply.attr(&Duration::from_secs(1), &Self::attr(ino, kind));
    }
    fn lookup(&self, _: &Request, _: INodeNo, name: &std::ffi::OsStr, reply: ReplyEntry) {
        if name == "ok" {
            return reply.entry(
                &Duration::from_secs(1),
                &Self::attr(INodeNo(2), FileType::RegularFile),
                Generation(0),
            );
        }
        // Never answered, until the connection ends.
        let _ = self.asked.send(());
        std::mem::forget(reply);
    }
    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let _ = self.asked.send(());
        std::mem::forget(reply);
    }
    fn flush(&self, _: &Request, _: INodeNo, _: fuser::FileHandle, _: LockOwner, reply: fuser::ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }
}

/// Serves a deaf file system at `point` while the value lives.
struct DeafMount {
    session: Option<fuser::BackgroundSession>,
    asked: mpsc::Receiver<()>,
    point: PathBuf,
}

impl DeafMount {
    fn new(point: &Path) -> Self {
        std::fs::create_dir_all(point).expect("made");
        let (sender, asked) = mpsc::channel();
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("deaf".to_owned())];
        let session = Session::new(Deaf { asked: sender }, point, &config).expect("mounted");
        Self { session: Some(session.spawn().expect("served")), asked, point: point.to_owned() }
    }
}

impl Drop for DeafMount {
    fn drop(&mut self) {
        // By force, which ends what waits for an answer.
        let _ = Command::new("umount").arg("-f").arg("-l").arg(&self.point).status();
        drop(self.session.take());
    }
}

/// A directory with such a mount in it.
fn beside_deaf() -> Option<(tempfile::TempDir, DeafMount)> {
    let can = cold_testbed::need_root() && cold_testbed::need(Path::new("/dev/fuse").exists(), "/dev/fuse");
    can.then(|| {
        let dir = directory();
        let mount = DeafMount::new(&dir.path().join("mnt"));
        (dir, mount)
    })
}

#[test]
fn a_server_that_never_answers_is_not_asked() {
    let Some((dir, mount)) = beside_deaf() else { return };
    let at = dir.path().join("plan");
    let data = file(&dir.path().join("data"), MIB);
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(mount.point.join("hangs"), &link).expect("linked");
    let mut p = plan();
    let any = Identity { inode: 2, size: MIB, ..Identity::default() };
    add(&mut p, &mount.point.join("ok"), any, &[(0, 4096)], true);
    // Also by a link that looks as if it lay elsewhere.
    add(&mut p, &link, any, &[(0, 4096)], true);
    for (op, kind, path) in [
        (Op::Stat, FileKind::Name, &mount.point.join("hangs")),
        (Op::List, FileKind::Directory, &mount.point.join("hangs")),
        (Op::Stat, FileKind::Name, &link.join("below")),
    ] {
        add_lookup(&mut p, op, kind, path);
    }
    for _ in 0..4 {
        add_whole(&mut p, &data, false);
    }
    save(&p, &at);
    attempts(|| {
        evict(&data);
        let out = followed(&mut launcher(&at, &[], &WAITS), dir.path());
        assert_eq!(text(&out.stderr), "");
        assert!(mount.asked.try_recv().is_err(), "the server was asked");
        came(&data, 256)
    });
}

#[test]
fn a_program_on_a_server_that_stops_answering_starts_in_time() {
    let Some((dir, mount)) = beside_deaf() else { return };
    let at = dir.path().join("plan");
    let data = file(&dir.path().join("data"), MIB);
    let mut p = plan();
    // The plan says that the program itself lies there, so the server is asked.
    p.key.executable = mount.point.join("ok");
    add_whole(&mut p, &data, true);
    add_whole(&mut p, &data, true);
    add_lookup(&mut p, Op::Stat, FileKind::Name, &mount.point.join("hangs"));
    save(&p, &at);
    attempts(|| {
        evict(&data);
        let began = Instant::now();
        let out = launch(&at, &["--verbose", "--deadline", "30000"], &["echo", "ran"]);
        assert_eq!(text(&out.stdout), "ran\n");
        assert!(began.elapsed() < Duration::from_secs(20), "it waited for the deadline");
        let said = calm(&out)?;
        assert!(said.contains("2097152 of 2097152 bytes"), "{said}");
        Ok(())
    });
    assert!(mount.asked.recv_timeout(Duration::from_secs(20)).is_ok(), "the server was never asked");
    // The helper that hangs goes when the mount goes.
    drop(mount);
    gone(dir.path());
}
