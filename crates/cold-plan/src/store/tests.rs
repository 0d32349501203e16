use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use super::*;
use crate::history::{Record, Skip, append};
use crate::plan::Standing;
use crate::sample::sample;

const SKIPPED: Record = Record {
    when_ns: 1,
    plan: 1,
    kind: crate::history::LaunchKind::Skipped(Skip::Warm),
    mark: None,
    bytes: 0,
    requests: 0,
    late: false,
};

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path().join("state/plans"));
    (dir, store)
}

fn named(scenario: &str) -> Plan {
    let mut plan = sample();
    plan.key.scenario = scenario.to_owned();
    plan
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

#[test]
fn a_saved_plan_is_found_by_its_key() {
    let (_dir, store) = store();
    let plan = sample();
    assert!(store.load(&plan.key).unwrap().is_none());
    assert!(store.list().unwrap().plans.is_empty());
    assert!(!store.remove(&plan.key).unwrap());
    let path = store.save(&plan).unwrap();
    assert_eq!(path, store.path_of(&plan.key));
    let name = path.file_name().unwrap().to_str().unwrap();
    assert_eq!(name, format!("python3.11-{:016x}.plan", key_hash(&plan.key)));
    assert_eq!((mode(&path), mode(store.directory())), (0o600, 0o700));
    assert_eq!(store.load(&plan.key).unwrap().as_ref(), Some(&plan));
    let opened = store.open(&plan.key).unwrap().unwrap();
    assert_eq!((opened.path, opened.len), (path.clone(), path.metadata().unwrap().len()));
    // Another save takes its place, whole.
    let proven = Plan { standing: Standing::Proven, ..plan.clone() };
    store.save(&proven).unwrap();
    assert_eq!(store.load(&plan.key).unwrap(), Some(proven));
    assert!(store.load(&named("other").key).unwrap().is_none());
    append(&store.history_of(&plan.key), &SKIPPED).unwrap();
    store.save_replay(&plan.key, &Replay { at: 1, steps: 2, document: "{}" }).unwrap();
    assert!(store.remove(&plan.key).unwrap());
    assert_eq!(names(&store), ["lock"]);
}

#[test]
fn names_of_files_are_plain_and_short() {
    let store = Store::at("/x");
    let mut key = sample().key;
    key.executable = format!("/opt/ü {}", "a".repeat(300)).into();
    let name = store.path_of(&key).file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(name, format!("___{}-{:016x}.plan", "a".repeat(61), key_hash(&key)));
}

#[test]
fn what_others_could_have_written_is_refused() {
    let (_dir, store) = store();
    let plan = sample();
    let path = store.save(&plan).unwrap();
    let refused = |why: &str| {
        let error = store.load(&plan.key).unwrap_err().to_string();
        assert!(error.contains(why), "{error} is not about {why}");
        let listing = store.list().unwrap();
        assert_eq!((listing.plans.len(), listing.refused.len()), (0, 1));
    };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o620)).unwrap();
    refused("others may write it (mode 620)");
    let other = path.with_file_name("target");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::rename(&path, &other).unwrap();
    symlink(&other, &path).unwrap();
    refused("cannot open");
    std::fs::remove_file(&path).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, 0o600.into(), 0).unwrap();
    refused("no regular file");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    refused("no regular file");
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
    refused("larger than");
}

#[test]
fn a_damaged_plan_and_a_plan_under_another_name_are_refused_by_name() {
    let (_dir, store) = store();
    let path = store.save(&sample()).unwrap();
    let other = store.path_of(&named("other").key);
    std::fs::copy(&path, &other).unwrap();
    assert!(matches!(store.load(&named("other").key), Err(Error::OtherKey { path }) if path == other));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[300] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = store.load(&sample().key).unwrap_err().to_string();
    assert!(error.contains(path.to_str().unwrap()) && error.contains("checksum"), "{error}");
    let listing = store.list().unwrap();
    assert_eq!(listing.refused.len(), 2);
    // Nobody knows whose they are.
    assert!(!store.remove(&sample().key).unwrap());
    assert!(store.prune(Keep { max_age: None, max_bytes: Some(0) }, SystemTime::now()).unwrap().is_empty());
    assert!(path.exists() && other.exists());
}

