use super::*;

/// A directory that looks like `/proc` as far as these files go.
pub(super) fn fake(files: &[(&str, &str)]) -> (tempfile::TempDir, ProcFs) {
    let dir = tempfile::tempdir().expect("a directory");
    for (rel, text) in files {
        let path = dir.path().join(rel);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    let proc = ProcFs::new(dir.path());
    (dir, proc)
}

#[test]
fn a_file_that_is_not_there_is_named_with_the_kernels_reason() {
    let (dir, proc) = fake(&[]);
    let error = proc.stat(7).expect_err("no such process");
    assert_eq!(error.errno(), Some(libc::ENOENT));
    let told = error.to_string();
    assert!(
        told.starts_with(&format!("cannot read {}/7/stat: No such file", dir.path().display())),
        "{told}"
    );
}

#[test]
fn an_error_quotes_the_beginning_of_a_text_and_never_half_a_character() {
    // 119 bytes, then characters of two bytes each: a cut by bytes would end within one.
    let text = format!("{}{}", "x".repeat(119), "é".repeat(500));
    let (_dir, proc) = fake(&[("7/stat", &text)]);
    let Err(Error::Parse { text, .. }) = proc.stat(7) else { panic!("no stat") };
    assert_eq!(text, format!("{}é", "x".repeat(119)));
}

#[test]
fn a_long_file_is_read_to_its_end() {
    // More than the room that is made at first.
    let text = "y".repeat(100_000);
    let (_dir, proc) = fake(&[("long", &text)]);
    assert_eq!(proc.read("long").expect("read"), text);
}
