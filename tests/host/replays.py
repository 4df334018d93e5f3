#!/usr/bin/env python3
"""The program for people with many replays: folders, lists, archives, and what `exphil slp info` says of them.

  replays.py EXPHIL SOURCE    works on drills that the program writes itself; real replays beside SOURCE (../shared, or
                              EXPHIL_REPLAYS) are compared with what another reader wrote down of them
"""
import bz2
import ctypes
import gzip
import io
import json
import lzma
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

EXPHIL, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
failed = 0
runs = 0


def complain(text):
    global failed
    failed = 1
    print(f"FAILED: {text}")


def run(*arguments, status=0, given=None, env=None):
    """Runs the program; a hang is a failure, and nothing here takes long."""
    global runs
    runs += 1
    done = subprocess.run([EXPHIL, *map(str, arguments)], input=given if given is not None else b"", capture_output=True,
                          env={**os.environ, **(env or {})}, timeout=600, check=False)
    out, err = done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape")
    if done.returncode != status:
        complain(f"{' '.join(map(str, arguments))} ended with {done.returncode}, not {status}: {out[:300]}{err[:600]}")
    return out, err


def says(what, text, *wanted):
    for one in wanted:
        if one not in text:
            complain(f"{what} does not say {one!r}: {text[:900]}")


def info(*arguments, status=0, given=None):
    out, _ = run("slp", "info", "--json", *arguments, status=status, given=given)
    return [json.loads(line) for line in out.splitlines()]


def names(*arguments, status=0, given=None):
    return [one["file"] for one in info(*arguments, status=status, given=given) if one["readable"]]


def same(what, got, wanted):
    if got != wanted:
        complain(f"{what}: {got}, not {wanted}")


def corpus_hash(*arguments, given=None, status=0):
    out, err = run("corpus", "--rows", "--port", 1, "--force", "--out", "packed", *arguments, given=given, status=status)
    if status:
        return err
    out, _ = run("info", "--json", "packed")
    return json.loads(out)["content_hash"]


# ---- folders and lists -------------------------------------------------------------------------------------------------


def folders():
    for path in ("m/b.slp", "m/B.slp", "m/sub/a.slp", "m/sub-1.slp", "m/.hidden.slp", "m/.git/x.slp", "m/note.txt"):
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("one.slp", path)
    pathlib.Path("m/u\xe4.slp").write_bytes(pathlib.Path("two.slp").read_bytes())
    wanted = ["m/B.slp", "m/b.slp", "m/sub/a.slp", "m/sub-1.slp", "m/u\xe4.slp"]
    same("a folder", names("m"), wanted)
    same("a folder with a slash", names("m/"), wanted)
    # links are followed, each file comes once, and circles end
    os.symlink("..", "m/sub/up")
    os.symlink("../one.slp", "m/z-link.slp")
    os.symlink("b.slp", "m/zz-same.slp")
    os.link("m/b.slp", "m/zzz-hard.slp")
    same("links", names("m"), [*wanted, "m/z-link.slp"])
    same("twice", names("m", "m/b.slp", "./m/../m/sub", "m"), [*wanted, "m/z-link.slp"])
    # special files are told and never waited for
    os.mkfifo("m/pipe.slp")
    os.symlink("nowhere", "m/dangling.slp")
    same("special files", [one["error"] for one in info("m", status=1) if not one["readable"]],
         ["No such file or directory", "this is neither a regular file nor a folder"])
    out, err = run("slp", "info", "m", status=1)
    says("a table", out, "8 files: 6 games", "cannot be read: 2 (--verbose names them)",
         "1  this is neither a regular file nor a folder")
    if "pipe.slp" in out + err:
        complain("a line for each bad file")
    out, err = run("slp", "info", "--verbose", "m", status=1)
    says("--verbose", err, "m/pipe.slp: this is neither", "m/dangling.slp: No such file")
    _, err = run("corpus", "--rows", "--port", 1, "--out", "packed", "m")
    says("corpus", err, "replay left out: this is neither a regular file nor a folder (m/pipe.slp)", "of 6 replays; 2 left out",
         "named more than once and read once: 3")
    for path in ("m/pipe.slp", "m/dangling.slp", "m/sub/up", "m/z-link.slp", "m/zz-same.slp", "m/zzz-hard.slp"):
        os.unlink(path)
    # patterns: by path, by name, whole folders
    same("--exclude by name", names("--exclude", "b*", "m"), ["m/B.slp", "m/sub/a.slp", "m/sub-1.slp", "m/u\xe4.slp"])
    same("--exclude twice", names("--exclude", "[bB].slp", "--exclude=m/sub*", "m"), ["m/u\xe4.slp"])
    same("--exclude by path", names("--exclude", "*/a.slp", "./m"), [f"./{one}" for one in wanted if "a.slp" not in one])
    same("--exclude what is named", names("--exclude", "one*", "one.slp", "two.slp"), ["two.slp"])
    _, err = run("slp", "info", "--exclude", "*", "m/b.slp", status=1)
    says("--exclude all", err, "nothing is left")
    _, err = run("corpus", "--force", "--out", "packed", "--exclude", "*", "--exclude", "m/*", "m/sub", status=1)
    says("--exclude all of a folder", err, "nothing is left")
    _, err = run("corpus", "--force", "--out", "packed", "--exclude", "*.slp", "m", status=1)
    says("--exclude all in a folder", err, "no .slp and no .games in m but what --exclude leaves out (5)")


