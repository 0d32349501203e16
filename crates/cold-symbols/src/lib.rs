//! What lies where in a file: segments, sections, symbols, inlined frames, unwinding.
