//! options.rs: what a VM may do and use, and its making.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_void, CStr, CString};
use std::io;
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::Duration;

use weft_sys as sys;

use crate::error::{c_text, fail, Error, Result};
use crate::host::panic_message;
use crate::vm::Vm;

extern "C" {
    fn malloc(size: usize) -> *mut c_void;
}

type Output = Box<dyn FnMut(&str) + Send>;
type Input = Box<dyn FnMut() -> Option<String> + Send>;
type Resolve = Box<dyn FnMut(&str) -> Option<String> + Send>;

/// Files below a folder, as long as a VM uses them.
pub(crate) struct Files(*const sys::WeftFiles);
// SAFETY: weft.h: they may serve several VMs, in several threads.
unsafe impl Send for Files {}
impl Drop for Files {
    fn drop(&mut self) {
        // SAFETY: a Vm holds it until its weft_free has returned.
        unsafe { sys::weft_files_free(self.0) }
    }
}

/// What the callbacks of a VM need, at one place in memory.
#[derive(Default)]
pub(crate) struct Hooks {
    vm: Cell<Option<std::ptr::NonNull<sys::WeftVM>>>,
    output: Option<RefCell<Output>>,
    input: Option<RefCell<(Input, Vec<u8>)>>,
    resolve: Option<RefCell<Resolve>>,
}

/// Owns the hooks by a pointer, since the library has another one.
pub(crate) struct OwnedHooks(*mut Hooks);
impl OwnedHooks {
    fn get(&self) -> &Hooks {
        // SAFETY: it is there until self is dropped.
        unsafe { &*self.0 }
    }
}
impl Drop for OwnedHooks {
    fn drop(&mut self) {
        // SAFETY: a Vm holds self until its weft_free has returned.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl Hooks {
    /// Runs a callback; a panic ends the program that runs.
    unsafe fn guarded<T>(context: *mut c_void, otherwise: T, run: impl FnOnce(&Hooks) -> T) -> T {
        let hooks = &*context.cast::<Hooks>();
        catch_unwind(AssertUnwindSafe(|| run(hooks))).unwrap_or_else(|payload| {
            if let Some(vm) = hooks.vm.get() {
                fail(vm.as_ptr(), "host", &panic_message(&*payload));
            }
            std::mem::forget(payload);
            otherwise
        })
    }

    unsafe extern "C" fn print(context: *mut c_void, text: *const c_char, length: usize) {
        Hooks::guarded(context, (), |hooks| {
            let bytes = if length == 0 { &[] } else { std::slice::from_raw_parts(text.cast::<u8>(), length) };
            if let Some(output) = &hooks.output {
                (output.borrow_mut())(&String::from_utf8_lossy(bytes));
            }
        });
    }

    unsafe extern "C" fn read(context: *mut c_void, to: *mut c_char, room: usize) -> isize {
        Hooks::guarded(context, 0, |hooks| {
            let Some(input) = &hooks.input else { return -1 };
            let (next, left) = &mut *input.borrow_mut();
            if left.is_empty() {
                let Some(line) = next() else { return 0 };
                *left = line.into_bytes();
                if left.last() != Some(&b'\n') {
                    left.push(b'\n');
                }
            }
            let line = left.iter().position(|&b| b == b'\n').map_or(left.len(), |at| at + 1);
            let n = line.min(room);
            std::ptr::copy_nonoverlapping(left.as_ptr(), to.cast(), n);
            left.drain(..n);
            n as isize
        })
    }

    unsafe extern "C" fn resolve(context: *mut c_void, path: *const c_char) -> *mut c_char {
        Hooks::guarded(context, null_mut(), |hooks| {
            let Some(resolve) = &hooks.resolve else { return null_mut() };
            let Some(text) = (resolve.borrow_mut())(&CStr::from_ptr(path).to_string_lossy()) else {
                return null_mut();
            };
            let to = malloc(text.len() + 1).cast::<u8>(); // the library calls free
            if !to.is_null() {
                std::ptr::copy_nonoverlapping(text.as_ptr(), to, text.len());
                to.add(text.len()).write(0);
            }
            to.cast()
        })
    }
}

/// Options of a VM, which starts with access to nothing: no files, environment, imports, GPU.
#[derive(Default)]
pub struct Options {
    memory: u64,
    fuel: u64,
    deadline: Option<Duration>,
    depth: u32,
    output_limit: u64,
    allow: [bool; 4],
    backend: Option<String>,
    cpu: Option<String>,
    hot: i32,
    threads: u32,
    stack: usize,
    ignore_clock: bool,
    files: Option<Files>,
    hooks: Hooks,
}

impl Options {
    pub fn new() -> Options {
        Options::default()
    }
    /// Bytes that the VM may hold.
    pub fn memory(mut self, bytes: u64) -> Options {
        self.memory = bytes;
        self
    }
    /// Calls, trips of loops, and elements of kernels / 1024.
    pub fn fuel(mut self, units: u64) -> Options {
        self.fuel = units;
        self
    }
    /// Time from `open` on.
    pub fn deadline(mut self, time: Duration) -> Options {
        self.deadline = Some(time);
        self
    }
    /// Nested calls.
    pub fn depth(mut self, calls: u32) -> Options {
        self.depth = calls;
        self
    }
    /// Bytes that may be printed.
    pub fn output_limit(mut self, bytes: u64) -> Options {
        self.output_limit = bytes;
        self
    }
    pub fn allow_files(mut self) -> Options {
        self.allow[0] = true;
        self
    }
    pub fn allow_env(mut self) -> Options {
        self.allow[1] = true;
        self
    }
    pub fn allow_imports(mut self) -> Options {
        self.allow[2] = true;
        self
    }
    pub fn allow_gpu(mut self) -> Options {
        self.allow[3] = true;
        self
    }
    /// "eager", "mir" …: weft.h has the list.
    pub fn backend(mut self, name: &str) -> Options {
        self.backend = Some(name.to_string());
        self
    }
    /// "scalar", "strip", "avx2", "avx512".
    pub fn cpu(mut self, name: &str) -> Options {
        self.cpu = Some(name.to_string());
        self
    }
    /// At which call or trip code is compiled; 0: when it pays.
    pub fn hot(mut self, call: i32) -> Options {
        self.hot = call;
        self
    }
    /// Threads that share long loops; 0: one per processor.
    pub fn threads(mut self, count: u32) -> Options {
        self.threads = count;
        self
    }
    /// Bytes of C stack that a program may use.
    pub fn stack(mut self, bytes: usize) -> Options {
        self.stack = bytes;
        self
    }
    /// Each run of a program compiles the same.
    pub fn ignore_clock(mut self) -> Options {
        self.ignore_clock = true;
        self
    }
    /// Programs see the files below this folder, and no others.
    pub fn files_below(mut self, folder: impl AsRef<Path>) -> io::Result<Options> {
        let path = CString::new(folder.as_ref().as_os_str().as_bytes())?;
        let mut files = null();
        // SAFETY: both pointers are good.
        if unsafe { sys::weft_files_below(path.as_ptr(), &mut files) } != sys::WEFT_OK {
            return Err(io::Error::last_os_error());
        }
        self.files = Some(Files(files));
        Ok(self)
    }
    /// What programs print. A panic in it ends the program that prints.
    pub fn output(mut self, output: impl FnMut(&str) + Send + 'static) -> Options {
        self.hooks.output = Some(RefCell::new(Box::new(output)));
        self
    }
    /// The next line that programs read; `None`: the input is over.
    pub fn input(mut self, input: impl FnMut() -> Option<String> + Send + 'static) -> Options {
        self.hooks.input = Some(RefCell::new((Box::new(input), Vec::new())));
        self
    }
    /// The source text of the module at a path, in place of files; `None`: there is none.
    pub fn resolve_module(mut self, resolve: impl FnMut(&str) -> Option<String> + Send + 'static) -> Options {
        self.hooks.resolve = Some(RefCell::new(Box::new(resolve)));
        self
    }

