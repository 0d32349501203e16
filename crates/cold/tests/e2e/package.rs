//! The Debian package: what is in it, and that a purge leaves nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use cold_testbed::{need, need_root};

/// A tree as `make` leaves it, with the program under test as its release.
fn built(place: &Path) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["packaging", "Cargo.toml", "CHANGELOG.md"] {
        symlink(source.join(name), place.join(name)).unwrap();
    }
    // Copies, as the scripts go by their own place.
    fs::create_dir(place.join("scripts")).unwrap();
    for name in ["deb", "install"] {
        fs::copy(source.join("scripts").join(name), place.join("scripts").join(name)).unwrap();
    }
    let host = said(Command::new("rustc").arg("-vV"));
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let release = place.join("target").join(host).join("release");
    fs::create_dir_all(&release).unwrap();
    // Without symbols a debug build packs in a tenth of the time.
    said(Command::new("strip").arg("-o").arg(release.join("cold")).arg(env!("CARGO_BIN_EXE_cold")));
    fs::copy(cold_testbed::launcher(), release.join("cold-launch")).unwrap();
    let mut deb = Command::new(place.join("scripts/deb"));
    deb.args(["-Zgzip", "-z1"]).env("SOURCE_DATE_EPOCH", "1700000000").current_dir(place);
    place.join(said(&mut deb).trim()).to_str().unwrap().to_owned()
}

#[track_caller]
fn said(command: &mut Command) -> String {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

fn there(command: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {command}")]).output();
    found.is_ok_and(|out| out.status.success())
}

/// Names below a directory, without dpkg's own.
fn names(root: &Path) -> BTreeSet<String> {
    let found = said(Command::new("find").arg(root).args(["-mindepth", "1", "-printf", "%P\n"]));
    found
        .lines()
        .filter(|name| !"var/lib/dpkg".starts_with(name) && !name.starts_with("var/lib/dpkg"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_package_installs_with_its_unit_off_and_a_purge_leaves_nothing() {
    if !need(there("dpkg-deb") && there("strip"), "dpkg and binutils") || !need_root() {
        return;
    }
    // The test disk has no room for it.
    let place = tempfile::Builder::new().prefix("cold-e2e-").tempdir_in("/var/tmp").unwrap();
    let place = place.path();
    let package = built(place);
    let control = said(Command::new("dpkg-deb").args(["--field", &package]));
    assert!(control.contains("Package: coldstart") && !control.contains("@VERSION@"), "{control}");
    assert!(!control.contains("Depends"), "static programs need nothing: {control}");
    let list = said(Command::new("dpkg-deb").args(["--contents", &package]));
    assert!(list.lines().all(|line| line.contains(" root/root ")), "{list}");

    let root = place.join("root");
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let before = names(&root);
    let dpkg = |words: &[&str]| {
        // Scripts of the package are run outside and told where its root is; nothing of this machine is changed.
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.display())).arg("--force-script-chrootless").args(words);
        said(&mut dpkg)
    };
    dpkg(&["--install", &package]);
    let installed = names(&root);
    for wanted in [
        "usr/bin/cold",
        "usr/bin/cold-launch",
        "usr/lib/systemd/system/coldstart.service",
        "usr/lib/systemd/system/coldstart-reader.service",
        "usr/lib/systemd/system/coldstart-reader.socket",
        "usr/share/man/man1/cold-service-run.1.gz",
        "usr/share/bash-completion/completions/cold",
        "usr/share/zsh/site-functions/_cold",
        "usr/share/fish/vendor_completions.d/cold.fish",
        "usr/share/doc/coldstart/copyright",
        "usr/share/doc/coldstart/changelog.gz",
    ] {
        assert!(installed.contains(wanted), "{wanted}: {installed:?}");
    }
    assert!(!installed.iter().any(|name| name.starts_with("etc")), "nothing is enabled: {installed:?}");
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/coldstart.service")).unwrap();
    let run = "ExecStart=/usr/bin/cold --quiet service run --reader /run/coldstart-reader\n";
    assert!(unit.contains(run), "{unit}");
    assert_eq!(
        said(Command::new(root.join("usr/bin/cold")).arg("--version")),
        said(Command::new(env!("CARGO_BIN_EXE_cold")).arg("--version"))
    );

    // What a used service leaves.
    let state = root.join("var/lib/coldstart/service");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("history.db"), "x").unwrap();
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    fs::create_dir_all(&wants).unwrap();
    symlink("/usr/lib/systemd/system/coldstart.service", wants.join("coldstart.service")).unwrap();
    symlink("/lib/systemd/system/other.service", wants.join("other.service")).unwrap();
    dpkg(&["--remove", "coldstart"]);
    assert!(state.join("history.db").exists(), "removed, not purged");
    assert!(!root.join("usr/bin/cold").exists());
    dpkg(&["--purge", "coldstart"]);
    let mut left: Vec<String> = names(&root).difference(&before).cloned().collect();
    left.retain(|name| !name.starts_with("etc") && name != "var/log" && name != "var/log/dpkg.log");
    assert_eq!(left, Vec::<String>::new(), "{left:?}");
    assert!(!wants.join("coldstart.service").is_symlink() && wants.join("other.service").is_symlink());
    let known = fs::read_to_string(root.join("var/lib/dpkg/status")).unwrap();
    assert!(!known.contains("coldstart"), "{known}");
}

/// Offline, by the unit alone: what systemd-analyze calls its exposure, from 0 (none) to 10.
#[test]
fn the_units_exposure_is_at_most_2() {
    if !need(there("systemd-analyze"), "systemd-analyze") {
        return;
    }
    for name in ["coldstart.service", "coldstart-reader.service"] {
        let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
        let mut analyze = Command::new("systemd-analyze");
        // In tenths; above the threshold it ends with 1.
        analyze.args(["security", "--offline=yes", "--threshold=20", "--no-pager"]).arg(unit);
        let table = said(&mut analyze);
        assert!(table.contains(&format!("Overall exposure level for {name}")), "{table}");
    }
}
