//! The JSON document's shape.

use std::path::PathBuf;

use cold_model::observed::path_text;
use serde::{Deserialize, Serialize};

use super::{Error, FORMAT};
use crate::Plan;
use crate::plan::{FileKind, Gate, Identity, Key, Knobs, Learnt, Order, PlanFile, Range, Standing};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    format: String,
    #[serde(with = "path_text")]
    executable: PathBuf,
    build_id: Option<String>,
    size: u64,
    #[serde(with = "optional_path")]
    script: Option<PathBuf>,
    scenario: String,
    learnt: Learning,
    knobs: Setting,
    pub(super) files: Vec<File>,
    pub(super) ranges: Vec<Piece>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Learning {
    starts: u32,
    cold_starts: u32,
    tier: char,
    exact: bool,
    first: u64,
    last: u64,
    cpu_ns: u64,
    cold_ready_ns: u64,
    own_cpu_ns: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    min_uses: u8,
    gap_bytes: u32,
    chunk_bytes: u32,
    in_flight_bytes: u32,
    threads: u8,
    order: By,
    window_us: u32,
    gate: When,
    critical_us: u32,
    metadata: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum By {
    Need,
    Physical,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum When {
    AtOnce,
    Issued,
    Arrived,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Regular,
    Directory,
    Name,
    BlockDevice,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(with = "path_text")]
    path: PathBuf,
    kind: Kind,
    size: u64,
    build_id: Option<String>,
    need_ns: u64,
    uses: u8,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Piece {
    file: u32,
    first_page: u64,
    pages: u32,
    need_ns: u64,
    uses: u8,
    around: bool,
}

impl Document {
    /// The form's name first: a later version's other fields must not hide what it is.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
        }
        let head: Head = serde_json::from_str(text)?;
        if head.format != FORMAT {
            return Err(Error::Version(head.format));
        }
        Ok(serde_json::from_str(text)?)
    }

    pub(super) fn of(plan: &Plan) -> Self {
        let (key, learnt, knobs) = (&plan.key, &plan.learnt, &plan.knobs);
        Self {
            format: FORMAT.to_owned(),
            executable: key.executable.clone(),
            build_id: hexadecimal(&key.identity.build_id),
            size: key.identity.size,
            script: key.script.clone(),
            scenario: key.scenario.clone(),
            learnt: Learning {
                starts: learnt.starts,
                cold_starts: learnt.cold_starts,
                tier: learnt.tier,
                exact: learnt.exact,
                first: learnt.first,
                last: learnt.last,
                cpu_ns: learnt.cpu_ns,
                cold_ready_ns: learnt.cold_ready_ns,
                own_cpu_ns: learnt.own_cpu_ns,
            },
            knobs: Setting {
                min_uses: knobs.min_uses,
                gap_bytes: knobs.gap_bytes,
                chunk_bytes: knobs.chunk_bytes,
                in_flight_bytes: knobs.in_flight_bytes,
                threads: knobs.threads,
                order: match knobs.order {
                    Order::Need => By::Need,
                    Order::Physical => By::Physical,
                },
                window_us: knobs.window_us,
                gate: match knobs.gate {
                    Gate::None => When::AtOnce,
                    Gate::Issued => When::Issued,
                    Gate::Arrived => When::Arrived,
                },
                critical_us: knobs.critical_us,
                metadata: knobs.metadata,
            },
            files: plan.files.iter().map(file).collect(),
            ranges: plan.ranges.iter().map(piece).collect(),
        }
    }

    /// Without anything of a machine but its files' sizes and build-ids.
    pub(super) fn into_plan(self) -> Result<Plan, Error> {
        let (learnt, knobs) = (self.learnt, self.knobs);
        let identity = Identity { size: self.size, build_id: number(self.build_id)?, ..Identity::default() };
        Ok(Plan {
            key: Key { executable: self.executable, identity, script: self.script, scenario: self.scenario },
            learnt: Learnt {
                starts: learnt.starts,
                cold_starts: learnt.cold_starts,
                tier: learnt.tier,
                exact: learnt.exact,
                first: learnt.first,
                last: learnt.last,
                cpu_ns: learnt.cpu_ns,
                cold_ready_ns: learnt.cold_ready_ns,
                own_cpu_ns: learnt.own_cpu_ns,
            },
            knobs: Knobs {
                min_uses: knobs.min_uses,
                gap_bytes: knobs.gap_bytes,
                chunk_bytes: knobs.chunk_bytes,
                in_flight_bytes: knobs.in_flight_bytes,
                threads: knobs.threads,
                order: match knobs.order {
                    By::Need => Order::Need,
                    By::Physical => Order::Physical,
                },
                window_us: knobs.window_us,
                gate: match knobs.gate {
                    When::AtOnce => Gate::None,
                    When::Issued => Gate::Issued,
                    When::Arrived => Gate::Arrived,
                },
                critical_us: knobs.critical_us,
                metadata: knobs.metadata,
            },
            files: self.files.into_iter().map(plan_file).collect::<Result<_, _>>()?,
            ranges: self.ranges.iter().map(plan_range).collect(),
            device: None,
            bound: None,
            steps: Vec::new(),
            standing: Standing::Untried,
            trial: None,
        })
    }
}

