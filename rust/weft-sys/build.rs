//! build.rs: says to cargo where the library is: in `WEFT_LIB_DIR`, else where pkg-config knows of it.

use std::env;
use std::path::Path;
use std::process::{exit, Command};

fn fail(why: &str) -> ! {
    eprintln!("weft-sys: {why}");
    exit(1)
}

fn in_folder(folder: &str, archive: bool) {
    let file = if archive { "libweft.a" } else { "libweft.so" };
    let folder = Path::new(folder);
    if !folder.join(file).exists() {
        fail(&format!("WEFT_LIB_DIR has no {file}: {}", folder.display()));
    }
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rerun-if-changed={}", folder.join(file).display());
    println!("cargo:rustc-link-lib={}=weft", if archive { "static" } else { "dylib" });
    if archive {
        for library in ["m", "dl", "pthread"] {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }
}

fn by_pkg_config(archive: bool) {
    let mut command = Command::new("pkg-config");
    command.arg("--libs");
    if archive {
        command.arg("--static");
    }
    let hint = "set WEFT_LIB_DIR to the folder of the library, or PKG_CONFIG_PATH to that of weft.pc";
    let out = match command.arg("weft").output() {
        Ok(out) if out.status.success() => out,
        Ok(out) => fail(&format!("{}\n{hint}", String::from_utf8_lossy(&out.stderr).trim())),
        Err(e) => fail(&format!("pkg-config cannot be run: {e}\n{hint}")),
    };
    for word in String::from_utf8_lossy(&out.stdout).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            let kind = if archive && library == "weft" { "static" } else { "dylib" };
            println!("cargo:rustc-link-lib={kind}={library}");
        }
    }
}

fn main() {
    for variable in ["WEFT_LIB_DIR", "PKG_CONFIG_PATH", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let archive = env::var_os("CARGO_FEATURE_STATIC").is_some();
    match env::var("WEFT_LIB_DIR") {
        Ok(folder) if !folder.is_empty() => in_folder(&folder, archive),
        _ => by_pkg_config(archive),
    }
}
