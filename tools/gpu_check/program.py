"""One program of a check: runs it, hands on each line when it comes, and ends it when its time is over."""
import ctypes
import math
import os
import selectors
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def children(pid):
    """pid and all that it began, the last first. They share the check's process group, so that what ends it ends them."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parents.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(name))
        except OSError:
            continue
    found, at = [pid], 0
    while at < len(found):
        found += parents.get(found[at], [])
        at += 1
    return found[::-1]


def end(pid):
    for one in children(pid):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Lines:
    """What comes out of a pipe, cut into lines."""

    def __init__(self, give):
        self.give, self.rest = give, b""

    def take(self, data):
        *whole, self.rest = (self.rest + data).split(b"\n")
        for line in whole:
            self.give(line.decode(errors="replace"))

    def close(self):
        if self.rest:
            self.give(self.rest.decode(errors="replace"))


def run(command, env, limit, out, err):
    """(exit status, seconds); status None: it was ended after limit seconds. out and err are called with every line; what they
    raise ends the program."""
    begin = time.monotonic()
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                                   preexec_fn=die_with_parent)
    except OSError as error:
        err(str(error))
        return 127, 0.0
    try:
        late = follow(process, begin + limit, out, err)
    except BaseException:
        end(process.pid)
        raise
    status = process.wait()
    return None if late else status, time.monotonic() - begin


def follow(process, until, out, err):
    """Hands on its lines until it has ended; True when that was for its time."""
    late = False
    with selectors.DefaultSelector() as pipes:
        for pipe, give in ((process.stdout, out), (process.stderr, err)):
            pipes.register(pipe, selectors.EVENT_READ, Lines(give))
        while pipes.get_map():
            ready = pipes.select(None if late or until == math.inf else max(0.0, until - time.monotonic()))
            if not ready and not late:
                late = True
                end(process.pid)
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                key.data.take(data)
                if not data:
                    key.data.close()
                    pipes.unregister(key.fileobj)
    return late
