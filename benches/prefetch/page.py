"""From results to the Markdown page: medians, ranges and bootstrapped intervals of ratios."""

import random

import left
from traced import WAITS

RIVALS = {
    "none": "no prefetch",
    "whole": "whole files, page by page (`vmtouch -t`)",
    "pread": "two threads, 1 MiB `pread`, the plan's ranges",
    "library": "one `readahead` per file",
}
RESAMPLES = 4000


def times(blocks, kind, state, command=None, allowed=()):
    """Times to ready in seconds of the runs that count."""
    out = []
    for report in (b[kind] for b in blocks if b.get(kind)):
        index = {i for i, s in enumerate(report["series"]) if s["state"] == state
                 and (command is None or report["commands"][s["command"]]["name"] == command)}
        out += [r["ready"] / 1e9 for r in report["runs"]
                if r["series"] in index and all(t["kind"] in allowed for t in r["taints"])]
    return out


def tainted(blocks):
    """Disturbed runs by kind of disturbance; they do not count."""
    kinds = {}
    for b in blocks:
        for report in b.values():
            for r in report["runs"]:
                for kind in {t["kind"] for t in r["taints"]}:
                    kinds[kind] = kinds.get(kind, 0) + 1
    return kinds


def median(values):
    values = sorted(values)
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2 if n else None


def ms(seconds):
    return f"{seconds * 1e3:.0f}" if seconds >= 0.0995 else f"{seconds * 1e3:.1f}"


def spread(values):
    if not values:
        return "none counts"
    return f"{ms(median(values))} [{ms(min(values))} … {ms(max(values))}] ({len(values)})"


