use std::process::Command;

use super::*;
use crate::Unfit;
use crate::unwind::tests::chain;

fn run(program: &str, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(program).args(arguments).arg(file).env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn binutils() -> bool {
    cold_testbed::need(Command::new("readelf").arg("-v").output().is_ok(), "binutils")
}

fn layout_of(path: &Path, debug: &Path) -> (FileLayout, Names) {
    let image = Image::open(path).unwrap();
    let options = Options { debug_directories: vec![debug.to_owned()] };
    let occurs = Occurs::everything(image.meta.len());
    read_file(&image.parse().unwrap(), path, &occurs, &options)
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// Name, offset, bytes of sections; offset, bytes, address of segments.
type Listed = (Vec<(String, u64, u64)>, Vec<(u64, u64, u64)>);

/// Sections with bytes, and loadable segments, as readelf prints them.
fn readelf(path: &Path) -> Listed {
    let text = run("readelf", &["-SlW"], path);
    let sections = text.lines().filter_map(|line| {
        let (_, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        (words.len() > 5 && !["NOBITS", "NULL"].contains(&words[1]) && words[2].len() == 16)
            .then(|| (words[0].to_owned(), hex(words[3]), hex(words[4])))
    });
    let mut sections: Vec<_> = sections.filter(|s| s.2 > 0).collect();
    sections.sort_by_key(|s| (s.1, s.2));
    let segments = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.first() == Some(&"LOAD")).then(|| (hex(words[1]), hex(words[4]), hex(words[2])))
    });
    (sections, segments.collect())
}

