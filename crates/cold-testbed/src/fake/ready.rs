//! Ready-made trees. Small: what the readers of `cold-sys` and `cold doctor` look at.

use super::FakeTree;

const MEMINFO: &str = "MemTotal:       16303456 kB\nMemFree:         8203456 kB\nMemAvailable:   14203456 kB\n\
    Buffers:          123456 kB\nCached:          5203456 kB\nActive(file):    2203456 kB\n\
    Inactive(file):  2903456 kB\nMlocked:              16 kB\nSwapTotal:       {swap} kB\nSwapFree:        {swap} kB\n\
    Dirty:               120 kB\nWriteback:             0 kB\nAnonPages:       1203456 kB\nMapped:           403456 kB\n\
    Shmem:             23456 kB\nSlab:             523456 kB\nKernelStack:       12345 kB\nPageTables:        34567 kB\n";

const VMSTAT: &str = "nr_free_pages 2050864\npgpgin 1234567\npgfault 99999\npgmajfault 1234\ndrop_pagecache 0\n\
    drop_slab 0\npgsteal_kswapd 0\npgsteal_direct 0\npgsteal_khugepaged 0\nworkingset_refault_file 0\n";

impl FakeTree {
    /// Debian 12 on a laptop: Linux 6.1, one `NVMe` disk with ext4, cgroup v2 with systemd, PSI, swap,
    /// powersave governor, an indexer and a package manager running.
    pub fn debian12_laptop() -> Self {
        common("6.1.0-18-amd64", "8388604")
            .disk("nvme0n1", (259, 0), 0, "[none] mq-deadline", "nvme0n1p2")
            .file(
                "proc/self/mountinfo",
                "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro\n\
                 23 22 0:21 / /proc rw,nosuid - proc proc rw\n24 22 0:22 / /sys rw,nosuid - sysfs sysfs rw\n\
                 30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
            )
            .cgroup2("cpuset cpu io memory hugetlb pids rdma misc")
            .psi()
            .file(
                "proc/swaps",
                "Filename\tType\tSize\tUsed\tPriority\n/dev/nvme0n1p3 partition\t8388604\t0\t-2\n",
            )
            .file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
            .process(1, "systemd", "/usr/lib/systemd/systemd")
            .process(812, "tracker-miner-f", "/usr/libexec/tracker-miner-fs-3")
            .process(977, "apt-get", "/usr/bin/apt-get")
    }

    /// A two-CPU virtual machine: Linux 6.18, virtio disk, cgroup v1 beside an empty v2, PSI, no swap,
    /// DAMON reclaim on, no CPU frequency scaling, no systemd.
    pub fn virtual_machine() -> Self {
        let v1 = ["cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids"];
        let mut mounts = "22 1 254:0 / / rw,relatime - ext4 /dev/root rw\n\
             23 22 0:21 / /proc rw - proc proc rw\n24 22 0:22 / /sys rw - sysfs sysfs rw\n"
            .to_owned();
        let mut tree = common("6.18.44", "0").disk("vda", (254, 0), 0, "[mq-deadline] none", "vda1").psi();
        for (i, c) in v1.iter().enumerate() {
            let line = format!("{0} 24 0:{0} / /sys/fs/cgroup/{c} rw - cgroup cgroup rw,{c}\n", 40 + i);
            mounts.push_str(&line);
            tree = tree
                .dir(&format!("sys/fs/cgroup/{c}"))
                .file(&format!("sys/fs/cgroup/{c}/cgroup.procs"), "1\n");
        }
        mounts += "60 24 0:60 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        tree.file("proc/self/mountinfo", mounts)
            .file("sys/fs/cgroup/unified/cgroup.controllers", "\n")
            .file("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n")
            .file("proc/cpuinfo", "processor\t: 0\nmodel name\t: Virtual\nflags\t\t: fpu hypervisor\n")
            .file("sys/module/damon_reclaim/parameters/enabled", "Y\n")
            .process(1, "init", "/sbin/init")
    }

