//! `cold layout link` and `cold layout compare`: builds with an order, what is verified of them, and what it brought.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::support::*;

/// Functions of the program, 800 bytes each.
const FUNCTIONS: usize = 1500;
/// Every so many is entered, the last one first.
const STEP: usize = 15;

/// The last words of a program without a C library.
const EXIT: &str = r#"
#if defined(__x86_64__)
  __asm__ volatile("syscall" :: "a"(231), "D"(0));
#else
  register long code __asm__("x0") = 0, number __asm__("x8") = 94;
  __asm__ volatile("svc 0" :: "r"(code), "r"(number));
#endif
}
"#;

/// A program that enters functions all over its code, against their sequence.
fn source(with_libc: bool) -> String {
    let mut out = String::new();
    for n in 0..FUNCTIONS {
        writeln!(
            out,
            "__attribute__((noinline)) void f{n}(void) {{ __asm__ volatile(\"jmp 1f; .skip 780, 0x90; 1:\"); }}"
        )
        .unwrap();
    }
    out.push_str(if with_libc { "int main(void) {\n" } else { "void _start(void) {\n" });
    (0..FUNCTIONS).rev().step_by(STEP).for_each(|n| writeln!(out, "  f{n}();").unwrap());
    out.push_str(if with_libc { "  return 0;\n}\n" } else { EXIT });
    out
}

/// A directory with the program, its Makefile that knows nothing of sections, and the order of its start in `app.txt`.
fn project(with_libc: bool) -> Option<Sandbox> {
    let place = Sandbox::new();
    fs::write(place.path("app.c"), source(with_libc)).unwrap();
    let flags = if with_libc { "-O1" } else { "-O1 -static -nostdlib -ffreestanding" };
    let rule = format!("CFLAGS = {flags}\napp: app.c\n\tgcc $(CFLAGS) -o app app.c $(FLAGS)\n");
    fs::write(place.path("Makefile"), rule).unwrap();
    let made = Command::new("make").current_dir(place.path(".")).output();
    if !cold_testbed::need(made.is_ok_and(|o| o.status.success()), "make and gcc") {
        return None;
    }
    place.cold(["layout", "trace", "-r", "1", "--", "./app"]).run().expect(0);
    place.cold(["layout", "order", "app.order", "-o", "app.txt"]).run().expect(0);
    Some(place)
}

/// What `cold layout link` found, as JSON.
fn link(place: &Sandbox, code: i32, flags: &[&str], build: &[&str]) -> serde_json::Value {
    let start = ["layout", "link", "--json", "--order", "app.txt"];
    let args = start.iter().chain(flags).chain(&["--"]).chain(build);
    let told = place.cold(args).run().expect(code).json();
    assert_eq!(told["schema"], "coldstart.layout-link/1");
    assert!(place.temporary().is_empty(), "{:?}", place.temporary());
    told
}

#[test]
fn a_make_that_knows_nothing_of_orders_is_linked_in_one_and_starts_reading_less() {
    let Some(place) = project(true) else { return };
    // Up to date: nothing is linked, so the order is not there.
    let told = link(&place, 3, &[], &["make"]);
    assert_eq!((&told["linked_anew"], &told["checks"][1]["pass"]), (&false.into(), &false.into()), "{told}");
    let told = link(&place, 0, &["--keep-old", "app.old"], &["make", "-B"]);
    assert!(told["checks"].as_array().unwrap().iter().all(|c| c["pass"] == true), "{told}");
    assert!(told["judged"].as_u64() >= Some(90) && told["linked_anew"] == true, "{told}");
    assert!(told["pages"].as_u64().unwrap() * 2 < told["pages_before"].as_u64().unwrap(), "{told}");
    assert_eq!(told["keep"].as_str().map(|k| k.contains("-ffunction-sections")), Some(true), "{told}");
    // The printed line, where the Makefile has a place for it.
    let before = fs::read(place.path("app")).unwrap();
    let line = told["keep"].as_str().unwrap().split("LDFLAGS=\"$LDFLAGS ").nth(1).unwrap();
    let flags = line.split('"').next().unwrap();
    let made = Command::new("make")
        .args(["-B", &format!("FLAGS=-ffunction-sections {flags}")])
        .current_dir(place.path("."))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(fs::read(place.path("app")).unwrap(), before, "the same program by the printed flags");
}