#[test]
fn a_directory_that_others_write_is_not_written() {
    let (_dir, store) = store();
    std::fs::create_dir_all(store.directory()).unwrap();
    std::fs::set_permissions(store.directory(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(store.save(&sample()).unwrap_err().to_string().contains("not trusted"));
}

#[test]
fn learners_wait_for_each_other() {
    let (_dir, store) = store();
    let plan = sample();
    store.save(&plan).unwrap();
    let learn = || {
        for _ in 0..20 {
            let locked = store.lock().unwrap();
            let mut plan = store.load(&plan.key).unwrap().unwrap();
            plan.learnt.starts += 1;
            locked.save(&plan).unwrap();
        }
    };
    std::thread::scope(|s| (0..4).for_each(|_| drop(s.spawn(learn))));
    assert_eq!(store.load(&plan.key).unwrap().unwrap().learnt.starts, plan.learnt.starts + 80);
}

#[test]
fn a_plan_that_cannot_be_bytes_leaves_the_old_one() {
    let (_dir, store) = store();
    let plan = sample();
    store.save(&plan).unwrap();
    let bad = Plan { steps: plan.steps.iter().rev().copied().collect(), ..plan.clone() };
    assert!(matches!(store.save(&bad), Err(Error::Format { .. })));
    assert_eq!(store.load(&plan.key).unwrap(), Some(plan));
}

/// Sets when a file was last changed, seconds before `now`.
fn aged(path: &Path, now: SystemTime, seconds: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(now - Duration::from_secs(seconds)).unwrap();
}

#[test]
fn pruning_keeps_what_was_used_last() {
    let (_dir, store) = store();
    let now = SystemTime::now();
    let (old, used, new) = (named("old"), named("used"), named("new"));
    for (plan, age) in [(&old, 900), (&used, 900), (&new, 5)] {
        aged(&store.save(plan).unwrap(), now, age);
    }
    // A history counts as use, and one without plan (of a plan of the system) is pruned like a plan.
    append(&store.history_of(&used.key), &SKIPPED).unwrap();
    let lone = store.history_of(&named("system").key);
    append(&lone, &SKIPPED).unwrap();
    aged(&lone, now, 800);
    std::fs::write(store.directory().join("notes.log"), "not the store's").unwrap();
    assert!(store.prune(Keep::default(), now).unwrap().is_empty());
    let keep = Keep { max_age: Some(Duration::from_mins(10)), max_bytes: None };
    let mut expected = vec![store.path_of(&old.key), lone];
    expected.sort();
    assert_eq!(store.prune(keep, now).unwrap(), expected);
    assert_eq!(store.list().unwrap().plans.len(), 2);
    // Room for one of two: the one that was used last stays.
    let bytes = store.path_of(&new.key).metadata().unwrap().len() + 100;
    let keep = Keep { max_age: None, max_bytes: Some(bytes) };
    assert_eq!(store.prune(keep, now).unwrap(), [store.path_of(&new.key)]);
    assert!(store.history_of(&used.key).exists() && store.path_of(&used.key).exists());
    let none = Keep { max_age: None, max_bytes: Some(0) };
    assert_eq!(store.prune(none, now).unwrap().len(), 1);
    assert_eq!(names(&store), ["lock", "notes.log"]);
}

fn names(store: &Store) -> Vec<String> {
    let entries = std::fs::read_dir(store.directory()).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_directory_with_other_things_is_no_store_unless_it_was_one_before() {
    let (_dir, store) = store();
    std::fs::create_dir_all(store.directory()).unwrap();
    let note = store.directory().join("notes.txt");
    std::fs::write(&note, "mine").unwrap();
    let refused = || {
        let error = store.save(&sample()).unwrap_err();
        assert!(
            matches!(&error, Error::NoStore { holds, .. } if ["notes.txt", "lock"].contains(&holds.as_str())),
            "{error}"
        );
        assert!(matches!(store.recognise(), Err(Error::NoStore { .. })));
        assert!(matches!(store.prune(Keep::default(), SystemTime::now()), Err(Error::NoStore { .. })));
        assert!(matches!(store.remove(&sample().key), Err(Error::NoStore { .. })));
    };
    refused();
    assert_eq!(names(&store), ["notes.txt"]);
    // Other programs have locks, too; and an empty one says nothing.
    for other in ["4711\n", "", "coldstart plans\nand more"] {
        std::fs::write(store.directory().join("lock"), other).unwrap();
        refused();
        assert_eq!(std::fs::read_to_string(store.directory().join("lock")).unwrap(), other);
    }
    // A store of an earlier version, with what its killed processes left.
    std::fs::write(store.directory().join("lock"), "").unwrap();
    std::fs::rename(&note, store.directory().join(".tmp-17")).unwrap();
    store.save(&sample()).unwrap();
    std::fs::write(&note, "mine").unwrap();
    store.save(&named("other")).unwrap();
    assert_eq!(store.list().unwrap().plans.len(), 2);
}

/// Whoever finds the lock that another is just making finds a store, not another program's file.
#[test]
fn a_store_that_several_make_at_once_is_one_for_all() {
    for _ in 0..500 {
        let (_dir, store) = store();
        std::fs::create_dir_all(store.directory()).unwrap();
        let begin = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    begin.wait();
                    store.lock().map(drop).unwrap();
                });
            }
        });
    }
}

