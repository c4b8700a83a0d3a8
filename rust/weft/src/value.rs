//! value.rs: a value that the host holds.

use std::fmt;
use std::mem::{forget, MaybeUninit};
use std::ptr::{null, null_mut};

use weft_sys as sys;

use crate::array::{DType, Element, View};
use crate::error::{c_text, owned, Error, Result};
use crate::vm::Context;
use crate::waiting::Outcome;

/// A value of a VM, held by one count. It borrows the VM; a clone is the same value.
pub struct Value<'vm> {
    cx: &'vm Context,
    value: *mut sys::WeftValue, // not NULL
}

impl<'vm> Value<'vm> {
    /// Takes over the count that an out parameter gave.
    pub(crate) unsafe fn taken(cx: &'vm Context, value: *mut sys::WeftValue) -> Value<'vm> {
        debug_assert!(!value.is_null());
        Value { cx, value }
    }

    /// Of a value that is borrowed: one count more.
    pub(crate) unsafe fn retained(cx: &'vm Context, value: *mut sys::WeftValue) -> Value<'vm> {
        Value { cx, value: sys::weft_retain(cx.as_ptr(), value) }
    }

    /// The count goes to the caller.
    pub(crate) fn into_raw(self) -> *mut sys::WeftValue {
        let value = self.value;
        forget(self);
        value
    }

    /// For calls of [`crate::sys`]: borrowed.
    pub fn as_ptr(&self) -> *mut sys::WeftValue {
        self.value
    }

    fn vm(&self) -> *mut sys::WeftVM {
        self.cx.as_ptr()
    }

    /// As a literal, as `print` writes it.
    pub fn show(&self) -> String {
        // SAFETY: here and below: the VM outlives self.cx, and self holds a count of the value.
        unsafe { owned(sys::weft_show(self.vm(), self.value)) }
    }

    /// Its type; of arrays "f64[3, 4]".
    pub fn describe(&self) -> String {
        unsafe { owned(sys::weft_describe(self.vm(), self.value)) }
    }

    /// "array", "text", "list" …
    pub fn type_name(&self) -> String {
        unsafe { owned(sys::weft_type(self.vm(), self.value)) }
    }

    /// The lines that a prompt shows of it.
    pub fn display(&self) -> String {
        unsafe { owned(sys::weft_display(self.vm(), self.value)) }
    }

    /// A number that takes on the dtype of what it meets, as one written in a program.
    pub fn is_weak(&self) -> bool {
        unsafe { sys::weft_is_weak(self.vm(), self.value) }
    }

    pub fn is_nil(&self) -> bool {
        self.type_name() == "nil"
    }

    /// An integer or bool of rank 0.
    pub fn as_i64(&self) -> Result<i64> {
        let mut out = 0;
        self.cx.check(unsafe { sys::weft_as_int(self.vm(), self.value, &mut out) })?;
        Ok(out)
    }

    /// A number of rank 0.
    pub fn as_f64(&self) -> Result<f64> {
        let mut out = 0.0;
        self.cx.check(unsafe { sys::weft_as_float(self.vm(), self.value, &mut out) })?;
        Ok(out)
    }

    /// A bool: `as_i64` takes them as well.
    pub fn as_bool(&self) -> Result<bool> {
        Ok(self.view::<bool>()?.get(&[]).unwrap_or(false))
    }

    /// A text, where it lies.
    pub fn as_str(&self) -> Result<&str> {
        let (mut text, mut length) = (null(), 0);
        self.cx.check(unsafe { sys::weft_as_text(self.vm(), self.value, &mut text, &mut length) })?;
        // SAFETY: it lives as long as the value, which self holds.
        let bytes = if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) } };
        std::str::from_utf8(bytes).map_err(|_| Error::new("value", "the text is not UTF-8"))
    }

    /// How many items a list or record has.
    pub fn count(&self) -> Result<usize> {
        let mut out = 0;
        self.cx.check(unsafe { sys::weft_length(self.vm(), self.value, &mut out) })?;
        Ok(out)
    }

    /// Item `index` of a list or record.
    pub fn item(&self, index: usize) -> Result<Value<'vm>> {
        let n = self.count()?;
        if index >= n {
            return Err(Error::new("index", format!("item {index} of {n}")));
        }
        self.cx.made(|out| unsafe { sys::weft_item(self.vm(), self.value, index, out) })
    }

    /// All items of a list or record.
    pub fn items(&self) -> Result<Vec<Value<'vm>>> {
        (0..self.count()?).map(|i| self.item(i)).collect()
    }

    /// Key `index` of a record.
    pub fn key(&self, index: usize) -> Result<String> {
        let n = self.count()?;
        if index >= n {
            return Err(Error::new("index", format!("key {index} of {n}")));
        }
        let mut out = null();
        self.cx.check(unsafe { sys::weft_key(self.vm(), self.value, index, &mut out) })?;
        Ok(unsafe { owned(out) })
    }

    /// The field of a record.
    pub fn field(&self, key: &str) -> Result<Value<'vm>> {
        let key = c_text("the key", key)?;
        self.cx.made(|out| unsafe { sys::weft_field(self.vm(), self.value, key.as_ptr(), out) })
    }

    /// Calls a function.
    pub fn call(&self, args: &[&Value<'_>]) -> Result<Value<'vm>> {
        self.call_named(args, &[])
    }

    /// Calls a function with arguments by position, then by name.
    pub fn call_named(&self, args: &[&Value<'_>], named: &[(&str, &Value<'_>)]) -> Result<Value<'vm>> {
        let given: Vec<_> = args.iter().map(|v| v.value).chain(named.iter().map(|(_, v)| v.value)).collect();
        let names = named.iter().map(|(n, _)| c_text("the name", n)).collect::<Result<Vec<_>>>()?;
        let keys: Vec<_> = names.iter().map(|n| n.as_ptr()).collect();
        self.cx.made(|out| unsafe {
            let (args, count) = (given.as_ptr(), given.len());
            sys::weft_call_named(self.vm(), self.value, args, count, keys.as_ptr(), keys.len(), out)
        })
    }

    /// Calls a function that may wait ([`Context::start`]).
    pub fn start(&self, args: &[&Value<'_>]) -> Result<Outcome<'vm>> {
        let given: Vec<_> = args.iter().map(|v| v.value).collect();
        self.cx.outcome(|out| unsafe { sys::weft_call(self.vm(), self.value, given.as_ptr(), given.len(), out) })
    }

    fn look(&self) -> Result<sys::WeftArray> {
        let mut out = MaybeUninit::<sys::WeftArray>::zeroed();
        self.cx.check(unsafe { sys::weft_array_view(self.vm(), self.value, out.as_mut_ptr()) })?;
        Ok(unsafe { out.assume_init() }) // zeros where nothing was written, which are good
    }

    /// The dtype of a number, or of an array on the processor.
    pub fn dtype(&self) -> Result<DType> {
        let raw = self.look()?.dtype;
        DType::of(raw).ok_or_else(|| Error::new("unsupported", format!("dtype {raw} is not known here")))
    }

    /// Looks at the elements of a number or array where they lie. T must be the element type itself. Nothing changes
    /// them while the view is there: the value is held, and a program that updates the array gets a copy.
    pub fn view<T: Element>(&self) -> Result<View<'_, T>> {
        let look = self.look()?;
        if look.dtype != T::DTYPE as sys::WeftDType {
            return Err(Error::new("type", format!("view: {} has no elements of {:?}", self.describe(), T::DTYPE)));
        }
        // SAFETY: the dtype is T's; the elements live and stay as they are while self holds the value.
        Ok(unsafe { View::new(&look) })
    }

    /// Copies the elements of a number or array, in row-major order, to any type that can hold each value of its own:
    /// f32 as f64, and not the other way.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let size = usize::try_from(self.look()?.size).map_err(|_| Error::new("shape", "the array is too large"))?;
        let mut out = Vec::<T>::with_capacity(size);
        let bytes = size * std::mem::size_of::<T>();
        self.cx.check(unsafe {
            let dtype = T::DTYPE as sys::WeftDType;
            sys::weft_array_copy_out(self.vm(), self.value, dtype, out.as_mut_ptr().cast(), bytes)
        })?;
        // SAFETY: weft_array_copy_out wrote all of them.
        unsafe { out.set_len(size) };
        Ok(out)
    }
}

impl Clone for Value<'_> {
    fn clone(&self) -> Self {
        // SAFETY: self holds a count.
        unsafe { Value::retained(self.cx, self.value) }
    }
}

impl Drop for Value<'_> {
    fn drop(&mut self) {
        // SAFETY: the count is self's.
        unsafe { sys::weft_release(self.cx.as_ptr(), self.value) }
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.show())
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show())
    }
}

impl Context {
    /// The value that a call puts into its out parameter.
    pub(crate) fn made<'vm>(
        &'vm self,
        call: impl FnOnce(*mut *mut sys::WeftValue) -> sys::WeftStatus,
    ) -> Result<Value<'vm>> {
        let mut out = null_mut();
        self.check(call(&mut out))?;
        // SAFETY: the library said WEFT_OK: out is a value with a count of the host's.
        Ok(unsafe { Value::taken(self, out) })
    }
}
