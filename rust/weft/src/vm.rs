//! vm.rs: a VM; what a host and its functions call of it.

use std::ffi::{c_void, CString};
use std::ops::Deref;
use std::path::Path;
use std::ptr::{null, null_mut, NonNull};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weft_sys as sys;

use crate::array::Element;
use crate::error::{c_text, owned, Error, Result};
use crate::host::{drop_box, hand_over, hand_over_suspending};
use crate::options::{Files, Options, OwnedHooks};
use crate::value::Value;
use crate::waiting::Outcome;

/// A VM, as the host and its functions see it. [`Vm`] owns one.
pub struct Context {
    vm: NonNull<sys::WeftVM>,
}

struct Gate(Option<NonNull<sys::WeftVM>>);
// SAFETY: weft_interrupt, the only call through it, may come from any thread.
unsafe impl Send for Gate {}

/// Stops the program of a VM, from any thread. Behind the end of the VM it does nothing. It takes a lock, so it is not
/// for signal handlers.
#[derive(Clone)]
pub struct Interrupt(Arc<Mutex<Gate>>);

impl Interrupt {
    /// The call in progress, or the next one, gives an error of kind "interrupt".
    pub fn interrupt(&self) {
        if let Some(vm) = self.0.lock().unwrap_or_else(PoisonError::into_inner).0 {
            // SAFETY: the VM is not freed while the lock is held.
            unsafe { sys::weft_interrupt(vm.as_ptr()) }
        }
    }
}

/// Owns a VM, which goes when it is dropped.
pub struct Vm {
    context: Context,
    gate: Arc<Mutex<Gate>>,
    // What the VM points to; dropped behind it.
    _hooks: OwnedHooks,
    _names: (Option<CString>, Option<CString>),
    _files: Option<Files>,
}
// SAFETY: a VM belongs to one thread at a time, and may change it between calls. Values borrow it, so it does not move
// while there are any; closures that it holds are Send.
unsafe impl Send for Vm {}

impl Vm {
    /// With default options.
    pub fn new_default() -> Result<Vm> {
        Options::new().open()
    }

    pub(crate) fn new(
        vm: *mut sys::WeftVM,
        hooks: OwnedHooks,
        names: (Option<CString>, Option<CString>),
        files: Option<Files>,
    ) -> Vm {
        let vm = NonNull::new(vm).expect("weft_open gave a VM");
        let gate = Arc::new(Mutex::new(Gate(Some(vm))));
        Vm { context: Context { vm }, gate, _hooks: hooks, _names: names, _files: files }
    }

    /// Something that stops its programs, for other threads.
    pub fn interrupt_handle(&self) -> Interrupt {
        Interrupt(self.gate.clone())
    }
}

impl Deref for Vm {
    type Target = Context;
    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner).0 = None;
        // SAFETY: nobody else has it: values borrowed self, and the handle was closed above.
        unsafe { sys::weft_free(self.context.vm.as_ptr()) }
    }
}

unsafe extern "C" fn give_back<O>(context: *mut c_void, _data: *mut c_void) {
    drop_box::<O>(context);
}

impl Context {
    pub(crate) fn of(vm: *mut sys::WeftVM) -> Context {
        Context { vm: NonNull::new(vm).expect("the library passes its VM") }
    }

    /// For calls of [`crate::sys`]. It must not be freed.
    pub fn as_ptr(&self) -> *mut sys::WeftVM {
        self.vm.as_ptr()
    }

    pub(crate) fn check(&self, status: sys::WeftStatus) -> Result<()> {
        match status {
            sys::WEFT_OK => Ok(()),
            // Nobody can wait for it here: it ends, else the VM would run nothing more.
            sys::WEFT_SUSPENDED => {
                // SAFETY: the VM lives as long as self.
                unsafe { sys::weft_cancel(self.as_ptr()) };
                Err(Error::new("unsupported", "the program waits for the host: Context::start runs such a program"))
            }
            // SAFETY: the VM lives as long as self.
            _ => Err(unsafe { Error::standing(self.as_ptr(), status) }),
        }
    }

