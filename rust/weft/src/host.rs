//! host.rs: closures as host functions. A panic becomes an error of the program, and none goes through the library.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};

use weft_sys as sys;

use crate::error::{fail, Result};
use crate::value::Value;
use crate::vm::Context;

pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let said = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
    said.map_or("a panic in the host".to_string(), |s| format!("a panic in the host: {s}"))
}

/// Drops a value that the library held, whatever that does.
pub(crate) unsafe fn drop_box<T>(context: *mut c_void) {
    let owner = Box::from_raw(context.cast::<T>());
    // what a panic carries may panic when it is dropped, too
    catch_unwind(AssertUnwindSafe(move || drop(owner))).unwrap_or_else(std::mem::forget);
}

unsafe extern "C" fn release<F>(context: *mut c_void) {
    drop_box::<F>(context);
}

/// What a host function gives: none, where its program waits.
type Given<'a> = Result<Option<Value<'a>>>;

/// Calls `run` with the context and the arguments; what comes of it is a status and a result for the library.
unsafe fn call_with<F>(
    vm: *mut sys::WeftVM,
    context: *mut c_void,
    args: *const *mut sys::WeftValue,
    count: usize,
    result: *mut *mut sys::WeftValue,
    run: impl for<'a> FnOnce(&F, &'a Context, &[Value<'a>]) -> Given<'a>,
) -> sys::WeftStatus {
    // SAFETY: the library passes what `hand_over` gave, and holds the function while it runs.
    let function = &*context.cast::<F>();
    let cx = Context::of(vm);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let args: Vec<Value<'_>> = (0..count).map(|i| Value::retained(&cx, *args.add(i))).collect();
        run(function, &cx, &args).map(|given| given.map(Value::into_raw))
    }));
    match outcome {
        Ok(Ok(Some(value))) => {
            *result = value;
            sys::WEFT_OK
        }
        Ok(Ok(None)) => sys::WEFT_SUSPENDED,
        Ok(Err(error)) => error.raise(vm),
        Err(payload) => {
            let status = fail(vm, "host", &panic_message(&*payload));
            std::mem::forget(payload);
            status
        }
    }
}

unsafe extern "C" fn call<F>(
    vm: *mut sys::WeftVM,
    context: *mut c_void,
    args: *const *mut sys::WeftValue,
    count: usize,
    result: *mut *mut sys::WeftValue,
) -> sys::WeftStatus
where
    F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Value<'a>>,
{
    call_with::<F>(vm, context, args, count, result, |function, cx, args| function(cx, args).map(Some))
}

unsafe extern "C" fn call_suspending<F>(
    vm: *mut sys::WeftVM,
    context: *mut c_void,
    args: *const *mut sys::WeftValue,
    count: usize,
    result: *mut *mut sys::WeftValue,
) -> sys::WeftStatus
where
    F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Given<'a>,
{
    call_with::<F>(vm, context, args, count, result, |function, cx, args| function(cx, args))
}

type Release = Option<unsafe extern "C" fn(*mut c_void)>;

/// Gives a closure to one of weft_define and its kind. It comes back when that fails.
pub(crate) fn hand_over<F>(
    function: F,
    define: impl FnOnce(sys::WeftHostFunction, *mut c_void, Release) -> sys::WeftStatus,
) -> sys::WeftStatus
where
    F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Value<'a>> + Send + 'static,
{
    hand(function, call::<F>, define)
}

/// The same with a function that may let its program wait.
pub(crate) fn hand_over_suspending<F>(
    function: F,
    define: impl FnOnce(sys::WeftHostFunction, *mut c_void, Release) -> sys::WeftStatus,
) -> sys::WeftStatus
where
    F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Given<'a> + Send + 'static,
{
    hand(function, call_suspending::<F>, define)
}

type Call = unsafe extern "C" fn(
    *mut sys::WeftVM,
    *mut c_void,
    *const *mut sys::WeftValue,
    usize,
    *mut *mut sys::WeftValue,
) -> sys::WeftStatus;

fn hand<F: Send + 'static>(
    function: F,
    call: Call,
    define: impl FnOnce(sys::WeftHostFunction, *mut c_void, Release) -> sys::WeftStatus,
) -> sys::WeftStatus {
    let context = Box::into_raw(Box::new(function));
    let status = define(Some(call), context.cast(), Some(release::<F>));
    if status != sys::WEFT_OK {
        // SAFETY: the library says that `release` is not called when it fails.
        drop(unsafe { Box::from_raw(context) });
    }
    status
}
