//! `/proc/cpuinfo`.

use cold_model::figures::UNKNOWN_CPU;

use super::ProcFs;

impl ProcFs {
    /// The processor's model, where the kernel names it (x86 does, arm64 does not); else [`UNKNOWN_CPU`].
    pub fn cpu_model(&self) -> String {
        let text = self.read("cpuinfo").unwrap_or_default();
        let model = text.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
        model.map_or(UNKNOWN_CPU, |(_, name)| name.trim()).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::fake;
    use super::UNKNOWN_CPU;

    #[test]
    fn the_first_processors_name_is_told_where_there_is_one() {
        let x86 = "model\t\t: 85\nmodel name\t: A: 3.00GHz\nstepping\t: 7\n\nmodel name\t: B\n";
        let (_dir, proc) = fake(&[("cpuinfo", x86)]);
        assert_eq!(proc.cpu_model(), "A: 3.00GHz");
        let (_dir, arm) = fake(&[("cpuinfo", "processor\t: 0\nCPU part\t: 0xd0c\n")]);
        assert_eq!(arm.cpu_model(), UNKNOWN_CPU);
    }
}
