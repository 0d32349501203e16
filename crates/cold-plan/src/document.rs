//! A plan as the JSON that `cold prefetch` prints: docs/formats/plan-json.md. Written, never read.

use std::path::Path;

use cold_model::{DeviceModel, path_text};
use serde::Serialize;

use crate::Plan;
use crate::plan::{Bound, FileKind, Knobs, PlanFile, Range, Standing, Step, Trial};

/// Name and version of the document.
pub const SCHEMA: &str = "coldstart.plan/1";

/// The document. What the commands add to it stands behind its fields.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'static str>,
    name: &'a str,
    #[serde(serialize_with = "path_text::serialize")]
    file: &'a Path,
    #[serde(serialize_with = "path_text::serialize")]
    executable: &'a Path,
    script: Option<String>,
    scenario: &'a str,
    standing: &'a Standing,
    trial: Option<Trial>,
    learnt: Lesson,
    knobs: Knobs,
    device: Option<&'a DeviceModel>,
    bound: Option<Bound>,
    bytes: u64,
    requests: usize,
    steps: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<File<'a>>>,
}

#[derive(Debug, Serialize)]
struct Lesson {
    starts: u32,
    cold_starts: u32,
    tier: char,
    exact: bool,
    first: u64,
    last: u64,
    computing_ns: Option<u64>,
    cold_ready_ns: Option<u64>,
}

#[derive(Debug, Serialize)]
struct File<'a> {
    #[serde(serialize_with = "path_text::serialize")]
    path: &'a Path,
    kind: FileKind,
    size: u64,
    need_ns: u64,
    uses: u8,
    ranges: Vec<RangeFields>,
    reads: Vec<ReadFields>,
}

#[derive(Debug, Serialize)]
struct RangeFields {
    first_page: u64,
    pages: u32,
    need_ns: u64,
    uses: u8,
    around: bool,
}

#[derive(Debug, Serialize)]
struct ReadFields {
    offset: u64,
    bytes: u32,
    need_ns: u64,
    critical: bool,
}

impl<'a> Document<'a> {
    /// Of a plan that is called `name` in lists and lies in `file`.
    pub fn of(plan: &'a Plan, name: &'a str, file: &'a Path) -> Self {
        Self { schema: Some(SCHEMA), files: Some(files(plan)), ..Self::brief(plan, name, file) }
    }

    /// The same as a part of another document: without its files.
    pub fn brief(plan: &'a Plan, name: &'a str, file: &'a Path) -> Self {
        let (key, l) = (&plan.key, &plan.learnt);
        // A plan holds 0 for what is not known.
        let known = |ns: u64| Some(ns).filter(|ns| *ns > 0);
        Self {
            schema: None,
            name,
            file,
            executable: &key.executable,
            script: key.script.as_ref().map(path_text::encode),
            scenario: &key.scenario,
            standing: &plan.standing,
            trial: plan.trial,
            learnt: Lesson {
                starts: l.starts,
                cold_starts: l.cold_starts,
                tier: l.tier,
                exact: l.exact,
                first: l.first,
                last: l.last,
                computing_ns: known(l.cpu_ns),
                cold_ready_ns: known(l.cold_ready_ns),
            },
            knobs: plan.knobs,
            device: plan.device.as_ref(),
            bound: plan.bound,
            bytes: plan.read_bytes(),
            requests: plan.reads().count(),
            steps: plan.steps.len(),
            files: None,
        }
    }
}

fn files<'a>(plan: &'a Plan) -> Vec<File<'a>> {
    let of_file = |f: &'a PlanFile| File {
        path: &f.path,
        kind: f.kind,
        size: f.identity.size,
        need_ns: f.need_ns,
        uses: f.uses,
        ranges: Vec::new(),
        reads: Vec::new(),
    };
    let mut files: Vec<File<'a>> = plan.files.iter().map(of_file).collect();
    for Range { file, first_page, pages, need_ns, uses, around } in plan.ranges.iter().copied() {
        if let Some(f) = files.get_mut(file as usize) {
            f.ranges.push(RangeFields { first_page, pages, need_ns, uses, around });
        }
    }
    for Step { file, offset, bytes, need_ns, critical, .. } in plan.reads().copied() {
        if let Some(f) = files.get_mut(file as usize) {
            f.reads.push(ReadFields { offset, bytes, need_ns, critical });
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names and values that docs/formats/plan-json.md promises.
    #[test]
    fn the_document_has_what_its_description_says() {
        let mut plan = crate::sample::sample();
        plan.learnt.cold_ready_ns = 0;
        plan.trial.as_mut().unwrap().warm_ns = None;
        let value = serde_json::to_value(Document::of(&plan, "a-1", Path::new("/p/a-1.plan"))).unwrap();
        let keys =
            |v: &serde_json::Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(
            keys(&value),
            "schema name file executable script scenario standing trial learnt knobs device bound bytes requests \
             steps files"
        );
        assert_eq!(keys(&value["trial"]), "at pairs plain_ns prefetched_ns warm_ns ratio low high");
        assert_eq!(
            keys(&value["learnt"]),
            "starts cold_starts tier exact first last computing_ns cold_ready_ns"
        );
        assert_eq!(
            keys(&value["knobs"]),
            "min_uses gap_bytes chunk_bytes in_flight_bytes threads order window_us gate critical_us metadata"
        );
        assert_eq!(keys(&value["bound"]), "computing_ns overlapped_ns serial_ns bytes requests");
        assert_eq!(keys(&value["files"][0]), "path kind size need_ns uses ranges reads");
        assert!(value["learnt"]["cold_ready_ns"].is_null() && value["trial"]["warm_ns"].is_null(), "unknown");
        let reads: usize =
            value["files"].as_array().unwrap().iter().map(|f| f["reads"].as_array().unwrap().len()).sum();
        assert_eq!((reads, value["requests"].as_u64()), (3, Some(3)));
        for (standing, text) in [
            (Standing::Untried, serde_json::json!("untried")),
            (Standing::Proven, serde_json::json!("proven")),
            (Standing::Off("slow".into()), serde_json::json!({ "off": "slow" })),
        ] {
            assert_eq!(serde_json::to_value(standing).unwrap(), text);
        }
        let brief = serde_json::to_value(Document::brief(&plan, "a-1", Path::new("/p"))).unwrap();
        assert!(brief.get("files").is_none() && brief.get("schema").is_none());
    }
}
