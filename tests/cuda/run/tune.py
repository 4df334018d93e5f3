"""`exphil bench tune` writes a file of choices that a later run takes and shows in its table of operations; a choice that is
edited is the one that is taken; odd files are refused by name before anything is measured, and --device auto goes on without the
device. Arguments: the program, the folder of the plugin."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, FOLDER = sys.argv[1], sys.argv[2]
NAME = re.compile(r"(linear(?:_grad)?_cublaslt)((?:/[-0-9.]+)+)")


def run(*words, choices=None, library="libfake_cublasLt.so"):
    """Its exit status and all that it said."""
    said = {k: v for k, v in os.environ.items() if not k.startswith("EXPHIL_CU")}
    said |= {"EXPHIL_BACKEND_DIR": FOLDER, "EXPHIL_CUBLASLT": f"{FOLDER}/{library}" if library else "none"}
    if choices is not None:
        said["EXPHIL_CUBLASLT_CHOICES"] = str(choices)
    ended = subprocess.run([PROGRAM, "bench", "--quick", "--plain", "--device", *words], env=said, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
    return ended.returncode, ended.stdout


def ask(true, what, said=""):
    if not true:
        sys.exit(f"FAILED: {what}\n{said}")


def sum_of(data):
    total = 0xCBF29CE484222325
    for byte in data:
        total = (total ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return total


def with_algorithm(text, number):
    """The file, all of whose products take this algorithm of the stand-in."""
    lines = text.splitlines()[:-1]
    for i, line in enumerate(lines):
        words = line.split(" ")
        if words[0] == "product":
            words[21], words[30] = str(number), f"{number:016x}"
            lines[i] = " ".join(words)
    body = "\n".join(lines) + "\n"
    return body + f"sum {sum_of(body.encode()):016x}\n"


def table(choices):
    code, said = run("cuda:0", "--roofline", "train", "lstm", choices=choices)
    ask(code == 0 and "operations of an update" in said, "the run by choices", said)
    ask("cuBLASLt refuses" not in said, "a product was refused", said)
    ask((choices is None) == ("EXPHIL_CUBLASLT_CHOICES" not in said), "the log tells what choices were taken", said)
    return said


def fitting(said):
    """Choices that fit, of how many; products that have one, of how many."""
    told = re.findall(r"cuda:0: EXPHIL_CUBLASLT_CHOICES: (\d+) of (\d+) choices fit; (\d+) of (\d+) products have one", said)
    ask(told, "a line of the log on choices for each time that the device is closed", said)
    return [int(number) for number in told[0]]


with tempfile.TemporaryDirectory() as folder:
    made = pathlib.Path(folder) / "choices"
    code, said = run("cuda:0", "--choices", str(made), "tune", "lstm")
    ask(code == 0 and made.exists() and not made.with_name("choices.new").exists(), "tune", said)
    text = made.read_text()
    lines = re.findall(r"^exphil: bench: (?:y|dw|dx) m (\d+) n (\d+) k (\d+) f32: ([0-9.]+), ", said, re.M)
    products = [line.split(" ")[1:] for line in text.splitlines() if line.startswith("product ")]
    ask(len(lines) >= 10 and len(lines) == len(products), "a line for each product", said)
    for line, p in zip(lines, products):
        ask(line == (p[0], p[1], p[2], ".".join(p[20:24])), f"{line} is not {p}")

    ask(f"{len(products)} choices written to {made}" in said and "cuBLASLt's first " in said, "how it ends", said)
    ask("GB/s" not in said, "it tells the processor's floors", said)
    code, said = run("cuda:0", "--choices", f"{folder}/tf32", "--precision", "tf32", "tune", "lstm")
    ask(code == 0 and " tf32: " in said and " f32: " not in said, "tune in tf32", said)

    # of a policy of a file; of other shapes nothing fits, which is told
    weights = f"{folder}/policy.safetensors"
    subprocess.run([PROGRAM, "learn", "--world", "cartpole", "--blocks", "lstm", "--hidden", "24", "--frames", "1000",
                    "--scores", "0", "--quiet", "--out", weights], check=True, stdout=subprocess.DEVNULL)
    own = f"{folder}/own"
    code, said = run("cuda:0", "--choices", own, "--weights", weights, "--batch", "3", "--time", "5", "tune")
    ask(code == 0 and re.search(r" y m 96 n 15 k 24 f32: ", said), "tune of a policy of one's own", said)
    ask(fitting(table(own))[::2] == [0, 0], "choices of other shapes")
    code, said = run("cuda:0", "--choices", own, "--force", "--weights", weights, "--batch", "0", "tune")
    ask(code == 2 and "--batch wants 1 to" in said, "--batch 0", said)

    fit, of, having, asked = fitting(table(made))
    ask(0 < fit <= of == len(products) and 0 < having <= asked, f"{fit} of {of} fit, {having} of {asked} have one")
    ask(not NAME.search(table(None)), "a run without choices shows some")
    known = {".".join(p[20:24]) for p in products}
    shown = [name for _, names in NAME.findall(table(made)) for name in names[1:].split("/") if name != "-"]
    ask(len(shown) >= 3 and set(shown) <= known, f"the table shows {shown}, the file has {known}")
    made.write_text(with_algorithm(text, 1))
    shown = [name for _, names in NAME.findall(table(made)) for name in names[1:].split("/") if name != "-"]
    ask(set(shown) == {"1.1.1.1"}, f"the table shows {shown}, all of the file's are 1.1.1.1")

    # no sum of what is there, a folder, nothing at all, no library to choose from
    broken = pathlib.Path(folder) / "broken"
    broken.write_text(text.replace("isa sm_90", "isa sm_80"))
    for odd, words in ((broken, "byte "), (folder, "it is no regular file"), ("/nowhere/c", "No such file")):
        code, said = run("cuda:0", "train", "lstm", choices=odd)
        ask(code == 1 and said.count("EXPHIL_CUBLASLT_CHOICES: ") == 1 and words in said, f"{odd} is refused", said)
        ask("unset EXPHIL_CUBLASLT_CHOICES" in said and "--device out" not in said, "the hint is of the choices", said)
    code, said = run("cuda:0", "train", "lstm", choices=made, library=None)
    ask(code == 1 and "there is no cuBLASLt to choose from" in said, "choices without a library", said)
    code, said = run("cuda:0", "train", "lstm", library="nowhere/lib.so")
    ask(code == 0 and f"own kernels: EXPHIL_CUBLASLT: {FOLDER}/nowhere/lib.so: No such file" in said, "which file", said)
    code, said = run("auto", "train", "lstm", choices=broken)
    ask(code == 0 and "running on the CPU: EXPHIL_CUBLASLT_CHOICES: " in said, "auto goes on", said)

    # what tune cannot write or has nothing for: the file that was there stays
    before = made.read_text()
    for words, library in (((), None), ((), "librefusing_cublasLt.so")):
        code, said = run("cuda:0", "--choices", str(made), "tune", "lstm", *words, library=library)
        ask(code != 0 and made.read_text() == before, f"tune with {library}", said)
    code, said = run("cuda:0", "--choices", folder, "tune", "lstm")
    ask(code != 0 and "folder" in said, "tune into a folder", said)
    for words in (("cuda:0", "tune", "lstm"), ("cuda:0", "--choices", str(made), "train", "lstm")):
        code, said = run(*words)
        ask(code == 2 and "--choices is for" in said, f"{words} is refused", said)
print(f"{len(products)} products tuned and taken")
