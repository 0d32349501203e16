//! Public prefetch files against what an independent reader found in them (`EXPECTED.json`), and the laws that all
//! real files keep. The samples are no part of the project.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // the lints know only functions marked as tests; SKIPPED is said

mod support;

use cold_windows::pf::{self, HashCheck, Prefetch, Version};
use serde_json::{Value, json};

use support::samples;

/// Keys that are compared in ways of their own, or tell again what another tells.
const OTHERWISE: [&str; 7] = [
    "sha256_uncompressed",
    "file_pages_head",
    "hash_string",
    "hash_check",
    "last_run_utc",
    "header_unknown8",
    "invalid",
];

/// The model as `EXPECTED.json` tells it.
fn told(file: &[u8], image: &[u8], p: &Prefetch) -> Value {
    let times: Vec<u64> = p.run_times.iter().flatten().copied().collect();
    let pages = |is: fn(&pf::Page) -> bool| p.pages().filter(|page| is(page)).count();
    let volumes: Vec<Value> = p
        .volumes
        .iter()
        .map(|v| {
            json!({
                "device": v.device.text(), "creation_filetime": v.created, "serial": format!("{:08X}", v.serial),
                "directories": v.directories.len(), "file_refs": v.references.len(),
                "file_ref_version": v.references_version,
            })
        })
        .collect();
    let variant = match p.version {
        Version::V30First => Some(1),
        Version::V30 | Version::V31 => Some(2),
        _ => None,
    };
    json!({
        "version": p.version.number(), "variant": variant, "mam": file.starts_with(b"MAM"),
        "raw_size": file.len(), "uncompressed_size": image.len(), "header_file_size": p.size,
        "header_flags": u32::from(p.boot), "exe": p.executable.text(), "hash": format!("{:08X}", p.hash),
        "run_count": p.run_count, "last_run_filetimes": times, "files": p.files.len(),
        "page_records": p.pages().count(), "filename_strings": p.files.len(), "file0": p.files[0].name.text(),
        "volumes": volumes, "sensitivity": p.threshold, "pages_ignored": pages(pf::Page::ignored),
        "pages_image": pages(pf::Page::image), "pages_data": pages(pf::Page::data),
        "pages_to_prefetch": pages(|page| !page.ignored()),
    })
}

