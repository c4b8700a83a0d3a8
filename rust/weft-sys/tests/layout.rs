//! layout.rs: structs lie in memory as C has them, and the library answers.

use std::ffi::{c_char, CStr};
use std::ptr::{null, null_mut};

use weft_sys::*;

/// WEFT_LAYOUT names a file with what the program of `generate.py --layout` printed.
#[test]
fn structs_lie_as_in_c() {
    let Ok(path) = std::env::var("WEFT_LAYOUT") else {
        return eprintln!("WEFT_LAYOUT is not set: not compared with C (tests/tools/rust.sh does)");
    };
    let text = std::fs::read_to_string(path).unwrap();
    let theirs: Vec<&str> = text.lines().collect();
    let ours: Vec<String> = LAYOUT.iter().map(|(name, at)| format!("{name} {at}")).collect();
    assert_eq!(ours, theirs);
    assert!(ours.len() > 100);
}

#[test]
fn the_library_answers() {
    unsafe {
        assert_eq!(CStr::from_ptr(weft_version()).to_str().unwrap(), env!("CARGO_PKG_VERSION"));
        let mut options: WeftOptions = std::mem::zeroed();
        weft_options_init(&mut options, std::mem::size_of::<WeftOptions>());
        assert_eq!(options.size, std::mem::size_of::<WeftOptions>());
        let mut why = [0 as c_char; 100];
        let mut vm = null_mut();
        options.cpu = c"abacus".as_ptr();
        assert_eq!(weft_open(&options, &mut vm, why.as_mut_ptr(), why.len()), WEFT_MISUSE);
        assert!(CStr::from_ptr(why.as_ptr()).to_str().unwrap().starts_with("cpu is unknown"));
        options.cpu = null();
        options.stack = 1 << 20; // the last field that version 0.1 had
        assert_eq!(weft_open(&options, &mut vm, why.as_mut_ptr(), why.len()), WEFT_OK);
        let (mut value, mut sum) = (null_mut(), 0);
        assert_eq!(weft_eval(vm, c"sum(arange(10))".as_ptr(), c"host".as_ptr(), &mut value), WEFT_OK);
        assert_eq!((weft_as_int(vm, value, &mut sum), sum), (WEFT_OK, 45));
        weft_release(vm, value);
        weft_free(vm);
    }
}
