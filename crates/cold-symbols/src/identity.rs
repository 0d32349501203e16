//! Whether the file at a recorded path still is the file that was recorded.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use cold_model::Dev;
use cold_model::file::mtime_ns;
use cold_model::file_system::numbers_differ;
use cold_model::recording::File;

/// Says why it is not the recorded file, or why that cannot be told. A build-id decides where one was
/// recorded: it outlives copying.
pub(crate) fn same(recorded: &File, meta: &Metadata, build_id: Option<&str>) -> Result<(), String> {
    if let Some(wanted) = &recorded.build_id {
        return match build_id {
            Some(found) if found.eq_ignore_ascii_case(wanted) => Ok(()),
            _ => Err("build-id differs: it was replaced since the recording".to_owned()),
        };
    }
    if recorded.size.is_none() && recorded.mtime_ns.is_none() {
        return Err("neither build-id nor size and time of it were recorded".to_owned());
    }
    if recorded.size.is_some_and(|size| size != meta.len()) {
        return Err("size differs: it was replaced or changed since the recording".to_owned());
    }
    let mtime = mtime_ns(meta);
    if recorded.mtime_ns.is_some_and(|recorded| recorded != mtime) {
        return Err("modification time differs: it was changed since the recording".to_owned());
    }
    if numbers_differ(&recorded.file_system) {
        return Ok(());
    }
    let dev = Dev::of_number(meta.dev());
    if recorded.inode != meta.ino() {
        return Err("inode differs: it was replaced since the recording".to_owned());
    }
    if recorded.dev != dev {
        return Err(format!("it lies on another device ({dev}) than the recorded file"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use cold_model::recording::{FileKind, PathFrom};

    use super::*;

    fn recorded(meta: &Metadata) -> File {
        File {
            dev: Dev::of_number(meta.dev()),
            inode: meta.ino(),
            generation: 0,
            kind: FileKind::Regular,
            path: None,
            path_from: PathFrom::Unknown,
            deleted: false,
            file_system: "ext4".to_owned(),
            size: Some(meta.len()),
            mtime_ns: Some(mtime_ns(meta)),
            build_id: None,
        }
    }

    #[test]
    fn every_fact_that_differs_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "text").unwrap();
        let meta = std::fs::metadata(&path).unwrap();
        let own = recorded(&meta);
        assert_eq!(same(&own, &meta, None), Ok(()));
        let cases = [
            (File { size: Some(5), ..own.clone() }, "size differs"),
            (File { mtime_ns: Some(7), ..own.clone() }, "modification time differs"),
            (File { inode: own.inode + 1, ..own.clone() }, "inode differs"),
            (File { dev: Dev::new(999, 1), ..own.clone() }, "another device"),
            (File { size: None, mtime_ns: None, ..own.clone() }, "neither build-id"),
            (File { build_id: Some("ab".to_owned()), ..own.clone() }, "build-id differs"),
        ];
        for (file, why) in cases {
            let said = same(&file, &meta, Some("cd")).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        let copied = File { build_id: Some("CD".to_owned()), inode: 0, size: None, ..own.clone() };
        assert_eq!(same(&copied, &meta, Some("cd")), Ok(()));
        let overlay = File { file_system: "overlay".to_owned(), inode: 0, ..own };
        assert_eq!(same(&overlay, &meta, None), Ok(()));
    }
}
