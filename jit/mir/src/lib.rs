//! Empty on purpose: this crate exists so that cargo builds `libmir.a` for the C library.
