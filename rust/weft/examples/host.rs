//! host.rs: a host in Rust: a program of somebody else runs within limits, calls the host, and gives an array.
//!
//!     cargo run --example host

use std::time::Duration;
use weft::{Limit, Options, Result};

fn main() -> Result<()> {
    let vm = Options::new().memory(64 << 20).deadline(Duration::from_secs(2)).open()?;

    // a function of the host, with names and defaults
    vm.define_described("scaled(x, factor=2.0)", "x times a number.", |cx, args| {
        let factor = args[1].as_f64()?;
        let scaled: Vec<f64> = args[0].view::<f64>()?.iter().map(|x| factor * x).collect();
        let n = scaled.len();
        cx.lend(scaled, &[n])
    })?;

    // memory of the host, without copying
    vm.set_global("samples", &vm.lend(vec![3.0, 1.0, 2.0], &[3])?)?;
    let result = vm.eval_named("sort(scaled(samples, factor=10.0))", "plugin.weft")?;
    println!("{}: {:?}", result.describe(), result.view::<f64>()?.as_slice());

    // an error has a kind and a place
    let error = vm.eval_named("let x = samples\nx + [1, 2]", "plugin.weft").unwrap_err();
    println!("{} at {:?}: {error}", error.kind(), error.position());

    // another thread stops a program that does not end
    let handle = vm.interrupt_handle();
    let watchdog = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        handle.interrupt();
    });
    let error = vm.eval("while true { }").unwrap_err();
    assert_eq!(error.limit(), Some(Limit::Interrupt));
    println!("stopped: {error}");
    let _ = watchdog.join();
    Ok(())
}