#[test]
fn segments_sections_needs_and_relocations_agree_with_readelf() {
    if !binutils() {
        return;
    }
    let own = std::env::current_exe().unwrap();
    let libc = cold_sys::procfs::parse_maps(std::fs::read_to_string("/proc/self/maps").unwrap());
    let library = libc.iter().filter_map(|m| m.path.clone()).find(|p| p.ends_with("libc.so.6"));
    let others = ["/usr/bin/python3.11", "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
    let others = others.iter().map(PathBuf::from).filter(|p| p.exists());
    for path in [own].into_iter().chain(library).chain(others) {
        let (layout, _) = layout_of(&path, Path::new("/nowhere"));
        let (sections, segments) = readelf(&path);
        let found: Vec<_> = layout.sections.iter().map(|s| (s.name.clone(), s.offset, s.bytes)).collect();
        assert_eq!(found, sections, "{}", path.display());
        let found: Vec<_> = layout.segments.iter().map(|s| (s.offset, s.bytes, s.address)).collect();
        assert_eq!(found, segments, "{}", path.display());
        let dynamic = run("readelf", &["-dW"], &path);
        let needed: Vec<&str> = dynamic
            .lines()
            .filter_map(|l| Some(l.split_once("(NEEDED)")?.1.split_once('[')?.1.split_once(']')?.0))
            .collect();
        assert_eq!(layout.needed, needed, "{}", path.display());
        assert_eq!(layout.relr, dynamic.contains("(RELR)"), "{}", path.display());
        let relative = run("readelf", &["-rW"], &path).matches("_RELATIVE ").count() as u64;
        assert_eq!(layout.relative_relocations, relative, "{}", path.display());
        let notes = run("readelf", &["-nW"], &path);
        let id = notes.split("Build ID: ").nth(1).and_then(|rest| rest.split_whitespace().next());
        assert_eq!(crate::build_id(&path).unwrap().as_deref(), id, "{}", path.display());
    }
}

#[test]
fn functions_agree_with_nm_and_lines_with_addr2line() {
    let dir = tempfile::tempdir().unwrap();
    for options in [&["-g"][..], &["-g", "-gz=zlib"], &["-g", "-gdwarf-4"]] {
        let Some(program) = chain(dir.path(), options) else { return };
        let (layout, names) = layout_of(&program, Path::new("/nowhere"));
        assert_eq!(layout.symbols_from, ".symtab");
        for name in ["main", "first", "second", "third", "deepest"] {
            let line = run("nm", &["-S"], &program);
            let line = line.lines().find(|l| l.ends_with(&format!(" {name}"))).unwrap().to_owned();
            let words: Vec<&str> = line.split_whitespace().collect();
            let symbol = layout.symbols.iter().find(|s| s.name == name).unwrap();
            assert_eq!(address_of(&layout.segments, symbol.offset), Some(hex(words[0])));
            assert_eq!(symbol.bytes, hex(words[1]));
        }
        let mut inlined = 0;
        // A third of them: each question to addr2line is a process.
        for (frame, names) in names.iter().step_by(3) {
            let Some(address) = address_of(&layout.segments, frame.offset) else { continue };
            let at = format!("{address:#x}");
            let truth = run("addr2line", &["-f", "-i", "-C", &at, "-e"], &program);
            let truth: Vec<&str> = truth.lines().collect();
            if truth[0] == "??" || truth[1].starts_with('?') {
                continue;
            }
            let functions: Vec<&str> = truth.iter().step_by(2).copied().collect();
            let found: Vec<&str> = names.iter().map(|n| n.function.as_str()).collect();
            assert_eq!(found, functions, "{at}");
            let line = truth[1].split(' ').next().unwrap().rsplit(':').next().unwrap();
            assert_eq!(names[0].line, line.parse().ok(), "{at} {truth:?}");
            inlined += usize::from(names.len() > 1 && names[0].inlined && !names[names.len() - 1].inlined);
        }
        assert!(inlined > 0, "{options:?}");
    }
}

#[test]
fn a_stripped_program_is_named_by_its_debug_file() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = chain(dir.path(), &["-g", "-Wl,--build-id"]) else { return };
    if !binutils() {
        return;
    }
    let id = crate::build_id(&program).unwrap().unwrap();
    let debug = dir.path().join("debug");
    let separate = debug.join(format!(".build-id/{}/{}.debug", &id[..2], &id[2..]));
    std::fs::create_dir_all(separate.parent().unwrap()).unwrap();
    run("objcopy", &["--only-keep-debug", program.to_str().unwrap()], &separate);
    run("strip", &["--strip-all"], &program);
    let (layout, names) = layout_of(&program, &debug);
    assert_eq!(layout.symbols_from, separate.display().to_string());
    assert!(layout.symbols.iter().any(|s| s.name == "third"));
    assert!(
        names.iter().any(|(_, n)| n.len() == 2 && n[0].function == "inlined" && n[1].function == "third")
    );
    let (without, _) = layout_of(&program, Path::new("/nowhere"));
    assert_eq!(without.symbols_from, ".dynsym only");
    let search = |program: &Path, directories: &[&Path]| {
        let debug_directories = directories.iter().map(|d| d.to_path_buf()).collect();
        crate::debug_search(program, &Options { debug_directories }).unwrap()
    };
    let below = format!(".build-id/{}/{}.debug", &id[..2], &id[2..]);
    let found = search(&program, &[Path::new("/nowhere"), &debug]);
    assert_eq!(found.found.as_deref(), Some(separate.as_path()));
    assert_eq!(found.passed, [(Path::new("/nowhere").join(&below), Unfit::Absent)]);
    assert_eq!(found.build_id, Some(id));

    // By name and checksum, where there is no build-id.
    let Some(program) = chain(dir.path(), &["-g", "-Wl,--build-id=none"]) else { return };
    let separate = dir.path().join("chain.debug");
    run("objcopy", &["--only-keep-debug", program.to_str().unwrap()], &separate);
    run("objcopy", &["--strip-all", &format!("--add-gnu-debuglink={}", separate.display())], &program);
    assert_eq!(layout_of(&program, &debug).0.symbols_from, separate.display().to_string());
    assert_eq!(search(&program, &[&debug]).found.as_deref(), Some(separate.as_path()));
    std::fs::write(&separate, [std::fs::read(&separate).unwrap(), vec![0]].concat()).unwrap();
    assert_eq!(layout_of(&program, &debug).0.symbols_from, ".dynsym only");
    let passed = search(&program, &[&debug]).passed;
    assert_eq!(passed[0], (separate.clone(), Unfit::OtherContent));
    assert!(passed.len() == 3 && passed[1..].iter().all(|(_, why)| *why == Unfit::Absent), "{passed:?}");

    // Its name leads to the debug file of another build, or to what is none.
    let Some(program) = chain(dir.path(), &["-g", "-Wl,--build-id=0xab12cd34"]) else { return };
    run("objcopy", &["--only-keep-debug", program.to_str().unwrap()], &separate);
    let Some(program) = chain(dir.path(), &["-g", "-Wl,--build-id=0xab12cd35"]) else { return };
    run("objcopy", &["--strip-all", &format!("--add-gnu-debuglink={}", separate.display())], &program);
    let passed = search(&program, &[&debug]).passed;
    assert_eq!(passed[0], (debug.join(".build-id/ab/12cd35.debug"), Unfit::Absent));
    assert_eq!(passed[1], (separate.clone(), Unfit::OtherBuild(Some("ab12cd34".to_owned()))));
    std::fs::write(&separate, "no program").unwrap();
    let found = search(&program, &[&debug]);
    assert!(matches!(&found.passed[1].1, Unfit::Unreadable(why) if why.contains("ELF")), "{found:?}");
    assert_eq!(found.found, None);
}

