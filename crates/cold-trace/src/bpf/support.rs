//! What this kernel and our rights allow, read from the kernel's own type information (BTF).

use cold_model::recording::manifest::Tier;
use cold_sys::caps::Capability;
use cold_sys::procfs::ProcFs;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Func, FuncProto, Ptr, Struct, Typedef};
use libbpf_rs::btf::{BtfType, ReferencesType};

use super::{Error, messages};

/// One program: its name in the object, its tracepoint, and when it is needed.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) tracepoint: &'static str,
    pub(super) need: Need,
    pub(super) when: When,
}

/// When a program is attached where the recording waits for its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// While it waits: what happens seldom, and is silent while nobody is followed. The others would slow the whole
    /// machine down meanwhile, also where they return at once.
    Waiting,
    /// First of all when the start has come: what tells which pages it touches.
    First,
    /// Then: attaching each takes some 100 µs.
    Then,
}

/// When a program is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Both tiers need it.
    Always,
    /// Tier A needs it, tier B does without.
    TierA,
    /// Tier B needs it, tier A takes it where there is one.
    TierB,
    /// Taken where there is one.
    Optional,
    /// Taken only where this other tracepoint is missing.
    InsteadOf(&'static str),
}

/// All programs, in the order of `enum cold_program` in `costs.h`; behind them, since when there is such a
/// tracepoint.
pub(super) const PROGRAMS: [Program; 24] = [
    of("filemap_fault", "mm_filemap_fault", Need::TierA).attached(When::First), // 6.12
    of("filemap_map_pages", "mm_filemap_map_pages", Need::TierA).attached(When::First), // 6.12
    of("filemap_get_pages", "mm_filemap_get_pages", Need::TierA).attached(When::First), // 6.12
    of("filemap_add", "mm_filemap_add_to_page_cache", Need::Always),
    of("filemap_delete", "mm_filemap_delete_from_page_cache", Need::Always),
    of("ra_unbounded", "page_cache_ra_unbounded", Need::Optional), // after 6.12
    of("ra_order", "page_cache_ra_order", Need::Optional),
    of("ra_sync", "page_cache_sync_ra", Need::Optional),
    of("ra_async", "page_cache_async_ra", Need::Optional),
    of("fault_user", "page_fault_user", Need::TierB).attached(When::First), // x86; arm64 has none, up to 7.2 at least
    of("fault_kernel", "page_fault_kernel", Need::Optional),
    of("io_start", "block_io_start", Need::Optional), // 6.5
    of("bio_queue", "block_bio_queue", Need::InsteadOf("block_io_start")),
    of("rq_insert", "block_rq_insert", Need::Always),
    of("rq_issue", "block_rq_issue", Need::Always),
    of("rq_complete", "block_rq_complete", Need::Always),
    of("process_fork", "sched_process_fork", Need::Always).attached(When::Waiting),
    of("process_exec", "sched_process_exec", Need::Always).attached(When::Waiting),
    of("process_exit", "sched_process_exit", Need::Always).attached(When::Waiting),
    of("process_rename", "task_rename", Need::Always).attached(When::Waiting),
    of("task_switch", "sched_switch", Need::Always),
    of("task_waking", "sched_waking", Need::Always),
    of("call_enter", "sys_enter", Need::Always),
    of("call_exit", "sys_exit", Need::Always),
];

const fn of(name: &'static str, tracepoint: &'static str, need: Need) -> Program {
    Program { name, tracepoint, need, when: When::Then }
}

impl Program {
    const fn attached(self, when: When) -> Self {
        Self { when, ..self }
    }
}

/// Why BPF cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// Rights are missing.
    #[error("recording by BPF needs {}: run as root, or give the program these capabilities", .0.join(" and "))]
    Capabilities(Vec<String>),
    /// Not even an empty program is taken.
    #[error(
        "the kernel takes no BPF program ({0}): a policy of the host, a seccomp filter or a security module \
         refuses it; ask the machine's owner"
    )]
    Refused(String),
    /// The kernel is locked down.
    #[error("the kernel is locked down ({0}): BPF may not read kernel memory")]
    Lockdown(String),
    /// The kernel's type information (BTF) is missing or cannot be read; with what libbpf said.
    #[error("this kernel has no type information ({0}): it needs CONFIG_DEBUG_INFO_BTF")]
    NoBtf(String),
    /// The kernel's pids are not ours.
    #[error(
        "this process is in a pid namespace of its own, and the kernel's events name others: run outside"
    )]
    PidNamespace,
    /// The kernel lacks these tracepoints, without which not even tier B works.
    #[error("this kernel has no tracepoint {}", .0.join(", "))]
    Tracepoints(Vec<&'static str>),
}

/// What can be recorded here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    /// The best tier, A or B.
    pub tier: Tier,
    /// Tracepoints of either tier that this kernel lacks.
    pub missing: Vec<&'static str>,
    pub(super) shapes: Shapes,
}

/// How this kernel's tracepoints differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shapes {
    /// Folios (5.16), not pages.
    pub(super) folio: bool,
    /// `request_queue` before the request (until 5.10).
    pub(super) queue_first: bool,
    /// `sched_switch` passes the state (5.18).
    pub(super) prev_state: bool,
    /// `block_io_start` exists (6.5) and tells who made a request.
    pub(super) io_start: bool,
    /// The helper `bpf_loop` exists (5.17).
    pub(super) bpf_loop: bool,
    /// Faults in user mode are told, so that each ends the call before it.
    pub(super) page_faults: bool,
    /// Programs can walk the areas of a task's memory (6.7): they tell what is mapped where.
    pub(super) walks_areas: bool,
}

