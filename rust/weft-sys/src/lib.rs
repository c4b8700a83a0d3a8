//! lib.rs: weft.h as Rust declares it; written by generate.py. The header says what each of these does.
#![allow(non_camel_case_types)]
#![no_std]

use core::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

pub const WEFT_COMPILE_STRIP: usize = 1;
pub const WEFT_NO_SYMBOL: c_int = -1;
pub const WEFT_MAX_RANK: usize = 16;

pub type WeftStatus = c_uint;
pub const WEFT_OK: WeftStatus = 0;
pub const WEFT_ERROR: WeftStatus = 1;
pub const WEFT_INCOMPLETE: WeftStatus = 2;
pub const WEFT_MISUSE: WeftStatus = 3;
pub const WEFT_SUSPENDED: WeftStatus = 4;

pub type WeftCompiled = c_uint;
pub const WEFT_COMPILED: WeftCompiled = 0;
pub const WEFT_RESTART: WeftCompiled = 1;
pub const WEFT_SKIP: WeftCompiled = 2;
pub const WEFT_UNSUPPORTED: WeftCompiled = 3;
pub const WEFT_FATAL: WeftCompiled = 4;

pub type WeftInput = c_uint;
pub const WEFT_INPUT_WHOLE: WeftInput = 0;
pub const WEFT_INPUT_DECLARES: WeftInput = 1;
pub const WEFT_INPUT_UNFINISHED: WeftInput = 2;
pub const WEFT_INPUT_COMMAND: WeftInput = 3;

pub type WeftCommandEnd = c_uint;
pub const WEFT_COMMAND_DONE: WeftCommandEnd = 0;
pub const WEFT_COMMAND_FAILED: WeftCommandEnd = 1;
pub const WEFT_COMMAND_HELP: WeftCommandEnd = 2;
pub const WEFT_COMMAND_QUIT: WeftCommandEnd = 3;
pub const WEFT_COMMAND_UNKNOWN: WeftCommandEnd = 4;

pub type WeftPaint = c_uint;
pub const WEFT_PAINT_PLAIN: WeftPaint = 0;
pub const WEFT_PAINT_WORD: WeftPaint = 1;
pub const WEFT_PAINT_NUMBER: WeftPaint = 2;
pub const WEFT_PAINT_TEXT: WeftPaint = 3;
pub const WEFT_PAINT_COMMENT: WeftPaint = 4;
pub const WEFT_PAINT_FUNCTION: WeftPaint = 5;
pub const WEFT_PAINT_BRACKET: WeftPaint = 6;
pub const WEFT_PAINT_WRONG: WeftPaint = 7;

pub type WeftSymbolKind = c_uint;
pub const WEFT_SYMBOL_VARIABLE: WeftSymbolKind = 0;
pub const WEFT_SYMBOL_FUNCTION: WeftSymbolKind = 1;
pub const WEFT_SYMBOL_PARAMETER: WeftSymbolKind = 2;
pub const WEFT_SYMBOL_SIZE: WeftSymbolKind = 3;
pub const WEFT_SYMBOL_FILE: WeftSymbolKind = 4;
pub const WEFT_SYMBOL_MODULE: WeftSymbolKind = 5;

pub type WeftMentionKind = c_uint;
pub const WEFT_MENTION_DECLARES: WeftMentionKind = 0;
pub const WEFT_MENTION_READS: WeftMentionKind = 1;
pub const WEFT_MENTION_UPDATES: WeftMentionKind = 2;
pub const WEFT_MENTION_CALLS: WeftMentionKind = 3;
pub const WEFT_MENTION_MEMBER: WeftMentionKind = 4;
pub const WEFT_MENTION_ARGUMENT: WeftMentionKind = 5;
pub const WEFT_MENTION_FIELD: WeftMentionKind = 6;
pub const WEFT_MENTION_KEY: WeftMentionKind = 7;

pub type WeftBuiltinKind = c_uint;
pub const WEFT_BUILTIN_FUNCTION: WeftBuiltinKind = 0;
pub const WEFT_BUILTIN_DTYPE: WeftBuiltinKind = 1;
pub const WEFT_BUILTIN_CONSTANT: WeftBuiltinKind = 2;
pub const WEFT_BUILTIN_MODULE: WeftBuiltinKind = 3;
pub const WEFT_BUILTIN_WORD: WeftBuiltinKind = 4;

pub type WeftLimit = c_uint;
pub const WEFT_LIMIT_NONE: WeftLimit = 0;
pub const WEFT_LIMIT_MEMORY: WeftLimit = 1;
pub const WEFT_LIMIT_FUEL: WeftLimit = 2;
pub const WEFT_LIMIT_DEADLINE: WeftLimit = 3;
pub const WEFT_LIMIT_INTERRUPT: WeftLimit = 4;
pub const WEFT_LIMIT_EXIT: WeftLimit = 5;
pub const WEFT_LIMIT_DEPTH: WeftLimit = 6;
pub const WEFT_LIMIT_STACK: WeftLimit = 7;
pub const WEFT_LIMIT_OUTPUT: WeftLimit = 8;
pub const WEFT_LIMIT_FILES: WeftLimit = 9;
pub const WEFT_LIMIT_ENV: WeftLimit = 10;
pub const WEFT_LIMIT_IMPORTS: WeftLimit = 11;
pub const WEFT_LIMIT_GPU: WeftLimit = 12;
pub const WEFT_LIMIT_INPUT: WeftLimit = 13;

