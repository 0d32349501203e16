use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::*;
use crate::plan::Knobs;
use crate::sample::sample;

/// A plan of files in a directory of their own: a program, a library with a build-id, data without, a
/// directory, a name, a disk.
fn world() -> (tempfile::TempDir, Plan) {
    let dir = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(dir.path()).unwrap();
    for (name, content) in [("program", "12345"), ("library", "123456789"), ("data", "123"), ("script", "1")]
    {
        std::fs::write(root.join(name), content).unwrap();
    }
    std::fs::create_dir(root.join("dir")).unwrap();
    std::os::unix::fs::symlink("data", root.join("name")).unwrap();
    let file = |name: &str, kind, size, build_id| PlanFile {
        path: root.join(name),
        kind,
        identity: Identity { size, build_id, inode: 99, mtime_ns: 99, ..Identity::default() },
        need_ns: 5,
        uses: 3,
        exact: kind == FileKind::Regular,
    };
    let range = |file, need_ns| Range { file, first_page: 0, pages: 1, need_ns, uses: 3, around: false };
    let mut plan = sample();
    plan.key.executable = root.join("program");
    plan.key.script = Some(root.join("script"));
    plan.files = vec![
        file("/dev/vda1", FileKind::BlockDevice, 0, [0; 20]),
        file("program", FileKind::Regular, 5, [0; 20]),
        file("library", FileKind::Regular, 9, id(1)),
        file("data", FileKind::Regular, 3, [0; 20]),
        file("dir", FileKind::Directory, 0, [0; 20]),
        file("name", FileKind::Name, 0, [0; 20]),
    ];
    plan.ranges = vec![range(0, 1), range(1, 2), range(2, 3), range(3, 4)];
    plan.steps.clear();
    (dir, plan)
}

fn id(n: u8) -> [u8; 20] {
    [n; 20]
}

/// The library's build-id is 01…; nothing else has one.
fn build_id(path: &Path) -> Option<[u8; 20]> {
    path.ends_with("library").then_some(id(1))
}

/// No file has sections.
fn none(_: &Path) -> Parts {
    Parts::default()
}

/// Nothing is missing, nothing is another.
fn whole(plan: Plan) -> Imported {
    Imported { plan, dropped: vec![], carried: vec![] }
}

#[test]
fn what_is_the_same_here_comes_along_with_its_own_identity() {
    let (dir, plan) = world();
    let imported = import(&export(&plan, &none).unwrap(), &build_id, &none, Others::Carry).unwrap();
    assert_eq!(imported.dropped, [Dropped { path: "/dev/vda1".into(), why: Why::Blocks }]);
    let new = imported.plan;
    let meta = new.key.executable.metadata().unwrap();
    assert_eq!(new.key.identity, Identity::of(&meta, [0; 20]));
    assert_eq!(new.files.len(), 5);
    let library = dir.path().join("library").metadata().unwrap();
    assert_eq!(new.files[1].identity, Identity::of(&library, id(1)));
    assert_eq!(new.ranges.iter().map(|r| (r.file, r.need_ns)).collect::<Vec<_>>(), [(0, 2), (1, 3), (2, 4)]);
    assert_eq!((new.learnt, new.knobs), (plan.learnt, plan.knobs));
    assert_eq!((&new.standing, new.trial, new.bound, &new.device), (&Standing::Untried, None, None, &None));
    assert!(new.steps.is_empty());
    // Once more, it is the same.
    assert_eq!(import(&export(&new, &none).unwrap(), &build_id, &none, Others::Carry).unwrap(), whole(new));
}

#[test]
fn what_is_missing_or_another_drops_out_and_is_named() {
    let (dir, plan) = world();
    let text = export(&plan, &none).unwrap();
    std::fs::write(dir.path().join("data"), "1234").unwrap();
    std::fs::remove_dir(dir.path().join("dir")).unwrap();
    std::fs::write(dir.path().join("dir"), "").unwrap();
    std::fs::remove_file(dir.path().join("name")).unwrap();
    let upgraded = |path: &Path| path.ends_with("library").then_some(id(2));
    let imported = import(&text, &upgraded, &none, Others::LeaveOut).unwrap();
    let why: Vec<String> = imported.dropped.iter().map(|d| d.why.to_string()).collect();
    assert_eq!(
        why[1..],
        [
            "it is another build (its build-id differs)",
            "it has 4 bytes here, and had 3",
            "it is another kind of file here",
        ]
    );
    // A name is looked up where it is missing, too.
    let left: Vec<_> = imported.plan.files.iter().map(|f| f.path.strip_prefix(dir.path()).unwrap()).collect();
    assert_eq!((left, imported.plan.ranges.len()), (vec![Path::new("program"), Path::new("name")], 1));
    // A build-id that is not there any more is another build, too; one that is the same outweighs the
    // size (debug symbols split off).
    assert_eq!(import(&text, &|_| None, &none, Others::LeaveOut).unwrap().dropped[1].why, Why::OtherBuild);
    std::fs::write(dir.path().join("library"), "12").unwrap();
    assert!(
        import(&text, &build_id, &none, Others::LeaveOut)
            .unwrap()
            .plan
            .files
            .iter()
            .any(|f| f.path.ends_with("library"))
    );
}

