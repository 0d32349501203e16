use super::names::shown;
use super::*;
use std::collections::BTreeSet;

use crate::etl::{ImagePayload as EtlImage, Phase, ProcessPayload as EtlProcess, ThreadPayload as EtlThread};

fn process(phase: Phase, pid: u32, parent: u32, image: &str) -> EtlProcess {
    let (image, command) = (image.to_owned(), String::new());
    EtlProcess { phase, pid, parent, session: 1, status: 7, image, command }
}

fn fault(tid: u32, ended: i64, object: u64) -> RawFault<'static> {
    RawFault {
        began: ended - 10,
        ended,
        offset: 0x1400,
        bytes: 0x4000,
        file: Named::Object(object),
        tid,
        pid: None,
    }
}

#[test]
fn names_are_by_drive_and_one_file_however_they_are_spelt() {
    let drives = [
        ("\\Device\\HarddiskVolume2\\".to_owned(), "C:\\".to_owned()),
        ("\\Device\\Mup\\".to_owned(), "\\\\".to_owned()),
        ("\\SystemRoot\\".to_owned(), "C:\\Windows\\".to_owned()),
    ];
    for (told, expected) in [
        ("\\Device\\HarddiskVolume2\\Windows\\a.dll", "C:/Windows/a.dll"),
        ("\\device\\harddiskvolume2\\Windows\\a.dll", "C:/Windows/a.dll"),
        ("\\Device\\HarddiskVolume1\\boot", "/Device/HarddiskVolume1/boot"),
        ("\\Device\\HarddiskVolume20\\x", "/Device/HarddiskVolume20/x"),
        ("\\Windows\\System32\\ntdll.dll", "C:/Windows/System32/ntdll.dll"),
        ("\\SystemRoot\\system32\\win32k.sys", "C:/Windows/system32/win32k.sys"),
        ("\\Device\\Mup\\server\\share\\größe.exe", "//server/share/größe.exe"),
        ("é", "é"),
    ] {
        assert_eq!(shown(told, &drives), expected, "{told}");
    }
    assert_eq!(shown("\\Windows\\a.dll", &[]), "/Windows/a.dll", "no drive is known");
    let mut builder = Builder::default();
    for (device, drive) in &drives {
        builder.volume(device, drive);
    }
    builder.name(1, 10, "\\Device\\HarddiskVolume2\\Windows\\SYSTEM32\\Größe.dll");
    builder.name(1, 11, "\\Device\\HarddiskVolume2\\Windows\\System32\\GRÖSSE.dll");
    let told = "\\Windows\\system32\\GRÖßE.DLL".to_owned();
    builder.image(2, &EtlImage { phase: Phase::Start, pid: 5, base: 1, size: 2, name: told });
    for object in [10, 11, 12] {
        builder.fault(fault(1, 20, object));
    }
    let e = builder.finish(System::default(), 100, BTreeMap::new());
    let names: Vec<Option<&str>> = e.faults.iter().map(|f| f.file.map(|file| e.name(file))).collect();
    // ß and SS are the same to Unicode's upper case; a name nobody told stays unknown.
    assert_eq!(names, [Some("C:/Windows/SYSTEM32/Größe.dll"), Some("C:/Windows/SYSTEM32/Größe.dll"), None]);
    assert_eq!(e.name(e.images[0].file), "C:/Windows/SYSTEM32/Größe.dll");
}

