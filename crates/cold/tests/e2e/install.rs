//! Overrides: wrappers, desktop entries, drop-ins and shell functions that start programs through the launcher.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::*;

/// A user with a home, programs, and a `cold` of their own. Root's overrides are remembered in the machine's own
/// list, which tests leave alone.
struct World {
    place: Sandbox,
}

impl World {
    fn new() -> Self {
        let place = Sandbox::for_all();
        let me = Self { place };
        fs::create_dir(me.path("cold")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_cold"), me.path("cold/cold")).unwrap();
        fs::copy(cold_testbed::launcher(), me.path("cold/cold-launch")).unwrap();
        for dir in ["home", "home/a", "home/b", "bin", "data/applications", "data/dbus-1/services"] {
            fs::create_dir_all(me.path(dir)).unwrap();
        }
        for dir in ["home", "home/a", "home/b"] {
            fs::set_permissions(me.path(dir), PermissionsExt::from_mode(0o777)).unwrap();
        }
        me.program("bin/app");
        me
    }
    fn path(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }
    fn text(&self, name: &str) -> String {
        self.place.text(name)
    }
    /// A program that says that it was started, and how.
    fn program(&self, name: impl AsRef<Path>) {
        let path = self.place.path("").join(name);
        cold_testbed::executable(&path, "#!/bin/sh\nprintf 'app'\nprintf ' <%s>' \"$@\"\n");
    }
    /// `cold prefetch` as an ordinary user.
    fn cold<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Cold {
        let words = words.into_iter().map(|w| w.as_ref().to_owned());
        let words: Vec<OsString> = ["prefetch".into()].into_iter().chain(words).collect();
        let mut cold = self.place.cold(words);
        cold.use_program(&self.path("cold/cold"));
        cold = cold.env("HOME", self.path("home")).env("XDG_STATE_HOME", self.path("home/state"));
        cold = cold.env("XDG_DATA_HOME", self.path("home/data")).env("XDG_DATA_DIRS", self.path("data"));
        cold = cold.env("XDG_CONFIG_HOME", self.path("home/config")).env("PATH", self.search(&["bin"]));
        if rustix::process::geteuid().is_root() { cold.by_nobody() } else { cold }
    }
    fn run(&self, words: &[&str]) -> Ran {
        self.cold(words).run()
    }
    /// PATH: these directories, then the system's.
    fn search(&self, dirs: &[&str]) -> String {
        dirs.iter().map(|d| self.text(d) + ":").collect::<String>() + "/usr/bin:/bin"
    }
    /// What a command says, which must not take long.
    fn says(&self, path: &str, words: &[impl AsRef<OsStr>]) -> String {
        let mut command = Command::new("/usr/bin/timeout");
        command.args(["20", "/usr/bin/env"]).args(words).env("PATH", path).current_dir("/");
        said(&command.env("HOME", self.path("home")).output().unwrap())
    }
    fn without_launcher(&self) {
        fs::remove_file(self.path("cold/cold-launch")).unwrap();
    }
    /// Regular files below the home directory, as far as they are overrides.
    fn files(&self) -> Vec<String> {
        let out =
            Command::new("find").arg(self.path("home")).args(["-type", "f", "-printf", "%P\n"]).output();
        let mut files: Vec<String> = said(&out.unwrap()).lines().map(str::to_owned).collect();
        files.sort();
        files
    }
    fn unit(&self, text: &str) {
        fs::create_dir_all(self.path("home/config/systemd/user")).unwrap();
        fs::write(self.path("home/config/systemd/user/app.service"), text).unwrap();
        let all = Command::new("chmod").args(["-R", "a+rwX"]).arg(self.path("home/config")).status();
        assert!(all.unwrap().success());
    }
}

#[track_caller]
fn said(out: &Output) -> String {
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout.clone()).unwrap()
}

