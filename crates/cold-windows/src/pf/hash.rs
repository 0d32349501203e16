//! The hash in a prefetch file's name: of which string, by which function, with which `/prefetch:N`.

use super::{Name, Prefetch, Version};

/// Programs that load others by their command line, which Windows adds to the hash (`HostingAppList` in the registry).
/// How is not public.
const HOSTING: [&str; 5] = ["SVCHOST.EXE", "DLLHOST.EXE", "RUNDLL32.EXE", "MMC.EXE", "TASKHOST.EXE"];
/// The largest `/prefetch:N` that is reported.
const MOST: u32 = 16;
/// Volume numbers that are tried where the file does not tell the one that was hashed.
const VOLUMES: u32 = 64;

/// The hash function of Windows XP and Server 2003, over UTF-16 in little-endian bytes.
pub fn xp(text: &[u8]) -> u32 {
    let sum = text.iter().fold(0_u32, |h, byte| h.wrapping_mul(37).wrapping_add((*byte).into()));
    let h = sum.wrapping_mul(314_159_269);
    let h = if h > 1 << 31 { h.wrapping_neg() } else { h };
    h % 1_000_000_007
}

/// The hash function since Windows Vista. The form that works on eight bytes at once is the same function.
pub fn later(text: &[u8]) -> u32 {
    text.iter().fold(314_159, |h: u32, byte| h.wrapping_mul(37).wrapping_add((*byte).into()))
}

/// How a hash came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HashCheck {
    /// It is the hash of `input`, plus `number`.
    Reproduced {
        /// What was hashed.
        input: Name,
        /// The program was started with `/prefetch:N`; 0 without.
        number: u32,
    },
    /// The boot: nothing was hashed.
    Boot,
    /// The program's command line was hashed as well.
    Hosting,
    /// A packaged application, whose formula is not public.
    Packaged,
    /// No string of the file gives it.
    NotReproduced,
}

pub(super) fn check(p: &Prefetch) -> HashCheck {
    if p.boot {
        return HashCheck::Boot;
    }
    let hash = if p.version == Version::V17 { xp } else { later };
    let found = inputs(p).into_iter().find_map(|input| {
        let number = p.hash.wrapping_sub(hash(&input.bytes()));
        (number <= MOST).then_some(HashCheck::Reproduced { input, number })
    });
    found.unwrap_or_else(|| not_reproduced(p))
}

fn not_reproduced(p: &Prefetch) -> HashCheck {
    let executable = p.executable.text();
    let packaged = match &p.hash_string {
        Some(name) => !name.text().starts_with('\\'),
        None => paths(p).any(|name| {
            let name = name.text();
            ["\\WINDOWSAPPS\\", "\\SYSTEMAPPS\\"].iter().any(|part| name.contains(part))
        }),
    };
    if HOSTING.contains(&executable.as_str()) {
        HashCheck::Hosting
    } else if packaged {
        HashCheck::Packaged
    } else {
        HashCheck::NotReproduced
    }
}

/// What may have been hashed.
fn inputs(p: &Prefetch) -> Vec<Name> {
    if let Some(string) = &p.hash_string {
        return vec![string.clone()];
    }
    paths(p).flat_map(hashed_as).collect()
}

/// Paths of the files that may be the program.
fn paths(p: &Prefetch) -> impl Iterator<Item = &Name> {
    p.programs().filter_map(|row| p.files.get(row)).map(|f| &f.name)
}

/// Since version 30 names begin with `\VOLUME{…}`, the hashed string still with the volume's number.
fn hashed_as(path: &Name) -> Vec<Name> {
    let text = path.text();
    match text.strip_prefix("\\VOLUME{").and_then(|rest| rest.split_once('}')) {
        Some((_, rest)) => {
            (1..=VOLUMES).map(|n| format!("\\DEVICE\\HARDDISKVOLUME{n}{rest}").as_str().into()).collect()
        }
        None => vec![path.clone()],
    }
}
