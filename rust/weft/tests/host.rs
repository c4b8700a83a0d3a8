//! host.rs: programs, values, arrays, functions of the host, errors, limits and interrupts, through the safe wrapper.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weft::{is_compiled, Bf16, Complex, DType, Element, Error, Limit, Options, Outcome, Value, Vm, Waiting, F16};

fn vm() -> Vm {
    Vm::new_default().unwrap()
}

/// Drops are counted.
struct Counted(Vec<f64>, Arc<AtomicUsize>);
impl AsRef<[f64]> for Counted {
    fn as_ref(&self) -> &[f64] {
        &self.0
    }
}
impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn programs_give_values() {
    let vm = vm();
    assert_eq!(vm.eval("1 + 2").unwrap().as_i64().unwrap(), 3);
    assert_eq!(vm.eval("2.5").unwrap().as_f64().unwrap(), 2.5);
    assert!(vm.eval("1 < 2").unwrap().as_bool().unwrap());
    assert_eq!(vm.eval("\"grün\"").unwrap().as_str().unwrap(), "grün");
    assert_eq!(vm.eval("\"\"").unwrap().as_str().unwrap(), "");
    assert!(vm.eval("let x = 7").unwrap().is_nil());
    assert_eq!(vm.global("x").unwrap().as_i64().unwrap(), 7);
    vm.set_global("y", &vm.float(0.5).unwrap()).unwrap();
    assert_eq!(vm.eval("x + y").unwrap().show(), "7.5");
    assert_eq!(vm.eval("[[1.0, 2.0]]").unwrap().describe(), "f64[1, 2]");
    assert_eq!(vm.eval("(1, \"a\")").unwrap().type_name(), "list");
    let kept = vm.eval("[1, 2]").unwrap();
    let same = kept.clone();
    drop(kept);
    assert_eq!(format!("{same} {same:?}"), "[1, 2] [1, 2]");
}

#[test]
fn lists_and_records() {
    let vm = vm();
    let (one, two) = (vm.int(1).unwrap(), vm.text("two").unwrap());
    let list = vm.list(&[&one, &two]).unwrap();
    assert_eq!(list.count().unwrap(), 2);
    assert_eq!(list.items().unwrap().iter().map(Value::show).collect::<Vec<_>>(), ["1", "\"two\""]);
    assert_eq!(list.item(2).unwrap_err().kind(), "index");
    assert_eq!(list.field("a").unwrap_err().kind(), "type");
    let record = vm.record(&[("a", &one), ("b", &list)]).unwrap();
    assert_eq!(record.field("b").unwrap().item(0).unwrap().as_i64().unwrap(), 1);
    assert_eq!((record.key(0).unwrap(), record.key(1).unwrap()), ("a".to_string(), "b".to_string()));
    assert_eq!(record.field("c").unwrap_err().kind(), "key");
    assert_eq!(record.key(2).unwrap_err().kind(), "index");
    assert_eq!(vm.record(&[("a\0b", &one)]).unwrap_err().kind(), "value");
    assert_eq!(vm.nil().unwrap().count().unwrap_err().kind(), "type");
    assert_eq!(vm.bool(true).unwrap().show(), "true");
}

#[test]
fn functions_are_called() {
    let vm = vm();
    let f = vm.eval("(x, y=1, z=2) => 100 * x + 10 * y + z").unwrap();
    let (a, b) = (vm.int(3).unwrap(), vm.int(5).unwrap());
    assert_eq!(f.call(&[&a]).unwrap().as_i64().unwrap(), 312);
    assert_eq!(f.call_named(&[&a], &[("z", &b)]).unwrap().as_i64().unwrap(), 315);
    assert!(f.call_named(&[&a], &[("w", &b)]).unwrap_err().message().contains("'w'"));
    assert_eq!(f.call_named(&[&a], &[("no name", &b)]).unwrap_err().kind(), "");
    assert_eq!(f.call(&[]).unwrap_err().kind(), "type");
    assert_eq!(a.call(&[]).unwrap_err().kind(), "type");
}

