use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;

use super::*;

/// A directory with programs, scripts and documents.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let this = Self { dir: tempfile::tempdir().unwrap() };
        for dir in ["bin", "opt", "work/sub", "empty"] {
            std::fs::create_dir_all(this.path(dir)).unwrap();
        }
        for program in ["env", "git", "python3.11", "node", "perl", "dash", "java", "soffice.bin", "snap"] {
            this.program(&format!("bin/{program}"), b"\x7fELF");
        }
        for (link, to) in [
            ("python3", "python3.11"),
            ("sh", "dash"),
            ("libreoffice", "../opt/soffice"),
            ("firefox", "snap"),
        ] {
            symlink(to, this.path(&format!("bin/{link}"))).unwrap();
        }
        this.program(
            "opt/soffice",
            format!("#!{}\nexec soffice.bin\n", this.path("bin/sh").display()).as_bytes(),
        );
        this.program("opt/tool", format!("#! {} python3 -u\n", this.path("bin/env").display()).as_bytes());
        this.program(
            "opt/split",
            format!("#!{} -S node --flag\n", this.path("bin/env").display()).as_bytes(),
        );
        this.program("opt/of-tool", format!("#!{}\n", this.path("opt/tool").display()).as_bytes());
        this.program("opt/loop", format!("#!{}\n", this.path("opt/loop").display()).as_bytes());
        for file in ["serve.py", "app.js", "a.jar", "b.jar", "Main.java", "sub/job.sh"] {
            std::fs::write(this.path(&format!("work/{file}")), "content").unwrap();
        }
        this
    }
    fn path(&self, relative: &str) -> PathBuf {
        std::fs::canonicalize(self.dir.path()).unwrap().join(relative)
    }
    fn program(&self, relative: &str, content: &[u8]) {
        let path = self.path(relative);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    fn try_find(&self, line: &str, name: Option<&str>) -> Result<Key, ScenarioError> {
        // `@` stands for this world; a word may be quoted.
        let root = self.path("");
        let line = line.replace("@/", root.to_str().unwrap());
        let argv: Vec<OsString> = line.split_whitespace().map(|w| w.replace('_', " ").into()).collect();
        let path = [self.path("empty"), self.path("bin"), self.path("opt")];
        let path = std::env::join_paths(path).unwrap();
        find(&Command { argv: &argv, cwd: &self.path("work"), path: Some(&path) }, name)
    }
    /// Executable, script and scenario as `bin/git`, `work/x.py` or `-`, and the name.
    fn key(&self, line: &str) -> (String, String, String) {
        let key = self.try_find(line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
        let root = self.path("");
        let short = |p: &Path| p.strip_prefix(&root).unwrap().display().to_string();
        (short(&key.executable), key.script.as_deref().map_or("-".to_owned(), short), key.scenario)
    }
}

#[test]
fn which_executable_and_which_script() {
    let world = World::new();
    for (line, executable, script) in [
        ("git status", "bin/git", "-"),
        ("@/bin/git status", "bin/git", "-"),
        ("../bin/git status", "bin/git", "-"),
        // Links and scripts are followed to what the kernel executes.
        ("python3 serve.py", "bin/python3.11", "work/serve.py"),
        ("python3 -u -X utf8 -Wignore serve.py --port 80", "bin/python3.11", "work/serve.py"),
        ("python3 -- serve.py", "bin/python3.11", "work/serve.py"),
        ("python3 -m json.tool serve.py", "bin/python3.11", "-"),
        ("python3 missing.py", "bin/python3.11", "-"),
        ("libreoffice --version", "bin/dash", "opt/soffice"),
        ("tool run", "bin/python3.11", "opt/tool"),
        ("split", "bin/node", "opt/split"),
        ("of-tool", "bin/python3.11", "opt/of-tool"),
        ("sh sub/job.sh", "bin/dash", "work/sub/job.sh"),
        ("sh -e -o pipefail sub/job.sh", "bin/dash", "work/sub/job.sh"),
        ("node --require ./hook.js app.js", "bin/node", "work/app.js"),
        ("perl -I lib -w sub/job.sh", "bin/perl", "work/sub/job.sh"),
        ("java -Xmx1g -jar a.jar", "bin/java", "work/a.jar"),
        ("java -cp missing.jar:b.jar:a.jar Main", "bin/java", "work/b.jar"),
        ("java Main.java", "bin/java", "work/Main.java"),
        ("java @args --add-opens java.base/x=y -jar b.jar", "bin/java", "work/b.jar"),
        // `env` is looked through.
        ("env LANG=C -u DISPLAY git log", "bin/git", "-"),
        ("env -i @/bin/git log", "bin/git", "-"),
        ("env -C sub sh job.sh", "bin/dash", "work/sub/job.sh"),
        ("env PATH=@/opt/:@/bin/ split", "bin/node", "opt/split"),
        ("env", "bin/env", "-"),
        ("env --unknown git", "bin/env", "-"),
    ] {
        let (e, s, _) = world.key(line);
        assert_eq!((&*e, &*s), (executable, script), "{line}");
    }
    // The script asks `env` again, along the new PATH.
    let node = world.try_find("env PATH=@/opt/ split", None);
    assert!(matches!(node, Err(ScenarioError::NotFound(word)) if word == "node"));
}

/// Golden: these names never change, or users would lose their plans.
#[test]
fn the_scenario_is_the_shape_of_the_arguments() {
    let world = World::new();
    for (line, scenario) in [
        ("git", "default"),
        ("git status", "status"),
        ("git log", "log"),
        ("git --no-pager log", "log+--no-pager"),
        ("git -C repository status --short", "status+--short+-C+WORD"),
        ("git log -n 10 --format=%H -- src/main.rs", "log+--format+-n+N+.rs"),
        ("git clone https://example.org/x.git", "clone+URL"),
        ("git add .", "add+DIR"),
        ("git diff HEAD~3 old/", "diff+ARG+DIR"),
        ("git -vv -b -a -b", "-a+-b+-vv"),
        ("git -j8 -I/usr/include -Dx=1 -3", "-Dx+-I+-N+-j"),
        ("git CC=gcc PATH2=/x all", "all+CC=+PATH2="),
        ("git 1.5 -2.5 photo.JPG /dev/null - about:blank lib.so.6", "-N+N+.jpg+PATH+STDIN+URL+ARG"),
        // The value of an option does not make another scenario of the same kind of document.
        ("libreoffice --convert-to pdf a.odt", "as=libreoffice+pdf+--convert-to+.odt"),
        ("libreoffice --convert-to pdf b.odt c.odt", "as=libreoffice+pdf+--convert-to+.odt"),
        // What an interpreter is told itself does not count, what its script is told does.
        ("python3 -u serve.py --port 80", "--port+N"),
        ("python3 -m json.tool x.json", "m=json.tool+.json"),
        ("python3 -Im json.tool", "m=json.tool"),
        ("python3 -c import_json", "c=7104c4f0"),
        ("python3 -cimport_json", "c=7104c4f0"),
        ("python3 -c import_re", "c=de40b2e1"),
        ("python3", "default"),
        ("sh -ec import_json", "c=7104c4f0"),
        ("sh -s", "default"),
        ("node -p 1", "c=296236b0"),
        ("perl -lane print job.sh", "c=a37af24c+.sh"),
        ("java -cp a.jar org.example.Main run", "main=org.example.Main+run"),
        ("java -p mods -m app/org.Main", "m=app_org.Main~8479e981a892e106"),
        // Called by another name, it may be another program.
        ("snap", "default"),
        ("firefox https://example.org", "as=firefox+URL"),
    ] {
        assert_eq!(world.key(line).2, scenario, "{line}");
    }
}

#[test]
fn long_and_odd_arguments_give_bounded_names() {
    let world = World::new();
    let options: String = (b'a'..=b'z').map(|c| format!(" --option-{}", char::from(c))).collect();
    let (_, _, name) = world.key(&format!("git{options}"));
    assert_eq!(name, "--option-a+--option-b+--option-c+--option-d+--o~42763095e166951d");
    assert_eq!(world.key("git --größe").2, "--gr____e~3adb72ff39078ab8");
}

#[test]
fn a_users_name_takes_the_place_of_the_shape() {
    let world = World::new();
    let key = world.try_find("git status", Some("big-repo_2.x")).unwrap();
    assert_eq!((key.scenario.as_str(), key.identity.size), ("big-repo_2.x", 4));
    for bad in ["", "two words", "a/b", "a+b", "a~b", "ä", &"x".repeat(65)] {
        assert!(matches!(world.try_find("git", Some(bad)), Err(ScenarioError::Name(_))), "{bad:?}");
    }
    assert!(check_name(&"x".repeat(64)).is_ok());
}

#[test]
fn what_cannot_be_started_has_no_key() {
    let world = World::new();
    assert!(matches!(world.try_find("", None), Err(ScenarioError::NoCommand)));
    assert!(matches!(world.try_find("nothing-of-this-name", None), Err(ScenarioError::NotFound(_))));
    // Not executable, so not found along PATH.
    std::fs::write(world.path("bin/data"), "x").unwrap();
    assert!(matches!(world.try_find("data", None), Err(ScenarioError::NotFound(_))));
    let missing = world.try_find("./nothing", None).unwrap_err();
    assert!(missing.to_string().contains("work/./nothing"), "{missing}");
    assert!(matches!(world.try_find("loop", None), Err(ScenarioError::Nested(_))));
}

/// Golden: the numbers in the names of files never change.
#[test]
fn the_hash_of_a_key_stays() {
    let key = Key {
        executable: "/usr/bin/git".into(),
        identity: Identity::default(),
        script: None,
        scenario: "status".into(),
    };
    assert_eq!(key_hash(&key), fnv1a64(&[b"/usr/bin/git\0\0status"]));
    assert_eq!(format!("{:016x}", key_hash(&key)), "143b56f36eea4c7f");
    let script = Key { script: Some("/x.py".into()), ..key.clone() };
    assert_ne!(key_hash(&script), key_hash(&key));
    let upgraded = Key { identity: Identity { size: 9, ..key.identity }, ..key.clone() };
    assert_eq!(key_hash(&upgraded), key_hash(&key));
}

proptest! {
    #[test]
    fn any_arguments_have_a_valid_name(arguments in prop::collection::vec("[ -~äß]{0,30}", 0..12)) {
        let arguments: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
        let name = Shape::default().name(&arguments);
        prop_assert!(is_valid(&name), "{}", name);
        for family in ["python3", "perl", "java", "sh", "node", "php", "ruby", "lua"] {
            let (_, used) = interpreters::named(OsStr::new(family)).unwrap().runs(&arguments);
            prop_assert!(used <= arguments.len());
        }
    }

    /// Values do not count.
    #[test]
    fn other_documents_are_the_same_scenario(a in "[a-zA-Z0-9/]{0,30}[a-z]", b in "[a-zA-Z0-9/]{0,30}[a-z]") {
        let name = |file: &str| {
            let line = ["open", &format!("{file}.odt"), &format!("--title={file}")].map(OsString::from);
            Shape::default().name(&line)
        };
        prop_assert_eq!(name(&a), name(&b));
    }
}
