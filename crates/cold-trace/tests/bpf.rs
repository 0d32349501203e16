//! The BPF recorder against a program whose touches, reads and calls are known.
#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used, clippy::panic)] // the lints know only functions marked as tests

#[path = "bpf/support.rs"]
mod support;

mod root {
    use std::collections::BTreeSet;
    use std::fs;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::process::{Command, Stdio};

    use cold_model::Bytes;
    use cold_model::recording::manifest::Tier;
    use cold_trace::bpf::{BpfOptions, BpfRecorder, Follow, Stacks};
    use cold_trace::raw::{
        AREA_PROTECTED, BORROWED, Doing, Event, FILE_DELETED, FILE_FULL, FILE_SHMEM, Id, PART_ANON,
        STALL_WOKEN, records,
    };

    use super::support::{
        actor, cold_file, evict, is, maps32, ready, record, record_alone, record_of, scratch,
    };

    const PAGES: [u64; 3] = [0, 7, 300];

    fn text(pages: &[u64]) -> Vec<String> {
        pages.iter().map(u64::to_string).collect()
    }

    /// Everything in one run: touches, fills, requests, stalls, paths, stacks.
    #[test]
    fn touches_of_a_mapping_are_these_pages_and_each_once() {
        if !ready() {
            return;
        }
        let dir = scratch();
        let path = cold_file(dir.path(), "touched", 512);
        let pages = text(&PAGES);
        let args: Vec<_> =
            ["touch", path.to_str().unwrap()].into_iter().chain(pages.iter().map(String::as_str)).collect();
        let seen = record(&BpfOptions::default(), &args);
        assert!(seen.finished.lost.is_empty(), "{:?}", seen.finished.lost);
        let all = seen.of_actor();
        let mut faults = Vec::new();
        let mut fills = BTreeSet::new();
        let mut id = Id::default();
        for record in &all {
            match record.event {
                Event::Fault(pages) if is(pages.file, &path) => {
                    assert_eq!((pages.first, pages.context.doing), (pages.last, Doing::Fault));
                    assert_eq!(pages.address % 4096, 0, "the actor touches first bytes");
                    assert_ne!(pages.ip, 0);
                    id = pages.file;
                    faults.push(pages.first);
                }
                Event::Add(add) if is(add.file, &path) => {
                    assert_eq!(add.context.file, add.file, "filled within the fault on the same file");
                    fills.extend(add.index..add.index + (1 << add.order));
                }
                _ => {}
            }
        }
        assert_eq!(faults, PAGES, "exactly these, retries left out, in order");
        assert!(PAGES.iter().all(|page| fills.contains(page)), "{fills:?}");
        assert!(fills.len() <= 24, "MADV_RANDOM reads no more than the folios of these pages: {fills:?}");
        let (name, state) = seen.path_of(id).unwrap();
        assert_eq!((name.as_str(), state & FILE_FULL), (path.to_str().unwrap(), FILE_FULL));
        assert_eq!(seen.files_of(id)[0].size, 512 * 4096);
    }

    #[test]
    fn parts_of_requests_sum_to_their_bytes_and_every_page_comes_from_one() {
        if !ready() {
            return;
        }
        let dir = scratch();
        let path = cold_file(dir.path(), "read", 1024);
        let seen = record(&BpfOptions::default(), &["read", path.to_str().unwrap()]);
        let mut brought = BTreeSet::new();
        let mut open = BTreeSet::new();
        for record in seen.events() {
            match record.event {
                Event::Request(request) => {
                    let parts: Vec<_> = request.parts().collect();
                    if parts.len() == usize::from(request.bios) {
                        let sum: u32 = parts.iter().map(|part| part.bytes).sum();
                        assert_eq!(sum, request.bytes, "{request:?}");
                    }
                    let mine = parts.iter().filter(|part| is(part.file, &path));
                    for part in mine {
                        assert_eq!(part.state & PART_ANON, 0);
                        assert!(request.started > 0 && request.started <= record.head.at);
                        open.insert(request.rq);
                        brought.extend(part.index..part.index + u64::from(part.bytes / 4096));
                    }
                }
                Event::Done(done) if done.left == 0 => {
                    assert_eq!(done.error, 0);
                    open.remove(&done.rq);
                }
                _ => {}
            }
        }
        assert_eq!(brought, (0..1024).collect(), "each page by some request");
        assert!(open.is_empty(), "completions are missing: {open:?}");
        let got = seen.of_actor().into_iter().filter_map(|record| match record.event {
            Event::Get(pages) if is(pages.file, &path) => Some(pages.first..=pages.last),
            _ => None,
        });
        assert_eq!(got.flatten().collect::<BTreeSet<_>>(), (0..1024).collect(), "all of it was read");
    }

