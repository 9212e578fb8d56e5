//! System description files to models, every mistake with its place and its mending
