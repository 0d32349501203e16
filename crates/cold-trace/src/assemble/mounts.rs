//! From a name below a file system's root to a path that the recorder can use. Pure.

use cold_model::Dev;

use crate::blocks::Mount;

/// The recorder's mounts.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    list: Vec<Mount>,
    /// (layer directory, mount point) of every overlay.
    layers: Vec<(String, String)>,
}

impl Mounts {
    pub(super) fn new(list: Vec<Mount>) -> Self {
        let overlays = list.iter().filter(|m| m.kind == "overlay");
        let layers = overlays.flat_map(|m| layers(&m.options).map(|dir| (dir, m.point.clone()))).collect();
        Self { list, layers }
    }

    /// The absolute path of `name` (absolute below the root of file system `dev`), by a mount that shows
    /// it and is not hidden by another one. btrfs subvolumes and bind mounts are mounts of a directory; of
    /// several the one that shows most is taken.
    pub(super) fn absolute(&self, dev: Dev, name: &str) -> Option<String> {
        let candidates = || {
            let mounts = self.list.iter().enumerate().filter(move |(_, m)| m.dev == dev);
            mounts.filter_map(move |(i, m)| Some((i, m, join(&m.point, below(name, &m.root)?))))
        };
        let seen = candidates().filter(|(i, _, path)| self.mount_at(path) == Some(*i));
        let best = seen.min_by_key(|(_, m, _)| m.root.len()).or_else(|| candidates().next_back());
        best.map(|(_, _, path)| path)
    }

    /// Where an overlay shows the file that lies in one of its layers at `path`; `None` when none or
    /// more than one does.
    pub(super) fn overlay(&self, path: &str) -> Option<String> {
        let mut shown = self.layers.iter().filter_map(|(dir, point)| Some(join(point, below(path, dir)?)));
        let first = shown.next()?;
        shown.all(|other| other == first).then_some(first)
    }

    /// The type of a file system.
    pub(super) fn kind(&self, dev: Dev) -> Option<&str> {
        self.list.iter().find(|m| m.dev == dev).map(|m| m.kind.as_str())
    }

    /// Index of the mount that a path leads into: the longest mount point, the last of equal ones.
    fn mount_at(&self, path: &str) -> Option<usize> {
        let mounts = self.list.iter().enumerate().filter(|(_, m)| below(path, &m.point).is_some());
        mounts.max_by_key(|(i, m)| (m.point.len(), *i)).map(|(i, _)| i)
    }
}

/// What is left of `path` behind the directory `dir`, without a leading slash.
fn below<'a>(path: &'a str, dir: &str) -> Option<&'a str> {
    if dir == "/" {
        return path.strip_prefix('/');
    }
    let rest = path.strip_prefix(dir)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

fn join(point: &str, rest: &str) -> String {
    match (point.strip_suffix('/').unwrap_or(point), rest) {
        ("", "") => "/".to_owned(),
        (point, "") => point.to_owned(),
        (point, rest) => format!("{point}/{rest}"),
    }
}

/// Absolute directories of an overlay's layers: `lowerdir=a:b` (`\:` stands for a colon, `::` precedes
/// data-only layers), `lowerdir+=a`, `upperdir=c`. Relative ones cannot be placed.
fn layers(options: &str) -> impl Iterator<Item = String> {
    let mut dirs = Vec::new();
    for option in options.split(',') {
        let Some((key, value)) = option.split_once('=') else { continue };
        match key {
            "lowerdir" => {
                let mut dir = String::new();
                let mut chars = value.chars();
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => dir.extend(chars.next()),
                        ':' => dirs.push(std::mem::take(&mut dir)),
                        c => dir.push(c),
                    }
                }
                dirs.push(dir);
            }
            "lowerdir+" | "datadir+" | "upperdir" => dirs.push(value.to_owned()),
            _ => {}
        }
    }
    dirs.into_iter().filter(|dir| dir.starts_with('/') && dir.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dev(minor: u32) -> Dev {
        Dev { major: 8, minor }
    }

    fn mount(minor: u32, root: &str, point: &str, kind: &str, options: &str) -> Mount {
        Mount {
            dev: dev(minor),
            root: root.to_owned(),
            point: point.to_owned(),
            kind: kind.to_owned(),
            source: String::new(),
            options: options.to_owned(),
        }
    }

    #[test]
    fn subvolumes_bind_mounts_and_hidden_mounts() {
        let m = Mounts::new(vec![
            mount(1, "/@", "/", "btrfs", ""),
            mount(1, "/@home", "/home", "btrfs", ""),
            mount(2, "/", "/data", "ext4", ""),
            mount(2, "/www", "/srv/www", "ext4", ""),
            mount(3, "/", "/mnt", "ext4", ""),
            mount(4, "/", "/mnt", "ext4", ""),
        ]);
        let path = |d, name| m.absolute(dev(d), name);
        assert_eq!(path(1, "/@/usr/lib/x.so").as_deref(), Some("/usr/lib/x.so"));
        assert_eq!(path(1, "/@home/u/.bashrc").as_deref(), Some("/home/u/.bashrc"));
        assert_eq!(path(1, "/@homes/u"), None, "another subvolume");
        assert_eq!(path(2, "/www/index").as_deref(), Some("/data/www/index"));
        assert_eq!(path(3, "/a").as_deref(), Some("/mnt/a"), "hidden, but there is no other name");
        assert_eq!(path(1, "/@").as_deref(), Some("/"));
        assert_eq!(path(9, "/a"), None);
        // A mount of the whole file system that is covered gives way to a bind mount that is not.
        let m = Mounts::new(vec![
            mount(2, "/", "/data", "ext4", ""),
            mount(2, "/www", "/srv", "ext4", ""),
            mount(3, "/", "/data", "ext4", ""),
        ]);
        assert_eq!(m.absolute(dev(2), "/www/index").as_deref(), Some("/srv/index"));
    }

    #[test]
    fn a_layer_of_an_overlay_is_shown_at_its_mount_point() {
        let options = "rw,lowerdir=/l/one:/l/t\\:wo,upperdir=/u,workdir=/w";
        let m = Mounts::new(vec![mount(1, "/", "/merged", "overlay", options)]);
        for (layer, shown) in [
            ("/l/one/usr/x", Some("/merged/usr/x")),
            ("/l/t:wo/y", Some("/merged/y")),
            ("/u/z", Some("/merged/z")),
            ("/w/z", None),
            ("/l/oneself/x", None),
        ] {
            assert_eq!(m.overlay(layer).as_deref(), shown, "{layer}");
        }
        let second = mount(2, "/", "/other", "overlay", "rw,lowerdir+=/l/one,upperdir=/u2");
        let m = Mounts::new(vec![mount(1, "/", "/merged", "overlay", options), second]);
        assert_eq!(m.overlay("/l/one/usr/x"), None, "two overlays share this layer");
        assert_eq!(m.overlay("/u2/x").as_deref(), Some("/other/x"));
    }
}
