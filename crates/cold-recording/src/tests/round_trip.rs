//! Any recording that keeps the rules comes back as it was.

use cold_model::Dev;
use cold_model::recording::tables::{
    Began, File, FileKind, Frame, Lookup, LookupKind, PathFrom, Process, Stack, Stall, StallCause, Touch,
    TouchKind,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::*;

/// Extremes are where codecs break.
fn any_u32() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(u32::MAX), any::<u32>(), 0..9u32]
}
fn time() -> impl Strategy<Value = Nanos> {
    prop_oneof![Just(0), Just(i64::MAX as u64), 0..i64::MAX as u64, 0..99u64].prop_map(Nanos)
}
fn any_u64() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>()]
}

prop_compose! {
    fn file()(
        (major, minor, generation) in (any_u32(), any_u32(), any_u32()), inode in any_u64(),
        kind in prop_oneof![Just(FileKind::Regular), Just(FileKind::BlockDevice), Just(FileKind::Memory)],
        path in of(".{0,40}"), deleted in any::<bool>(), file_system in "[a-z0-9]{0,6}",
        size in of(0..=i64::MAX as u64), mtime_ns in of(any::<i64>()), build_id in of("[0-9a-f]{0,40}"),
    ) -> File {
        let path_from = if path.is_some() { PathFrom::Dentry } else { PathFrom::Unknown };
        let dev = Dev { major, minor };
        File { dev, inode, generation, kind, path, path_from, deleted, file_system, size, mtime_ns, build_id }
    }
}
prop_compose! {
    fn process(files: u32)(
        began in time(), how in prop_oneof![Just(Began::Existing), Just(Began::Fork), Just(Began::Exec)],
        pid in any_u32(), parent in any_u32(), name in ".{0,15}", executable in of(0..files),
        arguments in of(vec(".{0,9}", 0..4)), in_tree in any::<bool>(), ended in of(time()),
        status in of(any::<i32>()),
    ) -> Process {
        Process { began, how, pid, parent, name, executable, arguments, in_tree, ended, status }
    }
}
prop_compose! {
    fn touch(files: u32, stacks: u32)(
        at in time(), pid in any_u32(), tid in any_u32(), file in 0..files, first_page in 0..1u64 << 50,
        pages in 1..=u32::MAX, major in of(any::<bool>()), ip in of(any_u64()), stack in of(0..stacks), call in of(time()), end in of(any_u64()),
        kind in prop_oneof![Just(TouchKind::Fault), Just(TouchKind::FaultAround), Just(TouchKind::Read)],
    ) -> Touch {
        Touch { at, pid, tid, file, first_page, pages, kind, major, ip, stack, call, end }
    }
}
prop_compose! {
    fn lookup(files: u32, stacks: u32)(
        at in time(), ended in time(), pid in any_u32(), tid in any_u32(), path in of("(/.{0,9}){0,4}"),
        kind in prop_oneof![Just(LookupKind::Open), Just(LookupKind::List)], result in any::<i64>(),
        flags in any_u32(), file in of(0..files), root in of("(/.{0,9}){0,4}"), stack in of(0..stacks),
    ) -> Lookup {
        Lookup { at, ended, pid, tid, kind, path, result, flags, file, root, stack }
    }
}
prop_compose! {
    fn stall(files: u32, stacks: u32, lookups: u32)(
        began in time(), woken in of(time()), ended in of(time()), (pid, tid) in (any_u32(), any_u32()),
        cause in prop_oneof![Just(StallCause::Fault), Just(StallCause::Lock)], file in of(0..files),
        page in of(0..=i64::MAX as u64), system_call in of(any_u32()), lookup in of(0..lookups),
        stack in of(0..stacks),
    ) -> Stall {
        Stall { began, woken, ended, pid, tid, cause, file, page, system_call, lookup, stack }
    }
}
prop_compose! {
    fn stack(files: u32)(
        frames in vec((any_u64(), of(0..files), any_u64(), any::<bool>()), 0..5), truncated in any::<bool>(),
    ) -> Stack {
        let frames = frames
            .into_iter()
            .map(|(address, file, offset, generated)| Frame { address, file, offset, generated });
        Stack { frames: frames.collect(), truncated }
    }
}

fn recording() -> impl Strategy<Value = Recording> {
    (1..5u32, 1..4u32, 1..6u32).prop_flat_map(|(files, stacks, lookups)| {
        let tables = (
            vec(file(), files as usize),
            vec(stack(files), stacks as usize),
            vec(lookup(files, stacks), lookups as usize),
            vec(process(files), 0..9),
            of(vec(touch(files, stacks), 0..40)),
            of(vec(stall(files, stacks, lookups), 0..9)),
        );
        tables.prop_map(|(files, stacks, mut lookups, mut processes, mut touches, mut stalls)| {
            lookups.sort_by_key(|r| r.at);
            processes.sort_by_key(|r| r.began);
            if let Some(t) = &mut touches {
                t.sort_by_key(|r| r.at);
            }
            if let Some(t) = &mut stalls {
                t.sort_by_key(|r| r.began);
            }
            let manifest = sample::small().manifest;
            let (stacks, lookups) = (Some(stacks), Some(lookups));
            Recording { manifest, processes, files, touches, stalls, lookups, stacks, ..Recording::default() }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_recording_comes_back(recording in recording()) {
        let dir = finished(&recording);
        prop_assert_eq!(read(dir.path()).unwrap(), recording);
    }
}
