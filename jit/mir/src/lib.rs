//! Empty on purpose: this crate exists so that cargo fetches the source of MIR for the C library.
