//! The ROSACE flight controller as a workload with a sequential reference