#[test]
fn wrappers_of_one_program_in_two_directories_start_it_in_every_order() {
    let w = World::new();
    let (a, b) = (w.text("home/a/app"), w.text("home/b/app"));
    let (ab, ba) = (w.search(&["home/a", "home/b", "bin"]), w.search(&["home/b", "home/a", "bin"]));
    let install = |path: &str, wrapper: &str| {
        let words = ["install", "--wrapper", wrapper];
        w.cold(words).env("PATH", path).run().expect(0);
    };
    // Each is written while the other one stands before the program, and again in the other order.
    for path in [&ab, &ba, &ab] {
        for wrapper in [&a, &b] {
            install(path, wrapper);
            for path in [&ab, &ba] {
                assert_eq!(w.says(path, &["app", "x y"]), "app <x y>");
            }
        }
    }
    // A symbolic link to a wrapper is a wrapper, and one that was named is none the less.
    symlink(&a, w.path("home/link")).unwrap();
    w.run(&["install", "--wrapper", &b, "--program", &w.text("home/link")]).expect(0);
    w.run(&["install", "--wrapper", &a, "--program", &b]).expect(0);
    for path in [&ab, &ba] {
        assert_eq!(w.says(path, &["app"]), "app <>");
    }
    // The program itself need not be in PATH: the wrapper knows it.
    fs::create_dir(w.path("elsewhere")).unwrap();
    fs::rename(w.path("bin/app"), w.path("elsewhere/app")).unwrap();
    w.run(&["install", "--wrapper", &a, "--program", &w.text("elsewhere/app")]).expect(0);
    fs::remove_file(&b).unwrap();
    install(&ab, &b);
    fs::remove_file(&a).unwrap();
    assert_eq!(w.says(&ab, &["app"]), "app <>");
    // One that leads nowhere is no program.
    fs::remove_file(w.path("elsewhere/app")).unwrap();
    let ran = w.cold(["install", "--wrapper", &a]).env("PATH", &ab).run().expect(2);
    assert!(ran.error().contains("there is no other app in PATH"), "{}", ran.stderr);
}

#[test]
fn every_override_starts_its_program_when_the_launcher_is_gone() {
    let w = World::new();
    let app = w.text("bin/app");
    fs::write(w.path("data/applications/app.desktop"), format!("[Desktop Entry]\nExec={app} %u 'x\n"))
        .unwrap();
    w.unit(&format!("[Service]\nExecStart=-{app} one\nExecStart={app} \"t w o\"\n"));
    let wrapper = w.text("home/a/app");
    w.run(&["install", "--wrapper", &wrapper, "--store", &w.text("home/p l")]).expect(0);
    w.run(&["install", "--desktop", "app", "--scenario", "page", "--control-every", "0"]).expect(0);
    w.run(&["install", "--systemd", "app"]).expect(0);
    let function = w.run(&["shell-function", "app"]).expect(0).stdout;
    let entry = fs::read_to_string(w.path("home/data/applications/app.desktop")).unwrap();
    let line = entry.lines().find_map(|l| l.strip_prefix("Exec=")).unwrap();
    let desktop: Vec<&str> = line.split(' ').take_while(|word| *word != "%u").collect();
    let dropin = w.path("home/config/systemd/user/app.service.d/90-coldstart.conf");
    let dropin = fs::read_to_string(dropin).unwrap();
    let commands: Vec<&str> = dropin.lines().filter_map(|l| l.strip_prefix("ExecStart=")).collect();
    assert_eq!((commands.len(), commands[0]), (3, ""), "{dropin}");
    assert!(commands[1].starts_with("-/bin/sh -c \"[ -x "), "{dropin}");
    // systemd takes two dollars for one; the shell here must be kept from replacing them.
    let unquoted = commands[2].replace("$$", "\\$");
    let path = w.search(&["bin"]);
    let check = || {
        assert_eq!(w.says(&path, &[&wrapper, "a b", ""]), "app <a b> <>");
        assert_eq!(w.says(&path, &[&["sh"][..], &desktop[1..], &["u r l"]].concat()), "app <u r l>");
        assert_eq!(w.says(&path, &["sh", "-euc", &format!("exec {unquoted}")]), "app <t w o>");
        let call = format!("{function}\napp 'a b'");
        assert_eq!(w.says(&path, &["sh", "-euc", &call]), "app <a b>");
        assert_eq!(w.says(&path, &["bash", "-euc", &call]), "app <a b>");
    };
    check();
    w.without_launcher();
    check();
    // Nor does it help to be there without the right to be executed.
    fs::write(w.path("cold/cold-launch"), "").unwrap();
    check();
}

