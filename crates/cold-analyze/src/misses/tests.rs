use cold_model::layout::{FileLayout, Layouts};
use cold_model::recording::{LookupKind, Recording, StallCause};

use super::*;
use cold_model::sample::{empty, long, process};

/// The search of each (program, kind, path).
fn searches(r: &Recording, layouts: &Layouts) -> Vec<(String, Option<String>)> {
    misses(&Context::new(r, layouts)).into_iter().map(|g| (g.directory, g.search)).collect()
}

fn one(program: &str, kind: LookupKind, path: &str) -> Option<String> {
    let mut r = empty();
    let exe = r.file(&format!("/usr/bin/{program}"), 1 << 20);
    r.processes = vec![process(10, "x", Some(exe))];
    let lib = r.file("/opt/app/bin/main", 1 << 20);
    let mut layouts = Layouts::default();
    let run_path = vec!["$ORIGIN/../lib".to_string()];
    layouts.files.insert(lib, FileLayout { run_path, ..FileLayout::default() });
    let paths = &mut r.manifest.search_paths;
    paths.insert("PATH".to_string(), "/usr/local/bin/:/usr/bin".to_string());
    paths.insert("LD_LIBRARY_PATH".to_string(), "/opt/libs".to_string());
    paths.insert("XDG_DATA_DIRS".to_string(), "/snap/share".to_string());
    paths.insert("GST_PLUGIN_PATH".to_string(), "/opt/gst".to_string());
    r.lookup(1, kind, path, -2);
    let found = searches(&r, &layouts);
    assert_eq!(found.len(), 1, "{path}");
    found[0].1.clone()
}

#[test]
fn every_known_search_is_recognised() {
    use LookupKind::{Access, Exec, Open, Stat};
    for (program, kind, path, search) in [
        ("sh", Exec, "/usr/local/bin/ls", Some("PATH")),
        ("sh", Stat, "/usr/local/bin/ls", Some("PATH")),
        ("sh", Exec, "/elsewhere/ls", None),
        ("x", Open, "/opt/libs/libc.so.6", Some("LD_LIBRARY_PATH")),
        ("x", Open, "/opt/libs/glibc-hwcaps/x86-64-v3/libc.so.6", Some("LD_LIBRARY_PATH")),
        ("x", Open, "/opt/app/lib/libz.so.1", Some("RPATH of /opt/app/bin/main")),
        ("x", Open, "/opt/app/bin/../lib/libz.so.1", Some("RPATH of /opt/app/bin/main")),
        ("x", Stat, "/opt/app/bin/../lib/glibc-hwcaps/x86-64-v2/", Some("RPATH of /opt/app/bin/main")),
        ("x", Open, "/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v4/libm.so.6", Some("loader default path")),
        ("x", Open, "/usr/lib/libm.so.6", Some("loader default path")),
        ("x", Access, "/etc/ld.so.preload", Some("loader configuration")),
        ("python3.11", Stat, "/usr/bin/pyvenv.cfg", Some("Python start-up files")),
        ("python3.11", Stat, "/usr/lib/python311.zip", Some("Python sys.path")),
        ("python3.11", Open, "/w/foo.cpython-311-x86_64-linux-gnu.so", Some("Python sys.path")),
        ("python3.11", Stat, "/w/foo.py", Some("Python sys.path")),
        ("python3.11", Stat, "/usr/lib/python3/dist-packages/foo", Some("Python sys.path")),
        ("node", Stat, "/w/a/node_modules/left-pad", Some("node_modules")),
        ("node", Stat, "/w/a/node_modules", Some("node_modules")),
        ("node", Open, "/w/a/package.json", Some("node module resolution")),
        ("java", Open, "/w/app.jar", Some("Java class path")),
        ("perl", Stat, "/usr/share/perl5/strict.pmc", Some("Perl @INC")),
        ("x", Open, "/usr/lib/locale/locale-archive", Some("locale")),
        ("x", Open, "/usr/share/locale/de/LC_MESSAGES/ls.mo", Some("locale")),
        ("x", Open, "/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.cache", Some("gconv")),
        ("x", Open, "/usr/share/icons/hicolor/48x48/x.png", Some("icon themes")),
        ("x", Open, "/root/.fonts/a.ttf", Some("fonts")),
        ("x", Open, "/usr/share/terminfo/x/xterm", Some("terminfo")),
        ("x", Open, "/usr/share/glib-2.0/schemas/gschemas.compiled", Some("XDG data directories")),
        ("x", Open, "/snap/share/anything", Some("XDG data directories")),
        ("x", Open, "/etc/xdg/x.conf", Some("XDG configuration directories")),
        ("x", Stat, "/opt/gst/plugin", Some("GST_PLUGIN_PATH")),
        ("git", Open, "/etc/gitconfig", Some("git configuration")),
        ("git", Stat, "/w/.git", Some("git repository")),
        ("x", Open, "/w/data.bin", None),
        ("x", Open, "/w/foo.py", None),
    ] {
        assert_eq!(one(program, kind, path).as_deref(), search, "{program} {path}");
    }
}

