use cold_model::recording::TouchKind;

use super::*;
use crate::Error;
use crate::evidence::Tree;

/// The evidence of a made-up event trace, without what text does not tell.
fn evidence() -> Evidence {
    let bytes = crate::etl::sample::small(8, false);
    let mut e = crate::etl::gather(crate::etl::Trace::open(bytes.as_slice()).unwrap()).unwrap().evidence;
    e.system.processors = None;
    e.lost.clear();
    e
}

fn read(text: &str) -> GatheredText {
    gather(text.as_bytes(), &Map::default()).unwrap()
}

#[test]
fn the_same_start_as_events_and_as_text_is_the_same_evidence() {
    let from_events = evidence();
    for cpu in [false, true] {
        let text = sample::dumper(&from_events, cpu);
        for bytes in
            [text.clone().into_bytes(), sample::utf16(&text), [b"\xef\xbb\xbf", text.as_bytes()].concat()]
        {
            let mut read = gather(bytes.as_slice(), &Map::default()).unwrap();
            assert_eq!((read.bad, read.first_bad.take(), read.is_table), (0, None, false), "{text}");
            read.evidence.ended = from_events.ended;
            assert_eq!(read.evidence, from_events, "{text}");
        }
    }
}

#[test]
fn columns_are_found_by_their_names_and_command_lines_keep_their_commas() {
    let e = read(
        "HardFault, TimeStamp, IOSize, ByteOffset, Process Name ( PID), ThreadID, ElapsedTime, FileName\n\
         P-Start, TimeStamp, Process Name ( PID), ParentPID, Command Line, PackageFullName, Package Version\n\
         P-Start, 100, rustc.exe (10612), 480, \"rustc.exe\" --cfg a,b, \"c, d\", e, <none>, <none>\n\
         HardFault, 8729, 0x1000, 0x53b8000, a, b.exe ( 4), 40, 425, \"$Mft, 2\"\n\
         HardFault, 8730, 0x2000, 0x53b9000, rustc.exe (10612), 41, 425, \"C:\\$Mft, 2\"\n\
         HardFault, x, 0x2000, 0x53b9000, rustc.exe (10612), 41, 425, \"C:\\$Mft, 2\"\n",
    );
    assert_eq!((e.rows, e.bad), (4, 2), "a name with a comma cannot be told from two cells");
    assert_eq!(e.first_bad, Some((4, "HardFault: a cell that it needs is missing or no number".to_owned())));
    assert_eq!(e.evidence.lost.get("rows that could not be read"), Some(&2));
    let process = &e.evidence.processes[0];
    assert_eq!(process.command, "\"rustc.exe\" --cfg a,b,c, d,e");
    assert_eq!((process.pid, process.parent, process.began), (10612, Some(480), Some(100_000)));
    let fault = &e.evidence.faults[0];
    assert_eq!(
        (fault.began, fault.ended, fault.offset, fault.bytes),
        (8_305_000, 8_730_000, 0x53b_9000, 0x2000)
    );
    assert_eq!(e.evidence.name(fault.file.unwrap()), "C:/$Mft, 2");
}

#[test]
fn rows_that_others_quote_can_be_read() {
    // rustc-perf, oppat, and the shape of the SNIA traces.
    let e = read(
        "BeginHeader\n\
         DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,   ByteOffset,     IOSize, \
         ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName\n\
         EndHeader\n\
         OS Version: 10.0.19043, Trace Size: 20736KB, Events Lost: 3, Buffers lost: 0, Trace Start: 132675686690347142, \
         Trace Length: 2 sec, PointerSize: 8, Trace Name: pmc_counters_merged.etl\n\
         DiskRead,     100250, p0 (1234),       5678, 0xfffffa8001234560, 0x1234560000, 0x00002000,        4000,        \
         4, 0x000901,        4000,       0,  Unknown, 0xfffffa8007654320, \"Disk6\"\n\
         CSwitch, 1, 2, 3\n\
         HardFault, 8729, xperf.exe (3984), 11844, 0xffffa88fbf2b8000, 0x00053b8000, 0x00001000, 425, 0x1, \"$Mft\", N/A\n",
    );
    assert_eq!(e.first_bad, Some((7, "HardFault: no line of the header names its columns".to_owned())));
    let system = &e.evidence.system;
    assert_eq!((system.build, system.started), (Some(19043), Some(132_675_686_690_347_142)));
    assert_eq!(e.evidence.lost.get("events"), Some(&3));
    let read = &e.evidence.reads[0];
    assert_eq!(
        (read.began, read.completed, read.disk, read.offset),
        (Some(96_250_000), 100_250_000, 4, Some(0x12_3456_0000))
    );
    assert_eq!((read.pid, read.tid, read.bytes), (Some(1234), Some(5678), 0x2000));
    assert_eq!(e.evidence.processes[0].image, "p0", "a process that no row begins was there before");
}

