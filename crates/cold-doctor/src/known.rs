//! Programs known to disturb measurements: one table.
//!
//! Names are base names of executables or scripts; units are systemd unit files.

/// What kind of disturbance a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disturbance {
    /// Reads files ahead of their use: a cold start is no longer cold.
    Prefetcher,
    /// Moves profiles or caches into memory.
    MemoryProfile,
    /// Looks at every file opened, before the open returns.
    OnAccess,
    /// A daemon that reads files when it has work.
    Indexer,
    /// Runs for a while and reads or writes much.
    Job,
    /// A package daemon that wakes up on its own.
    PackageDaemon,
    /// Reads and writes files when something changes.
    Sync,
    /// Pulls images, starts containers.
    Containers,
}

/// A program of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// Base names it runs under.
    pub(crate) names: &'static [&'static str],
    /// Unit files it is installed as.
    pub(crate) units: &'static [&'static str],
    pub(crate) kind: Disturbance,
    /// What it is, in words.
    pub(crate) what: &'static str,
}

const fn known(
    kind: Disturbance,
    what: &'static str,
    names: &'static [&'static str],
    units: &'static [&'static str],
) -> Known {
    Known { names, units, kind, what }
}

use Disturbance::{Containers, Indexer, Job, MemoryProfile, OnAccess, PackageDaemon, Prefetcher, Sync};

pub(crate) const KNOWN: &[Known] = &[
    known(Prefetcher, "preload", &["preload"], &["preload.service"]),
    known(Prefetcher, "preload-ng", &["preload-ng"], &["preload-ng.service"]),
    known(Prefetcher, "gopreload", &["gopreload", "gopreloadd"], &["gopreload.service"]),
    known(Prefetcher, "ureadahead", &["ureadahead"], &["ureadahead.service"]),
    known(
        Prefetcher,
        "systemd-readahead",
        &["systemd-readahead"],
        &["systemd-readahead-replay.service", "systemd-readahead-collect.service"],
    ),
    known(Prefetcher, "e4rat", &["e4rat-preload", "e4rat-lite-preload", "e4rat-collect"], &[]),
    known(Prefetcher, "vmtouch daemon", &["vmtouch"], &["vmtouch.service"]),
    known(MemoryProfile, "profile-sync-daemon", &["profile-sync-daemon"], &["psd.service"]),
    known(MemoryProfile, "anything-sync-daemon", &["anything-sync-daemon"], &["asd.service"]),
    known(Job, "prelink", &["prelink"], &["prelink.timer"]),
    known(OnAccess, "ClamAV on-access scanner", &["clamonacc"], &["clamav-clamonacc.service"]),
    known(Indexer, "ClamAV daemon", &["clamd"], &["clamav-daemon.service", "clamd@scan.service"]),
    known(Job, "ClamAV scan", &["clamscan", "clamdscan"], &[]),
    known(OnAccess, "Microsoft Defender", &["wdavdaemon"], &["mdatp.service"]),
    known(
        OnAccess,
        "CrowdStrike Falcon",
        &["falcon-sensor", "falcon-sensor-bpf"],
        &["falcon-sensor.service"],
    ),
    known(
        Indexer,
        "Tracker (GNOME file indexer)",
        &["tracker-miner-fs", "tracker-miner-fs-3", "tracker-extract-3", "tracker-extract"],
        &["tracker-miner-fs-3.service", "tracker-miner-fs.service"],
    ),
    known(
        Indexer,
        "LocalSearch (GNOME file indexer)",
        &["localsearch", "localsearch-3", "localsearch-extractor-3"],
        &["localsearch-3.service"],
    ),
    known(
        Indexer,
        "Baloo (KDE file indexer)",
        &["baloo_file", "baloo_file_extractor", "baloorunner"],
        &["kde-baloo.service"],
    ),
    known(Indexer, "Recoll indexer", &["recollindex"], &[]),
    known(Indexer, "Zeitgeist", &["zeitgeist-daemon", "zeitgeist-fts"], &[]),
    known(Indexer, "auditd", &["auditd"], &["auditd.service"]),
    known(Job, "updatedb (locate)", &["updatedb", "updatedb.plocate", "updatedb.mlocate"], &[]),
    known(Job, "man-db index", &["mandb"], &[]),
    known(Job, "AIDE", &["aide"], &[]),
    known(Job, "file system check", &["e2scrub", "fsck", "btrfs-scrub"], &[]),
    known(Job, "fstrim", &["fstrim"], &[]),
    known(Job, "apt", &["apt", "apt-get", "aptitude", "apt.systemd.daily"], &[]),
    known(Job, "dpkg", &["dpkg", "dpkg-deb", "dpkg-preconfigure"], &[]),
    known(Job, "unattended-upgrades", &["unattended-upgrade", "unattended-upgrades"], &[]),
    known(Job, "dnf", &["dnf", "dnf5", "microdnf", "yum", "dnf-automatic"], &[]),
    known(Job, "rpm", &["rpm", "rpmbuild"], &[]),
    known(Job, "zypper", &["zypper"], &[]),
    known(Job, "pacman", &["pacman", "yay", "paru", "makepkg"], &[]),
    known(Job, "apk", &["apk"], &[]),
    known(Job, "flatpak", &["flatpak"], &[]),
    known(PackageDaemon, "PackageKit", &["packagekitd"], &["packagekit.service"]),
    known(PackageDaemon, "snapd", &["snapd"], &["snapd.service"]),
    known(PackageDaemon, "dnf5daemon", &["dnf5daemon-server"], &["dnf5daemon-server.service"]),
    known(PackageDaemon, "fwupd", &["fwupd"], &["fwupd.service"]),
    known(PackageDaemon, "GNOME Software", &["gnome-software"], &[]),
    known(Sync, "Syncthing", &["syncthing"], &["syncthing.service"]),
    known(Sync, "Dropbox", &["dropbox", "dropboxd"], &[]),
    known(Sync, "Nextcloud client", &["nextcloud"], &[]),
    known(Sync, "Insync", &["insync"], &[]),
    known(Job, "rsync", &["rsync"], &[]),
    known(Job, "rclone", &["rclone"], &[]),
    known(Job, "restic", &["restic"], &[]),
    known(Job, "Borg", &["borg", "borgmatic"], &[]),
    known(Job, "duplicity", &["duplicity", "deja-dup-monitor"], &[]),
    known(Job, "timeshift", &["timeshift"], &[]),
    known(Containers, "Docker", &["dockerd"], &["docker.service"]),
    known(Containers, "containerd", &["containerd"], &["containerd.service"]),
    known(Containers, "Podman", &["podman", "conmon"], &[]),
    known(Job, "container build or pull", &["buildkitd", "skopeo", "buildah"], &[]),
    known(Job, "file system snapshot", &["snapper", "snapperd"], &[]),
];

/// Lock files of package managers, held with fcntl while they work.
pub(crate) const PACKAGE_LOCKS: &[&str] = &[
    "/var/lib/dpkg/lock",
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
    "/var/lib/rpm/.rpm.lock",
    "/usr/lib/sysimage/rpm/.rpm.lock",
    "/lib/apk/db/lock",
];

/// Lock files that exist only while their package manager works.
pub(crate) const PACKAGE_LOCK_FILES: &[&str] = &["/var/lib/pacman/db.lck"];

/// Where systemd unit files and their enabling links lie.
pub(crate) const UNIT_DIRECTORIES: &[&str] = &[
    "/etc/systemd/system",
    "/etc/systemd/user",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/usr/lib/systemd/user",
    "/usr/local/lib/systemd/system",
];