    #[test]
    fn stalls_have_their_order_their_cause_and_a_stack() {
        if !ready() {
            return;
        }
        let dir = scratch();
        let path = cold_file(dir.path(), "waited", 512);
        // Reads are fast enough here to be done before the program sleeps: some try shows a wait.
        for _ in 0..20 {
            evict(&path);
            let options = BpfOptions { stacks: Stacks::Copy, ..BpfOptions::default() };
            let seen = record(&options, &["touch", path.to_str().unwrap(), "3", "200", "400"]);
            let all = seen.of_actor();
            let stalls = all.iter().filter_map(|record| match record.event {
                Event::Stall(stall) if is(stall.context.file, &path) => Some((record.head, stall)),
                _ => None,
            });
            let stalls: Vec<_> = stalls.filter(|(_, s)| s.state & STALL_WOKEN != 0).collect();
            for (head, stall) in &stalls {
                assert!(stall.began < stall.woken && stall.woken < head.at, "{stall:?} at {}", head.at);
                assert!(stall.context.at < stall.began, "{stall:?}");
                assert_eq!(stall.context.doing, Doing::Fault);
                assert!([3, 200, 400].contains(&stall.context.index), "{stall:?}");
                let stack = all.iter().any(|record| {
                    matches!(record.event, Event::Stack(stack) if stack.context == stall.context.at
                        && record.head.tid == head.tid && stack.frames().next() == Some(stall.ip))
                });
                let copy = all.iter().any(|record| {
                    matches!(record.event, Event::StackCopy(copy) if copy.context == stall.context.at
                        && copy.stack.len() >= 1024 && copy.valid >= 17 && copy.registers.contains(&stall.ip))
                });
                assert!(stack && copy, "stack {stack}, copy {copy}");
            }
            if !stalls.is_empty() {
                return;
            }
        }
        panic!("none of 60 cold reads made the program wait");
    }

