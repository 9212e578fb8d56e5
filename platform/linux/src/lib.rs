//! Stock Linux: pinned kernel threads carry light threads, preempted by signal
