//! A plan that is damaged, stale or made to harm: the program starts all the same.

use std::os::unix::fs::PermissionsExt;

use cold_plan::plan::{FileKind, Gate, Identity, Op};

use cold_testbed::attempts;

use crate::world::{
    MIB, WAITS, add, add_lookup, add_whole, cached, calm, came, directory, evict, file, followed, gone,
    launch, launcher, plan, put, save, text,
};

/// The program ran, and at most one line was said about the plan.
fn started(out: &std::process::Output) -> String {
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(7), "ran\n".to_owned()), "{out:?}");
    let said = text(&out.stderr);
    assert!(said.lines().count() <= 1, "{said}");
    said
}

const PROGRAM: [&str; 3] = ["sh", "-c", "echo ran; exit 7"];

/// Numbers without order, the same ones each time (xorshift).
fn noise() -> impl FnMut() -> usize {
    let mut state = 88_172_645_463_325_252_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    }
}

#[test]
fn random_bytes_and_missing_plans() {
    let dir = directory();
    let at = dir.path().join("plan");
    let mut noise = noise();
    let bytes: Vec<u8> = (0..1_000_000).map(|_| noise() as u8).collect();
    put(&at, &bytes);
    assert!(started(&launch(&at, &[], &PROGRAM)).contains("cannot be used"));
    // The same behind a true beginning: every byte of a true plan wrong once in a while.
    let mut p = plan();
    add(&mut p, &at, Identity::default(), &[(0, 4096); 50], false);
    let good = cold_plan::format::encode(&p).expect("a plan");
    for i in (0..good.len()).step_by(good.len() / 40 + 1) {
        let mut bad = good.clone();
        if let Some(b) = bad.get_mut(i) {
            *b ^= 1 << (i % 8);
        }
        put(&at, &bad);
        started(&launch(&at, &[], &PROGRAM));
        put(&at, good.get(..i).unwrap_or_default());
        started(&launch(&at, &[], &PROGRAM));
    }
    assert!(started(&launch(&dir.path().join("none"), &[], &PROGRAM)).contains("no such file"));
    assert!(started(&launch(dir.path(), &[], &PROGRAM)).contains("directory"));
    gone(dir.path());
}

/// Bytes changed anywhere behind checksums that fit, so that many of them are plans, of whatever they say.
#[test]
fn plans_of_a_fuzzer() {
    let dir = directory();
    let (at, data) = (dir.path().join("plan"), file(&dir.path().join("data"), MIB));
    let mut p = plan();
    p.knobs.gate = Gate::Arrived;
    for (op, kind, path) in [
        (Op::Open, FileKind::Regular, data.as_path()),
        (Op::List, FileKind::Directory, dir.path()),
        (Op::Stat, FileKind::Name, &at),
    ] {
        add_lookup(&mut p, op, kind, path);
    }
    add_whole(&mut p, &data, true);
    add_whole(&mut p, &data, false);
    let good = cold_plan::format::encode(&p).expect("a plan");
    let (mut noise, mut followed) = (noise(), 0);
    for _ in 0..300 {
        let mut bytes = good.clone();
        for _ in 0..=noise() % 4 {
            let place = noise() % bytes.len();
            if let Some(b) = bytes.get_mut(place) {
                *b = noise() as u8;
            }
        }
        cold_plan::format::seal(&mut bytes);
        put(&at, &bytes);
        evict(&data);
        let out = launch(&at, &["--verbose", "--deadline", "1000"], &PROGRAM);
        // What strangers' need for memory keeps back was a plan, too.
        followed += usize::from(started(&out).contains("are read ahead") || calm(&out).is_err());
    }
    gone(dir.path());
    assert!(followed > 20, "{followed} were followed");
}

#[test]
fn a_plan_that_others_may_write_is_refused() {
    let dir = directory();
    let at = dir.path().join("plan");
    save(&plan(), &at);
    std::fs::set_permissions(&at, PermissionsExt::from_mode(0o666)).expect("changed");
    assert!(started(&launch(&at, &[], &PROGRAM)).contains("may write it"));
}

#[test]
fn files_that_were_deleted_replaced_cut_or_made_something_else() {
    let dir = directory();
    let at = dir.path().join("plan");
    let mut p = plan();
    let make = |name: &str| file(&dir.path().join(name), MIB);
    let (kept, deleted, replaced, cut, fifo, climbing) =
        (make("kept"), make("deleted"), make("replaced"), make("cut"), make("fifo"), make("climbing"));
    for path in [&deleted, &replaced, &cut, &fifo] {
        add_whole(&mut p, path, true);
    }
    // Enough of the plan stays true.
    for _ in 0..8 {
        add_whole(&mut p, &kept, false);
    }
    let meta = std::fs::metadata(&climbing).expect("stat");
    let odd =
        format!("{}/../{}/climbing", dir.path().display(), dir.path().file_name().expect("named").display());
    let accepted = {
        let mut q = p.clone();
        add(&mut q, odd.as_ref(), Identity::of(&meta, [0; 20]), &[(0, MIB as u32)], false);
        cold_plan::format::encode(&q).is_ok().then_some(q)
    };
    save(accepted.as_ref().unwrap_or(&p), &at);
    std::fs::remove_file(&deleted).expect("removed");
    std::fs::remove_file(&replaced).expect("removed");
    file(&replaced, MIB + 5);
    file(&cut, 10);
    std::fs::remove_file(&fifo).expect("removed");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
    assert!(made.success());
    attempts(|| {
        for f in [&kept, &replaced, &climbing] {
            evict(f);
        }
        let out = followed(&mut launcher(&at, &[], &WAITS), dir.path());
        assert_eq!(text(&out.stderr), "", "stale files are no matter for the user");
        assert_eq!(cached(&replaced), 0, "another file is not read");
        assert_eq!(cached(&climbing), 0, "nor a path that climbs");
        came(&kept, 256)
    });
}

#[test]
fn a_plan_more_than_half_of_which_is_stale_is_given_up() {
    let dir = directory();
    let at = dir.path().join("plan");
    let (old, kept) = (file(&dir.path().join("old"), 3 * MIB), file(&dir.path().join("kept"), MIB));
    let mut p = plan();
    add_whole(&mut p, &old, false);
    add_whole(&mut p, &kept, false);
    save(&p, &at);
    file(&old, 3 * MIB + 1);
    evict(&kept);
    followed(&mut launcher(&at, &[], &WAITS), dir.path());
    // What the look at the cache itself touched: two places at most.
    assert!(cached(&kept) <= 2, "{}", cached(&kept));
}

#[test]
fn the_kernels_own_files_and_strange_steps() {
    let dir = directory();
    let at = dir.path().join("plan");
    let mut p = plan();
    let big = Identity { inode: 1, size: 1 << 40, mtime_ns: 0, ..Identity::default() };
    for path in
        ["/proc/kcore", "/proc/self/mem", "/dev/zero", "/dev/tty", "/sys/kernel/debug", "/dev/watchdog"]
    {
        add(&mut p, path.as_ref(), big, &[(0, 4096), (1 << 39, 128 << 10)], true);
    }
    let data = file(&dir.path().join("data"), MIB);
    add_whole(&mut p, &data, false);
    // Steps that do not fit their file's kind.
    for (op, kind) in
        [(Op::List, FileKind::Directory), (Op::Stat, FileKind::Name), (Op::Open, FileKind::Regular)]
    {
        add_lookup(&mut p, op, kind, "/proc/1/root".as_ref());
    }
    save(&p, &at);
    evict(&data);
    started(&launch(&at, &[], &PROGRAM));
    gone(dir.path());
}
