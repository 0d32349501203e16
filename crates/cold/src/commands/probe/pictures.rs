//! The charts of the experiments and of the counters.

use std::collections::BTreeMap;

use cold_probe::experiments::{
    State, compete, device, exec, large_pages, pauses, prefetch, pressure, records, table, timeline,
};
use cold_probe::log::{Sample, rates};
use cold_probe::toucher::Way;
use cold_report::probe::{Panel, ProbeLine, Scale};

const MIB: f64 = 1_048_576.0;
const ORDERS: [&str; 3] = table::WORDS.0;

fn series(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> ProbeLine {
    ProbeLine { name: name.into(), points: points.into_iter().collect() }
}

fn panel(title: &str, x: &str, y: &str, scales: (Scale, Scale), series: Vec<ProbeLine>) -> Panel {
    Panel { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), scales, series }
}

/// Mean time of the reads, by order.
pub(super) fn table(rows: &[table::TableRow]) -> Vec<Panel> {
    let of = |mode: &str, state: State| {
        let points = rows.iter().filter(|r| r.action == "read" && r.mode == mode && r.state == state);
        points
            .filter_map(|r| Some((ORDERS.iter().position(|o| *o == r.order)? as f64, r.measured.ms.mean)))
            .collect::<Vec<_>>()
    };
    let all = vec![
        series("direct", of("direct", State::Cold)),
        series("buffered, cold", of("buffered", State::Cold)),
        series("mapped, cold", of("mapped", State::Cold)),
        series("buffered, warm", of("buffered", State::Warm)),
        series("mapped, warm", of("mapped", State::Warm)),
    ];
    vec![panel("Reading a record", "order", "ms per record", (Scale::Words(&ORDERS), Scale::Log), all)]
}

/// Hits and cache over time.
pub(super) fn timeline(points: &[timeline::TimelinePoint]) -> Vec<Panel> {
    let over = |f: &dyn Fn(&timeline::TimelinePoint) -> Option<f64>| -> Vec<(f64, f64)> {
        points.iter().filter_map(|p| Some((p.at_ms / 1e3, f(p)?))).collect()
    };
    let linear = (Scale::Linear, Scale::Linear);
    vec![
        panel(
            "Hits",
            "seconds",
            "% of records",
            linear,
            vec![series("hits", over(&|p| p.hits.map(|h| h * 100.0)))],
        ),
        panel(
            "The file in the cache",
            "seconds",
            "MiB",
            linear,
            vec![series("cached", over(&|p| p.cached_bytes.map(|b| b / MIB)))],
        ),
        panel(
            "Records",
            "seconds",
            "per second",
            linear,
            vec![series("records", over(&|p| Some(p.per_second)))],
        ),
        panel(
            "Device",
            "seconds",
            "requests per interval",
            linear,
            vec![series("reads", over(&|p| p.device_reads)), series("writes", over(&|p| p.device_writes))],
        ),
    ]
}

/// Time and bandwidth against size.
pub(super) fn records(rows: &[records::RecordRow]) -> Vec<Panel> {
    let mut by: BTreeMap<(&str, &str), Vec<&records::RecordRow>> = BTreeMap::new();
    for r in rows {
        by.entry((r.mode, r.order)).or_default().push(r);
    }
    let lines = |f: &dyn Fn(&records::RecordRow) -> f64| -> Vec<ProbeLine> {
        by.iter()
            .map(|((mode, order), rows)| {
                series(format!("{mode}, {order}"), rows.iter().map(|r| (r.record as f64 / 1024.0, f(r))))
            })
            .collect()
    };
    let log = (Scale::Doubling, Scale::Log);
    vec![
        panel("Time", "KiB per record", "ms", log, lines(&|r| r.measured.ms.mean)),
        panel("Bandwidth", "KiB per record", "MB/s", log, lines(&|r| r.bytes_per_second / 1e6)),
    ]
}

/// Response times against the span: the book's curves.
pub(super) fn compete(o: &compete::CompeteOptions, found: &compete::CompeteFindings) -> Vec<Panel> {
    let mut panels = Vec::new();
    for pair in compete::Pair::ALL {
        let [a, b] = pair.names();
        let of = |f: &dyn Fn(&compete::PairPoint) -> Option<f64>| -> Vec<(f64, f64)> {
            let points = found.points.iter().filter(|p| p.pair == pair);
            points.filter_map(|p| Some((p.span as f64 * o.unit.0 as f64 / MIB, f(p)?))).collect()
        };
        let both = |f: &dyn Fn(&compete::PairPoint, usize) -> Option<f64>| {
            vec![series(a, of(&|p| f(p, 0))), series(b, of(&|p| f(p, 1)))]
        };
        let times = both(&|p, side| Some(p.ms[side]));
        let cached = both(&|p, side| Some(p.cached[side]? / MIB));
        let x = "MiB of span each";
        panels.push(panel(
            &format!("{a} against {b}: response"),
            x,
            "ms per record",
            (Scale::Linear, Scale::Log),
            times,
        ));
        panels.push(panel(
            &format!("{a} against {b}: cached at the end"),
            x,
            "MiB",
            (Scale::Linear, Scale::Linear),
            cached,
        ));
    }
    panels
}

