//! Pure functions from a model to a verdict: admitted with bounds, or refused with a witness
