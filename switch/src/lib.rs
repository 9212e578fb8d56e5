//! All assembly of the workspace: contexts and the switch between them
