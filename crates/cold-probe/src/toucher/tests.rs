use std::io::Write;

use super::*;

const PAGES: u64 = 1024;

/// A file on a disk, cold.
fn file() -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().tempfile_in("/var/tmp").unwrap();
    file.write_all(&vec![7; (PAGES * page_size()) as usize]).unwrap();
    file.as_file().sync_all().unwrap();
    cold_sys::evict::advise_dontneed(file.as_file()).unwrap();
    file
}

fn task(file: &tempfile::NamedTempFile, way: Way, pages: Vec<u64>) -> Task {
    Task {
        file: file.path().to_owned(),
        bytes: PAGES * page_size(),
        exec: false,
        way,
        pages,
        enter: true,
        huge_bytes: page_size() * (page_size() / 8),
        hugetlb_bytes: None,
    }
}

fn done(task: &Task) -> Touched {
    match perform(task) {
        Ok(touched) => touched,
        Err(Stopped::Refused(r)) => panic!("refused: {r:?}"),
        Err(Stopped::Failed(e)) => panic!("{e}"),
    }
}

#[test]
fn pages_are_asked_for_in_runs_of_the_file() {
    let run = |first, pages| PageRun { first, pages };
    assert_eq!(runs(&[9, 3, 4, 3, 2, 0]), [run(0, 1), run(2, 3), run(9, 1)]);
    assert_eq!(runs(&[]), []);
}

#[test]
fn plain_faults_map_nothing_huge_and_a_page_beyond_is_a_failure() {
    let file = file();
    let touched = done(&task(&file, Way::Faults, (0..PAGES).collect()));
    assert_eq!((touched.huge_bytes, touched.entered), (Some(0), 0), "data is not entered");
    let faults = touched.used.minor_faults + touched.used.major_faults;
    assert!((1..=2 * PAGES).contains(&faults) && touched.used.major_faults >= 1, "{touched:?}");
    assert!(touched.page_table_bytes.is_some_and(|n| n >= PAGES * 8), "{touched:?}");
    assert!(matches!(perform(&task(&file, Way::Faults, vec![PAGES])), Err(Stopped::Failed(_))));
}

#[test]
fn a_way_that_the_kernel_refuses_is_a_refusal_with_its_reason() {
    let file = file();
    let Err(Stopped::Refused(r)) = perform(&task(&file, Way::Copy, vec![0])) else {
        panic!("no hugetlbfs was told")
    };
    assert_eq!((r.errno, r.why.as_str()), (None, "this kernel has no hugetlbfs"));
    let here = match perform(&task(&file, Way::Collapse, vec![0])) {
        Ok(touched) => touched.huge_bytes.is_some(),
        Err(Stopped::Refused(r)) => {
            r.call == "madvise(MADV_COLLAPSE)" && r.errno.is_some() && !r.why.is_empty()
        }
        Err(Stopped::Failed(_)) => false,
    };
    assert!(here);
}

#[test]
fn an_unaligned_mapping_holds_no_huge_entry() {
    let file = file();
    let aligned = task(&file, Way::Huge, (0..PAGES).collect());
    match perform(&aligned) {
        Ok(touched) => {
            assert!(touched.huge_bytes.is_some_and(|n| n % aligned.huge_bytes == 0), "{touched:?}");
        }
        // No transparent huge pages in this kernel.
        Err(Stopped::Refused(r)) => {
            assert_eq!(r.errno, Some(22));
            return;
        }
        Err(Stopped::Failed(e)) => panic!("{e}"),
    }
    cold_sys::evict::advise_dontneed(file.as_file()).unwrap();
    let touched = done(&task(&file, Way::HugeUnaligned, (0..PAGES).collect()));
    assert_eq!(touched.huge_bytes, Some(0));
}

#[test]
fn what_is_said_is_read_back() {
    let touched = Touched {
        before_ns: 1,
        touch_ns: 2,
        used: ThreadUsed::default(),
        huge_bytes: None,
        page_table_bytes: Some(4096),
        tlb_misses: Counted::Unknown("two\nlines".to_owned()),
        entered: 3,
    };
    let refused = Refusal { call: "madvise".to_owned(), errno: Some(22), why: "Invalid argument".to_owned() };
    for answer in
        [ToucherAnswer::Done(touched), ToucherAnswer::Refused(refused), ToucherAnswer::Failed("x".to_owned())]
    {
        let sent = serde_json::to_string(&answer).unwrap();
        assert!(!sent.contains('\n'));
        assert_eq!(serde_json::from_str::<ToucherAnswer>(&sent).unwrap(), answer);
    }
    assert_eq!((Counted::Known(5).known(), Counted::Unknown(String::new()).known()), (Some(5), None));
}