#[test]
fn what_programs_read_by_calls_is_told_once_where_the_fast_way_failed() {
    let row = |at: u32, offset: &str, name: &str| {
        format!(
            "FileIoRead, {at}, app.exe (77), 78, app.exe (77), 78, 0, 0xffff1, 0xffff2, {offset}, 0x2000, \"{name}\"\n"
        )
    };
    let head = "FileIoRead, TimeStamp, Process Name ( PID), ThreadID, LoggingProcessName ( PID), LoggingThreadID, CPU, \
                IrpPtr, FileObject, ByteOffset, Size, FileName\n";
    let rows = [
        row(10, "0x1800", "C:\\a"),
        row(11, "0x1800", "C:\\a"),
        row(12, "0x3800", "C:\\a"),
        row(13, "0x1800", "C:\\a"),
    ];
    let fault = "HardFault, TimeStamp, Process Name ( PID), ThreadID, ByteOffset, IOSize, ElapsedTime, FileName\n\
                 HardFault, 20, app.exe (77), 78, 0x0, 0x1000, 1, \"C:\\b\"\n";
    let e = read(&format!("{head}{}{fault}", rows.concat()));
    assert_eq!((e.bad, e.first_bad), (0, None));
    let told: Vec<_> = e.evidence.file_reads.iter().map(|r| (r.at, r.offset, r.bytes)).collect();
    assert_eq!(told, [(10_000, 0x1800, 0x2000), (12_000, 0x3800, 0x2000), (13_000, 0x1800, 0x2000)]);
    let r = crate::recording(&e.evidence, &Tree::choose(&e.evidence, None).unwrap(), "1", "a.csv");
    let touches: Vec<_> = r.touches.iter().flatten().map(|t| (t.kind, t.first_page, t.pages)).collect();
    let kinds = [TouchKind::Read, TouchKind::Read, TouchKind::Read, TouchKind::FaultAround];
    let pages = [(1, 3), (3, 3), (1, 3), (0, 1)];
    let wanted: Vec<_> =
        kinds.into_iter().zip(pages).map(|(kind, (first, count))| (kind, first, count)).collect();
    assert_eq!(touches, wanted);
    assert_eq!(r.fills.iter().flatten().count(), 1, "what was read by a call may have been in memory");
}

#[test]
fn tables_of_wpa_have_units_separators_and_marks_of_their_own() {
    let english = "IO Type,Process,Thread ID,Path Name,Disk,Min Offset,Size (B),Init Time (s),Complete Time (s),IO Time (µs)\n\
                   Read,app.exe (77),78,\"C:\\a, b.dll\",1,\"6,708,719,616\",\"24,576\",1.000100500,1.000200500,100\n\
                   Write,app.exe (77),78,C:\\x,1,1,4096,1.1,1.2,100\n\n";
    let german = "Complete Time (ms);Process;Size (B);Thread ID;Path Name;Disk;Min Offset;IO Time (ms)\n\
                  1.000,2005;app.exe (77);24.576;78;C:\\a, b.dll;1;6.708.719.616;0,1\n";
    let reads: Vec<_> = [english, german]
        .map(|text| {
            let read = read(text);
            assert_eq!((read.bad, read.is_table), (0, true), "{:?}", read.first_bad);
            assert_eq!(read.evidence.name(read.evidence.reads[0].file.unwrap()), "C:/a, b.dll");
            read.evidence.reads
        })
        .into();
    assert_eq!(reads[0], reads[1]);
    let read = reads[0][0];
    assert_eq!((read.began, read.completed), (Some(1_000_100_500), 1_000_200_500));
    assert_eq!((read.disk, read.offset, read.bytes, read.pid), (1, Some(6_708_719_616), 24_576, Some(77)));

    let own = "Wer;Wieviel;Wo;Bis (ms);Lange (ms);Was\napp.exe (77);8192;4096;20;5;C:\\a\n";
    assert!(matches!(gather(own.as_bytes(), &Map::default()), Err(Error::Damaged { .. })));
    let mut map = Map::default();
    for text in
        ["process=Wer", "size=Wieviel", "file-offset=Wo", "end=Bis (ms)", "took=Lange (ms)", "path=Was"]
    {
        map.add(text).unwrap();
    }
    let read = gather(own.as_bytes(), &map).unwrap();
    let fault = &read.evidence.faults[0];
    assert_eq!((fault.began, fault.ended, fault.offset, fault.bytes), (15_000_000, 20_000_000, 4096, 8192));
    assert_eq!(Tree::choose(&read.evidence, None).unwrap().root, 0);
    assert!(map.add("nothing=x").unwrap_err().contains("process, thread, path"));
    assert!(map.add("process").is_err());
}

#[test]
fn a_layout_ini_is_a_list_of_paths() {
    let text =
        "[OptimalLayoutFile]\r\nVersion=1\r\nC:\\WINDOWS\\SYSTEM32\\A.DLL\r\nC:\\GRÖSSE\r\n[Other]\r\nx\r\n";
    let paths = ["C:\\WINDOWS\\SYSTEM32\\A.DLL", "C:\\GRÖSSE"];
    assert_eq!(layout_ini(sample::utf16(text).as_slice()).unwrap(), paths);
    assert_eq!(layout_ini(text.as_bytes()).unwrap(), paths);
    assert!(layout_ini(b"C:\\a".as_slice()).is_err());
}

#[test]
fn lines_come_whole_over_the_pieces_and_endless_ones_are_refused() {
    let long = format!("{}\n", "x".repeat(400_000)).repeat(4);
    for bytes in [long.clone().into_bytes(), sample::utf16(&long)] {
        let mut lines = Lines::new(bytes.as_slice());
        for _ in 0..4 {
            assert_eq!(lines.next_line().unwrap().unwrap().len(), 400_000);
        }
        assert_eq!(lines.next_line().unwrap(), None);
    }
    let endless = "x".repeat(3 << 20);
    assert!(matches!(Lines::new(endless.as_bytes()).next_line(), Err(Error::Damaged { .. })));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(.{0,40}\n){0,8}", at in 0..6_usize) {
        let whole = sample::dumper(&evidence(), at % 2 == 0);
        let cut: String = whole.split_inclusive('\n').take(at * 3).collect();
        let _ = gather(format!("{cut}{text}{whole}").as_bytes(), &Map::default());
        let _ = gather(text.as_bytes(), &Map::default());
        let _ = layout_ini(text.as_bytes());
    }
}
