//! Pressure and delay accounting: who waited for storage, and how long.

use cold_model::figures::percent;

use crate::context::Context;
use crate::finding::Finding;

pub(crate) fn psi(c: &Context) -> Vec<Finding> {
    vec![match c.proc.pressure("io") {
        Ok(io) => {
            let some = percent(io.some.avg10);
            Finding::ok("psi", format!("pressure stall information is on (io some {some} of the last 10 s)"))
                .so("time in which tasks waited for storage is known machine-wide and per cgroup")
        }
        // A kernel with PSI compiled in but off answers EOPNOTSUPP to the read; without it the file is absent.
        Err(e) if e.errno() == Some(libc::EOPNOTSUPP) => {
            Finding::missing("psi", "pressure stall information is switched off")
                .so("no machine-wide stall times")
                .remedy("boot with psi=1")
        }
        Err(e) if e.errno() == Some(libc::ENOENT) => Finding::missing(
            "psi",
            "no pressure stall information (switched off at boot, or not in this kernel)",
        )
        .so("no machine-wide stall times")
        .remedy("boot with psi=1; needs CONFIG_PSI"),
        Err(e) => Finding::unknown("psi", "pressure stall information", e),
    }]
}

pub(crate) fn delays(c: &Context) -> Vec<Finding> {
    let id = "delay_accounting";
    let remedy = if c.is_root() {
        "sysctl kernel.task_delayacct=1 before the measurement (0 afterwards)"
    } else {
        "as root: sysctl kernel.task_delayacct=1"
    };
    vec![match c.proc.read_opt("sys/kernel/task_delayacct") {
        Ok(Some(on)) if on != "0" => Finding::ok(id, "delay accounting is on")
            .so("each process's wait for storage is known (taskstats, /proc/PID/stat)"),
        Ok(Some(_)) => Finding::missing(id, "delay accounting is off (kernel.task_delayacct=0)")
            .so("waits for storage are not known per task; the stall time of a tree comes from pressure stall information alone")
            .remedy(remedy),
        // Before 5.14 it was on by default and had no sysctl.
        Ok(None) if c.since((5, 14)) == Some(false) => {
            Finding::note(id, "this kernel cannot tell whether delay accounting is on")
                .so("stall times are shown where they are not 0")
        }
        Ok(None) => Finding::missing(id, "this kernel has no delay accounting")
            .so("waits for storage are not known per task; the stall time of a tree comes from pressure stall information alone")
            .remedy("a kernel with CONFIG_TASK_DELAY_ACCT=y"),
        Err(e) => Finding::unknown(id, "kernel.task_delayacct", e),
    }]
}
