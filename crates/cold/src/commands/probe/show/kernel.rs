//! Tables of what kernel and disk do: faults, prefetch calls, the device.

use cold_probe::experiments::{device, exec, prefetch};

use super::super::grid::{Grid, Weight};
use super::{bytes, heading, known, ms, print};
use crate::ui::Ui;
use crate::words::count;

pub(in super::super) fn exec(ui: &Ui, found: &exec::ExecFindings) {
    heading(ui, "One fault in the middle of a cold file");
    let mut grid = Grid::new(&[
        ("MAPPING", Weight::Word),
        ("PAGE", Weight::High),
        ("CACHED AFTERWARDS", Weight::High),
        ("PAGES", Weight::High),
        ("POLICY", Weight::Word),
    ]);
    for w in &found.windows {
        let policy = match w.policy {
            exec::Policy::Exact => "the page alone",
            exec::Policy::Forward => "forward from the page",
            exec::Policy::Around => "around the page",
            exec::Policy::Backward => "backward from the page",
        };
        grid.row(vec![
            w.kind.word().to_owned(),
            count(w.page),
            format!("{}-{}", w.first, w.end.saturating_sub(1).max(w.first)),
            count(w.end - w.first),
            policy.to_owned(),
        ]);
    }
    print(ui, &grid);
    heading(ui, "Series of touches (every fourth page of 256, or one in each mebibyte)");
    let mut grid = Grid::new(&[
        ("MAPPING", Weight::Word),
        ("ORDER", Weight::Word),
        ("TOUCHES", Weight::High),
        ("MAJFLT", Weight::High),
        ("BYTES/TOUCH", Weight::High),
        ("MEAN ms", Weight::High),
    ]);
    for r in &found.rows {
        grid.row(vec![
            r.kind.word().to_owned(),
            r.order.to_owned(),
            count(r.touches),
            count(r.major_faults),
            bytes(r.bytes_per_touch as u64),
            ms(r.ms),
        ]);
    }
    print(ui, &grid);
    for (kind, why) in &found.refused {
        ui.warn(format!("{}: {why} (code cannot be mapped on a file system mounted noexec)", kind.word()));
    }
}

pub(in super::super) fn prefetch(ui: &Ui, found: &prefetch::PrefetchFindings) {
    heading(ui, "Asked of a cold file, and come");
    let mut grid = Grid::new(&[
        ("CALL", Weight::Word),
        ("ASKED", Weight::High),
        ("CAME", Weight::High),
        ("CALL ms", Weight::High),
        ("THERE ms", Weight::High),
        ("REQUESTS", Weight::High),
    ]);
    for r in &found.rows {
        grid.row(vec![
            r.call.word().to_owned(),
            bytes(r.asked),
            bytes(r.delivered),
            ms(r.call_ms),
            ms(r.there_ms),
            known(r.requests, count),
        ]);
    }
    print(ui, &grid);
    for call in prefetch::Call::ALL {
        if let Some((_, why)) = found.refused.iter().find(|(c, _)| *c == call) {
            ui.line(format!("{} is refused: {why}", call.word()));
        } else {
            match found.caps.iter().find(|(c, _)| *c == call) {
                Some((_, cap)) => ui.line(format!("{} is cut at {}, silently.", call.word(), bytes(*cap))),
                None => ui.line(format!("{} brings all that is asked.", call.word())),
            }
        }
    }
}

pub(in super::super) fn device(ui: &Ui, found: &device::DeviceFindings) {
    let m = &found.model;
    heading(ui, "Reads past the cache");
    ui.line(format!(
        "{}, {}: t(size) = {} ms + {:.3} ns per byte ({:.0} MB/s), one at a time, scattered",
        m.name,
        if m.rotational { "which the kernel calls rotational" } else { "not rotational" },
        ms(m.latency_ns / 1e6),
        m.ns_per_byte,
        m.mb_per_second()
    ));
    if let Some(alone) = m.ns_per_byte_alone {
        ui.line(format!(
            "a read that has the device to itself, into scattered pages: {alone:.3} ns per byte"
        ));
    }
    ui.line(format!("one readahead call delivers at most {}", bytes(m.readahead_cap)));
    let mut grid = Grid::new(&[
        ("IN FLIGHT", Weight::High),
        ("READS/s", Weight::High),
        ("GAP WORTH READING", Weight::High),
    ]);
    for d in &m.depths {
        grid.row(vec![count(u64::from(d.depth)), count(d.iops as u64), bytes(m.break_even(d.depth))]);
    }
    print(ui, &grid);
    heading(ui, "Distance and direction (4 KiB each)");
    let mut grid = Grid::new(&[
        ("STRIDE", Weight::High),
        ("DIRECTION", Weight::Word),
        ("MEAN ms", Weight::High),
        ("P50", Weight::High),
        ("P99", Weight::High),
    ]);
    for r in &found.strides {
        let direction = if r.stride > 0 { "forward" } else { "backward" };
        grid.row(vec![
            bytes(r.stride.unsigned_abs()),
            direction.to_owned(),
            ms(r.ms.mean),
            ms(r.ms.p50),
            ms(r.ms.p99),
        ]);
    }
    print(ui, &grid);
}
