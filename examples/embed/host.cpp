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

  // functions with names and defaults, as values, and with a rule for where they are traced
  vm.define_described("scaled(x, factor=2.0)", "x times a number.", [](weft::VM &v, const weft::Args &args) {
    return v.value(args[0].number() * args[1].number());
  });
  expect(vm.eval("scaled(3.0) + scaled(factor=10.0, x=1.0)").number() == 16, "described");
  weft::Value half = vm.function("half", [](weft::VM &v, const weft::Args &args) {
    return v.value(args.at(0).number() / 2);
  });
  weft::Value third = vm.function_described("third(x, n=3)", "", [](weft::VM &v, const weft::Args &args) {
    return v.value(args[0].number() / args[1].number());
  });
  expect(half(vm.value(5.0)).number() == 2.5 && third.call({vm.value(9.0)}).number() == 3, "functions-as-values");
  expect(third.call({vm.value(9.0)}, {{"n", vm.value(2)}}).number() == 4.5, "arguments-by-name");
  vm.define_traced("square", vm.eval("x => x * x"), [](weft::VM &v, const weft::Args &args) {
    return v.value(args.at(0).number() * args.at(0).number());
  });
  expect(vm.eval("square(3.0) + jit(x => square(x))(3.0)").number() == 18, "traced");

  // numbers as a program writes them; what an array holds as another type; complex numbers
  expect(vm.eval("x => x * f32(2)")(vm.weak(1.5)).describe() == "f32[]" && vm.weak(2).weak(), "weak");
  expect(vm.eval("f32([1.5, 2.5])").converted<double>() == std::vector<double>{1.5, 2.5}, "converted");
  expect(kind_of([&] { vm.eval("[1.5]").converted<float>(); }) == "type", "converted-to-less");
  expect(vm.array(std::vector<std::complex<double>>{{1, 2}}).show() == vm.eval("c128([1.0 + 2.0j])").show(), "complex");
  expect(vm.eval("{a: 1, b: 2}").key(1) == "b", "key");

  // compiled programs
  weft::Bytes bytes = vm.compile("fn f(x) = twice(x) + 1\nf(4.0)", "f.weft", WEFT_COMPILE_STRIP);
  expect(weft::VM::is_compiled(bytes) && !weft::VM::is_compiled({'1'}), "is-compiled");
  expect(vm.load_compiled(bytes).number() == 9, "load-compiled");
  expect(kind_of([&] { weft::VM().load_compiled(bytes); }) == "name", "compiled-for-another-host");
  bytes.back() ^= 1;
  expect(kind_of([&] { vm.load_compiled(bytes); }) == "syntax", "compiled-and-changed");

  // modules: a script sees its own variables, and what it is given
  weft::Module canvas = vm.module("canvas"), script = vm.module("script");
  canvas.define("line", [](weft::VM &v, const weft::Args &args) { return v.value(args.size()); });
  canvas.define_described("dot(x, size=1)", "", [](weft::VM &, const weft::Args &args) { return args[1]; });
  script.set("canvas", canvas.value());
  expect(script.run("let n = canvas.line(1, 2) + canvas.dot(0); n").integer() == 3, "a-module");
  expect(script["n"].integer() == 3 && kind_of([&] { vm.eval("n"); }) == "name", "a-module-keeps-its-variables");
  expect(script.load_compiled(script.compile("n + 1")).integer() == 4, "compiled-in-a-module");
  canvas.give_back();
  expect(kind_of([&] { canvas.run("1"); }) == "misuse", "a-module-given-back");

  // programs that wait: no value yet, then what the function of the host would have given
  std::string asked;
  const auto ask = [&asked](weft::VM &v, const weft::Args &args) -> weft::VM::Outcome {
    asked = args.at(0).text();
    if (asked == "now") return v.value(1);
    if (asked == "bad") throw weft::Error("value", "no such question");
    return std::nullopt;
  };
  vm.define_suspending("ask", ask);
  weft::VM::Outcome went = vm.start("let s = 0; for q in (\"a\", \"now\", \"b\") { s += ask(q) }; s");
  expect(!went && vm.waits() && asked == "a", "a-program-waits");
  expect(kind_of([&] { vm.eval("1"); }) != "none", "nothing-runs-meanwhile");
  went = vm.resume(vm.value(10));
  expect(!went && asked == "b", "it-waits-again");
  went = vm.resume(vm.value(100));
  expect(went && went->integer() == 111 && !vm.waits(), "it-goes-on-to-its-end");
  expect(!vm.start("try { ask(\"c\") } catch e { e.kind + e.message }"), "it-may-fail");
  expect(vm.resume_failed("late", "io")->text() == "iolate", "it-has-failed");
  expect(kind_of([&] { vm.start("ask(\"bad\")"); }) == "value" && !vm.waits(), "it-fails-at-once");
  expect(!vm.start(vm.eval("q => ask(q)"), {vm.value("d")}) && asked == "d", "a-function-waits");
  vm.cancel();
  expect(!vm.waits() && kind_of([&] { vm.cancel(); }) == "misuse", "cancelled");
  expect(kind_of([&] { vm.eval("ask(\"e\")"); }) == "unsupported" && !vm.waits(), "eval-does-not-wait");
  script.define_suspending("ask", ask);
  expect(!script.start("ask(\"f\")") && vm.resume(vm.value(5))->integer() == 5, "in-a-module");

  // what there is to know of a VM
  expect(vm.load_text("let from_file = 3\nfrom_file", "no/such.weft").integer() == 3, "load-text");
  expect(vm.format("let  a=1").substr(0, 9) == "let a = 1" && !vm.dump("explain").empty(), "format-and-dump");
  expect(kind_of([&] { (void)vm.dump("no such thing"); }) == "value", "dump-of-nothing");
  vm.limits(1 << 30, 1000000, 60);
  expect(vm.memory_left() < (1U << 30) && vm.fuel_left() <= 1000000 && vm.time_left() <= 60, "what-is-left");
  vm.limits(0, 0, 0);
  (void)vm.collect();
  expect(kind_of([&] { vm.device("none"); }) == "misuse", "no-such-device");

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
