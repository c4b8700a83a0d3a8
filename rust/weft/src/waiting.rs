//! waiting.rs: programs that wait for what the host gives them later.

use std::ptr::null_mut;

use weft_sys as sys;

use crate::error::{c_text, Result};
use crate::value::Value;
use crate::vm::Context;

/// What comes of a program that may wait.
#[derive(Debug)]
pub enum Outcome<'vm> {
    /// It has ended.
    Done(Value<'vm>),
    /// It goes on when it is resumed.
    Waits(Waiting<'vm>),
}

impl<'vm> Outcome<'vm> {
    /// The value of a program that has ended.
    pub fn done(self) -> Option<Value<'vm>> {
        match self {
            Outcome::Done(value) => Some(value),
            Outcome::Waits(_) => None,
        }
    }
}

/// A program that waits. Nothing else runs in its VM meanwhile. It ends when this is dropped.
pub struct Waiting<'vm>(&'vm Context);

impl std::fmt::Debug for Waiting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

impl<'vm> Waiting<'vm> {
    /// It goes on: the function that let it wait has given `value`.
    pub fn resume(self, value: &Value<'_>) -> Result<Outcome<'vm>> {
        // SAFETY: here and below: the VM outlives the context, and the value is held.
        let cx = self.0;
        self.go_on(|out| unsafe { sys::weft_resume(cx.as_ptr(), value.as_ptr(), out) })
    }

    /// It goes on: that function has failed, with an error that the program may catch.
    pub fn fail(self, kind: &str, message: &str) -> Result<Outcome<'vm>> {
        let (kind, message) = (c_text("the kind", kind)?, c_text("the message", message)?);
        let cx = self.0;
        self.go_on(|out| unsafe { sys::weft_resume_failed(cx.as_ptr(), kind.as_ptr(), message.as_ptr(), out) })
    }

    /// Ends it.
    pub fn cancel(self) {
        drop(self);
    }

    fn go_on(self, call: impl FnOnce(*mut *mut sys::WeftValue) -> sys::WeftStatus) -> Result<Outcome<'vm>> {
        let cx = self.0;
        std::mem::forget(self); // what runs on now is no longer this
        let outcome = cx.outcome(call);
        if outcome.is_err() {
            // SAFETY: as below. A value of another VM was refused, and the program would wait for ever.
            unsafe { sys::weft_cancel(cx.as_ptr()) };
        }
        outcome
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // SAFETY: the VM outlives the context. It refuses when no program waits.
        unsafe { sys::weft_cancel(self.0.as_ptr()) };
    }
}

impl Context {
    /// What comes of a call that runs a program, which may wait.
    pub(crate) fn outcome<'vm>(
        &'vm self,
        call: impl FnOnce(*mut *mut sys::WeftValue) -> sys::WeftStatus,
    ) -> Result<Outcome<'vm>> {
        let mut out = null_mut();
        match call(&mut out) {
            sys::WEFT_SUSPENDED => Ok(Outcome::Waits(Waiting(self))),
            status => {
                self.check(status)?;
                // SAFETY: the library said WEFT_OK: out is a value with a count of the host's.
                Ok(Outcome::Done(unsafe { Value::taken(self, out) }))
            }
        }
    }
}