/// A row for the file as it is now.
fn recorded(path: &Path) -> cold_model::recording::File {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(path).unwrap();
    cold_model::recording::File {
        dev: cold_model::Dev::of_number(meta.dev()),
        inode: meta.ino(),
        generation: 0,
        kind: FileKind::Regular,
        path: Some(path.to_str().unwrap().to_owned()),
        path_from: cold_model::recording::PathFrom::OpenFile,
        deleted: false,
        file_system: "ext4".to_owned(),
        size: Some(meta.len()),
        mtime_ns: Some(cold_model::file::mtime_ns(&meta)),
        build_id: None,
    }
}

#[test]
fn only_recorded_files_are_read_and_only_what_occurs_is_named() {
    use cold_model::Nanos;
    use cold_model::recording::{Frame, Mapping, Stack, Touch, TouchKind};
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = chain(dir.path(), &["-g"]) else { return };
    let (whole, _) = layout_of(&program, Path::new("/nowhere"));
    let at = |name: &str| whole.symbols.iter().find(|s| s.name == name).unwrap().offset;
    let text = dir.path().join("text");
    std::fs::write(&text, "no program").unwrap();
    let good = recorded(&program);
    let files = vec![
        good.clone(),
        cold_model::recording::File { size: Some(1), ..good.clone() },
        cold_model::recording::File { deleted: true, ..good.clone() },
        cold_model::recording::File { path: Some("/nowhere/at/all".to_owned()), ..good.clone() },
        cold_model::recording::File { path: None, ..good },
        recorded(&text),
        cold_model::recording::File { path: Some("/nowhere/data".to_owned()), ..recorded(&text) },
    ];
    let touch = |file, offset: u64| Touch {
        at: Nanos(1),
        pid: 1,
        tid: 1,
        file,
        first_page: offset / 4096,
        pages: 1,
        kind: TouchKind::Fault,
        major: None,
        ip: None,
        stack: Some(0),
        call: None,
        end: None,
    };
    let mapping = |file| Mapping {
        at: Nanos(0),
        pid: 1,
        address: 0x1000,
        bytes: 4096,
        offset: 0,
        file,
        executable: true,
    };
    let frame = |offset| Frame { address: 0x7000_0000 + offset, file: Some(0), offset, generated: false };
    // `main` follows `third` in no order: the call may be the last instruction before another function.
    let (inner, outer) = (frame(at("second") + 4), frame(at("third") + 1));
    let recording = Recording {
        manifest: cold_model::recording::Manifest { page_bytes: 4096, ..Default::default() },
        files,
        touches: Some((0..7).map(|file| touch(file, 0)).collect()),
        mappings: Some((0..5).map(mapping).collect()),
        stacks: Some(vec![Stack { frames: vec![inner, outer], truncated: false }]),
        ..Recording::default()
    };
    let mut told = Vec::new();
    let layouts = layouts(&recording, &Options::default(), |done, all| told.push((done, all)));
    assert_eq!(layouts.files.keys().copied().collect::<Vec<_>>(), [0]);
    let why: Vec<&str> = layouts.missing.values().map(String::as_str).collect();
    assert_eq!(layouts.missing.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4]);
    for (said, expected) in why.iter().zip(["size differs", "deleted", "not on this machine", "not known"]) {
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(layouts.frames[&inner].last().unwrap().function, "second");
    assert_eq!(layouts.frames[&outer].last().unwrap().function, "third");
    assert_eq!(layouts.frames[&inner][0].source.as_deref().map(|s| s.ends_with("chain.c")), Some(true));
    let (found, all) = (&layouts.files[&0].symbols, &whole.symbols);
    assert!(
        found.iter().any(|s| s.name == "third") && found.len() < all.len(),
        "{} {}",
        found.len(),
        all.len()
    );
    assert!(told.len() > 1 && told.is_sorted() && told.last().unwrap().0 == told.last().unwrap().1);
}