#[test]
fn a_desktop_entry_without_exec_is_started_over_dbus_through_the_launcher() {
    let w = World::new();
    let name = "org.example.App";
    let put = |kind: &str, text: &str| fs::write(w.path("data").join(kind), text).unwrap();
    put("applications/org.example.App.desktop", "[Desktop Entry]\nType=Application\nDBusActivatable=true\n");
    let service = "dbus-1/services/org.example.App.service";
    let own = w.path("home/data").join(service);
    let entry = w.path("home/data/applications/org.example.App.desktop");
    // Nothing says how it is started.
    let ran = w.run(&["install", "--desktop", name]).expect(2);
    assert!(ran.error().contains("is started over D-Bus and has no Exec= of its own"), "{}", ran.stderr);
    // systemd starts it: that is where the launcher belongs.
    put(service, "[D-BUS Service]\nName=org.example.App\nExec=/bin/false\nSystemdService=app.service\n");
    let ran = w.run(&["install", "--desktop", name]).expect(2);
    assert!(ran.stderr.contains("try: cold prefetch install --systemd app.service"), "{}", ran.stderr);
    assert_eq!(w.files(), [] as [&str; 0]);
    // The bus starts it.
    put(service, &format!("[D-BUS Service]\nName={name}\nExec={} --service\n", w.text("bin/app")));
    let ran = w.run(&["install", "--desktop", name]).expect(0);
    assert!(ran.stdout.contains("ReloadConfig") && !entry.exists(), "{}", ran.stdout);
    let text = fs::read_to_string(&own).unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix("Exec=")).unwrap();
    for launcher in [true, false] {
        if !launcher {
            w.without_launcher();
        }
        assert_eq!(w.says("/usr/bin:/bin", &["sh", "-c", line]), "app <--service>");
    }
    w.run(&["uninstall", "--desktop", name]).expect(0);
    assert_eq!(w.files(), [] as [&str; 0]);
    // An action without Exec= needs the bus, too.
    put(
        "applications/org.example.App.desktop",
        "[Desktop Entry]\nExec=app\nDBusActivatable=true\n[Desktop Action new]\nName=New\n",
    );
    w.run(&["install", "--desktop", name, "--control-every", "0"]).expect(1);
    fs::write(w.path("cold/cold-launch"), "").unwrap();
    w.run(&["install", "--desktop", name]).expect(0);
    assert!(own.exists() && !entry.exists());
}

#[test]
fn others_files_and_edited_ones_are_neither_replaced_nor_removed() {
    let w = World::new();
    fs::write(w.path("data/applications/app.desktop"), "[Desktop Entry]\nExec=app %u\n").unwrap();
    let entry = w.path("home/data/applications/app.desktop");
    let wrapper = w.text("home/a/app");
    let shown = w.run(&["install", "--desktop", "app", "--print"]).expect(0).stdout;
    assert!(shown.contains("cold-launch --control-every 10 -- \"$@\"") && !entry.exists(), "{shown}");
    w.run(&["install", "--desktop", "app"]).expect(0);
    w.run(&["install", "--wrapper", &wrapper]).expect(0);
    w.run(&["install", "--wrapper", &wrapper, "--scenario", "page"]).expect(0);
    assert!(fs::read_to_string(&wrapper).unwrap().contains(" --scenario page "));
    for path in [&entry, Path::new(&wrapper)] {
        let edited = fs::read_to_string(path).unwrap() + "# mine\n";
        fs::remove_file(path).unwrap();
        fs::write(path, edited).unwrap();
    }
    let before = w.files();
    for words in [["install", "--wrapper", &wrapper], ["uninstall", "--wrapper", &wrapper]] {
        assert!(w.run(&words).expect(2).error().contains("was changed since cold wrote it"));
    }
    let ran = w.run(&["uninstall", "--desktop", "app"]).expect(2);
    assert!(ran.error().contains("was changed since cold wrote it"), "{}", ran.stderr);
    let ran = w.run(&["uninstall", "--all"]).expect(1);
    assert_eq!(ran.stderr.matches("it is left alone").count(), 2, "{}", ran.stderr);
    // What it edited still needs its script.
    assert_eq!(w.files(), before);
    for path in [&entry, Path::new(&wrapper)] {
        fs::write(path, "[Desktop Entry]\nExec=mine\n").unwrap();
    }
    for words in [["install", "--wrapper", &wrapper], ["install", "--desktop", "app"]] {
        assert!(w.run(&words).expect(2).error().contains("was not written by cold"));
    }
    w.run(&["uninstall", "--all"]).expect(0);
    let left = ["a/app", "data/applications/app.desktop"];
    assert_eq!(w.files(), left);
    // A link in its place is not followed, and not replaced.
    fs::remove_file(&wrapper).unwrap();
    symlink(w.path("cold/cold"), &wrapper).unwrap();
    assert!(w.run(&["install", "--wrapper", &wrapper]).expect(2).error().contains("was not written by cold"));
    w.run(&["uninstall", "--wrapper", &wrapper]).expect(2);
    assert!(fs::symlink_metadata(&wrapper).unwrap().is_symlink());
}

