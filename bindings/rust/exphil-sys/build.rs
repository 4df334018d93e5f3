//! Finds libexphil through the program pkg-config ($PKG_CONFIG names another one) and says how to link it. Dependents
//! read the library's folder as DEP_EXPHIL_LIBDIR.

use std::env;
use std::process::Command;

/// One question to pkg-config; what it complains of is the build's error.
fn pkg_config(arguments: &[&str]) -> String {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let answer = match Command::new(&program).args(arguments).arg("exphil").output() {
        Ok(answer) => answer,
        Err(error) => panic!("{}: {} (install pkg-config, or set PKG_CONFIG)", program, error),
    };
    if !answer.status.success() {
        panic!(
            "{} {} exphil: {}(is libexphil installed? set PKG_CONFIG_PATH to the folder of exphil.pc)",
            program,
            arguments.join(" "),
            String::from_utf8_lossy(&answer.stderr)
        );
    }
    String::from_utf8_lossy(&answer.stdout).trim().to_string()
}

/// The header's declarations are of one minor version: while that is 0.x, another one may differ.
fn check_version() {
    let installed = pkg_config(&["--modversion"]);
    let wanted = format!("{}.{}.", env::var("CARGO_PKG_VERSION_MAJOR").unwrap(), env::var("CARGO_PKG_VERSION_MINOR").unwrap());
    if !installed.starts_with(&wanted) {
        panic!("libexphil {} is installed, these declarations are for {}x", installed, wanted);
    }
}

fn main() {
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    println!("cargo:rerun-if-changed=build.rs");
    check_version();
    let linked = env::var_os("CARGO_FEATURE_STATIC").is_some();
    let folder = pkg_config(&["--variable=libdir"]);
    println!("cargo:rustc-link-search=native={}", folder);
    println!("cargo:libdir={}", folder);
    let flags = if linked { pkg_config(&["--static", "--libs"]) } else { pkg_config(&["--libs"]) };
    for flag in flags.split_whitespace() {
        if let Some(folder) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={}", folder);
        } else if flag == "-lexphil" && linked {
            println!("cargo:rustc-link-lib=static=exphil");
        } else if let Some(library) = flag.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={}", library);
        } else if flag == "-pthread" {
            println!("cargo:rustc-link-lib=pthread");
        }
    }
}