/// Delivered against asked.
pub(super) fn prefetch(found: &prefetch::PrefetchFindings) -> Vec<Panel> {
    let lines = prefetch::Call::ALL.map(|call| {
        let rows = found.rows.iter().filter(|r| r.call == call);
        series(call.word(), rows.map(|r| (r.asked as f64 / MIB, r.delivered as f64 / MIB)))
    });
    vec![panel("Delivered", "MiB asked", "MiB", (Scale::Doubling, Scale::Doubling), lines.to_vec())]
}

/// Depth and stride.
pub(super) fn device(found: &device::DeviceFindings) -> Vec<Panel> {
    let depth = series("reads", found.model.depths.iter().map(|d| (f64::from(d.depth), d.iops)));
    let direction = |forward: bool| {
        found
            .strides
            .iter()
            .filter(|r| (r.stride > 0) == forward)
            .map(|r| (r.stride.unsigned_abs() as f64 / 1024.0, r.ms.mean))
            .collect::<Vec<_>>()
    };
    let strides = vec![series("forward", direction(true)), series("backward", direction(false))];
    vec![
        panel("Depth", "requests in flight", "reads per second", (Scale::Doubling, Scale::Log), vec![depth]),
        panel("Stride", "KiB from one read to the next", "ms", (Scale::Doubling, Scale::Linear), strides),
    ]
}

/// What a pause costs, by its length, one line for each piece of work between two.
pub(super) fn pauses(found: &pauses::PausesFindings) -> Vec<Panel> {
    let mut every: Vec<_> = found.rows.iter().map(|r| r.every).collect();
    every.sort_unstable();
    every.dedup();
    let line = |every| {
        let rows = found.rows.iter().filter(move |r| r.every == every);
        series(format!("after {every} of running"), rows.map(|r| (r.paused_ns / 1e6, r.each_ns / 1e3)))
    };
    let lines = every.into_iter().map(line).collect();
    vec![panel("What a pause costs", "ms of pause", "µs of CPU time", (Scale::Log, Scale::Linear), lines)]
}

/// What one fault reads, and what a series of touches costs.
pub(super) fn exec(found: &exec::ExecFindings) -> Vec<Panel> {
    const KINDS: [&str; 4] = exec::MappingKind::WORDS;
    const PAGE_KIB: f64 = 4.0;
    let kind = |k: exec::MappingKind| exec::MappingKind::ALL.iter().position(|o| *o == k).map(|n| n as f64);
    let window = |pages: &dyn Fn(&exec::Window) -> u64| -> Vec<(f64, f64)> {
        let windows = found.windows.iter();
        windows.filter_map(|w| Some((kind(w.kind)?, pages(w) as f64 * PAGE_KIB))).collect()
    };
    let windows = vec![
        series("the page and after it", window(&|w| w.end - w.page)),
        series("before it", window(&|w| w.page - w.first)),
    ];
    let by_order = |f: &dyn Fn(&exec::TouchRow) -> f64| -> Vec<ProbeLine> {
        let of = |kind: exec::MappingKind| {
            let rows = found.rows.iter().filter(move |r| r.kind == kind);
            let place = |r: &exec::TouchRow| exec::ORDERS.iter().position(|o| *o == r.order);
            rows.filter_map(|r| Some((place(r)? as f64, f(r)))).collect::<Vec<_>>()
        };
        exec::MappingKind::ALL.iter().map(|k| series(k.word(), of(*k))).collect()
    };
    let orders = Scale::Words(&exec::ORDERS);
    vec![
        panel("One fault brings", "mapping", "KiB", (Scale::Words(&KINDS), Scale::Linear), windows),
        panel(
            "Read per touch",
            "order",
            "KiB",
            (orders, Scale::Doubling),
            by_order(&|r| r.bytes_per_touch / 1024.0),
        ),
        panel("A touch", "order", "ms", (orders, Scale::Log), by_order(&|r| r.ms)),
    ]
}