#[test]
fn uninstall_all_removes_what_install_wrote_and_nothing_else() {
    let w = World::new();
    fs::write(w.path("data/applications/app.desktop"), "[Desktop Entry]\nExec=app %u\n").unwrap();
    w.unit("[Service]\nExecStart=/bin/true\n");
    let before = w.files();
    assert!(w.run(&["uninstall", "--all"]).expect(0).stdout.contains("nothing is installed"));
    let install = || {
        w.run(&["install", "--desktop", "app"]).expect(0);
        w.run(&["install", "--systemd", "app"]).expect(0);
        w.run(&["install", "--wrapper", &w.text("home/a/app")]).expect(0);
        w.run(&["install", "--wrapper", &w.text("home/b/app")]).expect(0);
    };
    install();
    fs::remove_file(w.path("home/b/app")).unwrap();
    let ran = w.run(&["uninstall", "--all"]).expect(0);
    assert_eq!(ran.stdout.matches("removed ").count(), 4, "{}", ran.stdout);
    assert!(ran.stdout.contains("systemctl daemon-reload"), "{}", ran.stdout);
    assert_eq!(w.files(), before);
    for gone in ["home/data/coldstart", "home/config/systemd/user/app.service.d"] {
        assert!(!w.path(gone).exists(), "{gone}");
    }
    assert!(w.run(&["uninstall", "--all"]).expect(0).stdout.contains("nothing is installed"));
    // A link that somebody else put into the list is none.
    install();
    let victim = w.path("home/victim");
    fs::copy(w.path("home/a/app"), &victim).unwrap();
    let planted = w.path("home/state/coldstart/installed/0123456789abcdef");
    symlink(&victim, &planted).unwrap();
    w.run(&["uninstall", "--all"]).expect(0);
    assert!(victim.exists());
}

#[test]
fn no_line_is_smuggled_into_an_override() {
    let w = World::new();
    w.unit("[Service]\nExecStart=/bin/true\n");
    fs::write(w.path("data/applications/app.desktop"), "[Desktop Entry]\nExec=app\n").unwrap();
    let evil = w.text("home/p\nExecStartPre=\nExec=touch /x\ntouch smuggled #");
    let wrapper = w.text("home/a/x\ntouch smuggled\n#");
    for words in [
        &["install", "--systemd", "app", "--store", &evil][..],
        &["install", "--systemd", "app\n[Service]"],
        &["install", "--desktop", "app\n"],
        &["install", "--wrapper", &wrapper, "--program", "/bin/true", "--scenario", "a\ntouch smuggled"],
    ] {
        let ran = w.run(words).expect(2);
        assert!(ran.stderr.lines().count() <= 2, "{}", ran.stderr);
    }
    // A shell can be told any path.
    w.run(&["install", "--wrapper", &wrapper, "--program", &w.text("bin/app"), "--store", &evil]).expect(0);
    w.run(&["install", "--desktop", "app", "--store", &evil]).expect(0);
    let entry = fs::read_to_string(w.path("home/data/applications/app.desktop")).unwrap();
    assert_eq!(entry.matches("\nExec").count(), 1, "{entry}");
    assert_eq!(w.says("/usr/bin:/bin", &[&wrapper, "x"]), "app <x>");
    assert!(!Path::new("/smuggled").exists());
    // A home that a line cannot hold.
    let home = w.path("home/h\nExec=evil");
    let ran = w.cold(["install", "--desktop", "app"]).env("XDG_DATA_HOME", &home).run().expect(2);
    assert!(ran.error().contains("cannot stand in this kind of file") && !home.exists(), "{}", ran.stderr);
}

#[test]
fn a_wrapper_starts_a_program_whose_name_is_no_text() {
    let w = World::new();
    let odd = |dir: &str| {
        let name = OsString::from_vec(b"a\xffp \x81\n'$x".to_vec());
        w.path(dir).join(name)
    };
    w.program(odd("bin"));
    let words = ["install".into(), "--wrapper".into(), odd("home/a").into_os_string()];
    w.cold(&words).run().expect(0);
    assert_eq!(w.says("/usr/bin:/bin", &[odd("home/a").as_os_str(), OsStr::new("x")]), "app <x>");
    // A second one finds the program behind it.
    let words = ["install".into(), "--wrapper".into(), odd("home/b").into_os_string()];
    w.cold(&words).env("PATH", w.search(&["home/a"])).run().expect(0);
    w.without_launcher();
    assert_eq!(w.says("/usr/bin:/bin", &[odd("home/b").as_os_str(), OsStr::new("x")]), "app <x>");
    for dir in ["home/a", "home/b"] {
        w.cold(["uninstall".into(), "--wrapper".into(), odd(dir).into_os_string()]).run().expect(0);
        assert!(!odd(dir).exists());
    }
}

