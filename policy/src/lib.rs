//! Scheduling policies, one safe file each