#[test]
fn starts_of_both_are_compared_with_a_control() {
    // Alone with its file: what others keep of the C library would be most of what such a start uses.
    let Some(place) = project(false) else { return };
    link(&place, 0, &["--keep-old", "app.old"], &["make", "-B"]);
    let _together = together();
    let compare = |gate: &str| {
        let own = [
            "layout",
            "compare",
            "app.old",
            "app",
            "-r",
            "3",
            "--evict",
            "files",
            "--json",
            "--fail-if",
            gate,
        ];
        let ran = place.cold(own).run();
        let told = ran.json();
        let stopped = told["scenarios"][0]["report"]["stopped"].clone();
        check(stopped.is_null(), || format!("{stopped}"))?;
        Ok::<_, String>((ran.code(), told))
    };
    let (code, told) = attempts(|| compare("cold.code > 0.7x"));
    assert_eq!(code, 0, "{told}");
    assert_eq!(told["schema"], "coldstart.layout-compare/1");
    let report = &told["scenarios"][0]["report"];
    let median =
        |series: usize, metric: &str| report["summary"][series]["metrics"][metric]["median"].as_f64();
    let names: Vec<&str> =
        report["summary"].as_array().unwrap().iter().filter_map(|s| s["name"].as_str()).collect();
    assert_eq!(
        names,
        ["old (cold)", "old (warm)", "new (cold)", "new (warm)", "again (cold)", "again (warm)"]
    );
    assert!(
        median(2, "code") < median(0, "code").map(|c| c * 0.7),
        "{:?}",
        (median(0, "code"), median(2, "code"))
    );
    assert!(median(2, "major_faults") < median(0, "major_faults"));
    assert_eq!(median(0, "code"), median(4, "code"), "the control");
    assert_eq!(attempts(|| compare("cold.code < 0.7x")).0, 3);
}

/// What others keep of the C library is no matter where only the programs are to be cold.
#[test]
fn the_programs_alone_are_cold_and_their_libraries_stay() {
    let Some(place) = project(true) else { return };
    link(&place, 0, &["--keep-old", "app.old"], &["make", "-B"]);
    let _together = together();
    let (code, told) = attempts(|| {
        let own = ["layout", "compare", "app.old", "app", "-r", "3", "--states", "cold", "--json"];
        let more = ["--evict", "program", "--fail-if", "cold.code > 0.7x"];
        let ran = place.cold(own.iter().chain(&more)).run();
        let told = ran.json();
        let stopped = told["scenarios"][0]["report"]["stopped"].clone();
        check(stopped.is_null(), || format!("{stopped}"))?;
        Ok::<_, String>((ran.code(), told))
    });
    assert_eq!(code, 0, "{told}");
    let report = &told["scenarios"][0]["report"];
    assert!(report["machine"]["eviction"].as_str().unwrap().contains("the program's own file"), "{told}");
    let counted = report["runs"].as_array().unwrap().iter().filter(|r| r["taints"] == serde_json::json!([]));
    let residuals: Vec<_> = counted.map(|r| r["residual"].clone()).collect();
    assert!(residuals.len() >= 9, "{told}");
    for residual in residuals {
        // The loader and the C library, a page at the least.
        assert!(residual["bytes"] == 0 && residual["left"].as_u64() > Some(PAGE), "{residual}");
    }
}