mod root {
    use std::os::unix::fs::chown;

    use cold_testbed::needs_root;

    use super::*;

    /// `cold prefetch` as root.
    fn as_root(w: &World, words: &[&str]) -> Cold {
        let mut cold = w.place.cold([&["prefetch"], words].concat());
        cold.use_program(&w.path("cold/cold"));
        cold.env("PATH", w.search(&["bin"]))
    }

    /// A service of the system that goes away with its value.
    struct Unit(String);

    impl Unit {
        fn new(w: &World) -> Self {
            let name = format!("{}.service", w.path("").file_name().unwrap().to_str().unwrap());
            fs::create_dir_all("/run/systemd/system").unwrap();
            fs::write(Path::new("/run/systemd/system").join(&name), "[Service]\nExecStart=/bin/true\n")
                .unwrap();
            Self(name)
        }
        fn dropin(&self) -> PathBuf {
            Path::new("/etc/systemd/system").join(format!("{}.d/90-coldstart.conf", self.0))
        }
    }

    impl Drop for Unit {
        fn drop(&mut self) {
            let _ = fs::remove_file(Path::new("/run/systemd/system").join(&self.0));
            let _ = fs::remove_file(self.dropin());
            let _ = fs::remove_dir(self.dropin().parent().unwrap());
        }
    }

    #[test]
    fn roots_overrides_run_nothing_that_a_user_can_change() {
        needs_root!();
        let w = World::new();
        let unit = Unit::new(&w);
        let systemd = ["install", "--print", "--systemd", &unit.0];
        let wrapper = ["install", "--print", "--wrapper", &w.text("sbin/app")];
        as_root(&w, &systemd).run().expect(0);
        as_root(&w, &wrapper).run().expect(0);
        let refused = |ran: Ran, what: &str, next: &str| {
            let ran = ran.expect(2);
            assert!(ran.error().contains(what), "{}", ran.stderr);
            assert!(ran.stderr.contains(next) && ran.stdout.is_empty(), "{}", ran.stderr);
        };
        let launcher = w.path("cold/cold-launch");
        for (path, owner, mode) in [
            (launcher.clone(), Some(65534), 0o755),
            (launcher.clone(), None, 0o775),
            (w.path("cold"), Some(65534), 0o755),
            (w.path("cold"), None, 0o757),
        ] {
            chown(&path, owner, None).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            for words in [&systemd[..], &wrapper] {
                refused(as_root(&w, words).run(), "root's override would run ", "make install");
            }
            chown(&path, Some(0), None).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        as_root(&w, &systemd).run().expect(0);
        // Plans, also those that are not there yet.
        for store in [w.text("home"), w.text("home/plans"), format!("/tmp/{}", unit.0)] {
            let words = [&systemd[..], &["--store", &store]].concat();
            refused(as_root(&w, &words).run(), "root's override would follow plans of ", "leave out --store");
        }
        as_root(&w, &[&systemd[..], &["--store", &w.text("plans")]].concat()).run().expect(0);
        // Places, and what stands first in PATH.
        let words = ["install", "--print", "--wrapper", &w.text("home/a/app")];
        refused(as_root(&w, &words).run(), "root's override would lie at ", "without sudo");
        w.program("home/a/app");
        let ran = as_root(&w, &wrapper).env("PATH", w.search(&["home/a", "bin"])).run();
        refused(ran, "the first in PATH", "--program");
        assert!(!unit.dropin().exists() && !w.path("sbin").exists());
    }

    #[test]
    fn files_of_overrides_can_be_read_by_all_whatever_the_umask() {
        needs_root!();
        let w = World::new();
        let unit = Unit::new(&w);
        let wrapper = w.path("opt/bin/app");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        for words in [["install", "--systemd", &unit.0], ["install", "--wrapper", wrapper.to_str().unwrap()]]
        {
            as_root(&w, &words).after("umask 077").run().expect(0);
        }
        assert_eq!((mode(&unit.dropin()), mode(&wrapper)), (0o644, 0o755));
        assert_eq!((mode(unit.dropin().parent().unwrap()), mode(&w.path("opt"))), (0o755, 0o755));
        as_root(&w, &["uninstall", "--systemd", &unit.0]).run().expect(0);
        as_root(&w, &["uninstall", "--wrapper", wrapper.to_str().unwrap()]).run().expect(0);
        assert!(!wrapper.exists() && !unit.dropin().parent().unwrap().exists());
    }
}
