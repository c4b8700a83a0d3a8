//! error.rs: what a call raised, with its kind and place.

use std::ffi::{CStr, CString};
use std::fmt;

use weft_sys as sys;

/// What every fallible call gives.
pub type Result<T> = std::result::Result<T, Error>;

/// Which limit of the host an error comes from. A program cannot make an error that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    Memory,
    Fuel,
    Deadline,
    Interrupt,
    Exit,
    Depth,
    Stack,
    Output,
    Files,
    Env,
    Imports,
    Gpu,
    Input,
    /// One that a later version of the library has.
    Other,
}

/// An error of a program, of the library, or of a host function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: String,
    message: String,
    text: String,
    position: Option<(u32, u32)>,
    limit: Option<Limit>,
    exit_code: Option<i32>,
}

impl Error {
    /// One of the host's own: `kind` is a kind of the language ("value", "type", "io" …); another one becomes "host"
    /// when a host function gives it.
    pub fn new(kind: &str, message: impl Into<String>) -> Error {
        let message = message.into();
        let text = format!("error: {message}\n");
        Error { kind: kind.to_string(), message, text, position: None, limit: None, exit_code: None }
    }

    /// "shape", "index", "limit" …; "" where a rule of weft.h was broken, as a value of another VM does.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// One line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The message, the line of the source with a caret, and the call trace.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column in the source, both from 1; `None`: not known.
    pub fn position(&self) -> Option<(u32, u32)> {
        self.position
    }

    pub fn limit(&self) -> Option<Limit> {
        self.limit
    }

    /// Of a program that ended itself by `exit(n)`.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// The error that stands in a VM behind a call that gave this status.
    pub(crate) unsafe fn standing(vm: *mut sys::WeftVM, status: sys::WeftStatus) -> Error {
        let kind = owned(sys::weft_error_kind(vm));
        let mut message = owned(sys::weft_error_message(vm));
        if message.is_empty() {
            message = match status {
                sys::WEFT_MISUSE => "a rule of weft.h is broken".to_string(),
                _ => "the program has ended".to_string(),
            };
        }
        let (mut line, mut column) = (0, 0);
        sys::weft_error_position(vm, &mut line, &mut column);
        let position = (line > 0).then(|| (line.unsigned_abs(), column.unsigned_abs()));
        let exit_code = Some(sys::weft_exit_code(vm)).filter(|&code| code >= 0);
        let kind = if status == sys::WEFT_MISUSE { String::new() } else { kind };
        Error { kind, message, text: owned(sys::weft_error_text(vm)), position, limit: limit_of(vm), exit_code }
    }

    /// Raises it in a VM, from a host function. One that stands there already stays what it is: a limit, with the
    /// calls that led to it.
    pub(crate) unsafe fn raise(&self, vm: *mut sys::WeftVM) -> sys::WeftStatus {
        let stands = owned(sys::weft_error_kind(vm)) == self.kind && !self.kind.is_empty();
        if stands && owned(sys::weft_error_message(vm)) == self.message {
            return sys::WEFT_ERROR;
        }
        fail(vm, &self.kind, &self.message)
    }
}

/// Raises an error in a VM. What stands behind a NUL is left out.
pub(crate) unsafe fn fail(vm: *mut sys::WeftVM, kind: &str, message: &str) -> sys::WeftStatus {
    let line = |s: &str| CString::new(s.split('\0').next().unwrap_or("")).unwrap_or_default();
    let (kind, message) = (line(if kind.is_empty() { "host" } else { kind }), line(message));
    sys::weft_fail(vm, kind.as_ptr(), message.as_ptr())
}

unsafe fn limit_of(vm: *mut sys::WeftVM) -> Option<Limit> {
    Some(match sys::weft_error_limit(vm) {
        sys::WEFT_LIMIT_NONE => return None,
        sys::WEFT_LIMIT_MEMORY => Limit::Memory,
        sys::WEFT_LIMIT_FUEL => Limit::Fuel,
        sys::WEFT_LIMIT_DEADLINE => Limit::Deadline,
        sys::WEFT_LIMIT_INTERRUPT => Limit::Interrupt,
        sys::WEFT_LIMIT_EXIT => Limit::Exit,
        sys::WEFT_LIMIT_DEPTH => Limit::Depth,
        sys::WEFT_LIMIT_STACK => Limit::Stack,
        sys::WEFT_LIMIT_OUTPUT => Limit::Output,
        sys::WEFT_LIMIT_FILES => Limit::Files,
        sys::WEFT_LIMIT_ENV => Limit::Env,
        sys::WEFT_LIMIT_IMPORTS => Limit::Imports,
        sys::WEFT_LIMIT_GPU => Limit::Gpu,
        sys::WEFT_LIMIT_INPUT => Limit::Input,
        _ => Limit::Other,
    })
}

/// A text of the library, which lives until the next one.
pub(crate) unsafe fn owned(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// A name or path for the library.
pub(crate) fn c_text(what: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::new("value", format!("{what} holds a NUL: {text:?}")))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