#[test]
fn a_compiler_is_told_directly_and_an_order_has_the_form_of_its_linker() {
    let Some(place) = project(true) else { return };
    let build = ["gcc", "-O1", "-o", "other", "app.c"];
    let told = link(&place, 0, &["--linker", "gold", "--product", "other", "--old", "app"], &build);
    assert_eq!((&told["linker"], &told["product"]), (&"gold".into(), &"other".into()));
    let keep = told["keep"].as_str().unwrap();
    assert!(
        keep.contains("/app.txt.gold") && keep.starts_with("gcc -O1 -o other app.c -ffunction-sections"),
        "{keep}"
    );
    // Again: the file beside it is what it was, and is taken for it. One that holds something else is left alone.
    link(&place, 0, &["--linker", "gold", "--product", "other", "--old", "app"], &build);
    fs::write(place.path("app.txt.gold"), "mine\n").unwrap();
    let args = ["layout", "link", "--order", "app.txt", "--linker", "gold", "--"];
    let ran = place.cold(args.iter().chain(&build)).run().expect(2);
    assert!(ran.error().contains("holds something else"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(place.path("app.txt.gold")).unwrap(), "mine\n");
    // Of a program that was not there before, nobody knows how it was.
    fs::remove_file(place.path("app")).unwrap();
    fs::remove_file(place.path("other")).unwrap();
    let told = link(&place, 4, &["-o", "mine.gold", "--linker", "gold"], &build);
    assert_eq!((&told["code_change"], &told["checks"][1]["pass"]), (&serde_json::Value::Null, &true.into()));
}

#[test]
fn what_cannot_be_linked_or_compared_is_refused_with_the_reason() {
    let Some(place) = project(true) else { return };
    fs::write(place.path("empty.txt"), "# nothing\n").unwrap();
    fs::copy(place.path("app.txt"), place.path("a,b.txt")).unwrap();
    fs::write(place.path("there"), "").unwrap();
    let app = ["--order", "app.txt"];
    fs::write(place.path("profile.txt"), "# IR level Instrumentation Flag\n:ir\n").unwrap();
    let cases: [(&[&str], i32, &str); 11] = [
        (&["link", "--order", "profile.txt", "--", "make"], 2, "a profile, from which lld"),
        (&["link", "--order", "app.txt", "--", "cmake", "-B", "out"], 2, "would keep what it finds"),
        (&["link", "--order", "empty.txt", "--", "make"], 2, "no function is named"),
        (&["link", "--order", "a,b.txt", "--linker", "gold", "--", "make"], 2, "at commas"),
        (&["link", app[0], app[1], "--keep-old", "there", "--", "make"], 2, "there exists"),
        (&["link", app[0], app[1], "--", "false"], 1, "the build failed"),
        (&["link", app[0], app[1], "--", "no-such-build"], 1, "cannot run no-such-build"),
        (&["compare", "app", "./app"], 2, "are one file"),
        (&["compare", "app", "cold-subject", "--steady", "app -v"], 2, "needs {}"),
        (&["compare", "app", "cold-subject", "--states", "light"], 2, "use cold, prefetched, warm"),
        (
            &["compare", "app", "cold-subject", "--states", "prefetched", "--store", "plans"],
            5,
            "there is no plan for",
        ),
    ];
    for (args, code, words) in cases {
        let ran = place.cold(["layout"].iter().chain(args)).run().expect(code);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
        assert!(place.temporary().is_empty(), "{args:?}");
    }
    let args = ["layout", "link", "--order", "app.txt", "--", "make"];
    let ran = place.cold(args).env("PATH", place.path("tmp")).run().expect(1);
    assert!(
        ran.stderr.contains("no linker here") && ran.stderr.contains("apt install lld"),
        "{}",
        ran.stderr
    );
    let args = ["layout", "link", "--order", "app.txt", "--", "make", "-B", "FLAGS=-s"];
    let ran = place.cold(args).run().expect(1);
    assert!(ran.stderr.contains("a stripped one cannot be verified"), "{}", ran.stderr);
}

#[test]
fn a_crate_keeps_its_own_flags() {
    let place = Sandbox::new();
    fs::create_dir_all(place.path("src")).unwrap();
    fs::create_dir_all(place.path(".cargo")).unwrap();
    fs::write(
        place.path("Cargo.toml"),
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[profile.release]\ncodegen-units = 1\n",
    )
    .unwrap();
    let mut text = String::from("#[cfg(not(theirs))] compile_error!(\"flags are lost\");\n");
    for n in 0..40 {
        writeln!(text, "#[inline(never)] #[no_mangle] pub fn f{n}() {{ std::hint::black_box({n}); }}")
            .unwrap();
    }
    text.push_str("fn main() {\n");
    (0..40).rev().for_each(|n| writeln!(text, "f{n}();").unwrap());
    text.push_str("}\n");
    fs::write(place.path("src/main.rs"), text).unwrap();
    let config = |section: &str| {
        let text = format!("[{section}]\nrustflags = [\"--cfg\", \"theirs\"]\n");
        fs::write(place.path(".cargo/config.toml"), text).unwrap();
    };
    config("build");
    let build = ["cargo", "build", "--release", "--offline", "--quiet"];
    let target = place.text("target");
    let made = Command::new("cargo")
        .args(&build[1..])
        .env("CARGO_TARGET_DIR", &target)
        .current_dir(place.path("."))
        .output();
    if !cold_testbed::need(made.is_ok_and(|o| o.status.success()), "cargo") {
        return;
    }
    place.cold(["layout", "trace", "-r", "1", "-o", "t.order", "--", "target/release/tiny"]).run().expect(0);
    place.cold(["layout", "order", "t.order", "-o", "app.txt"]).run().expect(0);
    let link = |flags: Option<&str>, build: &[&str]| {
        let start = ["layout", "link", "--json", "--order", "app.txt", "--"];
        let mut cold = place.cold(start.iter().chain(build)).env("CARGO_TARGET_DIR", &target);
        if let Some(flags) = flags {
            cold = cold.env("RUSTFLAGS", flags);
        }
        let told = cold.run().expect(0).json();
        assert_eq!(
            (&told["checks"][1]["pass"], &told["linked_anew"]),
            (&true.into(), &true.into()),
            "{told}"
        );
        told
    };
    let told = link(None, &build);
    assert!(told["keep"].as_str().unwrap().contains("build.rustflags="), "{told}");
    config("target.'cfg(unix)'");
    let told = link(None, &build);
    assert!(told["keep"].as_str().unwrap().contains("cfg(all())"), "{told}");
    fs::remove_file(place.path(".cargo/config.toml")).unwrap();
    let told = link(Some("--cfg theirs -C debuginfo=1"), &build);
    assert!(told["keep"].as_str().unwrap().starts_with("RUSTFLAGS=\"$RUSTFLAGS -C"), "{told}");
    config("build");
    let told =
        link(None, &["cargo", "rustc", "--release", "--offline", "--quiet", "--", "-C", "debuginfo=0"]);
    assert!(
        told["keep"].as_str().unwrap().contains("-- -C 'debuginfo=0' '-Clink-arg=-fuse-ld=lld'"),
        "{told}"
    );
}