    /// Makes the VM. An error says which option is wrong.
    pub fn open(self) -> Result<Vm> {
        let name = |what, text: &Option<String>| text.as_deref().map(|t| c_text(what, t)).transpose();
        let (backend, cpu) = (name("backend", &self.backend)?, name("cpu", &self.cpu)?);
        let hooks = OwnedHooks(Box::into_raw(Box::new(self.hooks)));
        let context: *mut c_void = hooks.0.cast();
        // SAFETY: a struct of integers, pointers and functions that may be absent: zeros are good.
        let mut options: sys::WeftOptions = unsafe { std::mem::zeroed() };
        unsafe { sys::weft_options_init(&mut options, size_of::<sys::WeftOptions>()) };
        options.memory = self.memory;
        options.fuel = self.fuel;
        // 0 would mean none
        options.deadline = self.deadline.map_or(0.0, |d| d.as_secs_f64().max(1e-9));
        options.depth = self.depth;
        options.output_limit = self.output_limit;
        [options.allow_files, options.allow_env, options.allow_imports, options.allow_gpu] = self.allow;
        options.backend = backend.as_ref().map_or(null(), |s| s.as_ptr());
        options.cpu = cpu.as_ref().map_or(null(), |s| s.as_ptr());
        options.hot = self.hot;
        options.threads = self.threads;
        options.stack = self.stack;
        options.ignore_clock = self.ignore_clock;
        options.files = self.files.as_ref().map_or(null(), |f| f.0);
        let given = hooks.get();
        if given.output.is_some() {
            options.output = Some(Hooks::print);
            options.output_context = context;
        }
        if given.input.is_some() {
            options.input = Some(Hooks::read);
            options.input_context = context;
        }
        if given.resolve.is_some() {
            options.resolve_module = Some(Hooks::resolve);
            options.resolve_context = context;
        }
        let (mut vm, mut why) = (null_mut(), [0 as c_char; 256]);
        // SAFETY: the options are whole; what must live as long as the VM goes into it below.
        let status = unsafe { sys::weft_open(&options, &mut vm, why.as_mut_ptr(), why.len()) };
        if status != sys::WEFT_OK {
            let why = unsafe { CStr::from_ptr(why.as_ptr()) }.to_string_lossy().into_owned();
            let kind = if status == sys::WEFT_MISUSE { "value" } else { "limit" };
            return Err(Error::new(kind, if why.is_empty() { "memory was refused".to_string() } else { why }));
        }
        hooks.get().vm.set(std::ptr::NonNull::new(vm));
        Ok(Vm::new(vm, hooks, (backend, cpu), self.files))
    }
}
