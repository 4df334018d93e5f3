//! Finds libexphil through the program pkg-config ($PKG_CONFIG names another one) and says how to link it. Dependents
//! read the library's folder as DEP_EXPHIL_LIBDIR. A package from the registry carries the library's source in the folder
//! libexphil: where none that fits is installed, or with the feature "vendored", that is compiled and linked.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

/// Ends the build with a sentence; a panic would put its own words around it.
fn stop(sentence: String) -> ! {
    eprintln!("{}", sentence);
    exit(1)
}

/// One question to pkg-config; what it complains of is the error. Folders of the system's are told as well.
fn pkg_config(arguments: &[&str]) -> Result<String, String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let mut question = Command::new(&program);
    question.args(arguments).arg("exphil").env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
    let answer =
        question.output().map_err(|error| format!("{}: {} (install pkg-config, or set PKG_CONFIG)", program, error))?;
    if !answer.status.success() {
        return Err(format!(
            "{} {} exphil: {}(is libexphil installed? set PKG_CONFIG_PATH to the folder of exphil.pc)",
            program,
            arguments.join(" "),
            String::from_utf8_lossy(&answer.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&answer.stdout).trim().to_string())
}

/// The header's declarations are of one minor version: while that is 0.x, another one may differ.
fn check_version() -> Result<(), String> {
    let installed = pkg_config(&["--modversion"])?;
    let number = |part| env::var(part).unwrap();
    let wanted = format!("{}.{}.", number("CARGO_PKG_VERSION_MAJOR"), number("CARGO_PKG_VERSION_MINOR"));
    if !installed.starts_with(&wanted) {
        return Err(format!("libexphil {} is installed, these declarations are for {}x", installed, wanted));
    }
    Ok(())
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

/// Links what is installed.
fn link_installed() -> Result<(), String> {
    check_version()?;
    let linked = env::var_os("CARGO_FEATURE_STATIC").is_some();
    let flags = words(&if linked { pkg_config(&["--static", "--libs"])? } else { pkg_config(&["--libs"])? });
    // The first folder is exphil's own. Not asked for as a variable: whether that is escaped depends on the program.
    match flags.iter().find_map(|flag| flag.strip_prefix("-L")) {
        Some(folder) => println!("cargo:libdir={}", folder),
        None => return Err(format!("exphil.pc names no folder of the library: {:?}", flags)),
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
    Ok(())
}

/// Whether the compiler is gcc ("gnu") or understands what clang does: it is asked, its name says little.
fn compiler(out: &Path) -> &'static str {
    let probe = out.join("compiler.c");
    std::fs::write(&probe, "#ifdef __clang__\ncompiler_clang\n#elif defined __GNUC__\ncompiler_gnu\n#endif\n").unwrap();
    let said = match cc::Build::new().cargo_metadata(false).warnings(false).file(&probe).try_expand() {
        Ok(said) => String::from_utf8_lossy(&said).into_owned(),
        Err(error) => stop(format!("no C compiler, which libexphil is compiled by: {}", error)),
    };
    match said.lines().find_map(|line| line.trim().strip_prefix("compiler_")) {
        Some("gnu") => "gnu",
        Some(_) => "clang",
        None => {
            stop("libexphil is compiled by gcc or clang (for Windows take the target x86_64-pc-windows-gnu)".into())
        }
    }
}

/// Compiles the source in this folder, as libexphil/sources.txt says (cmake/Sources.cmake of the source tree explains it).
fn compile(source: &Path) {
    let list = std::fs::read_to_string(source.join("sources.txt")).unwrap();
    let lines: Vec<Vec<&str>> = list.lines().map(|line| line.split(' ').collect()).collect();
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{}", part)).unwrap_or_default();
    let system = match target("OS").as_str() {
        "windows" => "windows",
        "macos" => "macos",
        "wasi" => "wasi",
        _ => "posix",
    };
    let processor = match target("ARCH").as_str() {
        "x86_64" if target("POINTER_WIDTH") == "64" => "x86",
        "aarch64" if target("POINTER_WIDTH") == "64" => "arm",
        _ => "any",
    };
    let here = |word: &str| word == "any" || word == processor;
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let compiler = compiler(&out);
    env::set_current_dir(source).unwrap(); // paths of the list begin there
    for group in lines.iter().filter(|line| line[0] == "groups" && here(line[1])).flat_map(|line| &line[2..]) {
        let mut build = cc::Build::new();
        build.opt_level(3).debug(false).warnings(false).extra_warnings(false).out_dir(out.join(group));
        for line in lines.iter().filter(|line| line.len() > 2 && line[1] == *group) {
            if line[0] == "flags" && here(line[2]) {
                for word in &line[3..] {
                    match word.split_once(':') {
                        Some((name, flag)) if name == compiler => build.flag(flag),
                        Some(("gnu" | "clang", _)) => &mut build,
                        _ => build.flag(word),
                    };
                }
            } else if line[0] == "file" && line[2].split(',').any(|name| name == system) {
                build.file(line[3]);
            }
        }
        build.compile(&format!("exphil_{}", group));
    }
    if system == "posix" {
        for library in ["m", "pthread", "dl"] {
            println!("cargo:rustc-link-lib={}", library);
        }
    }
    println!("cargo:include={}", source.join("include").display());
}

fn main() {
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    println!("cargo:rerun-if-changed=build.rs");
    let source = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("libexphil");
    let carried = source.join("sources.txt").is_file();
    if carried {
        println!("cargo:rerun-if-changed=libexphil");
    }
    if env::var_os("CARGO_FEATURE_VENDORED").is_some() {
        if !carried {
            stop(format!(
                "the feature vendored compiles {}, which only packages have (tools/packages rust)",
                source.display()
            ));
        }
        return compile(&source);
    }
    match link_installed() {
        Ok(()) => (),
        Err(why) if carried => {
            println!("cargo:warning=libexphil is compiled from the package's source, for none is linked: {}", why);
            compile(&source)
        }
        Err(why) => stop(why),
    }
}
