//! Proof of what happened: log, text form, checker, summary, exports
