//! Finds libexphil through the program pkg-config ($PKG_CONFIG names another one) and says how to link it. Dependents
//! read the library's folder as DEP_EXPHIL_LIBDIR.

use std::env;
use std::process::{exit, Command};

/// Ends the build with a sentence; a panic would put its own words around it.
fn stop(sentence: String) -> ! {
    eprintln!("{}", sentence);
    exit(1)
}

/// One question to pkg-config; what it complains of is the build's error. Folders of the system's are told as well.
fn pkg_config(arguments: &[&str]) -> String {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let mut question = Command::new(&program);
    question.args(arguments).arg("exphil").env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
    let answer = match question.output() {
        Ok(answer) => answer,
        Err(error) => stop(format!("{}: {} (install pkg-config, or set PKG_CONFIG)", program, error)),
    };
    if !answer.status.success() {
        stop(format!(
            "{} {} exphil: {}(is libexphil installed? set PKG_CONFIG_PATH to the folder of exphil.pc)",
            program,
            arguments.join(" "),
            String::from_utf8_lossy(&answer.stderr)
        ));
    }
    String::from_utf8_lossy(&answer.stdout).trim().to_string()
}

/// The header's declarations are of one minor version: while that is 0.x, another one may differ.
fn check_version() {
    let installed = pkg_config(&["--modversion"]);
    let number = |part| env::var(part).unwrap();
    let wanted = format!("{}.{}.", number("CARGO_PKG_VERSION_MAJOR"), number("CARGO_PKG_VERSION_MINOR"));
    if !installed.starts_with(&wanted) {
        stop(format!("libexphil {} is installed, these declarations are for {}x", installed, wanted));
    }
}

/// Flags as pkg-config writes them for a shell: a backslash stands before a space that belongs to a path.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => words.last_mut().unwrap().extend(letters.next()),
            _ if letter.is_whitespace() => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn main() {
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    println!("cargo:rerun-if-changed=build.rs");
    check_version();
    let linked = env::var_os("CARGO_FEATURE_STATIC").is_some();
    let flags = words(&if linked { pkg_config(&["--static", "--libs"]) } else { pkg_config(&["--libs"]) });
    // The first folder is exphil's own. Not asked for as a variable: whether that is escaped depends on the program.
    match flags.iter().find_map(|flag| flag.strip_prefix("-L")) {
        Some(folder) => println!("cargo:libdir={}", folder),
        None => stop(format!("exphil.pc names no folder of the library: {:?}", flags)),
    }
    for flag in flags {
        if let Some(folder) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={}", folder);
        } else if flag == "-lexphil" && linked {
            println!("cargo:rustc-link-lib=static=exphil");
        } else if let Some(library) = flag.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={}", library);
        } else if let Some((folder, library)) = flag.strip_suffix(".a").and_then(|path| path.rsplit_once("/lib")) {
            // An archive by its path: CUDA's run-time, where that is built in.
            println!("cargo:rustc-link-search=native={}", folder);
            println!("cargo:rustc-link-lib=static={}", library);
        } else if flag == "-pthread" {
            println!("cargo:rustc-link-lib=pthread");
        }
    }
}
