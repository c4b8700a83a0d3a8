//! Weft, an embeddable array language, inside a Rust program: `weft.h` with lifetimes in place of counts.
//!
//! ```
//! use weft::{Options, Result};
//!
//! fn main() -> Result<()> {
//!     let vm = Options::new().open()?;
//!     vm.define("twice", |cx, args| {
//!         let x = args.first().ok_or_else(|| weft::Error::new("type", "twice: needs a number"))?;
//!         cx.float(2.0 * x.as_f64()?)
//!     })?;
//!     let x = vm.lend(vec![1.0, 2.0, 3.0], &[3])?; // without copying
//!     vm.set_global("x", &x)?;
//!     let y = vm.eval("sum(x) + twice(4)")?;
//!     assert_eq!(y.as_f64()?, 14.0);
//!     Ok(())
//! }
//! ```
//!
//! A [`Vm`] belongs to one thread at a time: it is `Send` and not `Sync`. Values borrow it, so none outlives it, and
//! none gets into another thread:
//!
//! ```compile_fail
//! let kept = {
//!     let vm = weft::Options::new().open().unwrap();
//!     vm.eval("[1, 2]").unwrap() // error[E0597]: `vm` does not live long enough
//! };
//! ```
//! ```compile_fail
//! let vm = weft::Options::new().open().unwrap();
//! let x = vm.eval("1").unwrap();
//! std::thread::scope(|s| {
//!     s.spawn(|| x.as_i64()); // error[E0277]: cannot be shared between threads safely
//! });
//! ```
//!
//! A look at an array borrows its value, which keeps the elements as they are, whatever the program does:
//!
//! ```compile_fail
//! let vm = weft::Options::new().open().unwrap();
//! let x = vm.eval("[1.0, 2.0]").unwrap();
//! let view = x.view::<f64>().unwrap();
//! drop(x); // error[E0505]: cannot move out of `x` because it is borrowed
//! view.as_slice();
//! ```
//!
//! A host function cannot keep what it was given:
//!
//! ```compile_fail
//! let vm = weft::Options::new().open().unwrap();
//! let kept = std::sync::Mutex::new(None);
//! vm.define("keep", move |cx, args| {
//!     *kept.lock().unwrap() = Some(args[0].clone()); // error: borrowed data escapes outside of closure
//!     cx.nil()
//! });
//! ```

mod array;
mod error;
mod host;
mod options;
mod value;
mod vm;
mod waiting;

pub use array::{Bf16, Complex, DType, Element, Iter, View, F16};
pub use error::{Error, Limit, Result};
pub use options::Options;
pub use value::Value;
pub use vm::{is_compiled, Context, Interrupt, Module, Vm};
pub use waiting::{Outcome, Waiting};
/// The C interface, for what has no wrapper here: [`Context::as_ptr`], [`Value::as_ptr`].
pub use weft_sys as sys;