def interval(over, under):
    """Ratio of medians with its bootstrapped 95% interval; `under` may be a number."""
    rng = random.Random(1)
    fixed = isinstance(under, float)
    ratios = sorted(
        median(rng.choices(over, k=len(over))) / (under if fixed else median(rng.choices(under, k=len(under))))
        for _ in range(RESAMPLES))
    return median(over) / (under if fixed else median(under)), ratios[RESAMPLES // 40], ratios[-RESAMPLES // 40]


def ratio(over, under):
    if len(over) < 3 or (not isinstance(under, float) and len(under) < 3):
        return "too few runs"
    return "{:.2f} [{:.2f} … {:.2f}]".format(*interval(over, under))


def bound_of(result):
    """Seconds of the least time, and of reading alone."""
    def seconds(bound):
        return bound["overlapped_ns"] / 1e9 if bound else None

    return seconds(result.get("bound")), seconds(result["plan"].get("bound"))


def table_one(results):
    lines = ["| disk | subject | cold | prefetched | warm | reading alone | lower bound | prefetched / cold "
             "| prefetched / max(warm, bound) |", "|---|---|---|---|---|---|---|---|---|"]
    for r in results:
        cold, pre, warm = (times(r["blocks"], "main", s) for s in ("cold", "prefetched", "warm"))
        strict, reading = bound_of(r)
        floor = max([v for v in (median(warm), strict or reading) if v], default=None)
        over = "unknown"
        if floor and pre:
            # Where reading costs nothing beside computing, the bound is the median of the warm starts, and spreads as they do.
            over = ratio(pre, warm if median(warm) and floor < median(warm) * (1 + 1e-6) else floor)
        lines.append(f"| {r['disk']} | {r['subject']} | {spread(cold)} | {spread(pre)} | {spread(warm)} "
                     f"| {ms(reading) if reading else 'unknown'} | {ms(strict) if strict else 'unknown'} "
                     f"| {ratio(pre, cold)} | {over} |")
    return lines


def table_two(results):
    lines = ["| disk | subject | " + " | ".join(f"prefetched / {RIVALS[r]}" for r in RIVALS) + " | rivals' medians |",
             "|---" * (len(RIVALS) + 3) + "|"]
    for r in results:
        pre = times(r["blocks"], "main", "prefetched")
        rivals = {name: times(r["blocks"], "rivals", "cold", name) for name in RIVALS if name != "none"}
        rivals["none"] = times(r["blocks"], "main", "cold")
        cells = [ratio(pre, rivals[name]) for name in RIVALS]
        shown = ", ".join(ms(median(rivals[n])) if rivals[n] else "-" for n in RIVALS)
        lines.append(f"| {r['disk']} | {r['subject']} | " + " | ".join(cells) + f" | {shown} |")
    return lines


def table_three(rows):
    lines = ["| case | without plan | through the launcher | ratio or difference | |", "|---|---|---|---|---|"]
    for r in rows:
        if r.get("through") and r["compare"] == "value":
            lines.append(f"| {r['case']} | | {spread(r['through'])} | | {r['note']} |")
            continue
        if not r.get("bare") or not r.get("through"):
            lines.append(f"| {r['case']} | not measured | | | {r['note']} |")
            continue
        if r["compare"] == "difference":
            rng = random.Random(1)
            d = sorted(median(rng.choices(r["through"], k=len(r["through"])))
                       - median(rng.choices(r["bare"], k=len(r["bare"]))) for _ in range(RESAMPLES))
            middle = median(r["through"]) - median(r["bare"])
            shown = f"{middle * 1e3:+.2f} ms [{d[RESAMPLES // 40] * 1e3:+.2f} … {d[-RESAMPLES // 40] * 1e3:+.2f}]"
        else:
            shown = ratio(r["through"], r["bare"])
        lines.append(f"| {r['case']} | {spread(r['bare'])} | {spread(r['through'])} | {shown} | {r['note']} |")
    return lines


def pair(requests, size):
    return f"{requests:.0f}, {size / 2**20:.1f}"


def table_four(results):
    lines = ["| disk | subject | plan: requests, MiB of files | helper at the disk: requests, MiB | requests / plan "
             "| bytes / plan | blocks of the file system: planned; read by the helper | launcher and program: requests, MiB |",
             "|---|---|---|---|---|---|---|---|"]
    for r in results:
        if logs := r.get("logs"):
            seen = {k: median([x[k] for x in logs]) for k in logs[0]}
            asked = r["logged"]
            requests, size = asked["requests"], asked["bytes"]
            blocks = asked["block_requests"], asked["block_bytes"]
            shown = [pair(*p) for p in ((requests, size), (seen["requests"], seen["bytes"]), blocks,
                                        (seen["metadata_requests"], seen["metadata_bytes"]),
                                        (seen["other_requests"], seen["other_bytes"]))]
            lines.append(f"| {r['disk']} | {r['subject']} | {shown[0]} | {shown[1]} "
                         f"| {seen['requests'] / max(requests, 1):.2f} | {seen['bytes'] / max(size, 1):.2f} "
                         f"| {shown[2]}; {shown[3]} | {shown[4]} |")
    return lines


def table_five(results):
    lines = ["| disk | subject | " + " | ".join(WAITS.values()) + " | MiB that came late |", "|---" * (len(WAITS) + 3) + "|"]
    for r in results:
        if logs := r.get("logs"):
            seen = {k: median([x[k] for x in logs]) for k in logs[0]}
            waits = " | ".join(ms(seen[f"wait_{kind}"] / 1e9) for kind in WAITS)
            lines.append(f"| {r['disk']} | {r['subject']} | {waits} | {seen['late_bytes'] / 2**20:.1f} |")
    return lines


def table_six(results):
    heads = ["disk", "subject", "left", "recorded: prefetched, warm", *(words for words, _ in left.CAUSES.values()),
             "less: the disk's", "unlike the measured ones"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for r in results:
        pre, warm = (median(times(r["blocks"], "main", s)) for s in ("prefetched", "warm"))
        bound, _ = bound_of(r)
        cells = left.row(r, pre, warm, bound) if pre and warm and bound else None
        if cells:
            over, more, forbidden, rest = cells
            whole = ", ".join(ms(sum(left.mean(r[kind]).values()) / 1e9) for kind in ("causes_prefetched", "causes_warm"))
            shown = [f"{v * 1e3:+.1f}" for v in (*more.values(), -forbidden, rest)]
            lines.append(f"| {r['disk']} | {r['subject']} | {over * 1e3:+.1f} | {whole} | " + " | ".join(shown) + " |")
    return lines


def table_plans(results):
    lines = ["| disk | subject | plan | runs left out (disturbed) |", "|---|---|---|---|"]
    for r in results:
        p = r["plan"]
        knobs = p["knobs"]
        device = p.get("device") or {}
        out = ", ".join(f"{k} {n}" for k, n in sorted(tainted(r["blocks"]).items())) or "none"
        lines.append(
            f"| {r['disk']} | {r['subject']} | {p['requests']} requests, {p['bytes'] / 2**20:.1f} MiB, "
            f"{'tuned' if r['tuned'] else 'learnt only'}{', exact needs' if r.get('exact') else ''} ({p['standing'] if isinstance(p['standing'], str) else 'off'}): "
            f"gap {knobs['gap_bytes'] >> 10} KiB, {knobs['threads']} threads, wait {knobs['gate']}, order {knobs['order']}; "
            f"device {device.get('latency_ns', 0) / 1e3:.0f} µs | {out} |")
    return lines


def page(results, harm, facts):
    text = ["# Plans against no plan, warm starts and rivals", "",
            "Does a plan make cold starts faster, and is it better than simpler ways of reading ahead "
            "(rivals)? Written by `make bench-prefetch`; words: [glossary](../glossary.md). Times in ms: "
            "median [least … largest] (runs that count). Ratios are of medians, with 95% intervals by "
            "bootstrap. A run that was disturbed, or not proved cold, does not count and is replaced.", "", *facts, "",
            "## 1 Against warm starts and the lower bound", "", *table_one(results), "",
            "[The lower bound](../concepts/replay.md#the-lower-bound) is that of `cold prefetch show --warm MEDIAN "
            "--recording START`, with exact needs also `--warm-recording START`: no start takes less on the measured "
            "device, whatever the plan, with the warm starts of "
            "these rounds as computing time. *Reading alone*: without computing.", "",
            "## 2 Against rivals, in the same rounds", "",
            "Rivals read beside the program from its start on. That favours them over tools that read first "
            "and then start the program. Below 1 the plan is faster. The last column has the medians of no "
            "prefetch and of the three rivals, in the order of the columns.", "",
            *table_two(results), "",
            "## 3 Never harmful", "", *(table_three(harm) if harm else ["Not run."]), ""]
    four = table_four(results)
    text += ["## 4 What reaches the disk", "",
             "One cold prefetched start, recorded by `cold trace`; median of 3. A page counts for whoever asked "
             "for it first, helper or program. A planned request is split where pages of it stayed cached "
             "because other processes map them (the C library on `own`), and where it has more pieces than the "
             "disk takes at once.", "", *(four if len(four) > 2 else ["Not run."]), "",
             "## 5 What prefetched starts wait for", "",
             "From the same starts: time (ms) in which a main thread of the program, or the launcher before it, "
             "waited uninterruptibly. Several that wait at once count once. *Pages that were coming*: the "
             "helper had asked for them, or was about to. *Late*: the program wanted them before they had come. "
             "The rest of the difference to a warm start is computing: the helper's, the kernel's, and what "
             "tracing adds.", "",
             *(table_five(results) if len(four) > 2 else ["Not run."]), "",
             "## 6 What is left to the bound, by cause", "",
             "*Left*: median of the prefetched starts less max(warm, bound), ms. The columns behind it sum to it. `cold "
             "diagnose` gives each moment of the path to ready of a recorded start one reason; here is the mean of three "
             "recorded prefetched starts less that of three recorded warm ones, by reason. *The launcher*: from its first "
             "instruction to the program's, whatever the reason. *Less: the disk's*: the bound less the warm starts, which "
             "no plan can save. *Unlike the measured ones*: what recorded starts took more (-) or less (+) beyond warm ones "
             "than those of table 1.", "",
             *(six if len(six := table_six(results)) > 2 else ["Not run."]), "",
             "## Plans, and what was left out", "", *table_plans(results), ""]
    return "\n".join(text)
