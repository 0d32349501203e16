//! Writes a plan of `COUNT` ranges of 8 KiB, evenly spread over `FILE`, to see what a launch costs:
//!
//!     cargo run -p cold-launch --example scattered-plan -- FILE COUNT PLAN
#![allow(clippy::print_stderr)]

use std::path::PathBuf;

use cold_plan::plan::{FileKind, Identity, Op, PlanFile, Standing, Step};

const PIECE: u32 = 8192;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, count, at] = &arguments[..] else {
        return Err("usage: scattered-plan FILE COUNT PLAN".into());
    };
    let path = PathBuf::from(file).canonicalize()?;
    let meta = path.metadata()?;
    let pages = meta.len() / u64::from(PIECE);
    let count: u64 = count.parse()?;
    let mut plan = cold_plan::sample::sample();
    let identity = Identity::of(&meta, [0; 20]);
    plan.files =
        vec![PlanFile { path, kind: FileKind::Regular, identity, need_ns: 0, uses: 1, exact: false }];
    plan.ranges = Vec::new();
    plan.standing = Standing::Untried;
    let step = |i| Step {
        op: Op::Read,
        critical: false,
        file: 0,
        offset: i * pages / count * u64::from(PIECE),
        bytes: PIECE,
        need_ns: i,
    };
    plan.steps = (0..count).map(step).collect();
    Ok(std::fs::write(at, cold_plan::format::encode(&plan)?)?)
}