/// Times and faults by way.
pub(super) fn large_pages(found: &large_pages::LargePagesFindings) -> Vec<Panel> {
    const WAYS: [&str; Way::ALL.len()] = Way::WORDS;
    let by_line = |f: &dyn Fn(&large_pages::Row) -> Option<f64>| -> Vec<ProbeLine> {
        let of = |kind: large_pages::Kind, touches: large_pages::Touches| {
            let rows = found.rows.iter().filter(move |r| (r.kind, r.touches) == (kind, touches));
            let place = |r: &large_pages::Row| Way::ALL.iter().position(|way| *way == r.way);
            let points = rows.filter_map(|r| Some((place(r)? as f64, f(r)?)));
            series(format!("{}, {} touched", kind.word(), touches.word()), points.collect::<Vec<_>>())
        };
        let kinds = large_pages::Kind::ALL.into_iter();
        kinds.flat_map(|kind| large_pages::Touches::ALL.map(|touches| of(kind, touches))).collect()
    };
    let faults = |r: &large_pages::Row| {
        let used = r.usual.as_ref()?.cold.used;
        Some((used.minor_faults + used.major_faults) as f64)
    };
    let scales = (Scale::Words(&WAYS), Scale::Log);
    vec![
        panel("A cold start", "way", "ms", scales, by_line(&|r| r.cold_median_ms)),
        panel("A warm start", "way", "ms", scales, by_line(&|r| r.warm_median_ms)),
        panel("Faults of a cold start", "way", "faults", scales, by_line(&faults)),
    ]
}

/// Rates, times and shoot-downs against threads.
pub(super) fn pressure(rows: &[pressure::PressureRow]) -> Vec<Panel> {
    let mut by: BTreeMap<(&str, &str), Vec<&pressure::PressureRow>> = BTreeMap::new();
    for r in rows {
        by.entry((r.mode, r.order)).or_default().push(r);
    }
    let lines = |f: &dyn Fn(&pressure::PressureRow) -> Option<f64>| -> Vec<ProbeLine> {
        let points = |rows: &[&pressure::PressureRow]| -> Vec<(f64, f64)> {
            rows.iter().filter_map(|r| Some((r.threads as f64, f(r)?))).collect()
        };
        let all = by.iter().map(|((mode, order), rows)| series(format!("{mode}, {order}"), points(rows)));
        all.filter(|s| !s.points.is_empty()).collect()
    };
    let per_record = |r: &pressure::PressureRow| Some(r.shootdowns? as f64 / r.ms.count.max(1) as f64);
    let log = (Scale::Doubling, Scale::Log);
    let charts = [
        ("Records, once memory is full", "per second, all threads", lines(&|r| Some(r.last_per_second))),
        ("Time of a record", "ms", lines(&|r| Some(r.ms.mean))),
        ("Page table entries shot down on other processors", "per record", lines(&per_record)),
    ];
    let charts = charts.into_iter().filter(|(_, _, lines)| !lines.is_empty());
    charts.map(|(title, y, lines)| panel(title, "threads", y, log, lines)).collect()
}

/// Charts of a log: sizes as they are, totals as rates.
pub(super) fn counters(rows: &[Sample]) -> Vec<Panel> {
    let charts: [(&str, &str, &[&str], f64, bool); 7] = [
        ("Available memory", "MiB", &["available_bytes"], MIB, false),
        ("Waiting to be written", "MiB", &["dirty_bytes", "writeback_bytes"], MIB, false),
        ("Files and groups in the cache", "MiB", &["cached_bytes", "cache_bytes", "used_bytes"], MIB, false),
        ("Working sets", "MiB", &["working_set_file_bytes", "working_set_private_bytes"], MIB, false),
        ("Major faults and refaults", "per second", &["major_faults", "refaults"], 1.0, true),
        ("Device", "MiB per second", &["read_bytes", "write_bytes"], MIB, true),
        ("Stalled", "% of the time", &["memory_stall_us", "io_stall_us"], 1e4, true),
    ];
    let end = rows.iter().map(|r| r.at_ms / 1e3).fold(0.0, f64::max);
    let mut panels = Vec::new();
    for (title, y, names, unit, is_rate) in charts {
        let mut by: BTreeMap<(&str, &str), Vec<(f64, f64)>> = BTreeMap::new();
        for r in rows.iter().filter(|r| names.contains(&r.counter)) {
            // The machine's whole cache would hide the file's.
            if !(r.counter == "cached_bytes" && &*r.subject == "machine") {
                by.entry((&r.subject, r.counter)).or_default().push((r.at_ms / 1e3, r.value / unit));
            }
        }
        let lines: Vec<ProbeLine> = by
            .into_iter()
            .map(|((subject, counter), points)| {
                let points = if is_rate { rates(&points) } else { points };
                // The unit stands at the axis.
                let what = counter.trim_end_matches("_bytes").trim_end_matches("_us").replace('_', " ");
                series(format!("{subject}: {what}"), points)
            })
            .collect();
        // One look at the counters is no course.
        if lines.iter().any(|l| l.points.len() > 1) {
            panels.push(panel(title, "seconds", y, (Scale::Time(end), Scale::Linear), lines));
        }
    }
    panels
}
