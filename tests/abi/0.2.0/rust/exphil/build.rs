//! Lets this package's own tests and examples find a library that is installed in a folder of the user's choice. Programs
//! that depend on the crate set LD_LIBRARY_PATH or an rpath of their own: cargo hands no linker arguments on. Windows has no such
//! path: exphil-0.dll lies beside the program or in a folder of PATH.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_CFG_WINDOWS").is_some() {
        return;
    }
    if let Ok(folder) = env::var("DEP_EXPHIL_LIBDIR") {
        // In words of their own: -Wl would cut a folder at its commas.
        for word in ["-Xlinker", "-rpath", "-Xlinker", &folder] {
            println!("cargo:rustc-link-arg={}", word);
        }
    }
}
