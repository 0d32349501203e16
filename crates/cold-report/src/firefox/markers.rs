//! Kinds of marker.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, Profile, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle,
};

/// File I/O as Firefox itself records it (tools/profiler/gecko/ProfilerIOInterposeObserver.cpp), so that
/// the viewer gives it its own track.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileIo {
    pub(super) name: StringHandle,
    pub(super) category: CategoryHandle,
    pub(super) operation: StringHandle,
    pub(super) source: StringHandle,
    pub(super) filename: StringHandle,
    pub(super) thread: StringHandle,
    /// Byte in the file, where known; else NaN, which JSON shows as null.
    pub(super) offset: f64,
}

const fn text(key: &'static str, label: &'static str, format: MarkerFieldFormat) -> StaticSchemaMarkerField {
    StaticSchemaMarkerField { key, label, format, flags: MarkerFieldFlags::SEARCHABLE }
}

impl StaticSchemaMarker for FileIo {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "FileIO";
    const LOCATIONS: MarkerLocations = MarkerLocations::MARKER_CHART
        .union(MarkerLocations::MARKER_TABLE)
        .union(MarkerLocations::TIMELINE_FILEIO);
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.operation}: {marker.data.filename}");
    const TOOLTIP_LABEL: Option<&'static str> = Some("{marker.data.operation}: {marker.data.filename}");
    const TABLE_LABEL: Option<&'static str> =
        Some("{marker.data.source} — {marker.data.operation} — {marker.data.filename}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        text("operation", "Operation", MarkerFieldFormat::String),
        text("source", "Source", MarkerFieldFormat::String),
        text("filename", "Filename", MarkerFieldFormat::FilePath),
        text("threadId", "Thread ID", MarkerFieldFormat::String),
        text("offset", "Offset in the file", MarkerFieldFormat::Bytes),
    ];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, field: u32) -> StringHandle {
        match field {
            0 => self.operation,
            1 => self.source,
            2 => self.filename,
            _ => self.thread,
        }
    }

    fn number_field_value(&self, _field: u32) -> f64 {
        self.offset
    }
}

/// The start was ready.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready {
    pub(super) name: StringHandle,
    pub(super) means: StringHandle,
}

impl StaticSchemaMarker for Ready {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Ready";
    const LOCATIONS: MarkerLocations = MarkerLocations::MARKER_CHART
        .union(MarkerLocations::MARKER_TABLE)
        .union(MarkerLocations::TIMELINE_OVERVIEW);
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name}: {marker.data.means}");
    const FIELDS: &'static [StaticSchemaMarkerField] =
        &[text("means", "Ready means", MarkerFieldFormat::String)];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _field: u32) -> StringHandle {
        self.means
    }

    fn number_field_value(&self, _field: u32) -> f64 {
        f64::NAN
    }
}