def lists():
    wanted = ["m/b.slp", "m/sub/a.slp", "one.slp", "two.slp"]
    lines = ["two.slp", "m/sub/a.slp", "", "one.slp", "m/b.slp", "one.slp"]
    pathlib.Path("list").write_text("\n".join(lines))
    pathlib.Path("list0").write_bytes(b"\0".join(line.encode() for line in lines))
    pathlib.Path("listr").write_text("\r\n".join(lines) + "\r\n")
    same("a list", names("--files-from", "list"), wanted)
    same("a list of Windows", names("--files-from", "listr"), wanted)
    same("a list with NULs", names("--files-from", "list0", "--null"), wanted)
    same("standard input", names("--files-from", "-", given="\n".join(lines).encode()), wanted)
    same("files and a list", names("two.slp", "--files-from=list"), ["two.slp", *wanted[:3]])
    same("a folder in a list", names("--files-from", "-", given=b"m/sub\n"), ["m/sub/a.slp"])
    odd = "with\nline end.slp"
    shutil.copy("one.slp", odd)
    same("a name with a line end", names("--files-from", "-", "--null", given=odd.encode()), [odd])
    out, _ = run("slp", "info", "--files-from", "-", "--null", given=odd.encode() + b"\0two.slp")
    says("a name with a line end", out, "with?line end.slp")
    # the order of a list does not change the data, and every command takes one
    same("the order of a list", corpus_hash("--files-from", "list"), corpus_hash(*wanted))
    run("train", "--port", 1, "--blocks", "gru", "--hidden", 8, "--updates", 1, "--quiet", "--out", "p", "--files-from", "list")
    run("eval", "p", "--port", 1, "--files-from", "-", given=b"two.slp\n")
    run("quantize", "--out", "q", "p", "--port", 1, "--files-from", "list")
    # errors name the line
    for given, status, wanted in (
            (b"one.slp\n\nnone.slp\n", 1, "line 3 of standard input:\nexphil: none.slp: No such file or directory"),
            (b"one.slp\np\n", 1, "line 2 of standard input:\nexphil: p: these are weights"),
            (b"packed\n", 1, "packed: this is a corpus; a corpus of rows must be the only file"),
            (b"one.slp\ntwo\0.slp\n", 1, "line 2 of standard input holds a NUL byte; --null"),
            (b"one.slp\n" + b"x" * 5000, 1, "line 2 of standard input is longer than a path may be"),
            (b"\n\n", 1, "standard input names no file"),
            (b"pipe\n", 1, "line 1 of standard input:\nexphil: pipe: this is neither a regular file nor a folder")):
        says("a list", corpus_hash("--files-from", "-", given=given, status=status), wanted)
    says("no list", corpus_hash("--files-from", "none", status=1), "--files-from none: No such file or directory")
    _, err = run("corpus", "--out", "packed", "--null", "--force", "one.slp", status=1)
    says("--null alone", err, "--null goes with --files-from")
    _, err = run("corpus", "--out", "packed", "--force", status=2)
    says("no files", err, "corpus wants replays")
    # in a list, what cannot be read is passed over, as in folders; an absent file is told by slp info too
    _, err = run("corpus", "--rows", "--port", 1, "--force", "--out", "packed", "--files-from", "-", given=b"one.slp\nbad.slp\n")
    says("a bad replay in a list", err, "replay left out: not a replay (bad.slp)", "of 1 replay; 1 left out")
    out, err = run("slp", "info", "--verbose", "--files-from", "-", given=b"one.slp\nnone.slp\n", status=1)
    says("slp info of a list", out + err, "line 2: none.slp: ", "2 files: 1 game")


