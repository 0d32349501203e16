//! Which file an operation is about.

use std::collections::HashMap;

use cold_model::pages::Range;

use crate::disk::Layout;
use crate::op::{FileId, MapId, Op, OpenId};

/// Which file an open file and a mapping belong to.
#[derive(Debug, Default)]
pub struct Names {
    opens: HashMap<OpenId, FileId>,
    maps: HashMap<MapId, FileId>,
}

impl Names {
    /// Learns what is opened and mapped.
    pub fn hear(&mut self, op: &Op) {
        match *op {
            Op::Open { open, file } => drop(self.opens.insert(open, file)),
            Op::Map { map, open, .. } => {
                if let Some(file) = self.opens.get(&open) {
                    self.maps.insert(map, *file);
                }
            }
            _ => {}
        }
    }

    /// The pages of a file that an operation cannot do without.
    pub fn needed(&self, op: &Op, layout: &Layout) -> Option<(FileId, Range)> {
        let (file, first, end) = match *op {
            Op::Touch { map, page, .. } => (*self.maps.get(&map)?, page, page.saturating_add(1)),
            Op::Read { open, offset, bytes } if bytes > 0 => {
                let end = offset.saturating_add(bytes).div_ceil(layout.page_bytes());
                (*self.opens.get(&open)?, offset / layout.page_bytes(), end)
            }
            _ => return None,
        };
        Some((file, first..end.min(layout.pages(file)))).filter(|(_, pages)| !pages.is_empty())
    }
}
