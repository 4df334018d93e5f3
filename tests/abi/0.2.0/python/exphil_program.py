"""The program exphil, which a wheel carries beside the package: `exphil ...`, or `python -m exphil_program ...`. It imports nothing
of the package: the program needs no NumPy, and starts at once."""
import os
import signal
import subprocess
import sys

WINDOWS = sys.platform == "win32"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exphil", "bin")
PROGRAM = os.path.join(FOLDER, "exphil.exe" if WINDOWS else "exphil")


def main():
    """Takes this process's place; on Windows, where none can, waits for it and ends as it ended."""
    arguments = [PROGRAM, *sys.argv[1:]]
    if not WINDOWS:
        os.execv(PROGRAM, arguments)
    # Ctrl-C reaches both: the program decides what comes of it.
    with subprocess.Popen(arguments) as child:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return child.wait()


if __name__ == "__main__":
    sys.exit(main())