    #[test]
    fn paths_of_bind_mounts_tmpfs_overlays_and_memfds() {
        if !ready() {
            return;
        }
        let dir = scratch();
        let base = dir.path().canonicalize().unwrap();
        let made = |name: &str| {
            let path = base.join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (real, bound, memory) = (made("real"), made("bound"), made("memory"));
        let (lower, upper, work, merged) = (made("lower"), made("upper"), made("work"), made("merged"));
        cold_file(&real, "file", 1);
        cold_file(&lower, "file", 1);
        let layers =
            format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
        let mounts = [
            (vec!["--bind", real.to_str().unwrap()], &bound),
            (vec!["-t", "tmpfs", "none"], &memory),
            (vec!["-t", "overlay", "none", "-o", &layers], &merged),
        ];
        let undo = Unmount(mounts.iter().map(|(_, at)| (*at).clone()).collect());
        for (how, at) in &mounts {
            let status = Command::new("mount").args(how).arg(at).status().unwrap();
            assert!(status.success(), "mount {how:?} {}", at.display());
        }
        fs::write(memory.join("file"), "x").unwrap();
        for (directory, shmem) in [(&real, 0), (&bound, 0), (&memory, FILE_SHMEM), (&merged, 0)] {
            let path = directory.join("file");
            let seen = record(&BpfOptions::default(), &["paths", path.to_str().unwrap()]);
            let all = seen.of_actor();
            let relative = all.iter().filter_map(|record| match record.event {
                Event::Call(call) if call.path == Some(b"file") => Some((record.head.pid, call)),
                _ => None,
            });
            let relative: Vec<_> = relative.collect();
            assert_eq!(relative.len(), 2, "the program's own open and its child's");
            assert_ne!(relative[0].0, relative[1].0);
            for (_, call) in relative {
                let (name, state) = seen.path_of(call.file).unwrap();
                assert_eq!(name, path.to_str().unwrap());
                assert_eq!(state & (FILE_FULL | FILE_SHMEM | FILE_DELETED), FILE_FULL | shmem);
                assert_eq!(seen.path_of(call.base).unwrap().0, directory.to_str().unwrap());
            }
            if directory == &merged {
                let below = seen.events().any(|record| {
                    matches!(record.event, Event::File(file) if is(file.file, &lower.join("file"))
                        && file.path() == path.to_str().unwrap().as_bytes() && file.shown.known().is_some())
                });
                assert!(below, "the overlay's file stands for the one below it");
            }
            let memfd = seen.events().any(|record| {
                matches!(record.event, Event::File(file) if file.path() == b"/memfd:storm"
                    && file.state & (FILE_SHMEM | FILE_DELETED | FILE_FULL) == FILE_SHMEM | FILE_DELETED)
            });
            assert!(memfd, "a memfd is memory without a name in the tree");
        }
        drop(undo);
    }

    /// Takes the mounts away however the test ends.
    struct Unmount(Vec<std::path::PathBuf>);
    impl Drop for Unmount {
        fn drop(&mut self) {
            for at in &self.0 {
                let _ = Command::new("umount").arg("-l").arg(at).status();
            }
        }
    }

    #[test]
    fn a_deleted_file_keeps_the_name_it_had() {
        if !ready() {
            return;
        }
        let dir = scratch();
        let path = cold_file(dir.path(), "gone", 8);
        let open = fs::File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let link = format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd());
        let seen = record(&BpfOptions::default(), &["touch", &link, "6"]);
        let inode = open.metadata().unwrap().ino();
        let all = seen.of_actor();
        let touched = all.iter().find_map(|record| match record.event {
            Event::Fault(pages) if pages.file.inode == inode && pages.first == 6 => Some(pages.file),
            _ => None,
        });
        let (name, state) = seen.path_of(touched.expect("its page 6 was touched")).unwrap();
        assert_eq!((name.as_str(), state & FILE_DELETED), (path.to_str().unwrap(), FILE_DELETED));
    }

    /// A rename resolves two paths, a symbolic link one, and what is asked by descriptor none.
    #[test]
    fn calls_that_change_directories_have_their_paths() {
        if !ready() {
            return;
        }
        let dir = scratch();
        let seen = record(&BpfOptions::default(), &["changes", dir.path().to_str().unwrap()]);
        assert!(seen.finished.lost.is_empty(), "{:?}", seen.finished.lost);
        let mut paths = Vec::new();
        let inode = fs::metadata(dir.path()).unwrap().ino();
        for record in seen.of_actor() {
            if let Event::Call(call) = record.event
                && let Some(path) = call.path.filter(|path| !path.starts_with(b"/"))
            {
                assert_eq!(call.base.inode, inode, "{:?} is relative to the directory", path.escape_ascii());
                paths.push(String::from_utf8(path.to_vec()).unwrap());
            }
        }
        let expected = [
            "one", "one", "two", "two", "three", "three", "four", "five", "six", "seven", "four", "seven",
            "absent", "nine", "nine",
        ];
        assert_eq!(paths, expected, "of the rename that failed only the old path; no path of fstat");
        assert!(dir.path().join("nine").exists(), "the socket's path was that long");
    }

