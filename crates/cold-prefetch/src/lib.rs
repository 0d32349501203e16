//! Learns plans from recordings, compiles them for a device, tunes and judges them.
