//! Names that a process in a chroot or a container looks for are not the machine's.

mod root {
    use std::fs;

    use cold_testbed::need_root;
    use serde_json::Value;

    use crate::support::*;

    /// Looks for a file in 40 directories of its own root.
    const PROGRAM: &str = r#"
        #include <fcntl.h>
        #include <stdio.h>
        int main(void) {
            char path[64];
            for (int n = 0; n < 40; n++) {
                snprintf(path, sizeof path, "/etc/seeded/%02d/app.conf", n);
                open(path, O_RDONLY);
            }
            return 0;
        }"#;

    /// A place with the program alone in it.
    fn image(place: &Sandbox) -> String {
        let (source, image) = (place.path("source.c"), place.text("image"));
        fs::write(&source, PROGRAM).unwrap();
        fs::create_dir(&image).unwrap();
        run("cc", &["-static", "-o", &format!("{image}/app"), source.to_str().unwrap()]);
        image
    }

    /// Directories in which the names were looked for, as the report has them.
    fn searched(place: &Sandbox, command: &[&str]) -> Vec<String> {
        let traced = ["trace", "--evict", "files", "--overwrite", "-q", "-o", "r.cold", "--"];
        place.cold(traced.iter().chain(command)).run().expect(0);
        let told = place.cold(["report", "r.cold", "--json"]).run().expect(0).json();
        let misses = told["misses"].as_array().unwrap_or_else(|| panic!("{told}"));
        let directory = |m: &Value| m["directory"].as_str().unwrap().to_owned();
        misses.iter().map(directory).filter(|d| d.contains("/etc/seeded/")).collect()
    }

    #[test]
    fn names_are_told_below_the_root_they_were_looked_for_in() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Sandbox::new();
        let image = image(&place);
        let found = searched(&place, &["chroot", &image, "/app"]);
        assert_eq!(found.len(), 40, "{found:?}");
        assert!(found.iter().all(|d| d.starts_with(&format!("{image}/etc/seeded/"))), "{found:?}");
        let diagnosed = place.cold(["diagnose", "r.cold"]).run().expect(0).stdout;
        assert!(diagnosed.contains("image/etc/seeded/NN"), "{diagnosed}");

        // A mount that only the program sees: what is below its root has no name here.
        let script =
            "mount -t tmpfs none \"$1/mnt\" && cp \"$1/app\" \"$1/mnt\" && exec chroot \"$1/mnt\" /app";
        fs::create_dir(format!("{image}/mnt")).unwrap();
        let hidden = ["unshare", "--mount", "--", "/bin/sh", "-c", script, "sh", &image];
        let found = searched(&place, &hidden);
        assert_eq!(found.len(), 40, "{found:?}");
        assert!(found.iter().all(|d| d.starts_with("[unknown root]/etc/seeded/")), "{found:?}");

        // One that sees mounts of its own below the same root looks for the machine's names.
        fs::copy(format!("{image}/app"), place.path("app")).unwrap();
        let found = searched(&place, &["unshare", "--mount", "--", &place.text("app")]);
        assert!(found.len() == 40 && found.iter().all(|d| d.starts_with("/etc/seeded/")), "{found:?}");
    }
}