    #[test]
    fn a_running_process_and_what_it_starts_are_followed() {
        if !ready() {
            return;
        }
        let mut shell = Command::new("sh")
            .args(["-c", "read line; /bin/true; exit 3"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut recorder = BpfRecorder::attach(&BpfOptions::default(), Vec::new()).unwrap();
        recorder.follow(Follow::Running(shell.id())).unwrap();
        shell.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert_eq!(shell.wait().unwrap().code(), Some(3));
        let (_, stream) = recorder.finish().unwrap();
        let mut child = None;
        let mut ended = Vec::new();
        for record in records(&stream).map(Result::unwrap) {
            assert!(
                record.head.pid != shell.id() || record.head.in_tree() || record.head.flags & BORROWED != 0
            );
            match record.event {
                Event::Fork(task) if record.head.pid == shell.id() => child = Some(task.pid),
                Event::Exit(exit) if exit.last => ended.push((record.head.pid, exit.status)),
                _ => {}
            }
        }
        let child = child.expect("sh forks for /bin/true");
        assert_eq!(ended, [(child, 0), (shell.id(), 3 << 8)], "both ends, with their wait status");
    }

    #[test]
    fn programs_that_stay_loaded_know_nothing_of_the_recording_before() {
        if !ready() {
            return;
        }
        let dir = scratch();
        let path = cold_file(dir.path(), "read", 64);
        let shell = || {
            let script = "read line; cat \"$0\"; read line; cat \"$0\"";
            let mut command = Command::new("sh");
            command.args(["-c", script, path.to_str().unwrap()]).stdin(Stdio::piped()).stdout(Stdio::piped());
            command.spawn().unwrap()
        };
        let [mut first, mut second] = [shell(), shell()];
        let mut file = vec![0; 64 * 4096];
        let mut turn = |shell: &mut std::process::Child| {
            shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
            shell.stdout.as_mut().unwrap().read_exact(&mut file).unwrap();
        };
        let options = BpfOptions { count_calls: true, ..BpfOptions::default() };
        let mut recorder = BpfRecorder::attach(&options, Vec::new()).unwrap();
        recorder.follow(Follow::Running(first.id())).unwrap();
        turn(&mut first);
        let (_, stream, loaded) = recorder.finish_and_keep().unwrap();
        let told = |stream: &[u8]| {
            let files = records(stream).map(Result::unwrap).filter_map(|record| match record.event {
                Event::File(file) => Some(file.path().clone()),
                _ => None,
            });
            files.filter(|told| told == path.as_os_str().as_encoded_bytes()).count()
        };
        assert!(told(&stream) > 0, "the file was told in the first recording");

        let mut recorder = BpfRecorder::attach_loaded(loaded.expect("kept"), Vec::new()).unwrap();
        recorder.follow(Follow::Running(second.id())).unwrap();
        evict(&path);
        // Its second turn is no part of the second recording.
        turn(&mut first);
        assert!(first.wait().unwrap().success());
        turn(&mut second);
        turn(&mut second);
        assert!(second.wait().unwrap().success());
        let (costs, stream) = recorder.finish().unwrap();
        assert!(costs.lost.is_empty(), "{:?}", costs.lost);
        assert!(told(&stream) > 0, "and is told again in the second");
        let of = |pid: u32| {
            records(&stream).map(Result::unwrap).filter(|r| r.head.pid == pid && r.head.in_tree()).count()
        };
        assert_eq!(of(first.id()), 0, "what was followed before is not followed any more");
        assert!(of(second.id()) > 0);
        assert!(costs.calls.iter().all(|call| call.pid != first.id()), "nor are its calls counted");
        let children = costs.calls.iter().any(|call| call.pid != second.id());
        assert!(children, "{:?}", costs.calls);
    }

    #[test]
    fn a_storm_is_lost_only_as_counted() {
        if !ready() {
            return;
        }
        let calls = |options: &BpfOptions| {
            let seen = record_alone(options, &["opens", "100000"]);
            let seen_calls = seen.of_actor().into_iter().filter(|record| {
                matches!(record.event, Event::Call(call) if call.path == Some(b"/nonexistent/storm"))
            });
            let lost = seen.finished.lost.get("lookups").copied().unwrap_or(0);
            (seen_calls.count() as u64, lost, seen.finished.lost.clone())
        };
        let (seen, lost, all) = calls(&BpfOptions::default());
        assert_eq!((seen, lost), (100_000, 0), "{all:?}");
        // Smaller than what comes in between two looks: now some must be lost, and the sum must hold.
        // Programs of two other tests that record by themselves can lose a few lookups of their own.
        let (seen, lost, all) = calls(&BpfOptions { buffer: Bytes(1), ..BpfOptions::default() });
        assert!(lost > 0, "{all:?}");
        assert!((100_000..101_000).contains(&(seen + lost)), "{seen} seen, {lost} lost: {all:?}");
    }

    #[test]
    fn calls_are_counted_and_some_lookups_have_stacks() {
        if !ready() {
            return;
        }
        let options = BpfOptions { stacks: Stacks::Copy, count_calls: true, ..BpfOptions::default() };
        let seen = record(&options, &["opens", "1000"]);
        let all = seen.of_actor();
        let stormy = |record: &&cold_trace::raw::RawRecord<'_>| matches!(record.event, Event::Call(call) if call.path == Some(b"/nonexistent/storm"));
        let storm: Vec<_> = all.iter().filter(stormy).collect();
        assert_eq!(storm.len(), 1000);
        let own = |c: &&cold_trace::record::CallCount| c.pid == storm[0].head.pid;
        let opens = seen.finished.calls.iter().filter(own).find(|c| c.calls >= 1000).unwrap();
        assert!(cold_trace::syscalls::name(opens.number).unwrap().starts_with("open"), "{opens:?}");
        assert!(opens.calls < 1100 && opens.time.0 > 0 && opens.bytes == 0, "{opens:?}");
        let copied = storm.iter().filter(|record| {
            let Event::Call(call) = record.event else { return false };
            all.iter().any(|r| matches!(r.event, Event::StackCopy(copy) if copy.context == call.began))
        });
        let copied = copied.count();
        assert!((200..=280).contains(&copied), "the first ones, then one in 64: {copied}");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn mappings_of_32_bit_programs_are_told() {
        if !ready() {
            return;
        }
        let dir = scratch();
        let path = cold_file(dir.path(), "mapped by 32 bits", 4);
        let seen = record_of(maps32(), &BpfOptions::default(), &[path.to_str().unwrap()]);
        if !seen.tells_areas {
            return; // by perf events, before Linux 6.7
        }
        let areas = seen.of_actor().into_iter().filter_map(|record| match record.event {
            Event::Area(area) => Some(area),
            _ => None,
        });
        let areas: Vec<_> = areas.skip_while(|area| !is(area.file, &path)).collect();
        let [mapped, protected] = areas[..] else { panic!("{areas:?}") };
        assert_eq!((mapped.bytes, mapped.offset, mapped.prot, mapped.state), (8192, 4096, 1, 0));
        assert_eq!((protected.address, protected.bytes), (mapped.address, 4096));
        assert_eq!((protected.prot, protected.state), (5, AREA_PROTECTED));
        assert!(
            seen.finished.lost.keys().all(|class| class == "calls_of_32_bit_programs"),
            "{:?}",
            seen.finished.lost
        );
    }

    #[test]
    fn tier_b_has_faults_by_address_and_reads_as_calls() {
        if !ready() {
            return;
        }
        let dir = scratch();
        let path = cold_file(dir.path(), "b", 64);
        let options = BpfOptions { tier: Some(Tier::B), ..BpfOptions::default() };
        let seen = record(&options, &["touch", path.to_str().unwrap(), "5"]);
        let all = seen.of_actor();
        assert!(
            !all.iter().any(|record| matches!(record.event, Event::Fault(_) | Event::Map(_) | Event::Get(_)))
        );
        let fill = all.iter().find_map(|record| match record.event {
            Event::Add(add) if is(add.file, &path) && add.index == 5 => Some((record.head.tid, add.context)),
            _ => None,
        });
        let (tid, context) = fill.expect("page 5 was filled");
        assert_eq!(context.doing, Doing::Fault);
        let fault = all.iter().find(|record| {
            matches!(record.event, Event::PageFault(fault) if fault.address % 4096 == 0)
                && (record.head.at, record.head.tid) == (context.at, tid)
        });
        assert!(fault.is_some(), "the fault that filled it is there by its address");

        let seen = record(&options, &["read", path.to_str().unwrap()]);
        let reads: Vec<_> = seen
            .of_actor()
            .into_iter()
            .filter_map(|record| match record.event {
                Event::Call(call) if is(call.file, &path) && call.path.is_none() => {
                    Some((call.position, call.result))
                }
                _ => None,
            })
            .collect();
        let expected: Vec<_> = (0..=4).map(|n| (Some(n * 65536), if n < 4 { 65536 } else { 0 })).collect();
        assert_eq!(reads, expected, "position and result of each read");
        assert!(actor().exists());
    }
}
