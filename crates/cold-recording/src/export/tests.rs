use std::process::Command;

use super::*;
use crate::{Error, sample};

#[test]
fn csv_keeps_every_row_null_and_quote() {
    let mut r = sample::small();
    r.files[0].path = Some("/opt/a, \"b\"\nc".to_owned());
    r.files[1].path = Some(String::new());
    r.files[2].path = None;
    let dir = tempfile::tempdir().unwrap();
    csv::write(&dir.path().join("new/dir"), &r).unwrap();
    // Read by somebody else's reader.
    let script = "import csv, json, sys\n\
        t = lambda n: list(csv.DictReader(open(sys.argv[1] + '/' + n + '.csv', newline='')))\n\
        f = t('files')\n\
        out = {n: len(t(n)) for n in sys.argv[2:]}\n\
        p = [x for x in t('processes') if x['arguments']][0]\n\
        print(json.dumps([out, f[0]['path'], f[1]['path'], f[3], p, t('touches')[0], t('stalls')[0]]))";
    let counts = r.counts();
    let out = Command::new("python3")
        .args(["-c", script])
        .arg(dir.path().join("new/dir"))
        .args(counts.iter().map(|(name, _)| name))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let read: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    for (name, n) in counts {
        assert_eq!(read[0][name], n, "{name}");
    }
    assert_eq!(read[1], "/opt/a, \"b\"\nc");
    assert_eq!(read[2], "");
    assert_eq!(read[3]["path"], r.files[3].path.as_deref().unwrap());
    assert_eq!(read[4]["executable_path"], "/opt/a, \"b\"\nc");
    assert_eq!(read[4]["arguments"], r#"["/usr/bin/python3.11","-c","import json"]"#);
    let touch = r.touches.as_ref().unwrap()[0];
    assert_eq!(read[5]["at"], touch.at.0.to_string());
    assert_eq!(read[5]["major"], "");
    let stall = r.stalls.as_ref().unwrap()[0];
    assert_eq!(read[6]["woken"], stall.woken.unwrap().0.to_string());
    let again = csv::write(&dir.path().join("new/dir"), &r).unwrap_err();
    assert!(matches!(again, Error::Exists { .. }), "{again}");
}

#[test]
fn json_is_one_document_with_every_row() {
    let r = sample::small();
    let mut bytes = Vec::new();
    json::write(&r, &mut bytes).unwrap();
    let read: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    for (name, n) in r.counts() {
        assert_eq!(read["tables"][name].as_array().map(Vec::len), Some(n), "{name}");
    }
    let manifest: cold_model::recording::Manifest = serde_json::from_value(read["manifest"].clone()).unwrap();
    assert_eq!(manifest, r.manifest);
    let touch = r.touches.as_ref().unwrap()[1];
    let row = &read["tables"]["touches"][1];
    assert_eq!(row["first_page"], touch.first_page);
    assert_eq!(row["kind"], serde_json::to_value(touch.kind).unwrap());
    let frames: usize = r.stacks.iter().flatten().map(|s| s.frames.len()).sum();
    assert_eq!(read["tables"]["stack_frames"].as_array().unwrap().len(), frames);

    let without = cold_model::recording::Recording { fills: None, ..r };
    let mut bytes = Vec::new();
    json::write(&without, &mut bytes).unwrap();
    let read: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert!(read["tables"].get("fills").is_none());
}
