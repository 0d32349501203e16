//! Writes prefetch files of every version, for tests and the fuzzers' corpus. Not part of a release.

use super::layout::{INFORMATION, Layout};
use super::{File, Name, Page, Prefetch, Version, Volume};
use crate::xpress::sample::compress;

/// The expanded file of a model; [`Prefetch::read`] gives that model back, with its size.
pub fn write(p: &Prefetch) -> Vec<u8> {
    let layout = Layout::of(p.version);
    let mut out = vec![0; layout.files as usize];
    set(&mut out, 0, p.version.number());
    out[4..8].copy_from_slice(b"SCCA");
    set(&mut out, 8, if p.version == Version::V17 { 15 } else { 17 });
    let name = p.executable.bytes();
    out[16..16 + name.len()].copy_from_slice(&name);
    set(&mut out, 76, p.hash);
    set(&mut out, 80, p.boot.into());
    for (n, time) in p.run_times.iter().enumerate() {
        let at = layout.run_times.0 as usize + 8 * n;
        out[at..at + 8].copy_from_slice(&time.unwrap_or(0).to_le_bytes());
    }
    set(&mut out, layout.run_count as usize, p.run_count);
    set(&mut out, layout.threshold as usize, p.threshold);
    if let (Some(at), Some(count)) = (layout.directories, p.directories) {
        set(&mut out, at as usize, count);
    }
    let records: Vec<u8> =
        p.files.iter().scan(0, |first, f| Some(records(f, p.version, first))).flatten().collect();
    let strings: Vec<u8> = p.files.iter().flat_map(|f| f.name.bytes().into_iter().chain([0, 0])).collect();
    let files = files(p);
    let count = p.files.iter().map(|f| f.pages.len()).sum::<usize>() as u32;
    let volumes = volumes(&p.volumes, layout);
    let information = INFORMATION as usize;
    let lists = [
        (files, p.files.len() as u32),
        (records, count),
        (strings.clone(), strings.len() as u32),
        (volumes.clone(), p.volumes.len() as u32),
    ];
    for (n, (bytes, count)) in lists.into_iter().enumerate() {
        let at = out.len() as u32;
        set(&mut out, information + 8 * n, at);
        set(&mut out, information + 8 * n + 4, count);
        out.extend(bytes);
    }
    set(&mut out, information + 32, volumes.len() as u32);
    if let (Some(at), Some(string)) = (layout.hash_string, &p.hash_string) {
        let bytes = string.bytes();
        let offset = out.len() as u32;
        set(&mut out, at as usize, offset);
        set(&mut out, at as usize + 4, bytes.len() as u32 + 2);
        out.extend(bytes);
        out.extend([0, 0]);
    }
    let size = out.len() as u32;
    set(&mut out, 12, size);
    out
}

/// The same as Windows 10 writes it.
pub fn packed(p: &Prefetch, crc: bool) -> Vec<u8> {
    let image = write(p);
    let mut out = b"MAM\x04".to_vec();
    out.extend((image.len() as u32).to_le_bytes());
    if crc {
        out[3] |= 0x80;
        out.extend([1, 2, 3, 4]);
    }
    out.extend(compress(&image));
    out
}