fn file(file: &PlanFile) -> File {
    File {
        path: file.path.clone(),
        kind: match file.kind {
            FileKind::Regular => Kind::Regular,
            FileKind::Directory => Kind::Directory,
            FileKind::Name => Kind::Name,
            FileKind::BlockDevice => Kind::BlockDevice,
        },
        size: file.identity.size,
        build_id: hexadecimal(&file.identity.build_id),
        need_ns: file.need_ns,
        uses: file.uses,
    }
}

fn plan_file(file: File) -> Result<PlanFile, Error> {
    Ok(PlanFile {
        path: file.path,
        kind: match file.kind {
            Kind::Regular => FileKind::Regular,
            Kind::Directory => FileKind::Directory,
            Kind::Name => FileKind::Name,
            Kind::BlockDevice => FileKind::BlockDevice,
        },
        identity: Identity { size: file.size, build_id: number(file.build_id)?, ..Identity::default() },
        need_ns: file.need_ns,
        uses: file.uses,
    })
}

fn piece(range: &Range) -> Piece {
    let Range { file, first_page, pages, need_ns, uses, around } = *range;
    Piece { file, first_page, pages, need_ns, uses, around }
}

fn plan_range(range: &Piece) -> Range {
    let Piece { file, first_page, pages, need_ns, uses, around } = *range;
    Range { file, first_page, pages, need_ns, uses, around }
}

/// A build-id as `readelf -n` prints it; nothing for none.
fn hexadecimal(build_id: &[u8; 20]) -> Option<String> {
    // One number of 160 bits, in two parts.
    let (high, low) = build_id.split_first_chunk::<4>()?;
    let low = low.first_chunk::<16>()?;
    let digits = || format!("{:08x}{:032x}", u32::from_be_bytes(*high), u128::from_be_bytes(*low));
    (*build_id != [0; 20]).then(digits)
}

fn number(digits: Option<String>) -> Result<[u8; 20], Error> {
    let Some(digits) = digits else { return Ok([0; 20]) };
    let mut build_id = [0; 20];
    let pairs = digits.as_bytes().as_chunks::<2>();
    let right = pairs.1.is_empty() && pairs.0.len() <= build_id.len();
    for (byte, pair) in build_id.iter_mut().zip(pairs.0) {
        let value = std::str::from_utf8(pair).ok().filter(|p| p.bytes().all(|b| b.is_ascii_hexdigit()));
        let value = value.and_then(|p| u8::from_str_radix(p, 16).ok());
        *byte = value.ok_or_else(|| Error::BuildId(digits.clone()))?;
    }
    if right { Ok(build_id) } else { Err(Error::BuildId(digits)) }
}

/// [`path_text`] for a path that may be absent.
mod optional_path {
    use std::path::PathBuf;

    use cold_model::observed::path_text;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Text(#[serde(with = "path_text")] PathBuf);

    // The signature is serde's.
    #[allow(clippy::ref_option)]
    pub(super) fn serialize<S: Serializer>(path: &Option<PathBuf>, s: S) -> Result<S::Ok, S::Error> {
        path.clone().map(Text).serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Text>::deserialize(d)?.map(|text| text.0))
    }
}
