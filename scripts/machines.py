"""Which kernels `cold trace` is tried under, per processor, and how qemu boots them."""

import dataclasses
import subprocess

import debian
import own_kernel

BOOT_SECONDS = 600  # software emulation: a boot takes 5 s, loading BPF programs several times as long


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One kernel, and what is promised under it."""
    suite: str
    """Tier promised by docs/formats/recording.md."""
    tier: str
    """Name of the package; none: it is built from Debian's sources."""
    package: str = None
    page: int = 4096
    """Memory is limited there, too."""
    limited: bool = False


@dataclasses.dataclass(frozen=True)
class Machine:
    """What differs by processor."""
    rust: str
    console: str
    qemu: tuple
    qemu_package: str
    kernels: dict

    def target(self, libc="gnu"):
        return f"{self.rust}-unknown-linux-{libc}"


MACHINES = {
    # Without cmpxchg16b, which qemu 7.2 gets wrong: 6.12 ended with a double fault at kmalloc's, its flags overwritten by
    # another register, or stood still.
    "amd64": Machine("x86_64", "ttyS0", ("qemu-system-x86_64", "-machine", "q35", "-cpu", "Nehalem,+rdrand,-cx16"), "qemu-system-x86", {
        "6.1": Kernel("bookworm", "B", r"^linux-image-6\.1\.0-[0-9]+-cloud-amd64-unsigned$", limited=True),
        "6.12": Kernel("trixie", "A", r"^linux-image-6\.12\.[0-9.]+\+deb13-cloud-amd64-unsigned$", limited=True),
    }),
    # Keys for pointers are made up by qemu's own function: the one in the standard takes half of the time.
    "arm64": Machine("aarch64", "ttyAMA0", ("qemu-system-aarch64", "-machine", "virt", "-cpu", "max,pauth-impdef=on"), "qemu-system-arm", {
        # Tier B wants the tracepoint of faults, which arm64 does not have there.
        "6.1": Kernel("bookworm", "C", r"^linux-image-6\.1\.0-[0-9]+-cloud-arm64-unsigned$", limited=True),
        "6.12": Kernel("trixie", "A", r"^linux-image-6\.12\.[0-9.]+\+deb13-cloud-arm64-unsigned$"),
        "6.12-16k": Kernel("trixie", "A", r"^linux-image-6\.12\.[0-9.]+\+deb13-arm64-16k-unsigned$", page=16384),
        "6.12-64k": Kernel("trixie", "A", page=65536),
    }),
}


def fetch(work, processor, release):
    """The unpacked package of one kernel, or what was built, made once."""
    kernel = MACHINES[processor].kernels[release]
    there = work / release
    if not any(there.glob("boot/vmlinuz-*")):
        if kernel.package:
            debian.fetch(work, kernel.suite, processor, kernel.package, there)
        else:
            own_kernel.build(work, kernel.suite, there)
    return there


def busybox(work, processor):
    """A static busybox for it, which Debian 12 has for each."""
    there = work / "busybox"
    if not (there / "bin" / "busybox").exists():
        debian.fetch(work, "bookworm", processor, r"^busybox-static$", there)
    return there / "bin" / "busybox"


def boot(machine, kernel, target, image):
    """The console's lines of one boot; emulated early boots crash now and then, so up to three tries."""
    for _ in range(3):
        lines = boot_once(machine, kernel, target, image)
        if not any("Kernel panic" in line for line in lines):
            break
    return lines


def boot_once(machine, kernel, target, image):
    vmlinuz = next(kernel.glob("boot/vmlinuz-*"))
    argv = [*machine.qemu, "-m", "1024", "-smp", "1", "-nographic", "-no-reboot", "-kernel", vmlinuz, "-initrd", target / "initramfs",
            "-append", f"console={machine.console} quiet panic=-1 mitigations=off random.trust_cpu=on",
            "-drive", f"file={image},if=virtio,format=raw"]
    try:
        done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, capture_output=True, timeout=BOOT_SECONDS)
        text = done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        text = late.stdout or b""
    lines = text.decode(errors="replace").replace("\r", "").split("\n")
    (target / "console.log").write_text("\n".join(lines))
    return lines