#[test]
fn of_another_build_pages_are_found_by_its_sections() {
    let (dir, mut plan) = world();
    let like = plan.ranges[2];
    for (n, name) in [(2, "library"), (3, "data")] {
        plan.files[n].identity.size = 20 * PAGE;
        std::fs::write(dir.path().join(name), vec![0; 21 * PAGE as usize]).unwrap();
    }
    let range = |first_page, pages, need_ns| Range { first_page, pages, need_ns, ..like };
    plan.ranges = vec![range(12, 2, 1), range(0, 1, 2), range(13, 1, 3)];
    let data = |page: u64| -> Parts { vec![Part(".data".to_owned(), page * PAGE, 8 * PAGE)].into() };
    let was = |path: &Path| if path.ends_with("library") { data(10) } else { Parts::default() };
    let text = export(&plan, &was).unwrap();
    let pages = |id: u8, is: &dyn Fn(&Path) -> Parts| {
        let id = |path: &Path| path.ends_with("library").then_some([id; 20]);
        let plan = import(&text, &id, is, Others::Carry).unwrap().plan;
        plan.ranges.iter().map(|r| (r.first_page, r.pages, r.need_ns)).collect::<Vec<_>>()
    };
    // A page further: its last page is read once, as early as it was needed.
    assert_eq!(pages(2, &|_| data(11)), [(13, 2, 1), (0, 1, 2)]);
    assert_eq!(pages(2, &none), [(12, 2, 1), (0, 1, 2)], "nothing tells where they are now");
    assert_eq!(pages(1, &|_| data(11)), [(12, 2, 1), (0, 1, 2)], "the same build, whoever says otherwise");
}

#[test]
fn of_another_build_the_pages_come_along_that_it_has_and_it_is_named() {
    let (dir, mut plan) = world();
    let page = PAGE as usize;
    let like = plan.ranges[1];
    let range = |file, first_page, pages| Range { file, first_page, pages, ..like };
    plan.ranges = vec![range(2, 0, 10), range(2, 14, 4), range(2, 19, 1), range(3, 0, 1)];
    plan.files[2].identity.size = 20 * PAGE;
    plan.files[3].identity.size = 20 * PAGE;
    let text = export(&plan, &none).unwrap();
    std::fs::write(dir.path().join("library"), vec![0; 17 * page + page * 3 / 4]).unwrap();
    std::fs::write(dir.path().join("data"), vec![0; 17 * page]).unwrap();
    let upgraded = |path: &Path| path.ends_with("library").then_some(id(2));
    let imported = import(&text, &upgraded, &none, Others::Carry).unwrap();
    // 15 % less is no other version of the data.
    let told =
        |list: &[Dropped]| list.iter().map(|d| d.path.file_name().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(told(&imported.carried), ["library"]);
    assert_eq!(told(&imported.dropped), ["vda1", "data"]);
    assert_eq!(imported.carried[0].why, Why::OtherBuild);
    let pages: Vec<_> = imported.plan.ranges.iter().map(|r| (r.file, r.first_page, r.pages)).collect();
    assert_eq!(pages, [(1, 0, 10), (1, 14, 4)], "it has 18 pages here, so no 19th");
    let library = &imported.plan.files[1];
    assert_eq!(library.identity, Identity::of(&dir.path().join("library").metadata().unwrap(), id(2)));
    assert!(!library.exact, "of this build nobody has seen what it does not need");
    // An eighth is one, and the last page is cut where the file ends.
    std::fs::write(dir.path().join("data"), vec![0; 17 * page + page / 2]).unwrap();
    plan.ranges = vec![range(3, 16, 4)];
    let imported = import(&export(&plan, &none).unwrap(), &upgraded, &none, Others::Carry).unwrap();
    assert_eq!(told(&imported.carried), ["library", "data"]);
    assert_eq!((imported.plan.ranges[0].first_page, imported.plan.ranges[0].pages), (16, 2));
    assert_eq!(
        told(&import(&text, &upgraded, &none, Others::LeaveOut).unwrap().dropped),
        ["vda1", "library", "data"]
    );
}

#[test]
fn a_program_that_is_not_here_has_no_plan() {
    let (dir, plan) = world();
    let text = export(&plan, &none).unwrap();
    std::fs::remove_file(dir.path().join("script")).unwrap();
    let error = import(&text, &build_id, &none, Others::LeaveOut).unwrap_err().to_string();
    assert!(error.contains("script: No such file") && error.contains("not installed here"), "{error}");
}

#[test]
fn paths_that_are_no_text_travel_as_bytes() {
    let (dir, mut plan) = world();
    let odd = dir.path().join(OsString::from_vec(b"odd-\xff".to_vec()));
    std::fs::write(&odd, "123").unwrap();
    plan.files[3].path = odd.clone();
    let imported = import(&export(&plan, &none).unwrap(), &build_id, &none, Others::Carry).unwrap();
    assert!(imported.plan.files.iter().any(|f| f.path == odd), "{:?}", imported.dropped);
}

#[test]
fn what_is_no_exported_plan_is_said() {
    let (_dir, plan) = world();
    let text = export(&plan, &none).unwrap();
    let error = |text: &str| import(text, &build_id, &none, Others::Carry).unwrap_err();
    assert!(matches!(error("{"), Error::Json(_)));
    assert!(matches!(error("{}"), Error::Json(_)));
    let newer = text
        .replace("coldstart.plan-export/1", "coldstart.plan-export/2")
        .replace("\"knobs\"", "\"buttons\"");
    assert!(matches!(error(&newer), Error::Version(v) if v == "coldstart.plan-export/2"));
    for bad in ["123", "zz", "+1", &"00".repeat(21)] {
        let text = text.replacen(&"01".repeat(20), bad, 1);
        assert!(matches!(error(&text), Error::BuildId(_)), "{bad}");
    }
    let knobs = Knobs { min_uses: 9, ..plan.knobs };
    let rules = export(&Plan { knobs, ..plan.clone() }, &none).unwrap();
    assert!(matches!(error(&rules), Error::Plan(FormatError::Invalid { .. })));
    let beyond = text.replacen("\"file\": 3", "\"file\": 77", 1);
    assert_eq!(import(&beyond, &build_id, &none, Others::Carry).unwrap().plan.ranges.len(), 2);
}