#[test]
fn arrays_are_looked_at_where_they_lie() {
    let vm = vm();
    let x = vm.lend(vec![1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let view = x.view::<f64>().unwrap();
    assert_eq!((view.shape(), view.strides(), view.size()), (&[2i64, 3][..], &[3i64, 1][..], 6));
    assert_eq!(view.as_slice().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(view.get(&[1, 2]), Some(6.0));
    assert_eq!((view.get(&[2, 0]), view.get(&[1]), view.get(&[0, usize::MAX])), (None, None, None));
    let turned = vm.eval("x => transpose(x)[::-1]").unwrap().call(&[&x]).unwrap();
    let other = turned.view::<f64>().unwrap();
    assert_eq!(other.to_vec(), [3.0, 6.0, 2.0, 5.0, 1.0, 4.0]);
    assert_eq!(other.iter().len(), 6);
    assert_eq!(other.get(&[0, 1]), Some(6.0));
    assert_eq!(vm.eval("zeros((0, 3))").unwrap().view::<f64>().unwrap().as_slice(), Some(&[][..]));
    let number = vm.eval("4.5").unwrap();
    let view = number.view::<f64>().unwrap();
    assert_eq!((view.as_slice(), view.get(&[]), view.to_vec()), (Some(&[4.5][..]), Some(4.5), vec![4.5]));
    assert_eq!(format!("{view:?}"), "View { shape: [], elements: [4.5] }");
    let wrong = x.view::<f32>().unwrap_err();
    assert_eq!((wrong.kind(), wrong.message()), ("type", "view: f64[2, 3] has no elements of F32"));
    assert_eq!(vm.text("a").unwrap().view::<f64>().unwrap_err().kind(), "type");
}

#[test]
fn what_is_looked_at_stays_as_it_is() {
    let vm = vm();
    vm.eval("let a = arange(1000.0)").unwrap();
    let held = vm.global("a").unwrap();
    let view = held.view::<f64>().unwrap();
    let before = view.to_vec();
    vm.eval("for i in 0..1000 { a[i] = -1.0 }\na += 5.0\nfn f() { for k in 0..50 { a[k] *= 2.0 } }\nf()").unwrap();
    assert_eq!(view.as_slice().unwrap(), before);
    assert_eq!(vm.eval("a[1]").unwrap().as_f64().unwrap(), 8.0);
    // elements of a number lie in its value, where each look writes them
    let number = vm.eval("7").unwrap();
    let (one, two) = (number.view::<i64>().unwrap(), number.view::<i64>().unwrap());
    assert_eq!((one.as_slice(), two.as_slice()), (Some(&[7][..]), Some(&[7][..])));
}

fn there_and_back<T: Element + PartialEq>(vm: &Vm, data: [T; 2], want: &str) {
    let copied = vm.array(&data, &[2]).unwrap();
    assert_eq!(copied.show(), want);
    assert_eq!(copied.dtype().unwrap(), T::DTYPE);
    assert_eq!(copied.view::<T>().unwrap().to_vec(), data);
    assert_eq!(copied.to_vec::<T>().unwrap(), data);
    let lent = vm.lend(data.to_vec(), &[2, 1]).unwrap();
    assert_eq!(lent.view::<T>().unwrap().as_slice().unwrap(), data);
}

#[test]
fn every_dtype_goes_there_and_back() {
    let vm = vm();
    there_and_back(&vm, [true, false], "[true, false]");
    there_and_back(&vm, [0u8, 255], "[0, 255]");
    there_and_back(&vm, [-1i32, i32::MAX], "[-1, 2147483647]");
    there_and_back(&vm, [i64::MIN, 2], "[-9223372036854775808, 2]");
    there_and_back(&vm, [0u32, u32::MAX], "[0, 4294967295]");
    there_and_back(&vm, [0u64, u64::MAX], "[0, 18446744073709551615]");
    there_and_back(&vm, [F16(0x3c00), F16(0xc000)], "[1.0, -2.0]");
    there_and_back(&vm, [Bf16(0x3f80), Bf16(0xc000)], "[1.0, -2.0]");
    there_and_back(&vm, [1.5f32, -0.25], "[1.5, -0.25]");
    there_and_back(&vm, [1.5f64, -0.25], "[1.5, -0.25]");
    there_and_back(&vm, [Complex { re: 1.0f32, im: 2.0 }, Complex { re: 0.0, im: -1.0 }], "[1.0+2.0j, 0.0-1.0j]");
    there_and_back(&vm, [Complex { re: 1.0f64, im: 2.0 }, Complex { re: 0.0, im: -1.0 }], "[1.0+2.0j, 0.0-1.0j]");
    let x = vm.array(&[1.5f32, 2.5], &[2]).unwrap();
    assert_eq!(x.to_vec::<f64>().unwrap(), [1.5, 2.5]);
    assert_eq!(x.to_vec::<i64>().unwrap_err().kind(), "type");
    assert_eq!(x.dtype().unwrap(), DType::F32);
    assert_eq!(vm.eval("3").unwrap().to_vec::<f64>().unwrap_err().kind(), "type");
    // not each i64 is an f64
}

#[test]
fn lent_memory_comes_back_once() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let count = || dropped.load(Ordering::SeqCst);
    let vm = vm();
    let x = vm.lend(Counted(vec![1.0, 2.0], dropped.clone()), &[2]).unwrap();
    vm.set_global("x", &x).unwrap();
    drop(x);
    assert_eq!(count(), 0); // the program holds it
    vm.eval("x[0] = 5.0").unwrap(); // which gives it a copy
    assert_eq!(count(), 1);
    let wrong = vm.lend(Counted(vec![1.0, 2.0], dropped.clone()), &[3]).unwrap_err();
    assert_eq!((wrong.kind(), count()), ("shape", 2));
    assert_eq!(vm.lend(Counted(vec![], dropped.clone()), &[usize::MAX, 2]).unwrap_err().kind(), "shape");
    assert_eq!(vm.lend(Counted(vec![1.0], dropped.clone()), &[1; 17]).unwrap_err().kind(), "shape");
    assert_eq!(count(), 4);
    let kept = vm.lend(Counted(vec![1.0], dropped.clone()), &[]).unwrap();
    assert_eq!(kept.as_f64().unwrap(), 1.0);
    std::mem::forget(kept);
    let shared: Arc<[i64]> = Arc::from([1i64, 2, 3]);
    let y = vm.lend(shared.clone(), &[3]).unwrap();
    assert_eq!(y.show(), "[1, 2, 3]");
    drop(y);
    assert_eq!(Arc::strong_count(&shared), 1);
    drop(vm);
    assert_eq!(count(), 5);
    assert!(Vm::new_default().unwrap().array(&[1.0, 2.0], &[2, 2]).is_err());
}

#[test]
fn closures_are_host_functions() {
    let vm = vm();
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = calls.clone();
    vm.define("add", move |cx, args| {
        seen.fetch_add(1, Ordering::SeqCst);
        let [a, b] = args else { return Err(Error::new("type", format!("add: takes 2, got {}", args.len()))) };
        cx.float(a.as_f64()? + b.as_f64()?)
    })
    .unwrap();
    assert_eq!(vm.eval("let s = 0.0; for i in 0..1000 { s = add(s, i) }; s").unwrap().as_f64().unwrap(), 499500.0);
    assert_eq!(calls.load(Ordering::SeqCst), 1000);
    let e = vm.eval("add(1)").unwrap_err();
    assert_eq!((e.kind(), e.message()), ("type", "add: takes 2, got 1"));
    assert_eq!(vm.eval("try { add(1, \"a\") } catch e { e.kind }").unwrap().as_str().unwrap(), "type");
    // an argument that is given back, a value that the closure makes, a function that is no variable
    vm.define("same", |_, args| Ok(args[0].clone())).unwrap();
    assert_eq!(vm.eval("same([1, 2])").unwrap().show(), "[1, 2]");
    let f = vm.function("pair", |cx, args| cx.list(&[&args[0], &cx.text("é")?])).unwrap();
    assert_eq!(f.call(&[&vm.int(1).unwrap()]).unwrap().show(), "(1, \"é\")");
    // it runs programs, and is called while it runs
    vm.define("down", |cx, args| {
        let n = args[0].as_i64()?;
        if n == 0 {
            return cx.int(0);
        }
        let less = cx.int(n - 1)?;
        cx.int(n + cx.global("down")?.call(&[&less])?.as_i64()?)
    })
    .unwrap();
    assert_eq!(vm.eval("down(10)").unwrap().as_i64().unwrap(), 55);
    // it replaces itself while it runs
    vm.define("once", |cx, _| {
        cx.define("once", |cx, _| cx.int(2))?;
        cx.int(1)
    })
    .unwrap();
    assert_eq!(vm.eval("(once(), once())").unwrap().show(), "(1, 2)");
    assert_eq!(vm.define("no name", |cx, _| cx.nil()).unwrap_err().kind(), "");
    assert_eq!(vm.define("a\0b", |cx, _| cx.nil()).unwrap_err().kind(), "value");
}

#[test]
fn described_functions_have_names_and_defaults() {
    let vm = vm();
    vm.define_described("blur(image, radius=1, ...rest, edge=\"wrap\")", "Blurs an image.", |cx, args| {
        assert_eq!(args.len(), 4);
        cx.text(&format!("{} {} {}", args[1].as_i64()?, args[2].count()?, args[3].as_str()?))
    })
    .unwrap();
    assert_eq!(vm.eval("blur([1.0])").unwrap().as_str().unwrap(), "1 0 wrap");
    assert_eq!(vm.eval("blur([1.0], 2, 3, edge=\"zero\")").unwrap().as_str().unwrap(), "2 1 zero");
    assert!(vm.eval("blur([1.0], raduis=2)").unwrap_err().message().contains("radius"));
    assert_eq!(vm.define_described("blur(", "", |cx, _| cx.nil()).unwrap_err().kind(), "syntax");
    let rule = vm.eval("x => x * 2").unwrap();
    vm.define_traced("double", &rule, |cx, args| cx.float(2.0 * args[0].as_f64()?)).unwrap();
    assert_eq!(vm.eval("(double(4.0), jit(x => double(x) + 1)(3.0))").unwrap().show(), "(8.0, 7.0)");
    assert_eq!(vm.define_traced("double", &vm.int(1).unwrap(), |cx, _| cx.nil()).unwrap_err().kind(), "");
}

#[test]
fn panics_become_errors() {
    std::panic::set_hook(Box::new(|_| {})); // they are meant: nothing is printed
    let printed = Arc::new(Mutex::new(String::new()));
    let to = printed.clone();
    let vm = Options::new()
        .output(move |text| {
            assert!(!text.contains("bad"), "not to be printed");
            to.lock().unwrap().push_str(text);
        })
        .open()
        .unwrap();
    vm.define("boom", |_, args| panic!("boom of {}", args.len())).unwrap();
    vm.define("beyond", |_, args| Ok(args[3].clone())).unwrap();
    let e = vm.eval("boom(1, 2)").unwrap_err();
    assert_eq!((e.kind(), e.message()), ("host", "a panic in the host: boom of 2"));
    assert!(vm.eval("beyond()").unwrap_err().message().contains("index out of bounds"));
    assert_eq!(vm.eval("try { boom() } catch e { e.kind }").unwrap().as_str().unwrap(), "host");
    assert!(vm.eval("print(\"good\"); print(\"bad\")").unwrap_err().message().contains("not to be printed"));
    assert!(vm.eval("print(\"again\")").is_ok());
    assert_eq!(*printed.lock().unwrap(), "good\nagain\n");
    /// Panics when it is dropped.
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let bomb = Bomb;
    vm.define("bomb", move |cx, _| {
        let _ = &bomb;
        cx.nil()
    })
    .unwrap();
    vm.eval("bomb()").unwrap();
    vm.define("bomb", |cx, _| cx.nil()).unwrap();
    drop(vm);
    drop(std::panic::take_hook());
}

#[test]
fn errors_have_kind_and_place() {
    let vm = vm();
    let e = vm.eval_named("let a = 1\nfn f(x) = x + [1, 2]\nf([1, 2, 3])\n", "plan.weft").unwrap_err();
    assert_eq!((e.kind(), e.position()), ("shape", Some((2, 11))));
    assert!(e.message().starts_with("add: shapes (3,) and (2,)"), "{e}");
    assert!(e.text().contains("plan.weft:2:11") && e.text().contains('^'), "{}", e.text());
    assert_eq!((e.limit(), e.exit_code()), (None, None));
    assert_eq!(vm.eval("let = ").unwrap_err().kind(), "syntax");
    assert_eq!(vm.global("nothing").unwrap_err().kind(), "name");
    assert_eq!(vm.eval("exit(3)").unwrap_err().exit_code(), Some(3));
    assert_eq!(vm.load_file("no/such/file.weft").unwrap_err().kind(), "io");
    assert_eq!(vm.eval_named("1", "a\0b").unwrap_err().kind(), "value");
    // a value of another VM
    let (other, two) = (Vm::new_default().unwrap(), vm.int(2).unwrap());
    let e = other.set_global("x", &two).unwrap_err();
    assert_eq!(e.kind(), "");
    assert!(e.message().contains("another VM"), "{e}");
    // what a host function hands on stays what it was
    vm.define("inner", |cx, _| cx.eval("error(\"deep\", kind=\"value\")")).unwrap();
    assert_eq!(vm.eval("inner()").unwrap_err().kind(), "value");
    vm.define("other", |cx, _| {
        let _ = cx.eval("error(\"deep\", kind=\"value\")").unwrap_err();
        Err(Error::new("no such kind", "told\0 not this"))
    })
    .unwrap();
    let e = vm.eval("other()").unwrap_err();
    assert_eq!((e.kind(), e.message()), ("host", "told"));
    let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(e);
    assert_eq!(boxed.to_string(), "told");
}

#[test]
fn limits_end_programs() {
    let vm = Options::new().memory(8 << 20).fuel(100_000).depth(50).output_limit(100).output(|_| ()).open().unwrap();
    let limit = |text: &str| vm.eval(text).unwrap_err().limit();
    assert_eq!(limit("zeros(10000000)"), Some(Limit::Memory));
    assert_eq!(limit("fn f(n) = 1 + f(n + 1)\nf(0)"), Some(Limit::Depth));
    assert_eq!(limit("for i in 0..100 { print(\"0123456789\") }"), Some(Limit::Output));
    assert_eq!(limit("read_text(\"a\")"), Some(Limit::Files));
    assert_eq!(limit("for i in 0..1000000000 { }"), Some(Limit::Fuel));
    vm.set_limits(0, 0, Some(Duration::from_millis(30)));
    let (memory, fuel, time) = vm.left();
    assert!(memory.is_none() && fuel.is_none() && time.unwrap() <= Duration::from_millis(30));
    assert_eq!(limit("let i = 0; while true { i += 1 }"), Some(Limit::Deadline));
    vm.set_limits(0, 0, None);
    assert_eq!(vm.left(), (None, None, None));
    assert_eq!(vm.eval("1 + 1").unwrap().as_i64().unwrap(), 2);
    let _ = vm.collect();
    // a host function hands a limit on
    vm.define("run", |cx, _| cx.eval("for i in 0..1000000000 { }")).unwrap();
    vm.set_limits(0, 1000, None);
    assert_eq!(limit("try { run() } catch e { 1 }"), Some(Limit::Fuel));
}

#[test]
fn another_thread_interrupts() {
    let vm = vm();
    let handle = vm.interrupt_handle();
    let begun = Instant::now();
    let watchdog = std::thread::spawn({
        let handle = handle.clone();
        move || {
            std::thread::sleep(Duration::from_millis(50));
            handle.interrupt();
        }
    });
    let e = vm.eval("let i = 0; while true { i += 1 }").unwrap_err();
    watchdog.join().unwrap();
    assert_eq!((e.kind(), e.limit()), ("interrupt", Some(Limit::Interrupt)));
    assert!(begun.elapsed() < Duration::from_secs(20));
    drop(vm);
    handle.interrupt(); // nothing is there any more
}

#[test]
fn a_vm_changes_its_thread() {
    let vm = vm();
    vm.eval("let x = [1.0, 2.0]").unwrap();
    let vm = std::thread::spawn(move || {
        vm.eval("x = x * 2").unwrap();
        vm
    })
    .join()
    .unwrap();
    assert_eq!(vm.eval("sum(x)").unwrap().as_f64().unwrap(), 6.0);
    let sums: Vec<_> = (0..4i64)
        .map(|n| std::thread::spawn(move || Vm::new_default().unwrap().eval(&format!("sum(arange({n}))"))?.as_i64()))
        .collect();
    assert_eq!(sums.into_iter().map(|t| t.join().unwrap().unwrap()).sum::<i64>(), 4);
}

#[test]
fn modules_keep_scripts_apart() {
    let vm = vm();
    let canvas = vm.module("canvas").unwrap();
    canvas.define("line", |cx, args| cx.int(args.len() as i64)).unwrap();
    canvas.define_described("dot(x, y=2)", "A dot.", |cx, args| cx.int(args[1].as_i64()?)).unwrap();
    let script = vm.module("script").unwrap();
    script.set("canvas", canvas.value()).unwrap();
    assert_eq!(script.run("let a = canvas.line(1, 2, 3) + canvas.dot(0); a", "s").unwrap().as_i64().unwrap(), 5);
    assert_eq!(script.get("a").unwrap().as_i64().unwrap(), 5);
    assert_eq!(vm.eval("a").unwrap_err().kind(), "name");
    script.give_back().unwrap();
    vm.define("free", |cx, _| {
        let module = cx.module("inside")?;
        assert_eq!(module.give_back().unwrap_err().kind(), ""); // a program runs
        cx.nil()
    })
    .unwrap();
    vm.eval("free()").unwrap();
}

#[test]
fn options_say_what_is_wrong() {
    let wrong = |options: Options| options.open().err().unwrap();
    let e = wrong(Options::new().cpu("abacus"));
    assert_eq!(e.kind(), "value");
    assert!(e.message().starts_with("cpu is unknown"), "{e}");
    assert!(wrong(Options::new().backend("steam")).message().starts_with("backend is unknown"));
    assert_eq!(wrong(Options::new().backend("a\0b")).kind(), "value");
    let vm = Options::new().backend("eager").cpu("scalar").threads(1).stack(256 << 10).ignore_clock().open().unwrap();
    assert_eq!(vm.eval("sum(arange(5))").unwrap().as_i64().unwrap(), 10);
    let vm = Options::new().hot(1).deadline(Duration::from_millis(40)).open().unwrap();
    assert_eq!(vm.eval("while true { }").unwrap_err().limit(), Some(Limit::Deadline));
}

#[test]
fn programs_read_and_print_through_the_host() {
    let (printed, mut lines) = (Arc::new(Mutex::new(String::new())), vec!["first", "grün", ""].into_iter());
    let to = printed.clone();
    let vm = Options::new()
        .output(move |text| to.lock().unwrap().push_str(text))
        .input(move || lines.next().map(str::to_string))
        .allow_imports()
        .allow_env()
        .allow_gpu()
        .resolve_module(|path| path.contains("tools").then(|| "fn twice(x) = 2 * x".to_string()))
        .open()
        .unwrap();
    vm.eval("print(read_line()); print(read_line()); print(len(read_line())); print(read_line())").unwrap();
    assert_eq!(*printed.lock().unwrap(), "first\ngrün\n0\nnil\n");
    assert_eq!(vm.eval("import \"tools.weft\" as t\nt.twice(4)").unwrap().as_i64().unwrap(), 8);
    assert!(vm.eval("import \"other.weft\" as o").is_err());
}

#[test]
fn files_lie_below_a_folder() {
    let folder = std::env::temp_dir().join(format!("weft-rust-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "hello").unwrap();
    std::fs::write(folder.join("p.weft"), "let p = 6 * 7\np").unwrap();
    {
        let vm = Options::new().files_below(&folder).unwrap().open().unwrap();
        assert_eq!(vm.eval("read_text(\"a.txt\")").unwrap().as_str().unwrap(), "hello");
        assert_eq!(vm.eval("read_text(\"../a.txt\")").unwrap_err().kind(), "io");
        assert_eq!(vm.load_file(folder.join("p.weft")).unwrap().as_i64().unwrap(), 42);
    }
    let vm = Options::new().allow_files().open().unwrap();
    vm.set_global("path", &vm.text(folder.join("a.txt").to_str().unwrap()).unwrap()).unwrap();
    assert_eq!(vm.eval("read_text(path)").unwrap().as_str().unwrap(), "hello");
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(Options::new().files_below(&folder).is_err());
}

#[test]
fn weak_numbers_take_on_the_dtype_of_others() {
    let vm = vm();
    let f = vm.eval("k => f32([1.0]) * k").unwrap();
    assert_eq!(f.call(&[&vm.weak_float(2.0).unwrap()]).unwrap().dtype().unwrap(), DType::F32);
    assert_eq!(f.call(&[&vm.weak_int(2).unwrap()]).unwrap().dtype().unwrap(), DType::F32);
    assert_eq!(f.call(&[&vm.float(2.0).unwrap()]).unwrap().dtype().unwrap(), DType::F64);
}

#[test]
fn compiled_programs() {
    let vm = vm();
    vm.define("twice", |cx, args| cx.float(2.0 * args[0].as_f64()?)).unwrap();
    let bytes = vm.compile("fn f(x) = twice(x) + 1\nf(4.0)", "f.weft", false).unwrap();
    assert!(is_compiled(&bytes) && !is_compiled(b"1 + 1"));
    assert_eq!(vm.load_compiled(&bytes, None).unwrap().as_f64().unwrap(), 9.0);
    assert_eq!(vm.load_compiled(&bytes, Some("kept/f.weftc".as_ref())).unwrap().as_f64().unwrap(), 9.0);
    assert!(vm.compile("f(4.0)", "f.weft", true).unwrap().len() < vm.compile("f(4.0)", "f.weft", false).unwrap().len());
    assert_eq!(Vm::new_default().unwrap().load_compiled(&bytes, None).unwrap_err().kind(), "name");
    assert_eq!(vm.compile("let = 1", "f.weft", false).unwrap_err().kind(), "syntax");
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(vm.load_compiled(&changed, None).unwrap_err().kind(), "syntax");
    assert_eq!(vm.load_compiled(&[], None).unwrap_err().kind(), "syntax");
    let module = vm.module("script").unwrap();
    module.set("k", &vm.int(5).unwrap()).unwrap();
    let bytes = module.compile("k + 1", "s.weft", false).unwrap();
    assert_eq!(module.load_compiled(&bytes).unwrap().as_i64().unwrap(), 6);
}

fn waits(outcome: Outcome<'_>) -> Waiting<'_> {
    match outcome {
        Outcome::Waits(waiting) => waiting,
        Outcome::Done(value) => panic!("it has ended: {value}"),
    }
}

/// `ask(question)` waits, but for "now" and "bad".
fn asking() -> (Vm, Arc<Mutex<Vec<String>>>) {
    let (vm, asked) = (vm(), Arc::new(Mutex::new(Vec::new())));
    let kept = asked.clone();
    vm.define_suspending("ask", move |cx, args| {
        let question = args[0].as_str()?.to_string();
        let at_once = match &*question {
            "now" => Some(cx.int(1)?),
            "bad" => return Err(Error::new("value", "no such question")),
            "panic" => panic!("out of answers"),
            _ => None,
        };
        kept.lock().unwrap().push(question);
        Ok(at_once)
    })
    .unwrap();
    (vm, asked)
}

#[test]
fn programs_wait_and_go_on() {
    let (vm, asked) = asking();
    let text = "let s = 0; for q in (\"a\", \"now\", \"b\") { s += ask(q) }; s";
    let waiting = waits(vm.start(text, "mine").unwrap());
    let error = vm.eval("1").unwrap_err(); // nothing else runs
    assert!(error.kind().is_empty() && error.message().contains("waits"), "{error:?}");
    let waiting = waits(waiting.resume(&vm.int(10).unwrap()).unwrap());
    assert_eq!(*asked.lock().unwrap(), ["a", "now", "b"]);
    assert_eq!(waiting.resume(&vm.int(100).unwrap()).unwrap().done().unwrap().as_i64().unwrap(), 111);
    assert_eq!(vm.start("1 + 1", "mine").unwrap().done().unwrap().as_i64().unwrap(), 2);
    let f = vm.eval("q => ask(q) * 2").unwrap();
    let waiting = waits(f.start(&[&vm.text("c").unwrap()]).unwrap());
    assert_eq!(waiting.resume(&vm.int(4).unwrap()).unwrap().done().unwrap().as_i64().unwrap(), 8);
    let module = vm.module("script").unwrap();
    module.define_suspending("pause", |_, _| Ok(None)).unwrap();
    let waiting = waits(module.start("pause() + 1", "script").unwrap());
    assert_eq!(waiting.resume(&vm.int(4).unwrap()).unwrap().done().unwrap().as_i64().unwrap(), 5);
}

#[test]
fn programs_that_wait_may_fail() {
    let (vm, _) = asking();
    let waiting = waits(vm.start("try { ask(\"a\") } catch e { e.kind + \": \" + e.message }", "mine").unwrap());
    let value = waiting.fail("io", "no answer").unwrap().done().unwrap();
    assert_eq!(value.as_str().unwrap(), "io: no answer");
    let waiting = waits(vm.start("ask(\"a\")", "mine").unwrap());
    let error = waiting.fail("io", "no answer").unwrap_err();
    assert_eq!((error.kind(), error.message()), ("io", "no answer"));
    assert_eq!(vm.start("ask(\"bad\")", "mine").unwrap_err().kind(), "value");
    assert_eq!(vm.start("ask(\"panic\")", "mine").unwrap_err().message(), "a panic in the host: out of answers");
    // where a program cannot wait, and where nobody waits for it
    assert_eq!(vm.start("map(ask, (\"a\", \"b\"))", "mine").unwrap_err().kind(), "unsupported");
    assert_eq!(vm.eval("ask(\"a\")").unwrap_err().kind(), "unsupported");
    assert_eq!(vm.eval("1 + 1").unwrap().as_i64().unwrap(), 2);
    // an interrupt that comes meanwhile ends it
    let waiting = waits(vm.start("ask(\"a\")", "mine").unwrap());
    vm.interrupt_handle().interrupt();
    assert_eq!(waiting.resume(&vm.nil().unwrap()).unwrap_err().limit(), Some(Limit::Interrupt));
}

#[test]
fn programs_that_wait_end_with_what_waits_for_them() {
    let (vm, _) = asking();
    drop(vm.start("ask(\"a\")", "mine").unwrap());
    assert_eq!(vm.eval("1 + 1").unwrap().as_i64().unwrap(), 2);
    waits(vm.start("ask(\"a\")", "mine").unwrap()).cancel();
    assert_eq!(vm.eval("1 + 1").unwrap().as_i64().unwrap(), 2);
    let other = self::vm();
    let waiting = waits(vm.start("ask(\"a\")", "mine").unwrap());
    assert_eq!(waiting.resume(&other.int(1).unwrap()).unwrap_err().kind(), ""); // of another VM
    assert_eq!(vm.eval("1 + 1").unwrap().as_i64().unwrap(), 2);
}

#[test]
fn what_there_is_to_know() {
    let vm = vm();
    assert_eq!(vm.load_text("let a = 3\na", "no/such.weft").unwrap().as_i64().unwrap(), 3);
    assert_eq!(vm.format("let  a=1", "mine").unwrap().trim_end(), "let a = 1");
    assert_eq!(vm.format("let = 1", "mine").unwrap_err().kind(), "syntax");
    let f = vm.eval("fn f(x) = x + 1; f").unwrap();
    assert!(vm.dump("source", Some(&f)).unwrap().unwrap().contains("x + 1"));
    assert!(vm.dump("explain", None).unwrap().is_some());
    assert!(vm.dump("no such thing", None).unwrap().is_none());
    assert_eq!(vm.set_device("none").unwrap_err().kind(), "");
    vm.set_device("cpu").unwrap();
    assert!(vm.eval("[1.0, 2.0]").unwrap().display().contains("2"));
    assert!(vm.weak_complex(1.0, 2.0).unwrap().is_weak() && !vm.float(1.0).unwrap().is_weak());
    let third =
        vm.function_described("third(x, n=3)", "A part.", |cx, args| cx.float(args[0].as_f64()? / args[1].as_f64()?));
    let third = third.unwrap();
    let (nine, two) = (vm.int(9).unwrap(), vm.int(2).unwrap());
    assert_eq!(third.call(&[&nine]).unwrap().as_f64().unwrap(), 3.0);
    assert_eq!(third.call_named(&[&nine], &[("n", &two)]).unwrap().as_f64().unwrap(), 4.5);
}