    /// Only cgroup v2, mounted at `/sys/fs/cgroup`, without the io controller for children; no PSI.
    pub fn cgroup2_only() -> Self {
        common("6.12.8", "0")
            .disk("sda", (8, 0), 1, "none [bfq]", "sda1")
            .file(
                "proc/self/mountinfo",
                "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            )
            .cgroup2("cpu memory pids")
            .file("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/zram0 partition\t4194300\t0\t100\n")
            .process(1, "systemd", "/usr/lib/systemd/systemd")
    }

    /// A container without privileges: overlayfs, no block devices, no capabilities, seccomp on,
    /// read-only cgroup v2, settings that cannot be seen.
    pub fn unprivileged_container() -> Self {
        common("6.8.0-45-generic", "0")
            .file(
                "proc/self/mountinfo",
                "500 400 0:90 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w\n\
                 501 500 0:91 / /proc rw,nosuid - proc proc rw\n\
                 502 500 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n",
            )
            .file(
                "proc/self/status",
                "Name:\tcold\nUid:\t1000\t1000\t1000\t1000\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n\
                 CapEff:\t0000000000000000\nCapBnd:\t00000000a80425fb\nNoNewPrivs:\t1\nSeccomp:\t2\n",
            )
            .file("proc/self/uid_map", "         0     100000      65536\n")
            .file("proc/diskstats", "")
            .cgroup2("cpu memory pids")
            .file("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n")
            .without("proc/sys/vm/drop_caches")
            .without("sys/kernel/mm")
            .process(1, "sh", "/bin/sh")
    }

    /// Adds a process that sleeps.
    #[must_use]
    pub fn process(self, pid: i32, comm: &str, exe: &str) -> Self {
        let zeros = "0 ".repeat(29);
        let stat =
            format!("{pid} ({comm}) S 1 {pid} {pid} 0 -1 4194560 10 0 3 0 5 6 0 0 20 0 1 0 777 {zeros}\n");
        self.file(&format!("proc/{pid}/stat"), stat)
            .file(&format!("proc/{pid}/comm"), format!("{comm}\n"))
            .file(&format!("proc/{pid}/cmdline"), format!("{exe}\0"))
            .file(&format!("proc/{pid}/maps"), "")
            .file(&format!("proc/{pid}/cgroup"), "0::/\n")
            .dir(&format!("proc/{pid}/fd"))
            .link(&format!("proc/{pid}/exe"), exe)
    }

    /// Adds a disk with one partition.
    #[must_use]
    pub fn disk(self, name: &str, dev: (u32, u32), rotational: u8, scheduler: &str, partition: &str) -> Self {
        let (major, minor) = dev;
        let line =
            |minor, name| format!("{major:4} {minor:7} {name} 100 5 2048 33 7 0 56 2 0 30 35 0 0 0 0 4 1\n");
        let q = format!("sys/block/{name}/queue");
        self.file(&format!("{q}/read_ahead_kb"), "128\n")
            .file(&format!("{q}/max_sectors_kb"), "1280\n")
            .file(&format!("{q}/scheduler"), format!("{scheduler}\n"))
            .file(&format!("{q}/rotational"), format!("{rotational}\n"))
            .file(&format!("sys/block/{name}/dev"), format!("{major}:{minor}\n"))
            .file(&format!("sys/block/{name}/{partition}/dev"), format!("{major}:{}\n", minor + 1))
            .file("proc/diskstats", line(minor, name) + &line(minor + 1, partition))
            .link(&format!("sys/dev/block/{major}:{minor}"), &format!("../../block/{name}"))
            .link(&format!("sys/dev/block/{major}:{}", minor + 1), &format!("../../block/{name}/{partition}"))
    }

    /// Adds a cgroup v2 hierarchy at `/sys/fs/cgroup`.
    #[must_use]
    pub fn cgroup2(self, controllers: &str) -> Self {
        self.file("sys/fs/cgroup/cgroup.controllers", format!("{controllers}\n"))
            .file("sys/fs/cgroup/cgroup.subtree_control", "memory pids\n")
            .file("sys/fs/cgroup/cgroup.procs", "1\n")
    }

    /// Adds pressure files, all quiet.
    #[must_use]
    pub fn psi(self) -> Self {
        let line = |kind| format!("{kind} avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n");
        ["cpu", "memory", "io"].into_iter().fold(self, |tree, kind| {
            tree.file(&format!("proc/pressure/{kind}"), line("some") + &line("full"))
        })
    }
}

/// What every machine has.
fn common(release: &str, swap_kb: &str) -> FakeTree {
    FakeTree::new()
        .file("proc/meminfo", MEMINFO.replace("{swap}", swap_kb))
        .file("proc/vmstat", VMSTAT)
        .file(
            "proc/stat",
            "cpu  100 0 50 1000 10 0 0 5 0 0\ncpu0 100 0 50 1000 10 0 0 5 0 0\nbtime 1700000000\n",
        )
        .file("proc/cpuinfo", "processor\t: 0\nmodel name\t: Example CPU\nflags\t\t: fpu sse2\n")
        .file("proc/sys/kernel/osrelease", format!("{release}\n"))
        .file("proc/sys/kernel/task_delayacct", "0\n")
        .file("proc/sys/kernel/perf_event_paranoid", "2\n")
        .file("proc/sys/kernel/random/boot_id", "6a5f1c0e-0000-4000-8000-000000000001\n")
        .file("proc/sys/vm/swappiness", "60\n")
        .file("proc/sys/vm/drop_caches", "0\n")
        .file("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
        .file("proc/self/status", "Name:\tcold\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n")
}
