//! Who waited for whom: a program that writes down when it waits, for what, and who wakes it.

mod root {
    use cold_model::recording::OffCpuReason::{self, Event, Sleep};
    use cold_model::recording::{OffCpu, Recording};
    use cold_testbed::needs_root;
    use serde_json::Value;

    use crate::support::*;
    use crate::trace::recorded;

    /// Waits of the first thread, each of some 60 ms: for a pipe, a lock, a child, a timer, and asleep.
    const WAITS: &str = "
import json, os, select, sys, threading, time
now = time.monotonic_ns; out = []; me = threading.get_native_id()
def wait(name, how, waker):
    began = now(); how(); out.append([name, began, now(), waker() if waker else None])
a, b = os.pipe(); held = threading.Lock(); held.acquire(); go = threading.Event(); ids = []
def worker():
    ids.append(threading.get_native_id())
    time.sleep(0.06); os.write(b, b'x'); go.wait(); time.sleep(0.06); held.release()
t = threading.Thread(target=worker); t.start()
wait('pipe', lambda: os.read(a, 1), lambda: ids[0])
go.set(); wait('lock', held.acquire, lambda: ids[0])
child = os.fork()
if child == 0: time.sleep(0.06); os._exit(0)
wait('child', lambda: os.waitpid(child, 0), lambda: child)
wait('timer', lambda: select.select([], [], [], 0.06), None)
wait('sleep', lambda: time.sleep(0.06), None)
json.dump({'me': me, 'waits': out}, open(sys.argv[1], 'w'))";

    /// The longest interval off the CPU of that thread within the time.
    fn longest(r: &Recording, tid: u32, from: u64, to: u64) -> &OffCpu {
        let rows = r.off_cpu.iter().flatten();
        let within = rows.filter(|o| o.tid == tid && o.began.0 >= from && o.ended.0 <= to);
        within.max_by_key(|o| o.ended - o.began).expect("it waited")
    }

    #[test]
    fn every_wait_has_its_reason_and_its_waker() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let args = [
            "trace",
            "--state",
            "as-is",
            "-o",
            "w.cold",
            "--",
            "/usr/bin/python3",
            "-S",
            "-c",
            WAITS,
            "said",
        ];
        place.cold(args).run().expect(0);
        let r = recorded(&place, "w.cold");
        let said: Value = serde_json::from_slice(&std::fs::read(place.path("said")).unwrap()).unwrap();
        let number = |v: &Value| v.as_u64().unwrap();
        let me = number(&said["me"]) as u32;
        let found: Vec<(&str, OffCpuReason, Option<u32>)> = said["waits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|w| {
                let (from, to) = (number(&w[1]), number(&w[2]));
                let row = longest(&r, me, from, to);
                // The worker may have slept a little before the wait began.
                assert!((row.ended - row.began).0 > 40_000_000, "{w}: {row:?}");
                assert!(row.woken.is_some_and(|woken| woken >= row.began && woken <= row.ended), "{row:?}");
                (w[0].as_str().unwrap(), row.reason, row.waker)
            })
            .collect();
        let waker = |n: usize| Some(number(&said["waits"][n][3]) as u32);
        assert_eq!(
            found,
            [
                ("pipe", Event, waker(0)),
                ("lock", Event, waker(1)),
                ("child", Event, waker(2)),
                ("timer", Event, None),
                ("sleep", Sleep, None),
            ]
        );
        // A new task's first interval tells who made it.
        let rows = r.off_cpu.as_deref().unwrap();
        for made in [waker(0), waker(2)] {
            let first = rows.iter().find(|o| Some(o.tid) == made).unwrap();
            assert_eq!((first.reason, first.waker), (OffCpuReason::Runnable, Some(me)));
        }
        assert!(rows.iter().all(|o| o.began <= o.ended));
    }
}
