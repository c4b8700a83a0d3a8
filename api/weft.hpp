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

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
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

struct FreeVM {
  void operator()(WeftVM *vm) const noexcept { weft_free(vm); }
};
using Owned = std::shared_ptr<WeftVM>;
} // namespace inner

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
  /* Calls a function. */
  template <typename... T> Value operator()(const T &...args) const {
    WeftValue *given[sizeof...(T) + 1] = {args.get()..., nullptr};
    WeftValue *out = nullptr;
    check(weft_call(vm_.get(), value_, given, sizeof...(T), &out));
    return Value(vm_, out);
  }

private:
  void check(WeftStatus status) const {
    if (status != WEFT_OK) throw Error(vm_.get(), status);
  }
  template <typename F, typename K> Value take(F function, K key) const {
    WeftValue *out = nullptr;
    check(function(vm_.get(), value_, key, &out));
    return Value(vm_, out);
  }
  inner::Owned vm_;
  WeftValue *value_ = nullptr;
};

using Args = std::vector<Value>;

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
  Value operator[](const std::string &name) const {
    WeftValue *out = nullptr;
    const WeftStatus status = weft_get_global(vm_.get(), name.c_str(), &out);
    return own(status, out);
  }
  void set(const std::string &name, const Value &value) const {
    check(weft_set_global(vm_.get(), name.c_str(), value.get()));
  }

  Value nil() const { return made(weft_nil); }
  Value value(bool b) const { return made(weft_bool, b); }
  template <typename T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Value value(T i) const {
    return made(weft_int, static_cast<std::int64_t>(i));
  }
  Value value(double f) const { return made(weft_float, f); }
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

  /* A function of the host: it takes the VM and the arguments, and gives a Value (an empty one is nil). */
  using Function = std::function<Value(VM &vm, const Args &args)>;
  void define(const std::string &name, Function function) const {
    auto kept = std::make_unique<Defined>(Defined{vm_, std::move(function)});
    check(weft_define(vm_.get(), name.c_str(), call, kept.get(),
                      [](void *context) { delete static_cast<Defined *>(context); }));
    (void)kept.release();
  }

private:
  struct Defined {
    std::weak_ptr<WeftVM> vm; /* no shared one: the VM holds this */
    Function function;
  };
  explicit VM(inner::Owned vm) noexcept : vm_(std::move(vm)) {}

  static WeftStatus call(WeftVM *raw, void *context, WeftValue *const *args, std::size_t count, WeftValue **result) {
    const auto *defined = static_cast<const Defined *>(context);
    try {
      VM vm(defined->vm.lock());
      Args given;
      for (std::size_t i = 0; i < count; i++) given.emplace_back(vm.vm_, weft_retain(raw, args[i]));
      *result = defined->function(vm, given).release();
      return WEFT_OK;
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
  void check(WeftStatus status) const {
    if (status != WEFT_OK) throw Error(vm_.get(), status);
  }
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

} // namespace weft

#endif