#[test]
fn one_name_tried_in_several_directories_is_a_search_of_path() {
    let mut r = empty();
    r.lookup(1, LookupKind::Exec, "/a/ls", -2);
    r.lookup(2, LookupKind::Exec, "/b/ls", 0);
    r.lookup(3, LookupKind::Exec, "/a/once", -2);
    let mut found = searches(&r, &Layouts::default());
    found.sort();
    assert_eq!(found, [("/a".to_string(), None), ("/a".to_string(), Some("PATH".to_string()))]);
}

#[test]
fn a_group_counts_calls_time_and_waits_and_only_what_was_not_there() {
    let mut r = empty();
    for (i, name) in ["a", "b", "a", "c", "d", "e", "f"].iter().enumerate() {
        r.lookup(i as u64, LookupKind::Stat, &format!("/w/{name}"), -2);
    }
    r.lookup(10, LookupKind::Open, "/w/x", -20);
    r.lookup(11, LookupKind::Readlink, "/w/plain", -22); // no symbolic link: no miss
    r.lookup(12, LookupKind::Open, "/w/refused", -13);
    r.lookup(13, LookupKind::Open, "/w/there", 3);
    r.lookup(1500, LookupKind::Open, "/w/late", -2); // after ready
    r.stall(3, 2, StallCause::Lookup).lookup = Some(3);
    let groups = misses(&Context::new(&r, &Layouts::default()));
    assert_eq!(groups.len(), 1);
    let g = &groups[0];
    assert_eq!((g.misses, g.time, g.stall), (8, long(8), long(2)));
    assert_eq!(g.examples, ["a", "b", "c", "d", "e"]);
    assert_eq!((g.kinds[&LookupKind::Stat], g.kinds[&LookupKind::Open]), (7, 1));
}

#[test]
fn the_empty_name_is_no_directory() {
    let mut r = empty();
    let exe = r.file("/usr/bin/x", 1 << 20);
    r.processes = vec![process(10, "x", Some(exe))];
    r.lookup(1, LookupKind::Open, "", -2);
    r.lookup(2, LookupKind::Stat, "/", -2);
    let layouts = Layouts::default();
    let groups = misses(&Context::new(&r, &layouts));
    let mut all: Vec<_> = groups.iter().map(|g| (&*g.directory, g.examples.join(" "))).collect();
    all.sort_unstable();
    assert_eq!(all, [("", "\"\"".to_owned()), ("/", "/".to_owned())]);
}

#[test]
fn directories_side_by_side_are_one_family() {
    let mut r = empty();
    for i in 0..30 {
        r.lookup(i * 3, LookupKind::Open, &format!("/srv/app/conf.d/{i:02}/app.toml"), -2);
        r.lookup(i * 3 + 1, LookupKind::Open, &format!("/srv/app/conf.d/{i:02}/app.json"), -2);
    }
    r.lookup(500, LookupKind::Open, "/srv/app/other/x", -2);
    let a = crate::analyze(&r, &Layouts::default());
    let searches = crate::searches(&a.misses);
    let told: Vec<_> = searches.iter().map(|s| (s.name, s.family, s.misses, s.directories.len())).collect();
    assert_eq!(told, [(Some("/srv/app/conf.d/NN"), true, 60, 30), (None, false, 1, 1)]);
    let advice = a.suggestions.iter().find(|s| s.id.name() == "lookups_by_pattern").expect("is advised");
    assert!(advice.why.contains("/srv/app/conf.d/NN (60 in 30 directories)"), "{}", advice.why);
}

#[test]
fn what_is_looked_for_below_another_root_is_recognised_there_and_told_as_it_is_seen_from_here() {
    let mut r = empty();
    let exe = r.file("/srv/image/opt/app/bin/main", 1 << 20);
    r.processes = vec![process(10, "x", Some(exe))];
    let mut layouts = Layouts::default();
    let run_path = vec!["$ORIGIN/../lib".to_string()];
    layouts.files.insert(exe, FileLayout { run_path, ..FileLayout::default() });
    for (root, path) in [
        (Some("/srv/image"), "/lib/x86_64-linux-gnu/libz.so.1"),
        (Some("/srv/image"), "/opt/app/lib/libz.so.1"),
        (Some(""), "/lib/libz.so.1"),
        (None, "/lib/libz.so.1"),
    ] {
        r.lookup(1, LookupKind::Open, path, -2).root = root.map(str::to_owned);
    }
    let found: std::collections::BTreeMap<String, Option<String>> =
        searches(&r, &layouts).into_iter().collect();
    let default = || Some("loader default path".to_string());
    let expected = [
        ("/srv/image/lib/x86_64-linux-gnu", default()),
        ("/srv/image/opt/app/lib", Some("RPATH of /srv/image/opt/app/bin/main".to_string())),
        ("[unknown root]/lib", default()),
        ("/lib", default()),
    ];
    assert_eq!(found, expected.map(|(d, s)| (d.to_string(), s)).into());
}
