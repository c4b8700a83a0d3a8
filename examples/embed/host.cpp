// host.cpp — a C++17 program that runs Weft by weft.hpp: values that release themselves, errors that are thrown.
// Build it with: c++ -std=c++17 host.cpp $(pkg-config --cflags --libs weft) -o host
#include <iostream>
#include <numeric>

#include <weft.hpp>

static int failed;

static void expect(bool ok, const char *what) {
  std::cout << (ok ? "ok " : "not ok ") << "cxx/" << what << std::endl;
  failed += !ok;
}

template <typename F> static std::string kind_of(F &&f) { // of the error that it throws
  try {
    f();
  } catch (const weft::Error &e) {
    return e.kind().empty() ? "misuse" : e.kind();
  }
  return "none";
}

int main() {
  weft::VM vm;
  expect(vm.eval("sum(arange(10))").integer() == 45, "eval");

  // arrays both ways: a vector that moves in, a copy that comes back
  std::vector<double> data(6);
  std::iota(data.begin(), data.end(), 1.0);
  vm.eval("fn rows(x) = sum(x * x, axis=1)");
  weft::Value rows = vm["rows"], x = vm.lend(std::move(data), {2, 3});
  expect(rows(x).elements<double>() == std::vector<double>{14, 77}, "lend-call-elements");
  vm.set("x", x);
  expect(vm.eval("x.T").elements<double>() == std::vector<double>{1, 4, 2, 5, 3, 6}, "strided-elements");
  expect(vm.array(std::vector<float>{1.5F, 2.5F}).describe() == "f32[2]", "array");
  expect(vm.record({{"a", vm.value(1)}, {"b", vm.value("two")}})["b"].text() == "two", "record");
  expect(vm.list({vm.value(true), vm.nil(), vm.value(2.5)})[2].number() == 2.5, "list");

  // values are counted: a copy outlives what it was copied from, and the VM lives as long as a value
  weft::Value kept;
  {
    weft::VM inner;
    weft::Value first = inner.eval("[1.0, 2.0]");
    kept = first;
  }
  expect(kept.show() == "[1.0, 2.0]", "a-value-keeps-its-vm");

  // functions of the host, and what they throw
  vm.define("twice", [](weft::VM &v, const weft::Args &args) { return v.value(2 * args.at(0).number()); });
  vm.define("fails",
            [](weft::VM &, const weft::Args &) -> weft::Value { throw weft::Error("index", "no such thing"); });
  vm.define("inside", [](weft::VM &v, const weft::Args &args) { return v.eval(args.at(0).text()); });
  vm.define("nothing", [](weft::VM &, const weft::Args &) { return weft::Value(); });
  expect(vm.eval("twice(4.0) + 1").number() == 9, "host-function");
  expect(vm.eval("nothing()").type() == "nil", "an-empty-value-is-nil");
  expect(kind_of([&] { vm.eval("twice()"); }) == "host", "an-exception-is-an-error");
  expect(vm.eval("try { fails() } catch e { e.kind + \": \" + e.message }").text() == "index: no such thing",
         "a-program-catches-it");
  expect(kind_of([&] { vm.eval("inside(\"zeros(3) @ zeros(4)\")"); }) == "shape", "an-error-inside-keeps-its-kind");

  // errors
  try {
    vm.eval("let a = 1\nb + a", "mine");
    expect(false, "an-error-is-thrown");
  } catch (const weft::Error &e) {
    expect(e.kind() == "name" && e.line() == 2 && e.text().find("mine:2:1") != std::string::npos, "an-error-is-thrown");
  }
  expect(kind_of([&] { (void)vm.value(1).text(); }) == "type", "a-wrong-type");
  expect(kind_of([&] { (void)vm.value(1)[7]; }) != "none", "no-item");
  expect(kind_of([&] { (void)vm.eval("[1, 2]").elements<double>(); }) == "dtype", "a-wrong-dtype");
  expect(kind_of([&] { (void)vm.array(std::vector<int32_t>{1, 2, 3}, {2, 2}); }) == "shape", "a-wrong-shape");
  expect(kind_of([&] { vm.define("let", nullptr); }) == "misuse", "a-reserved-word");
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.cpu = "none";
  expect(kind_of([&] { weft::VM none(&options); }) == "misuse", "options-that-are-wrong");

  // limits, from inside of a host function too: a program cannot catch them
  vm.limits(0, 1000, 0);
  try {
    vm.eval("try { inside(\"while true { }\") } catch e { 1 }");
    expect(false, "a-limit-is-not-caught");
  } catch (const weft::Error &e) {
    expect(e.limit() == WEFT_LIMIT_FUEL, "a-limit-is-not-caught");
  }
  vm.limits(0, 0, 0);
  try {
    vm.eval("exit(3)");
  } catch (const weft::Error &e) {
    expect(e.limit() == WEFT_LIMIT_EXIT && e.exit_code() == 3, "exit");
  }
  expect(vm.eval("1 + 1").integer() == 2, "it-goes-on");
  return failed != 0;
}
