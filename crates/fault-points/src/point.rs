//! Passes and arms fault points.

/// The error that a fault point injects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("fault point {0}")]
pub struct Injected(pub &'static str);

/// The specification of the fault points is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fault points: {0}")]
pub struct BadFaults(pub(crate) String);

/// Passes a fault point.
///
/// # Errors
/// This hit of the point is armed with `error`.
#[inline]
pub fn point(name: &'static str) -> Result<(), Injected> {
    #[cfg(feature = "armed")]
    return crate::armed::hit(name, &Kinds::default());
    #[cfg(not(feature = "armed"))]
    {
        let _ = name;
        Ok(())
    }
}

/// The types of the events that a point concerns. Empty, at no cost, without the feature.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    #[cfg(feature = "armed")]
    kinds: Vec<String>,
}

impl Kinds {
    /// Stores the kinds, since the events may be gone when the point is passed.
    #[inline]
    pub fn of<'a>(kinds: impl Iterator<Item = &'a str>) -> Self {
        #[cfg(feature = "armed")]
        return Self {
            kinds: kinds.map(str::to_owned).collect(),
        };
        #[cfg(not(feature = "armed"))]
        {
            drop(kinds);
            Self {}
        }
    }

    #[cfg(feature = "armed")]
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.kinds.iter().any(|one| one == kind)
    }
}

/// Passes a fault point that concerns events of these kinds.
///
/// # Errors
/// This hit of the point is armed with `error`.
#[inline]
pub fn fact(name: &'static str, kinds: &Kinds) -> Result<(), Injected> {
    #[cfg(feature = "armed")]
    return crate::armed::hit(name, kinds);
    #[cfg(not(feature = "armed"))]
    {
        let _ = (name, kinds);
        Ok(())
    }
}

/// Arms fault points, once per process: `NAME[:KIND]=ACTION[@HIT]`, separated by commas. ACTION is `kill`, `panic`,
/// `error` or `delay`; HIT counts from 1 and defaults to 1; KIND is an event's type, for the points of facts.
///
/// # Errors
/// The text is invalid, points are already armed, or this build has no fault points.
pub fn arm(spec: &str) -> Result<(), BadFaults> {
    #[cfg(feature = "armed")]
    return crate::armed::arm(spec);
    #[cfg(not(feature = "armed"))]
    {
        let _ = spec;
        Err(BadFaults(
            "this build has none (cargo feature fault-points)".to_owned(),
        ))
    }
}