pub type WeftDType = c_uint;
pub const WEFT_BOOL: WeftDType = 1;
pub const WEFT_U8: WeftDType = 2;
pub const WEFT_I32: WeftDType = 3;
pub const WEFT_I64: WeftDType = 4;
pub const WEFT_U32: WeftDType = 5;
pub const WEFT_U64: WeftDType = 6;
pub const WEFT_F16: WeftDType = 7;
pub const WEFT_BF16: WeftDType = 8;
pub const WEFT_F32: WeftDType = 9;
pub const WEFT_F64: WeftDType = 10;
pub const WEFT_C64: WeftDType = 11;
pub const WEFT_C128: WeftDType = 12;

pub type WeftHookEvent = c_uint;
pub const WEFT_HOOK_CALL: WeftHookEvent = 1;
pub const WEFT_HOOK_RETURN: WeftHookEvent = 2;
pub const WEFT_HOOK_LINE: WeftHookEvent = 4;
pub const WEFT_HOOK_ERROR: WeftHookEvent = 8;

#[repr(C)]
pub struct DLManagedTensor {
    _private: [u8; 0],
}

#[repr(C)]
pub struct DLManagedTensorVersioned {
    _private: [u8; 0],
}

#[repr(C)]
pub struct WeftGraph {
    _private: [u8; 0],
}

#[repr(C)]
pub struct WeftOutline {
    _private: [u8; 0],
}

#[repr(C)]
pub struct WeftVM {
    _private: [u8; 0],
}

#[repr(C)]
pub struct WeftValue {
    _private: [u8; 0],
}

pub type WeftHostFunction = Option<unsafe extern "C" fn(
    vm: *mut WeftVM,
    context: *mut c_void,
    args: *const *mut WeftValue,
    count: usize,
    result: *mut *mut WeftValue,
) -> WeftStatus>;

