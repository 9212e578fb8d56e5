//! Virtual time: seeded, with injected faults, byte-identical traces