impl Support {
    /// Tracepoints that `tier` needs and this kernel lacks.
    pub(super) fn lacks(&self, tier: Tier) -> Vec<&'static str> {
        let needed = |program: &&Program| match program.need {
            Need::Always => true,
            Need::TierA => tier == Tier::A,
            Need::TierB => tier == Tier::B,
            Need::Optional | Need::InsteadOf(_) => false,
        };
        PROGRAMS
            .iter()
            .filter(needed)
            .map(|program| program.tracepoint)
            .filter(|tracepoint| self.missing.contains(tracepoint))
            .collect()
    }

    /// Programs to load for `tier`.
    pub(super) fn loads(&self, program: &Program, tier: Tier) -> bool {
        !self.missing.contains(&program.tracepoint)
            && match program.need {
                Need::TierA => tier == Tier::A,
                Need::InsteadOf(other) => self.missing.contains(&other),
                Need::Always | Need::TierB | Need::Optional => true,
            }
    }
}

/// What BPF can record on this machine, in this process.
///
/// # Errors
/// [`Why`] not. Whether the kernel then really takes the programs shows when they are loaded.
pub fn available() -> Result<Support, Why> {
    let proc = ProcFs::new("/proc");
    rights(&proc)?;
    if let Ok(own) = std::fs::read_link("/proc/self/ns/pid")
        && own.to_string_lossy() != "pid:[4026531836]"
    {
        return Err(Why::PidNamespace);
    }
    if let Ok(text) = std::fs::read_to_string("/sys/kernel/security/lockdown")
        && text.contains("[confidentiality]")
    {
        return Err(Why::Lockdown("confidentiality".into()));
    }
    cold_sys::probe::bpf_tracepoint_program().map_err(|error| Why::Refused(error.to_string()))?;
    messages::capture();
    let btf = Btf::from_vmlinux().map_err(|error| Why::NoBtf(error.to_string()))?;
    let missing: Vec<_> = PROGRAMS
        .iter()
        .map(|program| program.tracepoint)
        .filter(|tracepoint| prototype(&btf, tracepoint).is_none())
        .collect();
    let mut support = Support { tier: Tier::A, missing, shapes: shapes(&btf) };
    if !support.lacks(Tier::A).is_empty() {
        support.tier = Tier::B;
        let lacks = support.lacks(Tier::B);
        if !lacks.is_empty() {
            return Err(Why::Tracepoints(lacks));
        }
    }
    Ok(support)
}

fn rights(proc: &ProcFs) -> Result<(), Why> {
    // Unreadable: let the kernel answer when the programs are loaded.
    let Ok(own) = proc.own_credentials() else { return Ok(()) };
    if own.has(Capability::SysAdmin) {
        return Ok(());
    }
    let missing: Vec<_> = [Capability::Bpf, Capability::Perfmon]
        .into_iter()
        .filter(|capability| !own.has(*capability))
        .map(|capability| format!("CAP_{}", capability.name()))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(Why::Capabilities(missing)) }
}

/// The function type behind a tracepoint: `typedef void (*btf_trace_NAME)(void *, …)`.
fn prototype<'btf>(btf: &'btf Btf<'_>, tracepoint: &str) -> Option<FuncProto<'btf>> {
    let typedef: Typedef<'_> = btf.type_by_name(&format!("btf_trace_{tracepoint}"))?;
    let pointer: Ptr<'_> = typedef.referenced_type().try_into().ok()?;
    pointer.referenced_type().try_into().ok()
}

fn shapes(btf: &Btf<'_>) -> Shapes {
    let arguments = |tracepoint| prototype(btf, tracepoint).map_or(0, |proto| proto.iter().count());
    Shapes {
        folio: first_argument(btf, "mm_filemap_add_to_page_cache").is_some_and(|name| name == "folio"),
        // The first parameter is the program's own data.
        queue_first: arguments("block_rq_issue") == 3,
        prev_state: arguments("sched_switch") == 5,
        io_start: prototype(btf, "block_io_start").is_some(),
        bpf_loop: helper(btf, "BPF_FUNC_loop"),
        page_faults: prototype(btf, "page_fault_user").is_some(),
        walks_areas: btf.type_by_name::<Func<'_>>("bpf_iter_task_vma_new").is_some(),
    }
}

fn helper(btf: &Btf<'_>, name: &str) -> bool {
    let helpers: Option<Enum<'_>> = btf.type_by_name("bpf_func_id");
    helpers.is_some_and(|helpers| helpers.iter().any(|one| one.name.is_some_and(|text| text == name)))
}

/// Name of the struct that a tracepoint's first argument points to.
fn first_argument(btf: &Btf<'_>, tracepoint: &str) -> Option<String> {
    let proto = prototype(btf, tracepoint)?;
    let parameter = proto.iter().nth(1)?;
    let argument: BtfType<'_> = btf.type_by_id(parameter.ty)?;
    let pointer: Ptr<'_> = argument.try_into().ok()?;
    let subject: Struct<'_> = pointer.referenced_type().skip_mods_and_typedefs().try_into().ok()?;
    subject.name().map(|name| name.to_string_lossy().into_owned())
}

/// The tier to record with: the one asked for where the kernel has what it needs, else the best.
pub(super) fn choose(support: &Support, asked: Option<Tier>) -> Result<Tier, Error> {
    let tier = asked.unwrap_or(support.tier);
    if !matches!(tier, Tier::A | Tier::B) {
        return Err(Error::NotBpf(tier));
    }
    let missing = support.lacks(tier);
    if missing.is_empty() { Ok(tier) } else { Err(Error::Tier { tier, missing }) }
}
