use std::os::unix::fs::symlink;

use super::*;

/// Devices as sysfs has them: directories below `devices`, found by links of their names and numbers.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(devices: &[(&str, &str)], attributes: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().expect("a directory"));
        for links in ["class/block", "dev/block"] {
            std::fs::create_dir_all(tree.0.path().join(links)).expect("made");
        }
        for (place, number) in devices {
            tree.put(&format!("{place}/dev"), number);
            let to = Path::new("../../devices").join(place);
            let name = Path::new(place).file_name().expect("a name");
            symlink(&to, tree.0.path().join("class/block").join(name)).expect("linked");
            symlink(&to, tree.0.path().join("dev/block").join(number)).expect("linked");
        }
        for (rel, text) in attributes {
            tree.put(rel, text);
        }
        tree
    }

    fn put(&self, rel: &str, text: &str) {
        let path = self.0.path().join("devices").join(rel);
        std::fs::create_dir_all(path.parent().expect("below")).expect("made");
        std::fs::write(path, format!("{text}\n")).expect("written");
    }

    fn sys(&self) -> SysFs {
        SysFs::new(self.0.path())
    }

    fn named(&self, name: &str) -> BlockDevice {
        self.sys().block_device_named(name).expect("read").expect("is there")
    }
}

#[test]
fn a_partition_has_the_number_and_the_queue_of_its_disk() {
    let tree = Tree::new(
        &[("pci/sda", "8:0"), ("pci/sda/sda3", "8:3")],
        &[
            ("pci/sda/sda3/partition", "3"),
            ("pci/sda/queue/read_ahead_kb", "128"),
            ("pci/sda/queue/max_sectors_kb", "1280"),
            ("pci/sda/queue/max_segments", "168"),
            ("pci/sda/queue/scheduler", "none [mq-deadline] kyber"),
            ("pci/sda/queue/rotational", "1"),
            ("pci/sda/queue/nr_requests", "64"),
            ("pci/sda/queue/wbt_lat_usec", "75000"),
            ("pci/sda/device/model", "A Disk 5000  "),
        ],
    );
    let by_number = tree.sys().block_device(Dev::new(8, 3)).expect("read").expect("is there");
    let expected = BlockDevice {
        name: "sda3".into(),
        disk: "sda".into(),
        disk_dev: Some(Dev::new(8, 0)),
        kind: BlockKind::Disk,
        read_ahead_kb: Some(128),
        max_sectors_kb: Some(1280),
        max_segments: Some(168),
        scheduler: Some("mq-deadline".into()),
        rotational: Some(true),
        nr_requests: Some(64),
        wbt_lat_usec: Some(75_000),
        model: Some("A Disk 5000".into()),
        slaves: Vec::new(),
    };
    assert_eq!(by_number, expected);
    assert_eq!(tree.named("sda"), BlockDevice { name: "sda".into(), ..expected });
}

#[test]
fn what_a_driver_does_not_have_is_unknown_and_not_zero() {
    let attributes =
        [("vda/queue/rotational", "0"), ("vda/queue/nr_requests", "many"), ("vda/queue/scheduler", "none")];
    let found = Tree::new(&[("vda", "nonsense")], &attributes).named("vda");
    assert_eq!(
        (found.disk_dev, found.read_ahead_kb, found.max_segments, found.nr_requests, found.model),
        (None, None, None, None, None)
    );
    assert_eq!((found.rotational, found.scheduler.as_deref()), (Some(false), Some("none")));
}

#[test]
fn a_number_without_a_device_is_none_and_a_link_in_a_circle_an_error() {
    let tree = Tree::new(&[], &[]);
    let links = tree.0.path().join("class/block");
    symlink("round", links.join("round")).expect("linked");
    symlink("../../devices/unplugged", links.join("sdx")).expect("linked");
    assert_eq!(tree.sys().block_device(Dev::new(0, 42)).expect("read"), None);
    assert_eq!(tree.sys().block_device_named("sdx").expect("read"), None);
    let error = tree.sys().block_device_named("round").expect_err("a circle");
    assert_eq!(error.errno(), Some(libc::ELOOP));
    assert!(error.to_string().contains("class/block/round"), "{error}");
}

/// A name, the attributes that are there, and what the device is.
type Case = (&'static str, &'static [(&'static str, &'static str)], BlockKind);

