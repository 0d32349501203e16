//! One look at all processes.

use std::path::PathBuf;

use cold_model::path_text;
use cold_sys::procfs::ProcFs;

/// `PF_KTHREAD` in `/proc/PID/stat`.
const PF_KTHREAD: u64 = 0x0020_0000;
/// Bytes of a command name that the kernel keeps.
const COMM_LEN: usize = 15;

/// A process as far as everybody may see it, and its executable where we may.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) ppid: i32,
    pub(crate) comm: String,
    pub(crate) cmdline: Vec<String>,
    /// `None` for kernel threads and where we may not look.
    pub(crate) exe: Option<PathBuf>,
    pub(crate) kernel_thread: bool,
}

impl Process {
    /// The fullest name: the script's or executable's base name, else the command name.
    pub(crate) fn name(&self) -> &str {
        self.names().find(|n| n.starts_with(self.comm.as_str())).unwrap_or(&self.comm)
    }

    /// Base names of the executable, of the first argument, and of the script behind an interpreter.
    fn names(&self) -> impl Iterator<Item = &str> {
        let exe = self.exe.as_ref().and_then(|p| p.file_name()?.to_str());
        let exe = exe.map(|name| path_text::without_mark(name).0);
        let args = self.cmdline.iter().take(2).enumerate();
        let args = args.filter(|(i, a)| *i == 0 || a.starts_with('/')).map(|(_, a)| base_name(a));
        exe.into_iter().chain(args)
    }

    /// Whether one of its names is `wanted`. The command name counts too; where the kernel has cut it
    /// after 15 bytes, only as long as no full name contradicts it (`unattended-upgrade-shutdown` is not
    /// `unattended-upgrade`).
    pub(crate) fn is_called(&self, wanted: &str) -> bool {
        if self.kernel_thread {
            return false;
        }
        if self.comm == wanted || self.names().any(|n| n == wanted) {
            return true;
        }
        let cut = self.comm.len() == COMM_LEN && wanted.len() > COMM_LEN;
        cut && wanted.starts_with(&self.comm) && !self.names().any(|n| n.starts_with(&self.comm))
    }
}

fn base_name(arg: &str) -> &str {
    // Titles like `sshd: user [priv]` and `nginx: worker` end at the colon; login shells begin with '-'.
    let word = arg.split([' ', ':']).next().unwrap_or(arg);
    word.rsplit('/').next().unwrap_or(word).trim_start_matches('-')
}

/// All processes; those that end meanwhile are left out.
pub(crate) fn list(proc: &ProcFs) -> cold_sys::Result<Vec<Process>> {
    Ok(proc
        .pids()?
        .into_iter()
        .filter_map(|pid| {
            let stat = proc.stat(pid).ok()?;
            Some(Process {
                pid,
                ppid: stat.ppid,
                comm: stat.comm,
                cmdline: proc.cmdline(pid).unwrap_or_default(),
                exe: proc.exe(pid).ok(),
                kernel_thread: stat.flags & PF_KTHREAD != 0,
            })
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(comm: &str, args: &[&str], exe: Option<&str>) -> Process {
        Process {
            pid: 7,
            ppid: 1,
            comm: comm.to_owned(),
            cmdline: args.iter().map(|a| (*a).to_owned()).collect(),
            exe: exe.map(PathBuf::from),
            kernel_thread: false,
        }
    }

    #[test]
    fn a_cut_command_name_matches_unless_the_arguments_say_otherwise() {
        let python = Some("/usr/bin/python3.11");
        let args = ["/usr/bin/python3", "/usr/bin/unattended-upgrade"];
        let upgrade = process("unattended-upgr", &args, python);
        assert!(upgrade.is_called("unattended-upgrade"));
        assert_eq!(upgrade.name(), "unattended-upgrade");
        let args = ["/usr/bin/python3", "/usr/share/unattended-upgrades/unattended-upgrade-shutdown"];
        assert!(!process("unattended-upgr", &args, python).is_called("unattended-upgrade"));
        assert!(process("unattended-upgr", &[], None).is_called("unattended-upgrade"));
    }

    #[test]
    fn an_argument_that_is_no_path_names_nobody() {
        assert!(!process("grep", &["grep", "preload"], Some("/usr/bin/grep")).is_called("preload"));
    }
}