#[test]
fn every_value_is_the_expected_one_and_bad_files_are_refused() {
    let Some(dir) = samples("pf") else { return };
    let expected: Value = serde_json::from_slice(&std::fs::read(dir.join("EXPECTED.json")).unwrap()).unwrap();
    let (mut good, mut bad) = (0, 0);
    for (name, expected) in expected.as_object().unwrap() {
        let file = std::fs::read(dir.join(name)).unwrap();
        if expected["invalid"] == true {
            assert!(Prefetch::read(&file).is_err(), "{name}");
            bad += 1;
            continue;
        }
        let image = pf::image(&file).unwrap();
        let p = Prefetch::read(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
        let told = told(&file, &image, &p);
        for key in expected.as_object().unwrap().keys() {
            assert!(
                told.get(key).is_some() || OTHERWISE.contains(&key.as_str()),
                "{name}: {key} is compared"
            );
        }
        for (key, value) in told.as_object().unwrap() {
            let mut wanted = expected[key].clone();
            if let Some(list) = wanted.as_array_mut() {
                list.iter_mut().filter_map(Value::as_object_mut).for_each(|v| drop(v.remove("creation_utc")));
            }
            if key == "header_flags" {
                wanted = json!(wanted.as_u64().unwrap() & 1);
            }
            assert_eq!(*value, wanted, "{name}: {key}");
        }
        assert_eq!(sha256(&image), expected["sha256_uncompressed"], "{name}");
        for (file, head) in p.files.iter().zip(expected["file_pages_head"].as_array().unwrap()) {
            let ends = |page: Option<&pf::Page>| page.map(|page| page.offset);
            let told = json!({
                "name": file.name.text(), "pages": file.pages.len(), "prefetch": file.to_prefetch, "flags": file.flags,
                "first_off": ends(file.pages.first()), "last_off": ends(file.pages.last()),
            });
            assert_eq!(told, *head, "{name}");
        }
        if let Some(string) = expected.get("hash_string").and_then(Value::as_str) {
            assert_eq!(p.hash_string.as_ref().unwrap().text(), string, "{name}");
        }
        match p.hash_check() {
            HashCheck::Reproduced { input, number } => {
                assert_eq!(json!(input.text()), expected["hash_check"]["input"], "{name}");
                assert_eq!(json!(number), expected["hash_check"]["prefetch_number"], "{name}");
            }
            other => {
                let why = expected["hash_check"]["not_reproducible"].as_str().unwrap();
                let wanted = match other {
                    HashCheck::Boot => "boot",
                    HashCheck::Hosting => "hosting application",
                    HashCheck::Packaged => "packaged",
                    _ => "?",
                };
                assert!(why.contains(wanted), "{name}: {why} {other:?}");
            }
        }
        good += 1;
    }
    assert_eq!((good, bad), (28, 3));
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    let hex = |b: &u8| [b >> 4, b & 15].map(|n| char::from(b"0123456789abcdef"[usize::from(n)]));
    sha2::Sha256::digest(bytes).iter().flat_map(hex).collect()
}

/// Records are those of the files, one file's behind the other's and chained; as many names as files.
fn tables_fit(p: &Prefetch, image: &[u8]) {
    let at = |offset: usize| u32::from_le_bytes(image[offset..offset + 4].try_into().unwrap()) as usize;
    let (files, count, records, total, strings, size) = (at(84), at(88), at(92), at(96), at(100), at(104));
    assert_eq!((count, total), (p.files.len(), p.pages().count()));
    let entry = if p.version == Version::V17 { 20 } else { 32 };
    let mut next = 0;
    for (n, file) in p.files.iter().enumerate() {
        assert_eq!(at(files + n * entry), next, "file {n} begins behind the one before");
        for _ in 0..file.pages.len() {
            next += 1;
            if p.version.number() < 30 {
                let told = at(records + (next - 1) * 12);
                let last = next == at(files + n * entry) + file.pages.len();
                assert_eq!(told, if last { u32::MAX as usize } else { next });
            }
        }
    }
    let names = image[strings..strings + size].chunks_exact(2).filter(|c| *c == [0, 0]).count();
    assert_eq!(names, count, "each name has its NUL");
}

#[test]
fn real_files_keep_the_laws() {
    let Some(dir) = samples("pf") else { return };
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let Ok(p) = Prefetch::read(&bytes) else { continue };
        let name = path.display();
        tables_fit(&p, &pf::image(&bytes).unwrap());
        for file in &p.files {
            assert!(file.pages.windows(2).all(|w| w[0].offset < w[1].offset), "{name}: offsets ascend");
            let active = file.pages.iter().filter(|page| !page.ignored()).count();
            assert!(file.to_prefetch.is_none_or(|n| n as usize == active), "{name}: pages to prefetch");
        }
        for page in p.pages() {
            assert!(page.image() || page.offset % pf::PAGE == 0, "{name}: data pages are aligned");
            assert_ne!(page.used, 0, "{name}: each page was used");
            let reach = |bits: u8| 8 - bits.leading_zeros();
            assert!(reach(page.used) <= p.run_count, "{name}: no use before the first run");
            let prefetched = page.prefetched.unwrap_or(0);
            assert!(reach(prefetched) < p.run_count, "{name}: the first run had nothing to prefetch");
            let seldom = page.used.count_ones() < p.threshold && !page.always();
            assert!(p.boot || page.ignored() == seldom, "{name}: {page:?}");
        }
        if let Some(directories) = p.directories {
            let sum: usize = p.volumes.iter().map(|v| v.directories.len()).sum();
            assert_eq!(directories as usize, sum, "{name}");
        }
    }
}