    // ---- running -------------------------------------------------------------------------------

    /// Runs a program in the main module; gives the value of its last statement.
    pub fn eval(&self, text: &str) -> Result<Value<'_>> {
        self.eval_named(text, "host")
    }

    /// The same with a name that stands in messages.
    pub fn eval_named(&self, text: &str, name: &str) -> Result<Value<'_>> {
        let name = c_text("the name", name)?;
        // SAFETY: here and below: the VM lives as long as self, and arguments are good for the call.
        self.made(|out| unsafe {
            sys::weft_eval_length(self.as_ptr(), text.as_ptr().cast(), text.len(), name.as_ptr(), out)
        })
    }

    /// Runs a file in the main module. The program needs no right to read files for that.
    pub fn load_file(&self, path: impl AsRef<Path>) -> Result<Value<'_>> {
        let path = path_text(path.as_ref())?;
        self.made(|out| unsafe { sys::weft_load_file(self.as_ptr(), path.as_ptr(), out) })
    }

    /// The same with the text of a file that the host has read: imports are looked for beside `path`.
    pub fn load_text(&self, text: &str, path: impl AsRef<Path>) -> Result<Value<'_>> {
        let path = path_text(path.as_ref())?;
        self.made(|out| unsafe {
            sys::weft_load_text(self.as_ptr(), text.as_ptr().cast(), text.len(), path.as_ptr(), out)
        })
    }

    /// Runs a program that may wait for what a function of [`Context::define_suspending`] gives later.
    pub fn start(&self, text: &str, name: &str) -> Result<Outcome<'_>> {
        let name = c_text("the name", name)?;
        self.outcome(|out| unsafe {
            sys::weft_eval_length(self.as_ptr(), text.as_ptr().cast(), text.len(), name.as_ptr(), out)
        })
    }

    /// A program as bytes, to be loaded later; with `strip` without its text. It may name what this VM declares.
    pub fn compile(&self, text: &str, name: &str, strip: bool) -> Result<Vec<u8>> {
        self.compile_in(null_mut(), text, name, strip)
    }

    fn compile_in(&self, module: *mut sys::WeftValue, text: &str, name: &str, strip: bool) -> Result<Vec<u8>> {
        let name = c_text("the name", name)?;
        let flags = if strip { sys::WEFT_COMPILE_STRIP as u32 } else { 0 };
        let (mut bytes, mut count) = (null(), 0);
        self.check(unsafe {
            let (text, length) = (text.as_ptr().cast(), text.len());
            sys::weft_compile(self.as_ptr(), module, text, length, name.as_ptr(), flags, &mut bytes, &mut count)
        })?;
        // SAFETY: the library has `count` bytes there until its next text.
        Ok(unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count) }.to_vec())
    }

    /// Runs what [`Context::compile`] gave, as long as it is the same version of Weft. It is proved first: bytes of
    /// anybody may be given. Imports are looked for beside `path`.
    pub fn load_compiled(&self, bytes: &[u8], path: Option<&Path>) -> Result<Value<'_>> {
        let path = path.map(path_text).transpose()?;
        let path = path.as_ref().map_or(null(), |p| p.as_ptr());
        self.made(|out| unsafe {
            sys::weft_load_compiled(self.as_ptr(), null_mut(), bytes.as_ptr().cast(), bytes.len(), path, out)
        })
    }

    /// The program in the layout of `weft fmt`.
    pub fn format(&self, text: &str, name: &str) -> Result<String> {
        let name = c_text("the name", name)?;
        let mut out = null();
        self.check(unsafe {
            sys::weft_format(self.as_ptr(), text.as_ptr().cast(), text.len(), name.as_ptr(), &mut out)
        })?;
        Ok(unsafe { owned(out) })
    }

    /// Of the log of capture ("explain", "profile", "json" …), or of a function ("graph", "source" …); `None`: there is
    /// no such thing.
    pub fn dump(&self, what: &str, function: Option<&Value<'_>>) -> Result<Option<String>> {
        let what = c_text("what is wanted", what)?;
        let function = function.map_or(null_mut(), |f| f.as_ptr());
        let text = unsafe { sys::weft_dump(self.as_ptr(), function, what.as_ptr()) };
        Ok((!text.is_null()).then(|| unsafe { owned(text) }))
    }

    /// Another default device: "cpu", "gpu".
    pub fn set_device(&self, name: &str) -> Result<()> {
        let name = c_text("the name", name)?;
        self.check(unsafe { sys::weft_set_device(self.as_ptr(), name.as_ptr()) })
    }

    /// A variable of the main module.
    pub fn global(&self, name: &str) -> Result<Value<'_>> {
        let name = c_text("the name", name)?;
        self.made(|out| unsafe { sys::weft_get_global(self.as_ptr(), name.as_ptr(), out) })
    }

    pub fn set_global(&self, name: &str, value: &Value<'_>) -> Result<()> {
        let name = c_text("the name", name)?;
        self.check(unsafe { sys::weft_set_global(self.as_ptr(), name.as_ptr(), value.as_ptr()) })
    }

    /// A module with variables of its own: one for each script keeps scripts apart.
    pub fn module(&self, name: &str) -> Result<Module<'_>> {
        let name = c_text("the name", name)?;
        Ok(Module(self, self.made(|out| unsafe { sys::weft_module_new(self.as_ptr(), name.as_ptr(), out) })?))
    }

    /// Limits from here on; 0 and `None`: no limit.
    pub fn set_limits(&self, memory: u64, fuel: u64, deadline: Option<Duration>) {
        let seconds = deadline.map_or(0.0, |d| d.as_secs_f64().max(1e-9));
        unsafe { sys::weft_set_limits(self.as_ptr(), memory, fuel, seconds) }
    }

    /// What is left of the limits of memory, fuel and time; `None`: there is none.
    pub fn left(&self) -> (Option<u64>, Option<u64>, Option<Duration>) {
        let vm = self.as_ptr();
        let (memory, fuel, time) =
            unsafe { (sys::weft_memory_left(vm), sys::weft_fuel_left(vm), sys::weft_time_left(vm)) };
        let some = |n: u64| (n != u64::MAX).then_some(n);
        (some(memory), some(fuel), Duration::try_from_secs_f64(time).ok())
    }

    /// Gives back what nobody can reach, and freed arrays that wait for the next ones: how many bytes that were.
    pub fn collect(&self) -> usize {
        unsafe { sys::weft_collect(self.as_ptr()) }
    }

    // ---- values --------------------------------------------------------------------------------

    pub fn nil(&self) -> Result<Value<'_>> {
        self.made(|out| unsafe { sys::weft_nil(self.as_ptr(), out) })
    }

    pub fn bool(&self, b: bool) -> Result<Value<'_>> {
        self.made(|out| unsafe { sys::weft_bool(self.as_ptr(), b, out) })
    }

    /// An i64.
    pub fn int(&self, i: i64) -> Result<Value<'_>> {
        self.made(|out| unsafe { sys::weft_int(self.as_ptr(), i, out) })
    }

    /// An f64.
    pub fn float(&self, f: f64) -> Result<Value<'_>> {
        self.made(|out| unsafe { sys::weft_float(self.as_ptr(), f, out) })
    }

    /// An integer as one written in a program: it takes on the dtype of what it meets.
    pub fn weak_int(&self, i: i64) -> Result<Value<'_>> {
        self.made(|out| unsafe { sys::weft_weak_int(self.as_ptr(), i, out) })
    }

    /// A number as one written in a program: an f32 array stays one beside it.
    pub fn weak_float(&self, f: f64) -> Result<Value<'_>> {
        self.made(|out| unsafe { sys::weft_weak_float(self.as_ptr(), f, out) })
    }

    /// A complex number as one written in a program.
    pub fn weak_complex(&self, re: f64, im: f64) -> Result<Value<'_>> {
        self.made(|out| unsafe { sys::weft_weak_complex(self.as_ptr(), re, im, out) })
    }

    pub fn text(&self, text: &str) -> Result<Value<'_>> {
        self.made(|out| unsafe { sys::weft_text(self.as_ptr(), text.as_ptr().cast(), text.len(), out) })
    }

    pub fn list(&self, items: &[&Value<'_>]) -> Result<Value<'_>> {
        let items: Vec<_> = items.iter().map(|v| v.as_ptr()).collect();
        self.made(|out| unsafe { sys::weft_list(self.as_ptr(), items.as_ptr(), items.len(), out) })
    }

    pub fn record(&self, fields: &[(&str, &Value<'_>)]) -> Result<Value<'_>> {
        let texts = fields.iter().map(|(k, _)| c_text("the key", k)).collect::<Result<Vec<_>>>()?;
        let keys: Vec<_> = texts.iter().map(|k| k.as_ptr()).collect();
        let items: Vec<_> = fields.iter().map(|(_, v)| v.as_ptr()).collect();
        self.made(|out| unsafe { sys::weft_record(self.as_ptr(), keys.as_ptr(), items.as_ptr(), items.len(), out) })
    }

    /// An array of a copy of these elements, in row-major order.
    pub fn array<T: Element>(&self, data: &[T], shape: &[usize]) -> Result<Value<'_>> {
        let (rank, sizes) = fit(data.len(), shape)?;
        let dtype = T::DTYPE as sys::WeftDType;
        self.made(|out| unsafe {
            sys::weft_array(self.as_ptr(), dtype, rank, sizes.as_ptr(), data.as_ptr().cast(), out)
        })
    }

    /// An array of the elements of `owner` where they lie: a `Vec`, an `Arc<[T]>`, a mapped file. It is dropped when
    /// the last view of them has gone, in whatever thread that is.
    pub fn lend<T: Element>(&self, owner: impl AsRef<[T]> + Send + 'static, shape: &[usize]) -> Result<Value<'_>> {
        self.lend_boxed(Box::new(owner), shape)
    }

    fn lend_boxed<T: Element, O: AsRef<[T]> + Send + 'static>(
        &self,
        owner: Box<O>,
        shape: &[usize],
    ) -> Result<Value<'_>> {
        let context = Box::into_raw(owner);
        // SAFETY: the owner lies there, and nobody touches it, until it is dropped.
        let data: &[T] = unsafe { (*context).as_ref() };
        let dtype = T::DTYPE as sys::WeftDType;
        let lent = fit(data.len(), shape).and_then(|(rank, sizes)| {
            self.made(|out| unsafe {
                sys::weft_array_lend_strided(
                    self.as_ptr(),
                    dtype,
                    rank,
                    sizes.as_ptr(),
                    null(),
                    data.as_ptr().cast(),
                    Some(give_back::<O>),
                    context.cast(),
                    out,
                )
            })
        });
        if lent.is_err() {
            // SAFETY: weft.h says that `release` is not called then.
            drop(unsafe { Box::from_raw(context) });
        }
        lent
    }

    // ---- functions of the host -------------------------------------------------------------------

    /// Declares a function in the main module. What it gives by `Err` is an error of the program, which may catch it;
    /// so is a panic. It may call everything of the context, programs too, so it may be called while it runs.
    pub fn define<F>(&self, name: &str, function: F) -> Result<()>
    where
        F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Value<'a>> + Send + 'static,
    {
        let name = c_text("the name", name)?;
        self.check(hand_over(function, |call, context, release| unsafe {
            sys::weft_define(self.as_ptr(), name.as_ptr(), call, context, release)
        }))
    }

    /// The same with names, defaults and documentation: `blur(image, radius=1, edge="wrap")`. The function gets all
    /// arguments in the order of the signature.
    pub fn define_described<F>(&self, signature: &str, doc: &str, function: F) -> Result<()>
    where
        F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Value<'a>> + Send + 'static,
    {
        let (signature, doc) = (c_text("the signature", signature)?, c_text("the documentation", doc)?);
        self.check(hand_over(function, |call, context, release| unsafe {
            sys::weft_define_described(self.as_ptr(), signature.as_ptr(), doc.as_ptr(), call, context, release)
        }))
    }

    /// The same with a function of the language that is traced in its place: both must agree.
    pub fn define_traced<F>(&self, name: &str, rule: &Value<'_>, function: F) -> Result<()>
    where
        F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Value<'a>> + Send + 'static,
    {
        let name = c_text("the name", name)?;
        self.check(hand_over(function, |call, context, release| unsafe {
            sys::weft_define_traced(self.as_ptr(), name.as_ptr(), call, context, release, rule.as_ptr())
        }))
    }

    /// Declares a function that may let its program wait: it gives `None` then, and [`crate::Waiting::resume`]
    /// its value.
    pub fn define_suspending<F>(&self, name: &str, function: F) -> Result<()>
    where
        F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Option<Value<'a>>> + Send + 'static,
    {
        self.suspending_in(null_mut(), name, function)
    }

    fn suspending_in<F>(&self, module: *mut sys::WeftValue, name: &str, function: F) -> Result<()>
    where
        F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Option<Value<'a>>> + Send + 'static,
    {
        let name = c_text("the name", name)?;
        self.check(hand_over_suspending(function, |call, context, release| unsafe {
            sys::weft_define_suspending(self.as_ptr(), module, name.as_ptr(), call, context, release)
        }))
    }

    /// A function that is declared nowhere: a value.
    pub fn function<F>(&self, name: &str, function: F) -> Result<Value<'_>>
    where
        F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Value<'a>> + Send + 'static,
    {
        let name = c_text("the name", name)?;
        self.made(|out| {
            hand_over(function, |call, context, release| unsafe {
                sys::weft_function(self.as_ptr(), name.as_ptr(), call, context, release, out)
            })
        })
    }

    /// The same with names, defaults and documentation.
    pub fn function_described<F>(&self, signature: &str, doc: &str, function: F) -> Result<Value<'_>>
    where
        F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Value<'a>> + Send + 'static,
    {
        let (signature, doc) = (c_text("the signature", signature)?, c_text("the documentation", doc)?);
        let (vm, signature, doc) = (self.as_ptr(), signature.as_ptr(), doc.as_ptr());
        self.made(|out| {
            hand_over(function, |call, context, release| unsafe {
                sys::weft_function_described(vm, signature, doc, call, context, release, out)
            })
        })
    }
}

/// Do these bytes begin as those of [`Context::compile`] do? No text does.
pub fn is_compiled(bytes: &[u8]) -> bool {
    // SAFETY: it reads no more bytes than there are.
    unsafe { sys::weft_is_compiled(bytes.as_ptr().cast(), bytes.len()) }
}

fn path_text(path: &Path) -> Result<CString> {
    let text = path.to_str().ok_or_else(|| Error::new("io", format!("not UTF-8: {}", path.display())))?;
    c_text("the path", text)
}

/// Rank and sizes for the library, when they are those of so many elements.
fn fit(len: usize, shape: &[usize]) -> Result<(i32, Vec<i64>)> {
    let all = shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
    if all != Some(len) || shape.len() > sys::WEFT_MAX_RANK {
        return Err(Error::new("shape", format!("an array of shape {shape:?} has not {len} elements")));
    }
    let sizes = shape.iter().map(|&n| i64::try_from(n)).collect::<std::result::Result<Vec<_>, _>>();
    let sizes = sizes.map_err(|_| Error::new("shape", format!("a size of {shape:?} is too large")))?;
    Ok((shape.len() as i32, sizes))
}

/// A module of the host's, with variables of its own.
pub struct Module<'vm>(&'vm Context, Value<'vm>);

impl<'vm> Module<'vm> {
    /// Its value, for programs: `canvas.line(1, 2)`.
    pub fn value(&self) -> &Value<'vm> {
        &self.1
    }

    /// Runs a program in it.
    pub fn run(&self, text: &str, name: &str) -> Result<Value<'vm>> {
        let name = c_text("the name", name)?;
        let (vm, module) = (self.0.as_ptr(), self.1.as_ptr());
        self.0.made(|out| unsafe {
            sys::weft_module_run(vm, module, text.as_ptr().cast(), text.len(), name.as_ptr(), out)
        })
    }

    /// [`Context::start`] in this module.
    pub fn start(&self, text: &str, name: &str) -> Result<Outcome<'vm>> {
        let name = c_text("the name", name)?;
        let (vm, module) = (self.0.as_ptr(), self.1.as_ptr());
        self.0.outcome(|out| unsafe {
            sys::weft_module_run(vm, module, text.as_ptr().cast(), text.len(), name.as_ptr(), out)
        })
    }

    /// [`Context::compile`] in this module, whose variables the program may name.
    pub fn compile(&self, text: &str, name: &str, strip: bool) -> Result<Vec<u8>> {
        self.0.compile_in(self.1.as_ptr(), text, name, strip)
    }

    /// [`Context::load_compiled`] in this module.
    pub fn load_compiled(&self, bytes: &[u8]) -> Result<Value<'vm>> {
        let (vm, module) = (self.0.as_ptr(), self.1.as_ptr());
        self.0
            .made(|out| unsafe { sys::weft_load_compiled(vm, module, bytes.as_ptr().cast(), bytes.len(), null(), out) })
    }

    pub fn get(&self, name: &str) -> Result<Value<'vm>> {
        let name = c_text("the name", name)?;
        self.0.made(|out| unsafe { sys::weft_module_get(self.0.as_ptr(), self.1.as_ptr(), name.as_ptr(), out) })
    }

    pub fn set(&self, name: &str, value: &Value<'_>) -> Result<()> {
        let name = c_text("the name", name)?;
        let module = self.1.as_ptr();
        self.0.check(unsafe { sys::weft_module_set(self.0.as_ptr(), module, name.as_ptr(), value.as_ptr()) })
    }

    /// [`Context::define_described`] in this module.
    pub fn define_described<F>(&self, signature: &str, doc: &str, function: F) -> Result<()>
    where
        F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Value<'a>> + Send + 'static,
    {
        let (signature, doc) = (c_text("the signature", signature)?, c_text("the documentation", doc)?);
        let (vm, module) = (self.0.as_ptr(), self.1.as_ptr());
        self.0.check(hand_over(function, |call, context, release| unsafe {
            sys::weft_module_define_described(vm, module, signature.as_ptr(), doc.as_ptr(), call, context, release)
        }))
    }

    /// [`Context::define`] in this module.
    pub fn define<F>(&self, name: &str, function: F) -> Result<()>
    where
        F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Value<'a>> + Send + 'static,
    {
        let name = c_text("the name", name)?;
        let (vm, module) = (self.0.as_ptr(), self.1.as_ptr());
        self.0.check(hand_over(function, |call, context, release| unsafe {
            sys::weft_module_define(vm, module, name.as_ptr(), call, context, release)
        }))
    }

    /// [`Context::define_suspending`] in this module.
    pub fn define_suspending<F>(&self, name: &str, function: F) -> Result<()>
    where
        F: for<'a> Fn(&'a Context, &[Value<'a>]) -> Result<Option<Value<'a>>> + Send + 'static,
    {
        self.0.suspending_in(self.1.as_ptr(), name, function)
    }

    /// Its variables go. An error: a program runs in the VM.
    pub fn give_back(self) -> Result<()> {
        self.0.check(unsafe { sys::weft_module_free(self.0.as_ptr(), self.1.as_ptr()) })
    }
}