#[test]
fn a_program_is_called_by_links_that_go_with_its_plans() {
    let (_dir, store) = store();
    let called = |word: &str| store.called(word.as_ref()).map(|opened| opened.path);
    let (first, second) = (sample(), named("second"));
    assert_eq!(called("python3"), None);
    let locked = store.lock().unwrap();
    for plan in [&first, &second] {
        locked.save(plan).unwrap();
        locked.call(&plan.key, "python3".as_ref()).unwrap();
    }
    locked.call(&first.key, "/usr/bin/python3".as_ref()).unwrap();
    assert_eq!(called("python3"), Some(store.path_of(&second.key)), "the last one");
    assert_eq!(called("/usr/bin/python3"), Some(store.path_of(&first.key)));
    // They are a store's own, and count as no plans.
    assert_eq!(store.list().unwrap().plans.len(), 2);
    std::fs::remove_file(store.directory().join("lock")).unwrap();
    store.recognise().unwrap();
    // A file of such a name is somebody's, and a link that leads elsewhere, too.
    let others = [("called-0000000000000001", None), ("called-0000000000000002", Some("/nowhere"))];
    for (name, target) in others {
        let path = store.directory().join(name);
        target.map_or_else(|| std::fs::write(&path, "mine"), |target| symlink(target, &path)).unwrap();
    }
    locked.remove(&second.key).unwrap();
    assert_eq!(called("python3"), None);
    locked.remove(&first.key).unwrap();
    assert_eq!(names(&store), others.map(|(name, _)| name));
}

#[test]
fn a_plan_that_others_changed_meanwhile_is_not_replaced() {
    let (_dir, store) = store();
    let (old, proven) = (sample(), Plan { standing: Standing::Proven, ..sample() });
    assert!(!store.replace(&old, &proven).unwrap());
    store.save(&old).unwrap();
    assert!(store.replace(&old, &proven).unwrap());
    assert!(!store.replace(&old, &old).unwrap());
    assert_eq!(store.load(&old.key).unwrap(), Some(proven));
}

#[test]
fn plans_are_as_readable_as_their_directory() {
    let (_dir, store) = store();
    store.save(&sample()).unwrap();
    std::fs::set_permissions(store.directory(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = store.save(&sample()).unwrap();
    assert_eq!((mode(&path), mode(store.directory())), (0o644, 0o755));
}

#[test]
fn a_user_looks_into_the_own_store_then_into_the_systems() {
    let variable = |name: &str| (name == "HOME").then(|| "/home/u".into());
    let system = Path::new("/var/lib/coldstart/plans");
    let dirs: Vec<_> = Store::lookup(variable).iter().map(|s| s.directory().to_owned()).collect();
    let own = Store::user(variable).unwrap();
    if rustix::process::geteuid().is_root() {
        // Never the user's whose HOME it happens to have.
        assert_eq!((dirs, own.directory()), (vec![system.to_owned()], system));
        assert!(own.is_system());
    } else {
        let user = Path::new("/home/u/.local/state/coldstart/plans");
        assert_eq!((dirs, own.directory()), (vec![user.to_owned(), system.to_owned()], user));
        assert!(matches!(Store::user(|_| None), Err(Error::NoDirectory)));
    }
}

mod root {
    use cold_testbed::needs_root;

    use super::*;

    #[test]
    fn root_does_not_follow_a_users_plan() {
        needs_root!();
        let (_dir, store) = store();
        let path = store.save(&sample()).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        let error = store.load(&sample().key).unwrap_err().to_string();
        assert!(error.contains("it belongs to user 65534, not to 0"), "{error}");
        assert!(store.load(&sample().key).unwrap_err().is_others());
        // So it is nothing to remove either.
        assert!(!store.remove(&sample().key).unwrap() && path.exists());
    }

    #[test]
    fn the_systems_plans_can_be_read_by_all() {
        needs_root!();
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("coldstart");
        std::fs::create_dir(&state).unwrap();
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700)).unwrap();
        let store = Store { dir: state.join("plans"), kind: StoreKind::System };
        let path = store.save(&sample()).unwrap();
        assert_eq!((mode(&state), mode(store.directory()), mode(&path)), (0o755, 0o755, 0o644));
        assert!(store.load(&sample().key).unwrap().is_some());
    }
}

