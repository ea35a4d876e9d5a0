//! The store on a disk that fails, and in processes that are killed or fail at its fault points.

#[cfg(test)]
mod disk;
#[cfg(all(test, feature = "fault-points"))]
mod fault_points;
#[cfg(all(test, feature = "fault-points"))]
mod kill;
