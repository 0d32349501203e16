//! `/proc/cpuinfo`.

use super::ProcFs;

impl ProcFs {
    /// The processor's model, where the kernel names it (x86 does, arm64 does not).
    pub fn cpu_model(&self) -> Option<String> {
        let text = self.read("cpuinfo").ok()?;
        let model = text.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
        model.map(|(_, name)| name.trim().to_owned())
    }
}
