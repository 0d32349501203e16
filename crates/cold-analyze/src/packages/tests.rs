use cold_model::layout::Layouts;
use cold_model::recording::{FileIdx, LookupKind, Recording, TouchKind};
use cold_model::sample::{PAGE, empty, long};

use super::*;
use crate::analyze;

#[test]
fn a_path_tells_its_package() {
    let named = |language, name: &str| Some((language, Some(name.to_owned())));
    for (path, key) in [
        ("/v/lib/python3.11/site-packages/pandas/core/frame.py", named(Language::Python, "pandas")),
        ("/v/lib/python3.11/site-packages/__pycache__/six.cpython-311.pyc", named(Language::Python, "six")),
        ("/v/lib/python3.11/site-packages/flask-3.0.dist-info/METADATA", named(Language::Python, "flask")),
        ("/v/lib/python3.11/site-packages/numpy.libs/libx.so.0", named(Language::Python, "numpy")),
        ("/usr/lib/python3/dist-packages/apt_pkg.cpython-311.so", named(Language::Python, "apt_pkg")),
        ("/usr/lib/python3.11/json/__init__.py", Some((Language::Python, None))),
        ("/usr/lib/python3.11", None),
        ("/w/node_modules/express/node_modules/qs/lib/index.js", named(Language::Node, "qs")),
        ("/w/node_modules/@scope/pkg/index.js", named(Language::Node, "@scope/pkg")),
        ("/var/lib/gems/3.1.0/gems/rack-2.2.4/lib/rack.rb", named(Language::Ruby, "rack")),
        ("/usr/lib/ruby/3.1.0/json.rb", Some((Language::Ruby, None))),
        ("/srv/app/lib/guava-31.jar", named(Language::Java, "guava-31")),
        ("/usr/lib/jvm/java-17/lib/modules", Some((Language::Java, None))),
        ("/usr/lib/libpython3.11.so.1.0", None),
        ("/etc/passwd", None),
    ] {
        assert_eq!(package(path), key, "{path}");
    }
}

/// A module that is looked for, found and read.
fn import(r: &mut Recording, at: u64, path: &str) -> FileIdx {
    let file = r.file(path, PAGE);
    r.lookup(at, LookupKind::Open, path, 3).file = Some(file);
    r.touch(at + 1, file, 0..1, TouchKind::Read);
    file
}

#[test]
fn time_goes_to_the_package_whose_files_are_looked_at() {
    let mut r = empty();
    let site = "/v/lib/python3.11/site-packages";
    import(&mut r, 100, &format!("{site}/a/__init__.py"));
    // A library that it needs, and a name in vain, are part of it.
    let library = r.file("/usr/lib/libz.so.1", 10 * PAGE);
    r.lookup(150, LookupKind::Open, "/usr/lib/libz.so.1", 3).file = Some(library);
    r.lookup(160, LookupKind::Stat, &format!("{site}/a/extra.py"), -2);
    import(&mut r, 300, &format!("{site}/b.py"));
    // The program's own file ends it: the time after is nobody's.
    let own = r.file("/srv/app.conf", PAGE);
    r.lookup(350, LookupKind::Open, "/srv/app.conf", 3).file = Some(own);
    import(&mut r, 900, &format!("{site}/b.py"));
    let a = analyze(&r, &Layouts::default());
    let told: Vec<_> =
        a.packages.iter().map(|p| (p.name.as_deref().unwrap_or("?"), p.elapsed, p.misses)).collect();
    assert_eq!(told, [("a", long(200), 1), ("b", long(51), 0)]);
    let advice = a.suggestions.iter().find(|s| s.id.name() == "load_later").expect("is advised");
    assert!(advice.what.starts_with("Load a later"), "{}", advice.what);
    let story: Vec<String> = crate::story(&a).into_iter().map(|r| r.text).collect();
    assert!(
        story.iter().any(|t| t.starts_with("251 ms went to loading Python packages: a 200 ms (1 file)")),
        "{story:?}"
    );
}

#[test]
fn a_language_without_packages_has_no_advice() {
    let mut r = empty();
    import(&mut r, 100, "/usr/lib/python3.11/os.py");
    import(&mut r, 500, "/usr/lib/python3.11/re.py");
    let a = analyze(&r, &Layouts::default());
    assert_eq!(a.packages.len(), 1);
    assert!(!a.suggestions.iter().any(|s| s.id.name() == "load_later"));
    r.lookups = None;
    assert_eq!(analyze(&r, &Layouts::default()).packages, []);
}
