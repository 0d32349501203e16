//! The JSON document's shape.

use std::path::{Path, PathBuf};

use cold_model::hash::hexadecimal;
use cold_model::path_text;
use serde::{Deserialize, Serialize};

use super::{Error, FORMAT, Parts};
use crate::Plan;
use crate::identity::build_id_of;
use crate::plan::{FileKind, Identity, Key, Knobs, Learnt, PlanFile, Range};

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
    learnt: Learnt,
    knobs: Knobs,
    pub(super) files: Vec<File>,
    pub(super) ranges: Vec<Range>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(with = "path_text")]
    path: PathBuf,
    kind: FileKind,
    size: u64,
    build_id: Option<String>,
    need_ns: u64,
    uses: u8,
    /// Written since plans know it.
    #[serde(default)]
    exact: bool,
    /// Written since other builds' pages are carried over by them, where there are any.
    #[serde(default, skip_serializing_if = "Parts::is_empty")]
    sections: Parts,
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

    pub(super) fn of(plan: &Plan, sections: &dyn Fn(&Path) -> Parts) -> Self {
        let key = &plan.key;
        Self {
            format: FORMAT.to_owned(),
            executable: key.executable.clone(),
            build_id: build_id_text(&key.identity.build_id),
            size: key.identity.size,
            script: key.script.clone(),
            scenario: key.scenario.clone(),
            learnt: plan.learnt,
            knobs: plan.knobs,
            files: plan.files.iter().map(|file| File::of(file, sections)).collect(),
            ranges: plan.ranges.clone(),
        }
    }

    /// Without anything of a machine but its files' sizes and build-ids; and these files' sections.
    pub(super) fn into_plan(mut self) -> Result<(Plan, Vec<Parts>), Error> {
        let sections = self.files.iter_mut().map(|file| std::mem::take(&mut file.sections)).collect();
        let identity = Identity { size: self.size, build_id: number(self.build_id)?, ..Identity::default() };
        let key = Key { executable: self.executable, identity, script: self.script, scenario: self.scenario };
        let files = self.files.into_iter().map(File::into_plan).collect::<Result<_, _>>()?;
        Ok((Plan::unmade(key, self.learnt, files, self.ranges, self.knobs), sections))
    }
}

impl File {
    fn of(file: &PlanFile, sections: &dyn Fn(&Path) -> Parts) -> Self {
        Self {
            path: file.path.clone(),
            kind: file.kind,
            size: file.identity.size,
            build_id: build_id_text(&file.identity.build_id),
            need_ns: file.need_ns,
            uses: file.uses,
            exact: file.exact,
            sections: if file.kind == FileKind::Regular { sections(&file.path) } else { Parts::default() },
        }
    }

    fn into_plan(self) -> Result<PlanFile, Error> {
        let Self { path, kind, size, build_id, need_ns, uses, exact, sections: _ } = self;
        let identity = Identity { size, build_id: number(build_id)?, ..Identity::default() };
        Ok(PlanFile { path, kind, identity, need_ns, uses, exact })
    }
}

/// A build-id as `readelf -n` prints it; nothing for none.
fn build_id_text(build_id: &[u8; 20]) -> Option<String> {
    (*build_id != [0; 20]).then(|| hexadecimal(build_id))
}

fn number(digits: Option<String>) -> Result<[u8; 20], Error> {
    let Some(digits) = digits else { return Ok([0; 20]) };
    // Longer than what is written is nothing that we wrote.
    build_id_of(&digits).filter(|_| digits.len() <= 40).ok_or(Error::BuildId(digits))
}

/// [`path_text`] for a path that may be absent.
mod optional_path {
    use std::path::PathBuf;

    use cold_model::path_text;
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
