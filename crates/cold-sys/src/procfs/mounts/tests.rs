use std::os::unix::ffi::OsStrExt;

use super::super::tests::fake;
use super::*;

/// What a line makes of a mount point and a source that the kernel prints so.
fn names(point: &[u8], source: &[u8]) -> (Vec<u8>, String) {
    let line = [b"36 35 98:0 / ", point, b" rw - ext4 ", source, b" rw"].concat();
    let mount = parse_line(&path_text::encode_bytes(&line)).expect("parses");
    (mount.mount_point.as_os_str().as_bytes().to_vec(), mount.source)
}

#[test]
fn what_the_kernel_escapes_is_undone_once() {
    for (printed, name) in [
        (&b"/a\\040b\\011c\\012d"[..], &b"/a b\tc\nd"[..]),
        (b"/a\\134040", b"/a\\040"),
        (b"/a\\134x5c", b"/a\\x5c"),
        (b"/a\\134", b"/a\\"),
        (b"/caf\xe9\\040", b"/caf\xe9 "),
        // What it never writes stays as it is.
        (b"/a\\04", b"/a\\04"),
        (b"/a\\041", b"/a\\041"),
    ] {
        assert_eq!(names(printed, b"none").0, name, "{}", printed.escape_ascii());
    }
    assert_eq!(names(b"/a", b"//server/a\\043b\\040c").1, "//server/a#b c");
    assert_eq!(names(b"/a", b"").1, "", "a source may be empty");
}

#[test]
fn lines_of_another_form_are_left_out() {
    for line in [
        "",
        "36 35 98:0 / /a rw",
        "36 35 98:0 / - ext4 /dev/x rw",
        "36 35 98 / /a rw - ext4 /dev/x rw",
        "36 35 98:0 / /a rw - ext4",
    ] {
        assert_eq!(parse_line(line), None, "{line:?}");
    }
}

#[test]
fn a_path_lies_on_the_deepest_mount_above_it_and_on_the_last_of_these() {
    let line = |point: &str, kind: &str| format!("1 1 0:1 / {point} rw - {kind} none rw\n");
    let text = [
        line("/", "root"),
        line("/mnt", "covered"),
        line("/mnt/a/b", "deep"),
        line("/mnt", "covers"),
        line("/mnt/a", "middle"),
    ];
    let (_dir, proc) = fake(&[("self/mountinfo", &text.concat())]);
    for (path, kind) in [
        ("/", "root"),
        ("/mntx/a", "root"),
        ("/mnt", "covers"),
        ("/mnt/b", "covers"),
        ("/mnt/a/x", "middle"),
        ("/mnt/a/b", "deep"),
        ("/mnt/a/bc", "middle"),
    ] {
        assert_eq!(proc.mount_of(Path::new(path)).expect("read").expect("one").fs_type, kind, "{path}");
    }
    let (_dir, none) = fake(&[("self/mountinfo", &line("/mnt", "x"))]);
    assert_eq!(none.mount_of(Path::new("/etc")).expect("read"), None);
}

mod root {
    use super::*;

    #[test]
    fn names_that_the_kernel_escapes_come_back_as_they_were_given() {
        if !crate::caps::is_root() {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "CI must be root");
            eprintln!("SKIPPED (needs root)");
            return;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let point = dir.path().join("a b\\040#\n");
        std::fs::create_dir(&point).expect("made");
        crate::mount::mount(Path::new("so #urce\\"), &point, "tmpfs", true, "size=64k").expect("mounted");
        let found = ProcFs::default().mount_of(&point.join("x"));
        let made = std::fs::write(point.join("x"), "");
        crate::mount::unmount(&point, false).expect("unmounted");
        let found = found.expect("read").expect("one");
        assert_eq!((found.mount_point, found.source.as_str()), (point.clone(), "so #urce\\"));
        let options: Vec<&str> = found.options.split(',').collect();
        assert!(["ro", "nosuid", "nodev"].iter().all(|o| options.contains(o)), "{options:?}");
        assert!(found.super_options.contains("size=64k"), "{}", found.super_options);
        assert_eq!(made.expect_err("read-only").raw_os_error(), Some(libc::EROFS));
        assert_eq!(
            crate::mount::unmount(&point, false).expect_err("not mounted").errno(),
            Some(libc::EINVAL)
        );
    }
}

#[test]
fn a_mount_point_with_a_blank_and_optional_fields() {
    let m =
        parse_line("36 35 98:0 /sub /mnt/a\\040b rw,noatime master:1 - ext4 /dev/root rw,errors=continue");
    let m = m.expect("parses");
    assert_eq!(m.mount_point, Path::new("/mnt/a b"));
    assert_eq!((m.dev, m.fs_type.as_str(), m.source.as_str()), (Dev::new(98, 0), "ext4", "/dev/root"));
    assert_eq!((m.options.as_str(), m.super_options.as_str()), ("rw,noatime", "rw,errors=continue"));
}