#[test]
fn what_not_everybody_may_know_lies_beside_its_plan_for_its_owner_alone() {
    let (_dir, store) = store();
    let plan = sample();
    store.save(&plan).unwrap();
    assert_eq!(store.private(&plan.key).unwrap(), []);
    // Plans of a directory that everybody may list are everybody's to read.
    std::fs::set_permissions(store.directory(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = store.save(&plan).unwrap();
    let private = part_of(1000);
    store.lock().unwrap().save_private(private.clone()).unwrap();
    let lies = store.private_of(&plan.key);
    assert_eq!((mode(&path), mode(&lies)), (0o644, 0o600));
    assert_eq!(lies, path.with_extension("private"));
    assert_eq!(store.private(&plan.key).unwrap(), [private]);
    assert_eq!(store.load(&plan.key).unwrap(), Some(plan.clone()));
    assert_eq!(store.list().unwrap().plans.len(), 1);
    assert!(store.lock().unwrap().remove(&plan.key).unwrap());
    assert_eq!(names(&store), ["lock"]);
}

/// What starts of this user need beside the sample.
fn part_of(user: u32) -> Private {
    Private { user, plan: Plan { standing: Standing::Untried, ..sample() } }
}

#[test]
fn each_user_has_a_part_of_their_own_and_the_one_who_was_taught_longest_ago_goes() {
    let (_dir, store) = store();
    let key = store.save(&sample()).map(|_| sample().key).unwrap();
    let locked = store.lock().unwrap();
    let users = || store.private(&key).unwrap().iter().map(|part| part.user).collect::<Vec<_>>();
    for user in 0..MOST_USERS as u32 {
        locked.save_private(part_of(user)).unwrap();
    }
    assert_eq!(users(), [7, 6, 5, 4, 3, 2, 1, 0]);
    // Nothing is read for this one: that it was looked for is kept as well.
    let nothing = Plan { files: Vec::new(), ranges: Vec::new(), steps: Vec::new(), ..part_of(0).plan };
    locked.save_private(Private { user: 2, plan: nothing.clone() }).unwrap();
    assert_eq!(users(), [2, 7, 6, 5, 4, 3, 1, 0]);
    assert_eq!(store.private(&key).unwrap()[0].plan, nothing);
    locked.save_private(part_of(u32::MAX)).unwrap();
    assert_eq!(users(), [u32::MAX, 2, 7, 6, 5, 4, 3, 1]);
    // What cannot be read is nobody's to replace.
    let lies = store.private_of(&key);
    std::fs::write(&lies, "private to user 7\n").unwrap();
    assert!(locked.save_private(part_of(7)).is_err());
    assert_eq!(std::fs::read(&lies).unwrap(), b"private to user 7\n");
}

#[test]
fn private_parts_are_known_by_their_first_lines_and_their_plans() {
    let (_dir, store) = store();
    let key = sample().key;
    store.lock().unwrap().save_private(part_of(u32::MAX)).unwrap();
    let lies = store.private_of(&key);
    let other = store.private_of(&named("other").key);
    std::fs::copy(&lies, &other).unwrap();
    assert!(matches!(store.private(&named("other").key), Err(Error::OtherKey { path }) if path == other));
    let plan = crate::format::encode(&part_of(7).plan).unwrap();
    let part =
        |user: &str, length: usize| [format!("private to user {user}:{length}\n").as_bytes(), &plan].concat();
    let good = part("7", plan.len());
    for bad in ["", "-1", "+1", "4294967296", "00000000001"]
        .map(|user| part(user, plan.len()))
        .into_iter()
        .chain([part("7", plan.len() - 1), part("7", plan.len() + 1), Vec::new(), plan.clone()])
        // Of a user who has one, and of another plan.
        .chain([
            [good.clone(), good.clone()].concat(),
            [good.clone(), b"private to user 8:0\n".to_vec()].concat(),
        ])
    {
        std::fs::write(&lies, &bad).unwrap();
        assert!(store.private(&key).is_err(), "{}", String::from_utf8_lossy(&bad));
    }
    std::fs::write(&lies, [good.clone(), part("8", plan.len())].concat()).unwrap();
    assert_eq!(store.private(&key).unwrap(), [part_of(7), part_of(8)]);
    let foreign = crate::format::encode(&named("other")).unwrap();
    let foreign = [format!("private to user 8:{}\n", foreign.len()).into_bytes(), foreign].concat();
    std::fs::write(&lies, [good, foreign].concat()).unwrap();
    let error = store.private(&key).unwrap_err().to_string();
    assert!(error.contains(lies.to_str().unwrap()) && error.contains("another plan"), "{error}");
    // Nobody knows what these are.
    store.prune(Keep { max_age: None, max_bytes: Some(0) }, SystemTime::now()).unwrap();
    assert!(lies.exists() && other.exists());
}
