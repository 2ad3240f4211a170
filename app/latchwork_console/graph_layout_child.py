"""The layout engine's own process: one request a line on standard input, one answer a line out.

Its first line says that it is ready.

It imports nothing of Latchwork. It ends with its standard input, and its alarm ends it if a layout
takes longer than its first argument says (the engine holds the interpreter lock while it computes,
so nothing inside Python could stop it).
"""

import json
import signal
import sys

import graphlay


def main() -> None:
    """Answer requests until standard input closes; a request that cannot be laid out gets null."""
    alarm_seconds = float(sys.argv[1])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_REAL, alarm_seconds)
        request = json.loads(line)
        try:
            answer = graphlay.layout(
                request["graph"], preset=request["preset"], options=request["options"]
            ).raw
        except graphlay.GraphlayError:
            answer = None
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