#[test]
fn numbers_that_are_used_again_mean_whoever_had_them_at_that_time() {
    let mut b = Builder::default();
    b.process(0, &process(Phase::Before, 8, 4, "old.exe"));
    b.thread(0, &EtlThread { phase: Phase::Before, pid: 8, tid: 80 });
    b.name(0, 1, "\\a");
    b.fault(fault(80, 50, 1));
    b.thread(60, &EtlThread { phase: Phase::End, pid: 8, tid: 80 });
    b.process(60, &process(Phase::End, 8, 4, "old.exe"));
    b.name(65, 1, "\\b");
    b.process(70, &process(Phase::Start, 8, 9, "new.exe"));
    b.process(71, &process(Phase::Before, 9, 4, "parent.exe"));
    b.thread(70, &EtlThread { phase: Phase::Start, pid: 8, tid: 80 });
    b.fault(fault(80, 90, 1));
    b.process(95, &process(Phase::After, 8, 9, "new.exe"));
    let e = b.finish(System::default(), 100, BTreeMap::new());
    let images: Vec<_> = e.processes.iter().map(|p| (p.image.as_str(), p.began, p.ended, p.status)).collect();
    assert_eq!(
        images,
        [
            ("old.exe", None, Some(60), Some(7)),
            ("new.exe", Some(70), None, None),
            ("parent.exe", None, None, None)
        ]
    );
    let whose = |at: usize| e.process_at(e.faults[at].pid.unwrap(), e.faults[at].ended).unwrap();
    assert_eq!([whose(0), whose(1)], [0, 1]);
    assert_eq!(e.faults.iter().map(|f| e.name(f.file.unwrap())).collect::<Vec<_>>(), ["/a", "/b"]);
    let did = e.activities();
    let did: Vec<_> =
        did.iter().map(|a| (a.process, a.hard_faults, a.waited.0, a.is_of_interest())).collect();
    assert_eq!(did, [(0, 1, 10, true), (1, 1, 10, true), (2, 0, 0, false)]);
    assert_eq!(e.named(), (2, 0));
    // The start that is meant, if nobody says which: the one that began while it was traced.
    let tree = Tree::choose(&e, None).unwrap();
    assert_eq!((tree.root, tree.has(&e, Some(8), 50), tree.has(&e, Some(8), 90)), (1, false, true));
    assert_eq!(Tree::choose(&e, Some(&Wanted::Name("OLD".to_owned()))).unwrap().root, 0);
    assert_eq!(Tree::choose(&e, Some(&Wanted::Pid(9))).unwrap().rows, BTreeSet::from([1, 2]));
    let missing = Tree::choose(&e, Some(&Wanted::Name("app".to_owned()))).unwrap_err().to_string();
    assert_eq!(missing, "no process of the trace is app: it has old.exe (8), new.exe (8), parent.exe (9)");
    assert_eq!(Tree::choose(&Evidence::default(), None), Err(WhyNot::NoProcess));
}

#[test]
fn a_made_up_trace_gives_the_same_evidence_whatever_its_pointers_and_compression() {
    let all: Vec<Evidence> = [(4, false), (4, true), (8, false), (8, true)]
        .into_iter()
        .map(|(pointer, compress)| {
            let bytes = crate::etl::sample::small(pointer, compress);
            let read = crate::etl::gather(crate::etl::Trace::open(bytes.as_slice()).unwrap()).unwrap();
            assert_eq!(read.losses, crate::etl::Losses::default());
            read.evidence
        })
        .collect();
    assert!(all.windows(2).all(|w| w[0] == w[1]));
    let e = &all[0];
    assert_eq!(
        (e.processes[0].image.as_str(), e.processes[0].command.as_str()),
        ("app.exe", "app.exe --größe")
    );
    let (read, fault) = (&e.reads[0], &e.faults[0]);
    // 10 MHz, from tick 1000 on: the read was complete at tick 3000 and took 900 of them.
    assert_eq!((read.began, read.completed, read.bytes), (Some(110_000), 200_000, 16_384));
    assert_eq!((fault.began, fault.ended, fault.offset, fault.bytes), (100_000, 201_000, 0x1400, 16_384));
    assert_eq!((read.pid, fault.pid), (Some(77), Some(77)));
    assert_eq!([read.file, fault.file].map(|f| e.name(f.unwrap())), ["/Device/HarddiskVolume1/app.exe"; 2]);
    let most = &e.activities()[0];
    assert_eq!((most.pid, most.reads, most.read.0), (77, 1, 16_384));
}
