//! Who we are and what we may do.

use cold_sys::caps::Capability;

use crate::context::Context;
use crate::finding::Finding;

/// What is lost without each capability.
const WANTED: &[(Capability, &str)] = &[
    (Capability::SysAdmin, "no fanotify on mounts, no throttled test disk"),
    (Capability::Perfmon, "no perf events or BPF tracing of the whole machine"),
    (Capability::Bpf, "no BPF programs"),
    (Capability::SysPtrace, "the mappings of other users' processes stay hidden"),
    (Capability::DacReadSearch, "files and descriptors of other users stay closed"),
    (Capability::SysNice, "the measuring process cannot raise its priority"),
    (Capability::SysResource, "limits cannot be raised above the hard limit"),
];

/// The initial namespaces that containers replace, as their links read: their inode numbers are constants
/// (`include/linux/proc_ns.h`). The mount namespace's is not.
const INITIAL_NAMESPACES: &[(&str, &str)] = &[
    ("user", INITIAL_USER_NS),
    ("pid", INITIAL_PID_NS),
    ("cgroup", "cgroup:[4026531835]"),
    ("uts", "uts:[4026531838]"),
    ("ipc", "ipc:[4026531839]"),
];
const INITIAL_USER_NS: &str = "user:[4026531837]";
const INITIAL_PID_NS: &str = "pid:[4026531836]";

pub(crate) fn user(c: &Context) -> Vec<Finding> {
    let (held, lacking): (Vec<_>, Vec<_>) = WANTED.iter().partition(|(cap, _)| c.has(*cap));
    let names =
        |caps: &[&(Capability, &str)]| caps.iter().map(|(cap, _)| cap.name()).collect::<Vec<_>>().join(", ");
    let who = if c.is_root() { "root".to_owned() } else { format!("uid {}", c.credentials.euid) };
    if held.is_empty() {
        return vec![
            Finding::missing("user", format!("{who}, no capabilities"))
                .so("pages are evicted file by file, directory entries and inodes stay cached, other users' \
                     processes hide what they map, recording covers own processes only")
                .remedy("run as root: sudo cold …"),
        ];
    }
    let mut findings = vec![
        Finding::ok("user", format!("{who} with {}", names(&held)))
            .so("the machine's caches, other users' processes and the kernel's events are open"),
    ];
    if !lacking.is_empty() {
        let losses: Vec<&str> = lacking.iter().map(|(_, loss)| *loss).collect();
        // SYS_NICE and SYS_RESOURCE are conveniences; the others decide what can be seen.
        let minor = |cap: Capability| matches!(cap, Capability::SysNice | Capability::SysResource);
        let finding =
            if lacking.iter().all(|(cap, _)| minor(*cap)) { Finding::note } else { Finding::missing };
        let remedy = if c.is_root() {
            "in a container: --cap-add; else ask the machine's owner, who withholds them"
        } else {
            "run as root: sudo cold …"
        };
        findings.push(
            finding("user.lacking", format!("without {}", names(&lacking)))
                .so(losses.join("; "))
                .remedy(remedy),
        );
    }
    findings
}

pub(crate) fn sandbox(c: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    match container(c).filter(|_| isolated(c)) {
        Some(evidence) => findings.push(
            Finding::missing("sandbox.container", format!("in a container ({evidence})"))
                .so("the page cache is shared with processes outside, whose mappings keep pages warm and \
                     cannot be seen from here")
                .remedy("measure on the host, or give the container --privileged --pid=host"),
        ),
        None => findings.push(
            Finding::ok("sandbox.container", "not in a container")
                .so("every process that may hold pages can be seen, and the cache is this system's own"),
        ),
    }
    if let Ok(ns) = std::fs::read_link(c.proc.path("self/ns/user"))
        && ns.as_os_str() != INITIAL_USER_NS
    {
        findings.push(
            Finding::missing("sandbox.user_namespace", "in a user namespace of its own")
                .so("capabilities count only inside it: caches cannot be dropped, the machine not traced")
                .remedy("run outside the user namespace (rootless containers, unshare -U)"),
        );
    }
    if let Ok(ns) = std::fs::read_link(c.proc.path("self/ns/pid"))
        && ns.as_os_str() != INITIAL_PID_NS
    {
        findings.push(
            Finding::missing("sandbox.pid_namespace", "in a pid namespace of its own")
                .so("processes outside it may hold files in the cache and are not listed")
                .remedy("run with the host's pid namespace (--pid=host)"),
        );
    }
    if c.credentials.no_new_privs == Some(true) {
        findings.push(
            Finding::note("sandbox.no_new_privs", "no_new_privs is set")
                .so("set-user-id programs start without their privileges, so their starts are not the real ones")
                .remedy("start cold from a plain shell, not from a service with NoNewPrivileges=yes"),
        );
    }
    match c.credentials.seccomp {
        Some(1 | 2) => findings.push(
            Finding::note("sandbox.seccomp", "a seccomp filter is active")
                .so("system calls that work elsewhere may be refused (ptrace, bpf, cachestat, perf_event_open)")
                .remedy("run outside the sandbox, or with --security-opt seccomp=unconfined"),
        ),
        Some(_) => {}
        None => findings.push(
            Finding::missing("sandbox.seccomp", "this kernel has no seccomp")
                .so("an observed start stops at every system call and is several times slower"),
        ),
    }
    findings
}

/// Whether some namespace is not the machine's initial one. Without this, a mark such as /.dockerenv only
/// says that the system was installed from a container's image, as many virtual machines are. Links that
/// cannot be read count as isolation, so that the mark is believed.
fn isolated(c: &Context) -> bool {
    INITIAL_NAMESPACES.iter().any(|(name, initial)| {
        let link = std::fs::read_link(c.proc.path(format!("self/ns/{name}")));
        !link.is_ok_and(|l| l.as_os_str() == *initial)
    })
}

/// What says that we are in a container.
fn container(c: &Context) -> Option<String> {
    for (path, what) in
        [("/run/.containerenv", "Podman"), ("/.dockerenv", "Docker"), ("/run/systemd/container", "systemd")]
    {
        if c.roots.path(path).exists() {
            return Some(format!("{what}: {path} exists"));
        }
    }
    let environment = c.proc.read("1/environ").unwrap_or_default();
    let named = environment.split('\0').find_map(|v| v.strip_prefix("container="));
    if let Some(kind) = named.filter(|kind| !kind.is_empty()) {
        return Some(format!("{kind}, says the environment of pid 1"));
    }
    let groups = c.proc.cgroups(1).unwrap_or_default();
    groups.iter().find_map(|group| {
        let text = group.path.to_string_lossy();
        let runtime =
            ["docker", "kubepods", "libpod", "lxc", "containerd"].into_iter().find(|r| text.contains(r))?;
        Some(format!("pid 1 runs in a cgroup of {runtime}"))
    })
}