pub type WeftHook = Option<unsafe extern "C" fn(
    vm: *mut WeftVM,
    context: *mut c_void,
    event: WeftHookEvent,
) -> WeftStatus>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftRun {
    pub graph: *mut WeftGraph,
    pub code: *mut c_void,
    pub input_count: usize,
    pub output_count: usize,
    pub inputs: *const *mut WeftValue,
    pub outputs: *mut *mut WeftValue,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftBackend {
    pub size: usize,
    pub name: *const c_char,
    pub context: *mut c_void,
    pub compile: Option<unsafe extern "C" fn(
        vm: *mut WeftVM,
        context: *mut c_void,
        graph: *mut WeftGraph,
        code: *mut *mut c_void,
    ) -> WeftCompiled>,
    pub run: Option<unsafe extern "C" fn(vm: *mut WeftVM, context: *mut c_void, run: *mut WeftRun) -> WeftStatus>,
    pub release: Option<unsafe extern "C" fn(context: *mut c_void, code: *mut c_void)>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftDevice {
    pub size: usize,
    pub name: *const c_char,
    pub context: *mut c_void,
    pub alloc: Option<unsafe extern "C" fn(context: *mut c_void, bytes: usize) -> *mut c_void>,
    pub free: Option<unsafe extern "C" fn(context: *mut c_void, data: *mut c_void, bytes: usize)>,
    pub to_host: Option<unsafe extern "C" fn(
        context: *mut c_void,
        data: *const c_void,
        host: *mut c_void,
        bytes: usize,
    ) -> bool>,
    pub from_host: Option<unsafe extern "C" fn(
        context: *mut c_void,
        host: *const c_void,
        data: *mut c_void,
        bytes: usize,
    ) -> bool>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftFiles {
    pub size: usize,
    pub context: *mut c_void,
    pub open: Option<unsafe extern "C" fn(context: *mut c_void, path: *const c_char, file: *mut *mut c_void) -> c_int>,
    pub read: Option<unsafe extern "C" fn(
        context: *mut c_void,
        file: *mut c_void,
        at: u64,
        to: *mut c_char,
        room: usize,
    ) -> isize>,
    pub close: Option<unsafe extern "C" fn(context: *mut c_void, file: *mut c_void)>,
    pub write: Option<unsafe extern "C" fn(
        context: *mut c_void,
        path: *const c_char,
        data: *const c_char,
        bytes: usize,
        append: bool,
    ) -> c_int>,
    pub about: Option<unsafe extern "C" fn(
        context: *mut c_void,
        path: *const c_char,
        bytes: *mut u64,
        folder: *mut bool,
    ) -> c_int>,
    pub list: Option<unsafe extern "C" fn(
        context: *mut c_void,
        path: *const c_char,
        give: Option<unsafe extern "C" fn(to: *mut c_void, name: *const c_char)>,
        to: *mut c_void,
    ) -> c_int>,
    pub make_folder: Option<unsafe extern "C" fn(context: *mut c_void, path: *const c_char) -> c_int>,
    pub remove: Option<unsafe extern "C" fn(context: *mut c_void, path: *const c_char) -> c_int>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftOptions {
    pub size: usize,
    pub resize: Option<unsafe extern "C" fn(
        context: *mut c_void,
        p: *mut c_void,
        old_size: usize,
        new_size: usize,
    ) -> *mut c_void>,
    pub resize_context: *mut c_void,
    pub output: Option<unsafe extern "C" fn(context: *mut c_void, text: *const c_char, length: usize)>,
    pub output_context: *mut c_void,
    pub resolve_module: Option<unsafe extern "C" fn(context: *mut c_void, path: *const c_char) -> *mut c_char>,
    pub resolve_context: *mut c_void,
    pub memory: u64,
    pub fuel: u64,
    pub deadline: f64,
    pub depth: u32,
    pub output_limit: u64,
    pub allow_files: bool,
    pub allow_env: bool,
    pub allow_imports: bool,
    pub allow_gpu: bool,
    pub backend: *const c_char,
    pub hot: c_int,
    pub force: *const c_char,
    pub cpu: *const c_char,
    pub cuda_driver: *const c_char,
    pub keep: u64,
    pub threads: u32,
    pub backends: *const WeftBackend,
    pub backend_count: usize,
    pub own_device: *const WeftDevice,
    pub device: *const c_char,
    pub stack: usize,
    pub log: *const c_char,
    pub log_output: Option<unsafe extern "C" fn(context: *mut c_void, text: *const c_char, length: usize)>,
    pub log_context: *mut c_void,
    pub ignore_clock: bool,
    pub explain: bool,
    pub input: Option<unsafe extern "C" fn(context: *mut c_void, to: *mut c_char, room: usize) -> isize>,
    pub input_context: *mut c_void,
    pub draws: bool,
    pub files: *const WeftFiles,
    pub gpu_cache: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftCompletion {
    pub size: usize,
    pub from: usize,
    pub files: bool,
    pub blank: bool,
    pub count: usize,
    pub words: *const *const c_char,
    pub notes: *const *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftProblem {
    pub size: usize,
    pub at: usize,
    pub length: usize,
    pub kind: *const c_char,
    pub message: *mut *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftSymbol {
    pub size: usize,
    pub kind: WeftSymbolKind,
    pub name: *const c_char,
    pub at: usize,
    pub from: usize,
    pub to: usize,
    pub seen_from: usize,
    pub seen_to: usize,
    pub global: bool,
    pub parent: c_int,
    pub signature: *const c_char,
    pub doc: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftMention {
    pub size: usize,
    pub kind: WeftMentionKind,
    pub at: usize,
    pub length: usize,
    pub name: *const c_char,
    pub symbol: c_int,
    pub builtin: bool,
    pub shared: bool,
    pub imported: c_int,
    pub function: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftBuiltin {
    pub size: usize,
    pub kind: WeftBuiltinKind,
    pub name: *const c_char,
    pub signature: *const c_char,
    pub doc: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftArray {
    pub dtype: WeftDType,
    pub rank: c_int,
    pub shape: [i64; WEFT_MAX_RANK],
    pub strides: [i64; WEFT_MAX_RANK],
    pub size: i64,
    pub data: *const c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftPromise {
    pub dtype: c_int,
    pub rank: c_int,
    pub shape: [i64; WEFT_MAX_RANK],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftHandleType {
    pub size: usize,
    pub name: *const c_char,
    pub release: Option<unsafe extern "C" fn(object: *mut c_void)>,
    pub tags: *const *const c_char,
    pub guard: Option<unsafe extern "C" fn(object: *mut c_void) -> u64>,
    pub r#abstract: Option<unsafe extern "C" fn(
        object: *mut c_void,
        function: *const c_char,
        out: *mut WeftPromise,
    ) -> bool>,
    pub flatten: Option<unsafe extern "C" fn(
        vm: *mut WeftVM,
        object: *mut c_void,
        fields: *mut *mut WeftValue,
    ) -> WeftStatus>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftGraphNode {
    pub size: usize,
    pub kind: *const c_char,
    pub name: *const c_char,
    pub depth: c_int,
    pub effect: bool,
    pub plain: bool,
    pub operand_count: usize,
    pub result_count: usize,
    pub operands: *const u32,
    pub result: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftGraphValue {
    pub size: usize,
    pub dtype: WeftDType,
    pub rank: c_int,
    pub shape: [i64; WEFT_MAX_RANK],
    pub weak: bool,
    pub constant: bool,
    pub known: bool,
    pub number: f64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WeftFrame {
    pub size: usize,
    pub function: *const c_char,
    pub file: *const c_char,
    pub line: c_int,
    pub column: c_int,
    pub body: bool,
}

extern "C" {
    pub fn weft_files_below(folder: *const c_char, out: *mut *const WeftFiles) -> WeftStatus;
    pub fn weft_files_free(below: *const WeftFiles);
    pub fn weft_options_init(options: *mut WeftOptions, size: usize);
    pub fn weft_open(options: *const WeftOptions, vm: *mut *mut WeftVM, why: *mut c_char, room: usize) -> WeftStatus;
    pub fn weft_new(options: *const WeftOptions) -> *mut WeftVM;
    pub fn weft_free(vm: *mut WeftVM);
    pub fn weft_version() -> *const c_char;
    pub fn weft_prepare_process();
    pub fn weft_interrupt(vm: *mut WeftVM);
    pub fn weft_interrupt_forget(vm: *mut WeftVM);
    pub fn weft_set_limits(vm: *mut WeftVM, memory: u64, fuel: u64, deadline: f64);
    pub fn weft_memory_left(vm: *mut WeftVM) -> u64;
    pub fn weft_fuel_left(vm: *mut WeftVM) -> u64;
    pub fn weft_time_left(vm: *mut WeftVM) -> f64;
    pub fn weft_collect(vm: *mut WeftVM) -> usize;
    pub fn weft_set_device(vm: *mut WeftVM, name: *const c_char) -> WeftStatus;
    pub fn weft_set_args(vm: *mut WeftVM, argc: c_int, argv: *mut *mut c_char);
    pub fn weft_exit_code(vm: *const WeftVM) -> c_int;
    pub fn weft_eval(vm: *mut WeftVM, text: *const c_char, name: *const c_char, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_eval_length(
        vm: *mut WeftVM,
        text: *const c_char,
        length: usize,
        name: *const c_char,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_eval_line(
        vm: *mut WeftVM,
        text: *const c_char,
        name: *const c_char,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_format(
        vm: *mut WeftVM,
        source: *const c_char,
        length: usize,
        name: *const c_char,
        text: *mut *const c_char,
    ) -> WeftStatus;
    pub fn weft_load_file(vm: *mut WeftVM, path: *const c_char, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_load_text(
        vm: *mut WeftVM,
        text: *const c_char,
        length: usize,
        path: *const c_char,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_compile(
        vm: *mut WeftVM,
        module: *mut WeftValue,
        text: *const c_char,
        length: usize,
        name: *const c_char,
        flags: c_uint,
        bytes: *mut *const c_void,
        count: *mut usize,
    ) -> WeftStatus;
    pub fn weft_is_compiled(bytes: *const c_void, count: usize) -> bool;
    pub fn weft_load_compiled(
        vm: *mut WeftVM,
        module: *mut WeftValue,
        bytes: *const c_void,
        count: usize,
        path: *const c_char,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_call(
        vm: *mut WeftVM,
        function: *mut WeftValue,
        args: *const *mut WeftValue,
        count: usize,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_call_named(
        vm: *mut WeftVM,
        function: *mut WeftValue,
        args: *const *mut WeftValue,
        count: usize,
        names: *const *const c_char,
        named: usize,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_get_global(vm: *mut WeftVM, name: *const c_char, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_set_global(vm: *mut WeftVM, name: *const c_char, value: *mut WeftValue) -> WeftStatus;
    pub fn weft_module_new(vm: *mut WeftVM, name: *const c_char, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_module_run(
        vm: *mut WeftVM,
        module: *mut WeftValue,
        text: *const c_char,
        length: usize,
        name: *const c_char,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_module_get(
        vm: *mut WeftVM,
        module: *mut WeftValue,
        name: *const c_char,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_module_set(
        vm: *mut WeftVM,
        module: *mut WeftValue,
        name: *const c_char,
        value: *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_module_free(vm: *mut WeftVM, module: *mut WeftValue) -> WeftStatus;
    pub fn weft_input(vm: *mut WeftVM, text: *const c_char) -> WeftInput;
    pub fn weft_command(vm: *mut WeftVM, line: *const c_char, text: *mut *const c_char) -> WeftCommandEnd;
    pub fn weft_complete(vm: *mut WeftVM, line: *const c_char, at: usize, out: *mut WeftCompletion) -> WeftStatus;
    pub fn weft_paint(text: *const c_char, length: usize, paint: *mut c_uchar) -> bool;
    pub fn weft_remember(vm: *mut WeftVM, value: *mut WeftValue);
    pub fn weft_outline(vm: *mut WeftVM, text: *const c_char, length: usize, out: *mut *mut WeftOutline) -> WeftStatus;
    pub fn weft_outline_free(vm: *mut WeftVM, outline: *mut WeftOutline);
    pub fn weft_outline_problem(outline: *const WeftOutline, index: usize, out: *mut WeftProblem) -> bool;
    pub fn weft_outline_symbol(outline: *const WeftOutline, index: usize, out: *mut WeftSymbol) -> bool;
    pub fn weft_outline_mention(outline: *const WeftOutline, index: usize, out: *mut WeftMention) -> bool;
    pub fn weft_builtin(index: usize, out: *mut WeftBuiltin) -> bool;
    pub fn weft_error_text(vm: *mut WeftVM) -> *const c_char;
    pub fn weft_error_message(vm: *mut WeftVM) -> *const c_char;
    pub fn weft_error_kind(vm: *mut WeftVM) -> *const c_char;
    pub fn weft_error_limit(vm: *mut WeftVM) -> WeftLimit;
    pub fn weft_error_position(vm: *mut WeftVM, line: *mut c_int, column: *mut c_int);
    pub fn weft_retain(vm: *mut WeftVM, value: *mut WeftValue) -> *mut WeftValue;
    pub fn weft_release(vm: *mut WeftVM, value: *mut WeftValue);
    pub fn weft_show(vm: *mut WeftVM, value: *mut WeftValue) -> *const c_char;
    pub fn weft_display(vm: *mut WeftVM, value: *mut WeftValue) -> *const c_char;
    pub fn weft_describe(vm: *mut WeftVM, value: *mut WeftValue) -> *const c_char;
    pub fn weft_type(vm: *mut WeftVM, value: *mut WeftValue) -> *const c_char;
    pub fn weft_nil(vm: *mut WeftVM, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_bool(vm: *mut WeftVM, b: bool, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_int(vm: *mut WeftVM, i: i64, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_float(vm: *mut WeftVM, f: f64, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_weak_int(vm: *mut WeftVM, i: i64, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_weak_float(vm: *mut WeftVM, f: f64, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_weak_complex(vm: *mut WeftVM, re: f64, im: f64, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_is_weak(vm: *mut WeftVM, value: *mut WeftValue) -> bool;
    pub fn weft_text(vm: *mut WeftVM, utf8: *const c_char, length: usize, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_list(
        vm: *mut WeftVM,
        items: *const *mut WeftValue,
        count: usize,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_record(
        vm: *mut WeftVM,
        keys: *const *const c_char,
        items: *const *mut WeftValue,
        count: usize,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_as_int(vm: *mut WeftVM, value: *mut WeftValue, out: *mut i64) -> WeftStatus;
    pub fn weft_as_float(vm: *mut WeftVM, value: *mut WeftValue, out: *mut f64) -> WeftStatus;
    pub fn weft_as_text(
        vm: *mut WeftVM,
        value: *mut WeftValue,
        utf8: *mut *const c_char,
        length: *mut usize,
    ) -> WeftStatus;
    pub fn weft_length(vm: *mut WeftVM, value: *mut WeftValue, out: *mut usize) -> WeftStatus;
    pub fn weft_item(vm: *mut WeftVM, value: *mut WeftValue, index: usize, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_key(vm: *mut WeftVM, record: *mut WeftValue, index: usize, out: *mut *const c_char) -> WeftStatus;
    pub fn weft_field(
        vm: *mut WeftVM,
        record: *mut WeftValue,
        key: *const c_char,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_array(
        vm: *mut WeftVM,
        dtype: WeftDType,
        rank: c_int,
        shape: *const i64,
        data: *const c_void,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_array_lend(
        vm: *mut WeftVM,
        dtype: WeftDType,
        rank: c_int,
        shape: *const i64,
        data: *mut c_void,
        release: Option<unsafe extern "C" fn(context: *mut c_void, data: *mut c_void)>,
        context: *mut c_void,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_array_lend_strided(
        vm: *mut WeftVM,
        dtype: WeftDType,
        rank: c_int,
        shape: *const i64,
        strides: *const i64,
        data: *const c_void,
        release: Option<unsafe extern "C" fn(context: *mut c_void, data: *mut c_void)>,
        context: *mut c_void,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_array_view(vm: *mut WeftVM, value: *mut WeftValue, out: *mut WeftArray) -> WeftStatus;
    pub fn weft_array_unshared(vm: *mut WeftVM, value: *mut WeftValue) -> bool;
    pub fn weft_array_copy_out(
        vm: *mut WeftVM,
        value: *mut WeftValue,
        dtype: WeftDType,
        to: *mut c_void,
        bytes: usize,
    ) -> WeftStatus;
    pub fn weft_array_copy_into(vm: *mut WeftVM, value: *mut WeftValue, to: *const WeftArray) -> WeftStatus;
    pub fn weft_dlpack_import(
        vm: *mut WeftVM,
        tensor: *mut DLManagedTensorVersioned,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_dlpack_import_unversioned(
        vm: *mut WeftVM,
        tensor: *mut DLManagedTensor,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_dlpack_export(
        vm: *mut WeftVM,
        value: *mut WeftValue,
        copy: bool,
        out: *mut *mut DLManagedTensorVersioned,
    ) -> WeftStatus;
    pub fn weft_dlpack_export_unversioned(
        vm: *mut WeftVM,
        value: *mut WeftValue,
        copy: bool,
        out: *mut *mut DLManagedTensor,
    ) -> WeftStatus;
    pub fn weft_define(
        vm: *mut WeftVM,
        name: *const c_char,
        function: WeftHostFunction,
        context: *mut c_void,
        release: Option<unsafe extern "C" fn(context: *mut c_void)>,
    ) -> WeftStatus;
    pub fn weft_function(
        vm: *mut WeftVM,
        name: *const c_char,
        function: WeftHostFunction,
        context: *mut c_void,
        release: Option<unsafe extern "C" fn(context: *mut c_void)>,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_module_define(
        vm: *mut WeftVM,
        module: *mut WeftValue,
        name: *const c_char,
        function: WeftHostFunction,
        context: *mut c_void,
        release: Option<unsafe extern "C" fn(context: *mut c_void)>,
    ) -> WeftStatus;
    pub fn weft_define_described(
        vm: *mut WeftVM,
        signature: *const c_char,
        doc: *const c_char,
        function: WeftHostFunction,
        context: *mut c_void,
        release: Option<unsafe extern "C" fn(context: *mut c_void)>,
    ) -> WeftStatus;
    pub fn weft_function_described(
        vm: *mut WeftVM,
        signature: *const c_char,
        doc: *const c_char,
        function: WeftHostFunction,
        context: *mut c_void,
        release: Option<unsafe extern "C" fn(context: *mut c_void)>,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_module_define_described(
        vm: *mut WeftVM,
        module: *mut WeftValue,
        signature: *const c_char,
        doc: *const c_char,
        function: WeftHostFunction,
        context: *mut c_void,
        release: Option<unsafe extern "C" fn(context: *mut c_void)>,
    ) -> WeftStatus;
    pub fn weft_define_traced(
        vm: *mut WeftVM,
        name: *const c_char,
        function: WeftHostFunction,
        context: *mut c_void,
        release: Option<unsafe extern "C" fn(context: *mut c_void)>,
        rule: *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_define_suspending(
        vm: *mut WeftVM,
        module: *mut WeftValue,
        name: *const c_char,
        function: WeftHostFunction,
        context: *mut c_void,
        release: Option<unsafe extern "C" fn(context: *mut c_void)>,
    ) -> WeftStatus;
    pub fn weft_is_suspended(vm: *mut WeftVM) -> bool;
    pub fn weft_resume(vm: *mut WeftVM, value: *mut WeftValue, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_resume_failed(
        vm: *mut WeftVM,
        kind: *const c_char,
        message: *const c_char,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_cancel(vm: *mut WeftVM) -> WeftStatus;
    pub fn weft_fail(vm: *mut WeftVM, kind: *const c_char, message: *const c_char) -> WeftStatus;
    pub fn weft_handle(
        vm: *mut WeftVM,
        r#type: *const WeftHandleType,
        object: *mut c_void,
        fields: *mut WeftValue,
        out: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_handle_object(
        vm: *mut WeftVM,
        value: *mut WeftValue,
        r#type: *const WeftHandleType,
        object: *mut *mut c_void,
    ) -> WeftStatus;
    pub fn weft_handle_set(
        vm: *mut WeftVM,
        handle: *mut WeftValue,
        field: *const c_char,
        value: *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_graph_name(graph: *const WeftGraph) -> *const c_char;
    pub fn weft_graph_text(vm: *mut WeftVM, graph: *const WeftGraph) -> *const c_char;
    pub fn weft_graph_node_text(vm: *mut WeftVM, graph: *const WeftGraph, node: usize) -> *const c_char;
    pub fn weft_graph_node(graph: *const WeftGraph, node: usize, out: *mut WeftGraphNode) -> bool;
    pub fn weft_graph_value(graph: *const WeftGraph, value: u32, out: *mut WeftGraphValue) -> bool;
    pub fn weft_graph_input(graph: *const WeftGraph, index: usize) -> u32;
    pub fn weft_graph_output(graph: *const WeftGraph, index: usize) -> u32;
    pub fn weft_graph_input_name(vm: *mut WeftVM, graph: *const WeftGraph, index: usize) -> *const c_char;
    pub fn weft_graph_simple(graph: *const WeftGraph) -> bool;
    pub fn weft_graph_hand_on(vm: *mut WeftVM, graph: *mut WeftGraph, name: *const c_char) -> WeftCompiled;
    pub fn weft_run_hand_on(vm: *mut WeftVM, run: *mut WeftRun) -> WeftStatus;
    pub fn weft_run_value(vm: *mut WeftVM, run: *const WeftRun, value: u32, out: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_set_hook(vm: *mut WeftVM, hook: WeftHook, context: *mut c_void, mask: c_uint) -> WeftStatus;
    pub fn weft_frame_count(vm: *mut WeftVM) -> usize;
    pub fn weft_frame(vm: *mut WeftVM, index: usize, out: *mut WeftFrame) -> WeftStatus;
    pub fn weft_frame_locals(vm: *mut WeftVM, index: usize, count: *mut usize) -> WeftStatus;
    pub fn weft_frame_local(
        vm: *mut WeftVM,
        index: usize,
        local: usize,
        name: *mut *const c_char,
        value: *mut *mut WeftValue,
    ) -> WeftStatus;
    pub fn weft_frame_get(vm: *mut WeftVM, index: usize, name: *const c_char, value: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_frame_result(vm: *mut WeftVM, value: *mut *mut WeftValue) -> WeftStatus;
    pub fn weft_stat_at(vm: *mut WeftVM, index: c_uint, value: *mut f64) -> *const c_char;
    pub fn weft_keep_log(vm: *mut WeftVM, runs: bool);
    pub fn weft_dump(vm: *mut WeftVM, function: *mut WeftValue, what: *const c_char) -> *const c_char;
    pub fn weft_dump_file(
        vm: *mut WeftVM,
        function: *mut WeftValue,
        what: *const c_char,
        path: *const c_char,
    ) -> WeftStatus;
    pub fn weft_build(vm: *mut WeftVM) -> *const c_char;
}

/// The size of each struct, and where its fields lie, as Rust sees them: for a test.
#[doc(hidden)]
pub const LAYOUT: &[(&str, usize)] = &[
    ("WeftRun", core::mem::size_of::<WeftRun>()),
    ("WeftRun.graph", core::mem::offset_of!(WeftRun, graph)),
    ("WeftRun.code", core::mem::offset_of!(WeftRun, code)),
    ("WeftRun.input_count", core::mem::offset_of!(WeftRun, input_count)),
    ("WeftRun.output_count", core::mem::offset_of!(WeftRun, output_count)),
    ("WeftRun.inputs", core::mem::offset_of!(WeftRun, inputs)),
    ("WeftRun.outputs", core::mem::offset_of!(WeftRun, outputs)),
    ("WeftBackend", core::mem::size_of::<WeftBackend>()),
    ("WeftBackend.size", core::mem::offset_of!(WeftBackend, size)),
    ("WeftBackend.name", core::mem::offset_of!(WeftBackend, name)),
    ("WeftBackend.context", core::mem::offset_of!(WeftBackend, context)),
    ("WeftBackend.compile", core::mem::offset_of!(WeftBackend, compile)),
    ("WeftBackend.run", core::mem::offset_of!(WeftBackend, run)),
    ("WeftBackend.release", core::mem::offset_of!(WeftBackend, release)),
    ("WeftDevice", core::mem::size_of::<WeftDevice>()),
    ("WeftDevice.size", core::mem::offset_of!(WeftDevice, size)),
    ("WeftDevice.name", core::mem::offset_of!(WeftDevice, name)),
    ("WeftDevice.context", core::mem::offset_of!(WeftDevice, context)),
    ("WeftDevice.alloc", core::mem::offset_of!(WeftDevice, alloc)),
    ("WeftDevice.free", core::mem::offset_of!(WeftDevice, free)),
    ("WeftDevice.to_host", core::mem::offset_of!(WeftDevice, to_host)),
    ("WeftDevice.from_host", core::mem::offset_of!(WeftDevice, from_host)),
    ("WeftFiles", core::mem::size_of::<WeftFiles>()),
    ("WeftFiles.size", core::mem::offset_of!(WeftFiles, size)),
    ("WeftFiles.context", core::mem::offset_of!(WeftFiles, context)),
    ("WeftFiles.open", core::mem::offset_of!(WeftFiles, open)),
    ("WeftFiles.read", core::mem::offset_of!(WeftFiles, read)),
    ("WeftFiles.close", core::mem::offset_of!(WeftFiles, close)),
    ("WeftFiles.write", core::mem::offset_of!(WeftFiles, write)),
    ("WeftFiles.about", core::mem::offset_of!(WeftFiles, about)),
    ("WeftFiles.list", core::mem::offset_of!(WeftFiles, list)),
    ("WeftFiles.make_folder", core::mem::offset_of!(WeftFiles, make_folder)),
    ("WeftFiles.remove", core::mem::offset_of!(WeftFiles, remove)),
    ("WeftOptions", core::mem::size_of::<WeftOptions>()),
    ("WeftOptions.size", core::mem::offset_of!(WeftOptions, size)),
    ("WeftOptions.resize", core::mem::offset_of!(WeftOptions, resize)),
    ("WeftOptions.resize_context", core::mem::offset_of!(WeftOptions, resize_context)),
    ("WeftOptions.output", core::mem::offset_of!(WeftOptions, output)),
    ("WeftOptions.output_context", core::mem::offset_of!(WeftOptions, output_context)),
    ("WeftOptions.resolve_module", core::mem::offset_of!(WeftOptions, resolve_module)),
    ("WeftOptions.resolve_context", core::mem::offset_of!(WeftOptions, resolve_context)),
    ("WeftOptions.memory", core::mem::offset_of!(WeftOptions, memory)),
    ("WeftOptions.fuel", core::mem::offset_of!(WeftOptions, fuel)),
    ("WeftOptions.deadline", core::mem::offset_of!(WeftOptions, deadline)),
    ("WeftOptions.depth", core::mem::offset_of!(WeftOptions, depth)),
    ("WeftOptions.output_limit", core::mem::offset_of!(WeftOptions, output_limit)),
    ("WeftOptions.allow_files", core::mem::offset_of!(WeftOptions, allow_files)),
    ("WeftOptions.allow_env", core::mem::offset_of!(WeftOptions, allow_env)),
    ("WeftOptions.allow_imports", core::mem::offset_of!(WeftOptions, allow_imports)),
    ("WeftOptions.allow_gpu", core::mem::offset_of!(WeftOptions, allow_gpu)),
    ("WeftOptions.backend", core::mem::offset_of!(WeftOptions, backend)),
    ("WeftOptions.hot", core::mem::offset_of!(WeftOptions, hot)),
    ("WeftOptions.force", core::mem::offset_of!(WeftOptions, force)),
    ("WeftOptions.cpu", core::mem::offset_of!(WeftOptions, cpu)),
    ("WeftOptions.cuda_driver", core::mem::offset_of!(WeftOptions, cuda_driver)),
    ("WeftOptions.keep", core::mem::offset_of!(WeftOptions, keep)),
    ("WeftOptions.threads", core::mem::offset_of!(WeftOptions, threads)),
    ("WeftOptions.backends", core::mem::offset_of!(WeftOptions, backends)),
    ("WeftOptions.backend_count", core::mem::offset_of!(WeftOptions, backend_count)),
    ("WeftOptions.own_device", core::mem::offset_of!(WeftOptions, own_device)),
    ("WeftOptions.device", core::mem::offset_of!(WeftOptions, device)),
    ("WeftOptions.stack", core::mem::offset_of!(WeftOptions, stack)),
    ("WeftOptions.log", core::mem::offset_of!(WeftOptions, log)),
    ("WeftOptions.log_output", core::mem::offset_of!(WeftOptions, log_output)),
    ("WeftOptions.log_context", core::mem::offset_of!(WeftOptions, log_context)),
    ("WeftOptions.ignore_clock", core::mem::offset_of!(WeftOptions, ignore_clock)),
    ("WeftOptions.explain", core::mem::offset_of!(WeftOptions, explain)),
    ("WeftOptions.input", core::mem::offset_of!(WeftOptions, input)),
    ("WeftOptions.input_context", core::mem::offset_of!(WeftOptions, input_context)),
    ("WeftOptions.draws", core::mem::offset_of!(WeftOptions, draws)),
    ("WeftOptions.files", core::mem::offset_of!(WeftOptions, files)),
    ("WeftOptions.gpu_cache", core::mem::offset_of!(WeftOptions, gpu_cache)),
    ("WeftCompletion", core::mem::size_of::<WeftCompletion>()),
    ("WeftCompletion.size", core::mem::offset_of!(WeftCompletion, size)),
    ("WeftCompletion.from", core::mem::offset_of!(WeftCompletion, from)),
    ("WeftCompletion.files", core::mem::offset_of!(WeftCompletion, files)),
    ("WeftCompletion.blank", core::mem::offset_of!(WeftCompletion, blank)),
    ("WeftCompletion.count", core::mem::offset_of!(WeftCompletion, count)),
    ("WeftCompletion.words", core::mem::offset_of!(WeftCompletion, words)),
    ("WeftCompletion.notes", core::mem::offset_of!(WeftCompletion, notes)),
    ("WeftProblem", core::mem::size_of::<WeftProblem>()),
    ("WeftProblem.size", core::mem::offset_of!(WeftProblem, size)),
    ("WeftProblem.at", core::mem::offset_of!(WeftProblem, at)),
    ("WeftProblem.length", core::mem::offset_of!(WeftProblem, length)),
    ("WeftProblem.kind", core::mem::offset_of!(WeftProblem, kind)),
    ("WeftProblem.message", core::mem::offset_of!(WeftProblem, message)),
    ("WeftSymbol", core::mem::size_of::<WeftSymbol>()),
    ("WeftSymbol.size", core::mem::offset_of!(WeftSymbol, size)),
    ("WeftSymbol.kind", core::mem::offset_of!(WeftSymbol, kind)),
    ("WeftSymbol.name", core::mem::offset_of!(WeftSymbol, name)),
    ("WeftSymbol.at", core::mem::offset_of!(WeftSymbol, at)),
    ("WeftSymbol.from", core::mem::offset_of!(WeftSymbol, from)),
    ("WeftSymbol.to", core::mem::offset_of!(WeftSymbol, to)),
    ("WeftSymbol.seen_from", core::mem::offset_of!(WeftSymbol, seen_from)),
    ("WeftSymbol.seen_to", core::mem::offset_of!(WeftSymbol, seen_to)),
    ("WeftSymbol.global", core::mem::offset_of!(WeftSymbol, global)),
    ("WeftSymbol.parent", core::mem::offset_of!(WeftSymbol, parent)),
    ("WeftSymbol.signature", core::mem::offset_of!(WeftSymbol, signature)),
    ("WeftSymbol.doc", core::mem::offset_of!(WeftSymbol, doc)),
    ("WeftMention", core::mem::size_of::<WeftMention>()),
    ("WeftMention.size", core::mem::offset_of!(WeftMention, size)),
    ("WeftMention.kind", core::mem::offset_of!(WeftMention, kind)),
    ("WeftMention.at", core::mem::offset_of!(WeftMention, at)),
    ("WeftMention.length", core::mem::offset_of!(WeftMention, length)),
    ("WeftMention.name", core::mem::offset_of!(WeftMention, name)),
    ("WeftMention.symbol", core::mem::offset_of!(WeftMention, symbol)),
    ("WeftMention.builtin", core::mem::offset_of!(WeftMention, builtin)),
    ("WeftMention.shared", core::mem::offset_of!(WeftMention, shared)),
    ("WeftMention.imported", core::mem::offset_of!(WeftMention, imported)),
    ("WeftMention.function", core::mem::offset_of!(WeftMention, function)),
    ("WeftBuiltin", core::mem::size_of::<WeftBuiltin>()),
    ("WeftBuiltin.size", core::mem::offset_of!(WeftBuiltin, size)),
    ("WeftBuiltin.kind", core::mem::offset_of!(WeftBuiltin, kind)),
    ("WeftBuiltin.name", core::mem::offset_of!(WeftBuiltin, name)),
    ("WeftBuiltin.signature", core::mem::offset_of!(WeftBuiltin, signature)),
    ("WeftBuiltin.doc", core::mem::offset_of!(WeftBuiltin, doc)),
    ("WeftArray", core::mem::size_of::<WeftArray>()),
    ("WeftArray.dtype", core::mem::offset_of!(WeftArray, dtype)),
    ("WeftArray.rank", core::mem::offset_of!(WeftArray, rank)),
    ("WeftArray.shape", core::mem::offset_of!(WeftArray, shape)),
    ("WeftArray.strides", core::mem::offset_of!(WeftArray, strides)),
    ("WeftArray.size", core::mem::offset_of!(WeftArray, size)),
    ("WeftArray.data", core::mem::offset_of!(WeftArray, data)),
    ("WeftPromise", core::mem::size_of::<WeftPromise>()),
    ("WeftPromise.dtype", core::mem::offset_of!(WeftPromise, dtype)),
    ("WeftPromise.rank", core::mem::offset_of!(WeftPromise, rank)),
    ("WeftPromise.shape", core::mem::offset_of!(WeftPromise, shape)),
    ("WeftHandleType", core::mem::size_of::<WeftHandleType>()),
    ("WeftHandleType.size", core::mem::offset_of!(WeftHandleType, size)),
    ("WeftHandleType.name", core::mem::offset_of!(WeftHandleType, name)),
    ("WeftHandleType.release", core::mem::offset_of!(WeftHandleType, release)),
    ("WeftHandleType.tags", core::mem::offset_of!(WeftHandleType, tags)),
    ("WeftHandleType.guard", core::mem::offset_of!(WeftHandleType, guard)),
    ("WeftHandleType.abstract", core::mem::offset_of!(WeftHandleType, r#abstract)),
    ("WeftHandleType.flatten", core::mem::offset_of!(WeftHandleType, flatten)),
    ("WeftGraphNode", core::mem::size_of::<WeftGraphNode>()),
    ("WeftGraphNode.size", core::mem::offset_of!(WeftGraphNode, size)),
    ("WeftGraphNode.kind", core::mem::offset_of!(WeftGraphNode, kind)),
    ("WeftGraphNode.name", core::mem::offset_of!(WeftGraphNode, name)),
    ("WeftGraphNode.depth", core::mem::offset_of!(WeftGraphNode, depth)),
    ("WeftGraphNode.effect", core::mem::offset_of!(WeftGraphNode, effect)),
    ("WeftGraphNode.plain", core::mem::offset_of!(WeftGraphNode, plain)),
    ("WeftGraphNode.operand_count", core::mem::offset_of!(WeftGraphNode, operand_count)),
    ("WeftGraphNode.result_count", core::mem::offset_of!(WeftGraphNode, result_count)),
    ("WeftGraphNode.operands", core::mem::offset_of!(WeftGraphNode, operands)),
    ("WeftGraphNode.result", core::mem::offset_of!(WeftGraphNode, result)),
    ("WeftGraphValue", core::mem::size_of::<WeftGraphValue>()),
    ("WeftGraphValue.size", core::mem::offset_of!(WeftGraphValue, size)),
    ("WeftGraphValue.dtype", core::mem::offset_of!(WeftGraphValue, dtype)),
    ("WeftGraphValue.rank", core::mem::offset_of!(WeftGraphValue, rank)),
    ("WeftGraphValue.shape", core::mem::offset_of!(WeftGraphValue, shape)),
    ("WeftGraphValue.weak", core::mem::offset_of!(WeftGraphValue, weak)),
    ("WeftGraphValue.constant", core::mem::offset_of!(WeftGraphValue, constant)),
    ("WeftGraphValue.known", core::mem::offset_of!(WeftGraphValue, known)),
    ("WeftGraphValue.number", core::mem::offset_of!(WeftGraphValue, number)),
    ("WeftFrame", core::mem::size_of::<WeftFrame>()),
    ("WeftFrame.size", core::mem::offset_of!(WeftFrame, size)),
    ("WeftFrame.function", core::mem::offset_of!(WeftFrame, function)),
    ("WeftFrame.file", core::mem::offset_of!(WeftFrame, file)),
    ("WeftFrame.line", core::mem::offset_of!(WeftFrame, line)),
    ("WeftFrame.column", core::mem::offset_of!(WeftFrame, column)),
    ("WeftFrame.body", core::mem::offset_of!(WeftFrame, body)),
];
