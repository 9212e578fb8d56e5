//! The scheduler core as a state machine: (now, Event) -> Decision
