// Runs a program for WASI in V8: node tools/wasi.mjs PROGRAM [ARGUMENT]... The program sees all folders of the machine, and the
// current one as its own.
import { readFile } from "node:fs/promises";
import { argv, cwd, env, exit } from "node:process";
import { WASI } from "node:wasi";

const args = argv.slice(2);
const wasi = new WASI({ version: "preview1", args, env, preopens: { "/": "/", ".": cwd() }, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(args[0]));
exit(wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject())));
