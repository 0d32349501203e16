//! Loading the object with what this kernel has, and attaching its programs.

use cold_model::recording::manifest::Tier;
use libbpf_rs::{Link, MapCore, Object, ObjectBuilder, OpenObject};

use super::support::{PROGRAMS, Program, Support};
use super::{BpfOptions, Error, knobs, messages};

#[cfg(test)]
mod tests;

/// The same programs for kernels with `bpf_loop` (5.17) and without; compiled by build.rs.
static NEW: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/new.bpf.o"));
static OLD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/old.bpf.o"));

fn failed(action: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Error {
    move |source| Error::Load { action, source, messages: messages::take() }
}

/// Loads the programs of `tier`; none runs yet.
pub(super) fn load(
    support: &Support,
    tier: Tier,
    options: &BpfOptions,
    buffer: u32,
) -> Result<Object, Error> {
    messages::capture();
    // A copy of its own: the ELF reader wants it aligned.
    let bytes = if support.shapes.bpf_loop { NEW } else { OLD }.to_vec();
    let mut open = ObjectBuilder::default().open_memory(&bytes).map_err(failed("open"))?;
    let knobs = knobs::bytes(support.shapes, tier == Tier::B, options);
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name == "events" {
            map.set_max_entries(buffer).map_err(failed("size the buffer of"))?;
        } else if name == "call_counts" && !options.count_calls {
            map.set_max_entries(1).map_err(failed("size the counts of"))?;
        } else if name.ends_with(".rodata.knobs") {
            map.set_initial_value(&knobs).map_err(failed("set the constants of"))?;
        }
    }
    choose_programs(&mut open, support, tier);
    open.load().map_err(failed("load"))
}

fn choose_programs(open: &mut OpenObject, support: &Support, tier: Tier) {
    for mut program in open.progs_mut() {
        let name = program.name().to_os_string();
        let known = PROGRAMS.iter().find(|known| name.to_str() == Some(known.name));
        program.set_autoload(known.is_some_and(|known| support.loads(known, tier)));
    }
}

/// Attaches those of the loaded programs that are `wanted`. The links end the programs when they are dropped.
pub(super) fn attach(object: &Object, wanted: impl Fn(&Program) -> bool) -> Result<Vec<Link>, Error> {
    let mut links = Vec::new();
    for program in object.progs_mut().filter(|program| program.autoload()) {
        let known = PROGRAMS.iter().find(|known| program.name().to_str() == Some(known.name));
        if known.is_some_and(&wanted) {
            links.push(program.attach_trace().map_err(failed("attach"))?);
        }
    }
    Ok(links)
}

/// A map of the object by its name.
pub(super) fn map<'obj>(object: &'obj Object, name: &str) -> Result<libbpf_rs::Map<'obj>, Error> {
    object.maps().find(|map| map.name().to_str() == Some(name)).ok_or_else(|| Error::Map {
        action: "find a map of the BPF programs",
        source: libbpf_rs::Error::from(std::io::Error::from(std::io::ErrorKind::NotFound)),
    })
}