# ---- archives ----------------------------------------------------------------------------------------------------------


def add_tar(archive, name, data, kind=tarfile.REGTYPE, link=""):
    entry = tarfile.TarInfo(name)
    entry.size, entry.type, entry.linkname = len(data), kind, link
    archive.addfile(entry, io.BytesIO(data))


def good_archives(one, two):
    pathlib.Path("c").mkdir()
    pathlib.Path("c/one.slp.gz").write_bytes(gzip.compress(one))
    pathlib.Path("c/one.slp.bz2").write_bytes(bz2.compress(one))
    pathlib.Path("c/one.slp.xz").write_bytes(lzma.compress(one))
    with zipfile.ZipFile("c/z.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("games/one.slp", one)
        z.writestr("games/\u00e4.slp", two)
        z.writestr("readme.txt", "hello")
        z.writestr("__MACOSX/games/._one.slp", "x")
    for name, how in (("c/t.tar", "w"), ("c/t.tar.gz", "w:gz"), ("c/t.tar.xz", "w:xz"), ("c/t.tar.bz2", "w:bz2")):
        with tarfile.open(name, how) as t:
            add_tar(t, "./two.slp", two)
            add_tar(t, "big.bin", bytes(1 << 20))
            add_tar(t, "one.slp", one)
    wanted = ["c/one.slp.bz2", "c/one.slp.gz", "c/one.slp.xz", "c/t.tar:./two.slp", "c/t.tar:one.slp"]
    wanted += [f"c/t.tar.{end}:{name}" for end in ("bz2", "gz", "xz") for name in ("./two.slp", "one.slp")]
    wanted += ["c/z.zip:games/one.slp", "c/z.zip:games/\u00e4.slp"]
    same("archives in a folder", names("c"), wanted)
    same("an archive by its content", names(shutil.copy("c/z.zip", "zipped")), ["zipped:games/one.slp", "zipped:games/\u00e4.slp"])
    same("an entry", names("c/z.zip:games/one.slp"), ["c/z.zip:games/one.slp"])
    same("a pattern in an archive", names("--exclude", "one.slp", "c/z.zip"), ["c/z.zip:games/\u00e4.slp"])
    # the rows are the same bits
    plain = corpus_hash("one.slp", "two.slp")
    same("a zip", corpus_hash("c/z.zip"), plain)
    same("compressed files", corpus_hash("c/one.slp.xz", "c/t.tar.gz:./two.slp"), plain)
    run("train", "--port", 1, "--blocks", "gru", "--hidden", 8, "--updates", 1, "--quiet", "--force", "--out", "p", "c/z.zip")
    for path in ("c/one.slp.gz", "c/z.zip:games/one.slp"):
        run("play", "p", path)
        run("info", path)
        run("slp", "dump", path, "--what", "state", "--slot", "P1", "--out", "dumped", "--force")
        run("slp", "dump", "one.slp", "--what", "state", "--slot", "P1", "--out", "plain", "--force")
        same("a dump", pathlib.Path("dumped").read_bytes() == pathlib.Path("plain").read_bytes(), True)
        out, _ = run("slp", "info", path)
        says("a page", out, path, "  stage     final destination")
    _, err = run("play", "p", "c/z.zip", status=1)
    says("play of many", err, "more than one replay; name one as ARCHIVE:ENTRY")
    _, err = run("play", "p", "c/z.zip:none.slp", status=1)
    says("play of none", err, "no such entry")
    _, err = run("eval", "c/z.zip", "one.slp", status=1)
    says("weights in an archive", err, "this is an archive or a compressed file")


def problem(path, *wanted):
    """What is wrong with an archive is an error when somebody named it, and counted by slp info."""
    out, _ = run("slp", "info", "--json", path, status=1)
    errors = " | ".join(json.loads(line).get("error", "") for line in out.splitlines())
    says(f"slp info {path}", errors, *wanted)
    return [json.loads(line)["file"] for line in out.splitlines() if json.loads(line)["readable"]]


def bad_archives(one, two):
    whole = pathlib.Path("c/t.tar.gz").read_bytes()
    pathlib.Path("cut.tar.gz").write_bytes(whole[:-4000])
    pathlib.Path("cut.zip").write_bytes(pathlib.Path("c/z.zip").read_bytes()[:3000])
    pathlib.Path("cut.slp.gz").write_bytes(gzip.compress(one)[:2000])
    pathlib.Path("empty.zip").write_bytes(b"PK\5\6" + bytes(18))
    problem("cut.tar.gz", "")
    problem("cut.zip", "")
    problem("cut.slp.gz", "")
    problem("empty.zip", "there is no .slp in this archive")
    says("a damaged archive", corpus_hash("cut.slp.gz", status=1), "cut.slp.gz")
    # paths inside are names and nothing else
    with zipfile.ZipFile("paths.zip", "w") as z:
        z.writestr("../../../outside.slp", one)
        z.writestr("/tmp/absolute.slp", two)
        z.writestr("a\x1b[31mred\n.slp", one)
    same("paths in an archive", len(names("paths.zip")), 3)
    out, _ = run("slp", "info", "paths.zip")
    if "\x1b" in out:
        complain("control characters of a name go to the terminal")
    # entries that are no files, archives in archives, several compressions
    with tarfile.open("odd.tar", "w") as t:
        add_tar(t, "link.slp", b"", tarfile.SYMTYPE, "/etc/passwd")
        add_tar(t, "folder.slp", b"", tarfile.DIRTYPE)
        add_tar(t, "fifo.slp", b"", tarfile.FIFOTYPE)
        add_tar(t, "one.slp", one)
        add_tar(t, "hard.slp", b"", tarfile.LNKTYPE, "one.slp")
        add_tar(t, "inner.zip", pathlib.Path("c/z.zip").read_bytes())
        add_tar(t, "inner.slp.gz", gzip.compress(one))
        add_tar(t, "bad.slp", b"hello")
    same("odd entries", problem("odd.tar", "an archive in an archive is not opened", "not a replay"),
         ["odd.tar:one.slp"])
    pathlib.Path("twice.slp.gz").write_bytes(gzip.compress(gzip.compress(one)))
    problem("twice.slp.gz", "compressed more than once")
    # a zip that calls an entry encrypted
    data = bytearray(pathlib.Path("c/z.zip").read_bytes())
    data[6] |= 1
    at = data.index(b"PK\1\2")
    data[at + 8] |= 1
    pathlib.Path("locked.zip").write_bytes(data)
    same("an encrypted entry", problem("locked.zip", "it is encrypted"), ["locked.zip:games/\u00e4.slp"])


def bombs(one):
    """What unpacks to more than a replay may have, or an archive may, is stopped; the rest can still be read."""
    with zipfile.ZipFile("large.zip", "w", zipfile.ZIP_DEFLATED) as z:
        with z.open("bomb.slp", "w", force_zip64=True) as to:
            for _ in range(70):
                to.write(bytes(1 << 20))
        z.writestr("one.slp", one)
    same("a large entry", problem("large.zip", "it is longer than 64 MiB"), ["large.zip:one.slp"])
    pathlib.Path("large.slp.gz").write_bytes(gzip.compress(b"x" * (70 << 20)))
    problem("large.slp.gz", "it is longer than 64 MiB")
    with tarfile.open("total.tar.gz", "w:gz", compresslevel=9) as t:
        entry = tarfile.TarInfo("zeros.bin")
        entry.size = 1200 << 20
        t.addfile(entry, open("/dev/zero", "rb"))
        add_tar(t, "one.slp", one)
    same("a bomb", problem("total.tar.gz", "unpacks to far more than replays do"), [])


def mutations():
    """Damaged archives end with an error or with replays, never with a signal."""
    rng = random.Random(5)
    for path in ("c/z.zip", "c/t.tar.gz", "c/one.slp.xz", "c/t.tar"):
        data = pathlib.Path(path).read_bytes()
        for round_ in range(12):
            damaged = bytearray(data if round_ % 2 else data[:rng.randrange(len(data))])
            for _ in range(rng.randrange(1, 6)):
                if damaged:
                    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            pathlib.Path("damaged.zip").write_bytes(damaged)
            done = subprocess.run([EXPHIL, "slp", "info", "--json", "damaged.zip"], capture_output=True, timeout=600, check=False)
            if done.returncode not in (0, 1):
                complain(f"damaged {path} ended with {done.returncode}")


def without_library():
    """A library of that name that cannot be loaded stands for none: what it is wanted for is told."""
    pathlib.Path("fake").mkdir()
    pathlib.Path("fake/libarchive.so.13").write_bytes(b"no library\n" * 1000)
    env = {"LD_LIBRARY_PATH": "fake"}
    _, err = run("slp", "info", "c/z.zip", status=1, env=env)
    says("no libarchive", err, "libarchive.so.13, which is not installed (Debian: libarchive13)")
    _, err = run("corpus", "--rows", "--port", 1, "--force", "--out", "packed", "c", "one.slp", env=env)
    says("no libarchive", err, "8  replays left out: archives are read with libarchive.so.13", "(c/one.slp.bz2, ", " and 5 more)",
         "of 1 replay; 8 left out")


# ---- real replays ------------------------------------------------------------------------------------------------------


def table(path):
    rows = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [dict(zip(rows[0], row)) for row in rows[1:]]


def compare_real(folder, row):
    got = info(folder / row["file"])[0]
    players = " ".join(f"P{one['port']}:{one['character_name']}" for one in got["players"])
    wanted = {"version": row["version"], "stage_name": row["stage"], "frames": int(row["frames"]),
              "played_on": row["played_on"], "players": row["characters"]}
    found = {**{key: got[key] for key in ("version", "stage_name", "frames", "played_on")}, "players": players}
    same(row["file"], found, wanted)
    stocks = {slot["slot"]: slot["final_stocks"] for slot in got["slots"]}
    if got["result"] == "stocks" and (stocks[f"P{got['winner_port']}"] == 0 or sum(map(bool, stocks.values())) != 1):
        complain(f"{row['file']}: winner {got['winner_port']} with {stocks}")
    page, _ = run("slp", "info", folder / row["file"])
    winner = f"  winner    P{got['winner_port']} " if got["winner_port"] else "  winner    n"
    says(row["file"], page, winner, "nothing is wrong with it", f"({row['frames']} in all)")
    for word in (" -1", " 255", "nan", "(null)"):
        if word in page.split("\n", 1)[1]:
            complain(f"{row['file']}: {word} on the page: {page}")


def real():
    folder = pathlib.Path(os.environ.get("EXPHIL_REPLAYS") or SOURCE / "../shared/replays") / "../games"
    if not (folder / "GAMES.tsv").exists():
        print(f"SKIPPED: no real games: {folder}/GAMES.tsv is not there")
        return
    rows = [row for row in table(folder / "GAMES.tsv") if (folder / row["file"]).exists()]
    for row in rows:
        compare_real(folder, row)
    out, _ = run("slp", "info", folder)
    says("all games", out, f"{len(rows)} files: {len(rows)} games", "characters")


# ---- words -------------------------------------------------------------------------------------------------------------


def words():
    page, _ = run("slp", "info", "one.slp")
    says("a page", page, "one.slp\n", "  date      not recorded\n", "  stage     final destination\n",
         "  length    0:05, 300 frames from the start of the clock (423 in all)\n", "  P1        fox, human; 4 stocks left at",
         "  rules     4 stocks, 8:00, no items\n", "  file      ")
    out, _ = run("slp", "info", "one.slp", "two.slp")
    lines = out.splitlines()
    same("columns of a table", len({line.index("one.slp" if "one.slp" in line else "two.slp") for line in lines[1:3]}), 1)
    same("the head of a table", lines[0].index("file"), lines[1].index("one.slp"))
    says("a summary", out, "2 files: 2 games, 0:10 on the clock, 846 frames", "characters 4 fox", "stages     2 final destination")
    pathlib.Path("cut.slp").write_bytes(pathlib.Path("one.slp").read_bytes()[:50000])
    page, _ = run("slp", "info", "cut.slp")
    says("a cut replay", page, "  file      it is cut off at byte ", "whole frames before it can be used")
    one = info("cut.slp")[0]
    same("a cut replay in JSON", (one["result"], one["winner_port"], one["winner_ports"], one["quitter_port"], one["truncated"]),
         ("unfinished", None, [], None, True))


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        run("drill", "--out", "one.slp", "--frames", 300)
        run("drill", "--out", "two.slp", "--frames", 300, "--seed", 2)
        pathlib.Path("bad.slp").write_text("hello")
        os.mkfifo("pipe")
        one, two = pathlib.Path("one.slp").read_bytes(), pathlib.Path("two.slp").read_bytes()
        words()
        folders()
        lists()
        real()
        try:
            ctypes.CDLL("libarchive.so.13")
        except OSError:
            print("SKIPPED: archives: libarchive.so.13 is not installed (Debian: libarchive13)")
        else:
            good_archives(one, two)
            bad_archives(one, two)
            bombs(one)
            mutations()
            without_library()
        os.chdir("/")
    print(f"{runs} runs of the program")
    sys.exit(failed)


main()
