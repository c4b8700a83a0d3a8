/* weft.hpp — Weft inside a C++17 program: weft.h with values that release themselves, and errors that are thrown.
 *
 *     weft::VM vm;
 *     vm.define("twice", [](weft::VM &vm, const weft::Args &args) { return vm.value(2 * args.at(0).number()); });
 *     std::cout << vm.eval("twice(4.0) + 1").show();     // 9.0
 *
 * It is this header alone, above the C library; everything of weft.h can be used beside it (VM::get, Value::get). A
 * Value keeps its VM alive, so a host function must not hold one: the VM holds the function. A VM and its values belong
 * to one thread at a time, but for VM::interrupt. Every call that fails throws weft::Error. What a host function throws
 * becomes an error of the program, which may catch it; nothing is thrown through the library. */
#ifndef WEFT_HPP
#define WEFT_HPP

#include <complex>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft.h"

namespace weft {

/* What a call raised. what() is one line; text() has the source line and the calls too. */
class Error : public std::runtime_error {
public:
  Error(std::string kind, const std::string &message) : std::runtime_error(message), kind_(std::move(kind)) {}
  explicit Error(WeftVM *vm, WeftStatus status = WEFT_ERROR)
      : std::runtime_error(line_of(vm, status)), kind_(vm ? weft_error_kind(vm) : ""),
        text_(vm ? weft_error_text(vm) : ""), limit_(weft_error_limit(vm)), exit_code_(weft_exit_code(vm)) {
    weft_error_position(vm, &line_, &column_);
  }
  const std::string &kind() const noexcept { return kind_; } /* "" when a rule of weft.h was broken */
  const std::string &text() const noexcept { return text_; }
  WeftLimit limit() const noexcept { return limit_; }
  int line() const noexcept { return line_; } /* 1-based; 0 unknown */
  int column() const noexcept { return column_; }
  int exit_code() const noexcept { return exit_code_; } /* of exit(n); else -1 */

private:
  static std::string line_of(WeftVM *vm, WeftStatus status) {
    const char *said = vm ? weft_error_message(vm) : "";
    if (*said) return said;
    return status == WEFT_MISUSE ? "a rule of weft.h is broken" : "the program has ended";
  }
  std::string kind_, text_;
  WeftLimit limit_ = WEFT_LIMIT_NONE;
  int line_ = 0, column_ = 0, exit_code_ = -1;
};

namespace inner {
template <typename T> struct TypeOf;
template <> struct TypeOf<bool> { static constexpr WeftDType value = WEFT_BOOL; };
template <> struct TypeOf<std::uint8_t> { static constexpr WeftDType value = WEFT_U8; };
template <> struct TypeOf<std::int32_t> { static constexpr WeftDType value = WEFT_I32; };
template <> struct TypeOf<std::int64_t> { static constexpr WeftDType value = WEFT_I64; };
template <> struct TypeOf<std::uint32_t> { static constexpr WeftDType value = WEFT_U32; };
template <> struct TypeOf<std::uint64_t> { static constexpr WeftDType value = WEFT_U64; };
template <> struct TypeOf<float> { static constexpr WeftDType value = WEFT_F32; };
template <> struct TypeOf<double> { static constexpr WeftDType value = WEFT_F64; };
template <> struct TypeOf<std::complex<float>> { static constexpr WeftDType value = WEFT_C64; };
template <> struct TypeOf<std::complex<double>> { static constexpr WeftDType value = WEFT_C128; };

struct FreeVM {
  void operator()(WeftVM *vm) const noexcept { weft_free(vm); }
};
using Owned = std::shared_ptr<WeftVM>;

/* A program that waits where nobody can wait for it ends here: else the VM would run nothing more. */
inline void check(WeftVM *vm, WeftStatus status) {
  if (status == WEFT_OK) return;
  if (status != WEFT_SUSPENDED) throw Error(vm, status);
  (void)weft_cancel(vm);
  throw Error("unsupported", "the program waits for the host: VM::start runs such a program");
}
} // namespace inner

class Value;
using Args = std::vector<Value>;
using Named = std::vector<std::pair<std::string, Value>>;

/* A value, counted. Empty: none. */
class Value {
public:
  Value() = default;
  Value(inner::Owned vm, WeftValue *value) noexcept : vm_(std::move(vm)), value_(value) {} /* takes the count over */
  Value(const Value &other) : vm_(other.vm_), value_(other.value_) {
    if (value_) (void)weft_retain(vm_.get(), value_);
  }
  Value(Value &&other) noexcept : vm_(std::move(other.vm_)), value_(std::exchange(other.value_, nullptr)) {}
  Value &operator=(Value other) noexcept {
    std::swap(vm_, other.vm_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~Value() {
    if (value_) weft_release(vm_.get(), value_);
  }
  explicit operator bool() const noexcept { return value_ != nullptr; }
  WeftValue *get() const noexcept { return value_; }
  WeftValue *release() noexcept { return std::exchange(value_, nullptr); } /* the count is the caller's */

  std::string show() const { return weft_show(vm_.get(), value_); }
  std::string describe() const { return weft_describe(vm_.get(), value_); }
  std::string type() const { return weft_type(vm_.get(), value_); }
  std::string display() const { return weft_display(vm_.get(), value_); } /* as the prompt shows it */
  bool weak() const { return weft_is_weak(vm_.get(), value_); }
  std::int64_t integer() const {
    std::int64_t out = 0;
    check(weft_as_int(vm_.get(), value_, &out));
    return out;
  }
  double number() const {
    double out = 0;
    check(weft_as_float(vm_.get(), value_, &out));
    return out;
  }
  std::string text() const {
    const char *utf8 = nullptr;
    std::size_t length = 0;
    check(weft_as_text(vm_.get(), value_, &utf8, &length));
    return std::string(utf8, length);
  }
  std::string key(std::size_t index) const { /* of a record */
    const char *out = nullptr;
    check(weft_key(vm_.get(), value_, index, &out));
    return out;
  }
  std::size_t size() const { /* of a list or record */
    std::size_t out = 0;
    check(weft_length(vm_.get(), value_, &out));
    return out;
  }
  Value operator[](std::size_t index) const { return take(weft_item, index); }
  Value operator[](const char *key) const { return take(weft_field, key); }
  WeftArray look() const { /* without copying; valid while this value is held */
    WeftArray out{};
    check(weft_array_view(vm_.get(), value_, &out));
    return out;
  }
  /* The elements in row-major order, copied. T must be the element type itself. */
  template <typename T> std::vector<T> elements() const {
    const WeftArray a = look();
    if (a.dtype != inner::TypeOf<T>::value) throw Error("dtype", "elements: the array is " + describe());
    std::vector<T> out;
    out.reserve(static_cast<std::size_t>(a.size));
    std::int64_t at[WEFT_MAX_RANK] = {0}, offset = 0;
    for (std::int64_t i = 0; i < a.size; i++) {
      T item;
      std::memcpy(&item, static_cast<const char *>(a.data) + offset * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
      out.push_back(item);
      for (int d = a.rank; d-- > 0;) {
        offset += a.strides[d];
        if (++at[d] < a.shape[d]) break;
        offset -= a.strides[d] * a.shape[d];
        at[d] = 0;
      }
    }
    return out;
  }
  /* The same as another type that can hold each value of its own: f32 as double, and not the other way. */
  template <typename T> std::vector<T> converted() const {
    static_assert(!std::is_same_v<T, bool>, "a std::vector<bool> has no memory of bools: elements<bool>()");
    std::vector<T> out(static_cast<std::size_t>(look().size));
    check(weft_array_copy_out(vm_.get(), value_, inner::TypeOf<T>::value, out.data(), out.size() * sizeof(T)));
    return out;
  }
  /* Calls a function, with arguments by position and by name. */
  Value call(const Args &args, const Named &named = {}) const {
    std::vector<WeftValue *> given;
    std::vector<const char *> names;
    for (const Value &v : args) given.push_back(v.get());
    for (const auto &n : named) names.push_back(n.first.c_str()), given.push_back(n.second.get());
    WeftValue *out = nullptr;
    check(weft_call_named(vm_.get(), value_, given.data(), given.size(), names.data(), names.size(), &out));
    return Value(vm_, out);
  }
  template <typename... T> Value operator()(const T &...args) const {
    WeftValue *given[sizeof...(T) + 1] = {args.get()..., nullptr};
    WeftValue *out = nullptr;
    check(weft_call(vm_.get(), value_, given, sizeof...(T), &out));
    return Value(vm_, out);
  }

private:
  void check(WeftStatus status) const { inner::check(vm_.get(), status); }
  template <typename F, typename K> Value take(F function, K key) const {
    WeftValue *out = nullptr;
    check(function(vm_.get(), value_, key, &out));
    return Value(vm_, out);
  }
  inner::Owned vm_;
  WeftValue *value_ = nullptr;
};

/* A program that weft_compile has made. */
using Bytes = std::vector<unsigned char>;

class Module;

class VM {
public:
  explicit VM(const WeftOptions *options = nullptr) {
    char why[256] = "";
    WeftVM *vm = nullptr;
    const WeftStatus status = weft_open(options, &vm, why, sizeof why);
    if (status != WEFT_OK) throw Error(status == WEFT_MISUSE ? "" : "limit", why);
    vm_ = inner::Owned(vm, inner::FreeVM());
  }
  WeftVM *get() const noexcept { return vm_.get(); }
  void interrupt() const noexcept { weft_interrupt(vm_.get()); } /* from any thread */
  void limits(std::uint64_t memory, std::uint64_t fuel, double deadline) const {
    weft_set_limits(vm_.get(), memory, fuel, deadline);
  }
  std::uint64_t memory_left() const noexcept { return weft_memory_left(vm_.get()); } /* UINT64_MAX: no limit */
  std::uint64_t fuel_left() const noexcept { return weft_fuel_left(vm_.get()); }
  double time_left() const noexcept { return weft_time_left(vm_.get()); } /* infinity: no limit */
  std::size_t collect() const noexcept { return weft_collect(vm_.get()); }
  void device(const std::string &name) const { check(weft_set_device(vm_.get(), name.c_str())); }
  /* Of the log of capture, or of a function: weft_dump says what there is. */
  std::string dump(const std::string &what, const Value &function = {}) const {
    const char *text = weft_dump(vm_.get(), function.get(), what.c_str());
    if (!text) throw Error("value", "dump: unknown: " + what);
    return text;
  }
  std::string format(std::string_view text, const std::string &name = "host") const { /* as `weft fmt` does */
    const char *out = nullptr;
    check(weft_format(vm_.get(), text.data(), text.size(), name.c_str(), &out));
    return out;
  }

  Value eval(std::string_view text, const std::string &name = "host") const {
    WeftValue *out = nullptr;
    const WeftStatus status = weft_eval_length(vm_.get(), text.data(), text.size(), name.c_str(), &out);
    return own(status, out);
  }
  Value load(const std::string &path) const {
    WeftValue *out = nullptr;
    const WeftStatus status = weft_load_file(vm_.get(), path.c_str(), &out);
    return own(status, out);
  }
  /* The text of a file that the host has read: imports are looked for beside `path`. */
  Value load_text(std::string_view text, const std::string &path) const {
    WeftValue *out = nullptr;
    const WeftStatus status = weft_load_text(vm_.get(), text.data(), text.size(), path.c_str(), &out);
    return own(status, out);
  }
  Value operator[](const std::string &name) const {
    WeftValue *out = nullptr;
    const WeftStatus status = weft_get_global(vm_.get(), name.c_str(), &out);
    return own(status, out);
  }
  void set(const std::string &name, const Value &value) const {
    check(weft_set_global(vm_.get(), name.c_str(), value.get()));
  }

  /* A program as bytes, to be loaded later. `flags`: WEFT_COMPILE_STRIP leaves its text out. */
  Bytes compile(std::string_view text, const std::string &name = "host", unsigned flags = 0) const {
    return compile_in(nullptr, text, name, flags);
  }
  static bool is_compiled(const Bytes &bytes) noexcept { return weft_is_compiled(bytes.data(), bytes.size()); }
  Value load_compiled(const Bytes &bytes, const std::string &path = "") const {
    return load_in(nullptr, bytes, path);
  }

  /* ---- programs that wait: a function of define_suspending gave no value, nor does the call that ran the program.
   * `resume` goes on with the value of that function, as often as the program waits. Nothing else runs meanwhile. */
  using Outcome = std::optional<Value>; /* none: the program waits */
  Outcome start(std::string_view text, const std::string &name = "host") const {
    WeftValue *out = nullptr;
    const WeftStatus status = weft_eval_length(vm_.get(), text.data(), text.size(), name.c_str(), &out);
    return outcome(status, out);
  }
  Outcome start(const Value &function, const Args &args) const {
    std::vector<WeftValue *> given;
    for (const Value &v : args) given.push_back(v.get());
    WeftValue *out = nullptr;
    const WeftStatus status = weft_call(vm_.get(), function.get(), given.data(), given.size(), &out);
    return outcome(status, out);
  }
  Outcome resume(const Value &value) const {
    WeftValue *out = nullptr;
    const WeftStatus status = weft_resume(vm_.get(), value.get(), &out);
    return outcome(status, out);
  }
  Outcome resume_failed(const std::string &message, const std::string &kind = "host") const {
    WeftValue *out = nullptr;
    const WeftStatus status = weft_resume_failed(vm_.get(), kind.c_str(), message.c_str(), &out);
    return outcome(status, out);
  }
  bool waits() const noexcept { return weft_is_suspended(vm_.get()); }
  void cancel() const { check(weft_cancel(vm_.get())); } /* ends it */

  Module module(const std::string &name) const; /* with variables of its own */

  /* ---- values */
  Value nil() const { return made(weft_nil); }
  Value value(bool b) const { return made(weft_bool, b); }
  template <typename T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Value value(T i) const {
    return made(weft_int, static_cast<std::int64_t>(i));
  }
  Value value(double f) const { return made(weft_float, f); }
  /* Numbers as a program writes them: they take on the dtype of what they meet, so that an f32 array stays one. */
  template <typename T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Value weak(T i) const {
    return made(weft_weak_int, static_cast<std::int64_t>(i));
  }
  Value weak(double f) const { return made(weft_weak_float, f); }
  Value weak(std::complex<double> z) const { return made(weft_weak_complex, z.real(), z.imag()); }
  Value value(std::string_view utf8) const { return made(weft_text, utf8.data(), utf8.size()); }
  Value value(const char *utf8) const { return value(std::string_view(utf8)); }
  Value list(const std::vector<Value> &items) const {
    std::vector<WeftValue *> raw;
    for (const Value &v : items) raw.push_back(v.get());
    return made(weft_list, raw.data(), raw.size());
  }
  Value record(const std::vector<std::pair<std::string, Value>> &fields) const {
    std::vector<const char *> keys;
    std::vector<WeftValue *> raw;
    for (const auto &field : fields) keys.push_back(field.first.c_str()), raw.push_back(field.second.get());
    return made(weft_record, keys.data(), raw.data(), raw.size());
  }
  /* An array of a copy of the elements; the shape is that of a vector when none is given. */
  template <typename T> Value array(const std::vector<T> &data, std::vector<std::int64_t> shape = {}) const {
    fit(data.size(), shape);
    return made(weft_array, inner::TypeOf<T>::value, static_cast<int>(shape.size()), shape.data(), data.data());
  }
  /* The vector becomes the array, without copying: it lives until the last view of it has gone. */
  template <typename T> Value lend(std::vector<T> data, std::vector<std::int64_t> shape = {}) const {
    fit(data.size(), shape);
    auto kept = std::make_unique<std::vector<T>>(std::move(data));
    WeftValue *out = nullptr;
    check(weft_array_lend(
        vm_.get(), inner::TypeOf<T>::value, static_cast<int>(shape.size()), shape.data(), kept->data(),
        [](void *context, void *) { delete static_cast<std::vector<T> *>(context); }, kept.get(), &out));
    (void)kept.release();
    return Value(vm_, out);
  }

  /* ---- functions of the host
   * One takes the VM and the arguments, and gives a Value (an empty one is nil). */
  using Function = std::function<Value(VM &vm, const Args &args)>;
  /* One that may let its program wait: it gives no value then (std::nullopt), and `resume` gives it. */
  using Suspending = std::function<Outcome(VM &vm, const Args &args)>;

  void define(const std::string &name, Function function) const { define_in(nullptr, name, std::move(function)); }
  void define_suspending(const std::string &name, Suspending function) const {
    suspending_in(nullptr, name, std::move(function));
  }
  /* With names, defaults and documentation: "blur(image, radius=1)". It gets all arguments, in their order. */
  void define_described(const std::string &signature, const std::string &doc, Function function) const {
    described_in(nullptr, signature, doc, std::move(function));
  }
  /* Where a call is traced, `rule`, a function of the language, is traced in its place: both must agree. */
  void define_traced(const std::string &name, const Value &rule, Function function) const {
    hand_over(std::move(function), [&](WeftHostFunction run, void *context, void (*release)(void *)) {
      return weft_define_traced(vm_.get(), name.c_str(), run, context, release, rule.get());
    });
  }
  /* Declared nowhere: values. */
  Value function(const std::string &name, Function function) const {
    WeftValue *out = nullptr;
    hand_over(std::move(function), [&](WeftHostFunction run, void *context, void (*release)(void *)) {
      return weft_function(vm_.get(), name.c_str(), run, context, release, &out);
    });
    return Value(vm_, out);
  }
  Value function_described(const std::string &signature, const std::string &doc, Function function) const {
    WeftValue *out = nullptr;
    hand_over(std::move(function), [&](WeftHostFunction run, void *context, void (*release)(void *)) {
      return weft_function_described(vm_.get(), signature.c_str(), doc.c_str(), run, context, release, &out);
    });
    return Value(vm_, out);
  }

private:
  friend class Module;
  template <typename F> struct Defined {
    std::weak_ptr<WeftVM> vm; /* no shared one: the VM holds this */
    F function;
  };
  explicit VM(inner::Owned vm) noexcept : vm_(std::move(vm)) {}

  static WeftStatus give(Value value, WeftValue **result) noexcept {
    *result = value.release();
    return WEFT_OK;
  }
  static WeftStatus give(Outcome outcome, WeftValue **result) noexcept {
    return outcome ? give(std::move(*outcome), result) : WEFT_SUSPENDED;
  }
  template <typename F>
  static WeftStatus call(WeftVM *raw, void *context, WeftValue *const *args, std::size_t count, WeftValue **result) {
    const auto *defined = static_cast<const Defined<F> *>(context);
    try {
      VM vm(defined->vm.lock());
      Args given;
      for (std::size_t i = 0; i < count; i++) given.emplace_back(vm.vm_, weft_retain(raw, args[i]));
      return give(defined->function(vm, given), result);
    } catch (const Error &e) {
      /* one of the program inside: it stays what it is, a limit too */
      if (*weft_error_kind(raw)) return WEFT_ERROR;
      return weft_fail(raw, e.kind().empty() ? nullptr : e.kind().c_str(), e.what());
    } catch (const std::exception &e) {
      return weft_fail(raw, nullptr, e.what());
    } catch (...) {
      return weft_fail(raw, nullptr, "the host function threw");
    }
  }
  /* Gives a function to one of weft_define and its kind. It goes when that fails. */
  template <typename F, typename D> void hand_over(F function, D define) const {
    auto kept = std::make_unique<Defined<F>>(Defined<F>{vm_, std::move(function)});
    check(define(call<F>, kept.get(), [](void *context) { delete static_cast<Defined<F> *>(context); }));
    (void)kept.release();
  }
  /* In a module of the host's; nullptr: in the main module. */
  void define_in(WeftValue *module, const std::string &name, Function function) const {
    hand_over(std::move(function), [&](WeftHostFunction run, void *context, void (*release)(void *)) {
      return module ? weft_module_define(vm_.get(), module, name.c_str(), run, context, release)
                    : weft_define(vm_.get(), name.c_str(), run, context, release);
    });
  }
  void suspending_in(WeftValue *module, const std::string &name, Suspending function) const {
    hand_over(std::move(function), [&](WeftHostFunction run, void *context, void (*release)(void *)) {
      return weft_define_suspending(vm_.get(), module, name.c_str(), run, context, release);
    });
  }
  void described_in(WeftValue *module, const std::string &head, const std::string &doc, Function function) const {
    hand_over(std::move(function), [&](WeftHostFunction run, void *context, void (*release)(void *)) {
      return module ? weft_module_define_described(vm_.get(), module, head.c_str(), doc.c_str(), run, context, release)
                    : weft_define_described(vm_.get(), head.c_str(), doc.c_str(), run, context, release);
    });
  }
  Bytes compile_in(WeftValue *module, std::string_view text, const std::string &name, unsigned flags) const {
    const void *bytes = nullptr;
    std::size_t count = 0;
    check(weft_compile(vm_.get(), module, text.data(), text.size(), name.c_str(), flags, &bytes, &count));
    const auto *from = static_cast<const unsigned char *>(bytes);
    return Bytes(from, from + count);
  }
  Value load_in(WeftValue *module, const Bytes &bytes, const std::string &path) const {
    WeftValue *out = nullptr;
    const char *where = path.empty() ? nullptr : path.c_str();
    const WeftStatus status = weft_load_compiled(vm_.get(), module, bytes.data(), bytes.size(), where, &out);
    return own(status, out);
  }
  Outcome outcome(WeftStatus status, WeftValue *value) const {
    if (status == WEFT_SUSPENDED) return std::nullopt;
    return own(status, value);
  }
  void check(WeftStatus status) const { inner::check(vm_.get(), status); }
  Value own(WeftStatus status, WeftValue *value) const {
    check(status);
    return Value(vm_, value);
  }
  template <typename F, typename... T> Value made(F function, T... args) const {
    WeftValue *out = nullptr;
    const WeftStatus status = function(vm_.get(), args..., &out);
    return own(status, out);
  }
  static void fit(std::size_t size, std::vector<std::int64_t> &shape) {
    if (shape.empty()) shape.push_back(static_cast<std::int64_t>(size));
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    if (n != static_cast<std::int64_t>(size)) throw Error("shape", "the shape does not fit the elements");
  }
  inner::Owned vm_;
};

/* A module of the host's, with variables of its own: one for each script keeps scripts apart. */
class Module {
public:
  Module(const VM &vm, const std::string &name) : vm_(vm.vm_) {
    WeftValue *out = nullptr;
    const WeftStatus status = weft_module_new(vm_.get(), name.c_str(), &out);
    value_ = vm_.own(status, out);
  }
  const Value &value() const noexcept { return value_; } /* for programs: canvas.line(1, 2) */
  Value run(std::string_view text, const std::string &name = "host") const {
    WeftValue *out = nullptr;
    const WeftStatus status =
        weft_module_run(vm_.get(), value_.get(), text.data(), text.size(), name.c_str(), &out);
    return vm_.own(status, out);
  }
  VM::Outcome start(std::string_view text, const std::string &name = "host") const { /* VM::resume goes on */
    WeftValue *out = nullptr;
    const WeftStatus status =
        weft_module_run(vm_.get(), value_.get(), text.data(), text.size(), name.c_str(), &out);
    return vm_.outcome(status, out);
  }
  Value operator[](const std::string &name) const {
    WeftValue *out = nullptr;
    const WeftStatus status = weft_module_get(vm_.get(), value_.get(), name.c_str(), &out);
    return vm_.own(status, out);
  }
  void set(const std::string &name, const Value &value) const {
    vm_.check(weft_module_set(vm_.get(), value_.get(), name.c_str(), value.get()));
  }
  void define(const std::string &name, VM::Function function) const {
    vm_.define_in(value_.get(), name, std::move(function));
  }
  void define_suspending(const std::string &name, VM::Suspending function) const {
    vm_.suspending_in(value_.get(), name, std::move(function));
  }
  void define_described(const std::string &signature, const std::string &doc, VM::Function function) const {
    vm_.described_in(value_.get(), signature, doc, std::move(function));
  }
  Bytes compile(std::string_view text, const std::string &name = "host", unsigned flags = 0) const {
    return vm_.compile_in(value_.get(), text, name, flags);
  }
  Value load_compiled(const Bytes &bytes) const { return vm_.load_in(value_.get(), bytes, ""); }
  /* Its variables go; programs that hold functions of it find none of them. Fails while a program runs. */
  void give_back() {
    vm_.check(weft_module_free(vm_.get(), value_.get()));
    (void)value_.release(); /* the count has gone with it */
  }

private:
  VM vm_;
  Value value_;
};

inline Module VM::module(const std::string &name) const { return Module(*this, name); }

} // namespace weft

#endif