fn set(out: &mut [u8], at: usize, value: u32) {
    out[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn files(p: &Prefetch) -> Vec<u8> {
    let (mut first, mut name, mut out) = (0, 0, Vec::new());
    for f in &p.files {
        let (pages, characters) = (f.pages.len() as u32, f.name.0.len() as u32);
        let mut words = vec![first, pages];
        words.extend(f.to_prefetch);
        words.extend([name, characters, f.flags]);
        out.extend(words.into_iter().flat_map(u32::to_le_bytes));
        if let Some(reference) = f.reference {
            out.extend(reference.to_le_bytes());
        }
        first += pages;
        name += 2 * characters + 2;
    }
    out
}

fn records(f: &File, version: Version, first: &mut u32) -> Vec<u8> {
    let mut out = Vec::new();
    for (n, page) in f.pages.iter().enumerate() {
        *first += 1;
        let next = if n + 1 == f.pages.len() { u32::MAX } else { *first };
        let sectors = (page.offset / 512) as u32;
        match version {
            Version::V17 => {
                let history = u32::from(page.used) << 3 | u32::from(page.prefetched.unwrap_or(0)) << 11;
                let words = [next, page.offset as u32, u32::from(page.flags) | history];
                out.extend(words.into_iter().flat_map(u32::to_le_bytes));
            }
            Version::V23 | Version::V26 => {
                out.extend([next, sectors].into_iter().flat_map(u32::to_le_bytes));
                out.extend([page.flags, 1, page.used, page.prefetched.unwrap_or(0)]);
            }
            Version::V30First | Version::V30 | Version::V31 => {
                let phases = page.phases.unwrap_or(0);
                out.extend(sectors.to_le_bytes());
                out.extend((u32::from(page.flags) | phases << 8).to_le_bytes());
            }
        }
    }
    out
}

fn volumes(volumes: &[Volume], layout: Layout) -> Vec<u8> {
    let mut out = vec![0; volumes.len() * layout.volume as usize];
    for (n, v) in volumes.iter().enumerate() {
        let at = n * layout.volume as usize;
        let here = out.len() as u32;
        set(&mut out, at, here);
        set(&mut out, at + 4, v.device.0.len() as u32);
        out.extend(v.device.bytes());
        out[at + 8..at + 16].copy_from_slice(&v.created.to_le_bytes());
        set(&mut out, at + 16, v.serial);
        let here = out.len();
        out.extend([v.references_version, v.references.len() as u32].into_iter().flat_map(u32::to_le_bytes));
        if v.references_version >= 3 {
            out.extend([0; 8]);
        }
        out.extend(v.references.iter().flat_map(|r| r.to_le_bytes()));
        let len = (out.len() - here) as u32;
        set(&mut out, at + 20, here as u32);
        set(&mut out, at + 24, len);
        let here = out.len() as u32;
        set(&mut out, at + 28, here);
        set(&mut out, at + 32, v.directories.len() as u32);
        for d in &v.directories {
            out.extend((d.0.len() as u16).to_le_bytes());
            out.extend(d.bytes());
            out.extend([0, 0]);
        }
    }
    out
}

/// A program that ran three times, with two files on two volumes: pages that stand together and alone, used always and
/// once, as image and as data.
pub fn small(version: Version) -> Prefetch {
    let newest = version.number() >= 30;
    let page = |offset: u64, flags: u8, used: u8| Page {
        offset,
        flags,
        used,
        prefetched: (!newest).then_some(used & 0b11),
        phases: newest
            .then(|| (0..8).fold(0, |all, n| all | if used >> n & 1 == 1 { 0 } else { 7 << (3 * n) })),
    };
    let old = version == Version::V17;
    let (one, two) = if newest {
        ("\\VOLUME{01d1217a9c4c6779-8c9f49ec}", "\\VOLUME{01d1217a9c4c677a-00000007}")
    } else {
        ("\\DEVICE\\HARDDISKVOLUME1", "\\DEVICE\\HARDDISKVOLUME2")
    };
    let hashed = "\\DEVICE\\HARDDISKVOLUME1\\APP\\APP.EXE";
    let hash = if old { super::xp } else { super::later };
    let file = |name: String, to_prefetch: u32, pages: Vec<Page>| File {
        name: name.as_str().into(),
        flags: 2,
        to_prefetch: (!old).then_some(to_prefetch),
        reference: (!old).then_some(0x0001_0000_0000_0042),
        pages,
    };
    let volume = |device: &str, serial: u32, directories: &[&str]| Volume {
        device: device.into(),
        created: 131_000_000_000_000_000,
        serial,
        references_version: if old { 1 } else { 3 },
        references: vec![0, 0x0001_0000_0000_0042],
        directories: directories.iter().map(|d| Name::from(*d)).collect(),
    };
    let app =
        vec![page(0, 2, 0b111), page(0x1000, 2, 0b011), page(0x5000, 2, 0b111), page(0x2_0400, 3, 0b001)];
    let mut run_times = vec![Some(131_500_000_000_000_000)];
    if version >= Version::V26 {
        run_times.extend([Some(131_400_000_000_000_000), None, Some(131_300_000_000_000_000)]);
        run_times.resize(8, None);
    }
    let mut p = Prefetch {
        version,
        size: 0,
        executable: "APP.EXE".into(),
        hash: hash(&Name::from(hashed).bytes()).wrapping_add(2),
        boot: false,
        run_times,
        run_count: 3,
        threshold: 2,
        directories: (!old).then_some(3),
        hash_string: (version >= Version::V30).then(|| hashed.into()),
        files: vec![
            file(format!("{one}\\APP\\APP.EXE"), 3, app),
            file(format!("{two}\\GRÖSSE.DAT"), 1, vec![page(0x4000, 5, 0b001), page(0x20_0000, 4, 0b110)]),
        ],
        volumes: vec![volume(one, 0x8c9f_49ec, &["\\APP", "\\WINDOWS"]), volume(two, 7, &["\\"])],
    };
    p.size = write(&p).len() as u32;
    p
}
