"""Whether a kernel waits for the one before it (XPH_ENTER, cuda/launch.cuh) before it touches memory, in its machine code for
sm_90: griddepcontrol.wait is ACQBULK there, griddepcontrol.launch_dependents PREEXIT."""
import re

WAIT = "ACQBULK"
# Of shared memory, registers and arguments nothing is another kernel's.
TOUCHES = re.compile(r"(LDG|STG|LDL|STL|LD|ST|RED|REDG|ATOM|ATOMG|LDGSTS|UTMA\w*|UBLK\w*|SULD|SUST|SURED|TEX|TLD\d?|CCTLL)$")


def base(line):
    return line[1].split(".")[0]


def call_targets(line, labels):
    """A subroutine is gone through as if it were the next instruction."""
    if base(line) != "CALL":
        return []
    return [labels[name] for name in re.findall(r"`\(([^)]+)\)", line[2]) if name in labels]


def before_wait(flow):
    """The first instruction that touches memory on a way on which nothing was waited for, as text; None: there is none."""
    seen, waiting = set(), [0]
    while waiting:
        block = waiting.pop()
        if block in seen or block >= len(flow.blocks):
            continue
        seen.add(block)
        for i in range(*flow.blocks[block]):
            guard = flow.code[i][0]
            if base(flow.code[i]) == WAIT and not guard:
                break
            if TOUCHES.match(base(flow.code[i])):
                return f"{flow.code[i][1]}{flow.code[i][2]}, instruction {i}"
            waiting += [flow.number[to] for to in call_targets(flow.code[i], flow.labels) if to in flow.number]
        else:
            waiting += flow.next[block]
    return None