#[test]
fn a_kind_is_told_by_what_the_driver_shows_before_the_name() {
    let dm = |name: &str, subsystem: Option<&str>| BlockKind::DeviceMapper {
        name: name.into(),
        subsystem: subsystem.map(Into::into),
    };
    let file = |direct_io| BlockKind::Loop { backing: "/a b (deleted)".into(), direct_io };
    let cases: [Case; 13] = [
        ("dm-0", &[("dm/name", "root"), ("dm/uuid", "")], dm("root", None)),
        ("dm-1", &[("dm/name", "root")], dm("root", None)),
        ("md127", &[("md/level", "raid1")], BlockKind::Md { level: "raid1".into() }),
        ("loop0", &[("loop/backing_file", "/a b (deleted)"), ("loop/dio", "1")], file(Some(true))),
        ("loop1", &[("loop/backing_file", "/a b (deleted)"), ("loop/dio", "0")], file(Some(false))),
        ("loop2", &[("loop/backing_file", "/a b (deleted)")], file(None)),
        ("loop3", &[], BlockKind::Disk),
        ("zram0", &[], BlockKind::Zram),
        ("ram0", &[], BlockKind::Ram),
        ("xvda", &[], BlockKind::Virtual),
        ("vdb", &[], BlockKind::Virtual),
        ("nvme0n1", &[], BlockKind::Nvme),
        ("mmcblk0", &[], BlockKind::Disk),
    ];
    for (name, attributes, kind) in cases {
        let tree = Tree::new(&[(name, "9:9")], &[]);
        for (rel, text) in attributes {
            tree.put(&format!("{name}/{rel}"), text);
        }
        assert_eq!(tree.named(name).kind, kind, "{name}");
    }
}

#[test]
fn the_use_of_a_mapped_device_stands_in_front_of_its_identifier() {
    let hex = "0123456789abcdef0123456789abcdef";
    for (uuid, expected) in [
        (format!("LVM-{hex}{hex}"), Some("LVM")),
        // That of LVM has letters of both kinds.
        (format!("LVM-A1b{hex}{}", &hex[3..]), Some("LVM")),
        (format!("CRYPT-LUKS2-{hex}-root"), Some("CRYPT-LUKS2")),
        (format!("CRYPT-VERITY-{hex}-usr"), Some("CRYPT-VERITY")),
        ("mpath-3600508b".into(), None),
        (format!("part1-mpath-{hex}"), None),
    ] {
        let tree = Tree::new(&[("dm-0", "253:0")], &[("dm-0/dm/name", "x"), ("dm-0/dm/uuid", &uuid)]);
        let BlockKind::DeviceMapper { subsystem, .. } = tree.named("dm-0").kind else { panic!("{uuid}") };
        assert_eq!(subsystem.as_deref(), expected, "{uuid}");
    }
}

#[test]
fn the_devices_below_are_in_the_order_of_their_names() {
    let tree = Tree::new(&[("md0", "9:0")], &[("md0/slaves/sdb/x", ""), ("md0/slaves/sda/x", "")]);
    assert_eq!(tree.named("md0").slaves, ["sda", "sdb"]);
}

#[test]
fn a_directory_that_is_not_there_is_empty_and_what_cannot_be_read_an_error() {
    let tree = Tree::new(&[("vda", "1:1")], &[]);
    assert_eq!(tree.sys().list("none").expect("absent"), [""; 0]);
    assert_eq!(tree.sys().read_opt("none").expect("absent"), None);
    assert_eq!(tree.sys().list("devices/vda/dev").expect_err("a file").errno(), Some(libc::ENOTDIR));
    assert_eq!(tree.sys().read_opt("devices").expect_err("a directory").errno(), Some(libc::EISDIR));
}

#[test]
fn the_chosen_value_is_the_one_in_brackets() {
    for (text, chosen) in [
        ("always [madvise] never", Some("madvise")),
        ("[none] kyber", Some("none")),
        ("[]", Some("")),
        ("none", None),
        ("a] b", None),
        ("a [b", None),
    ] {
        assert_eq!(SysFs::chosen(text), chosen, "{text:?}");
    }
}

#[test]
fn every_device_of_this_machine_is_the_same_by_name_and_by_number() {
    let sys = SysFs::default();
    for name in sys.list("class/block").expect("listed") {
        let Some(by_name) = sys.block_device_named(&name).expect("read") else { continue };
        let number = sys.read_opt(format!("class/block/{name}/dev")).expect("read").expect("has one");
        let number = Dev::parse(&number).expect("a number");
        assert_eq!(sys.block_device(number).expect("read").as_ref(), Some(&by_name));
        assert_eq!(by_name.name, name);
        assert_eq!(by_name.disk_dev == Some(number), by_name.disk == name, "{by_name:?}");
    }
}
