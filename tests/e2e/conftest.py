"""A runner may have started us with signals ignored (nohup, a shell's background job). The programs under test
would inherit that and could not be interrupted, so the defaults are put back first."""
import os
import signal

for number, default in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGTERM, signal.SIG_DFL),
                        (signal.SIGINT, signal.default_int_handler)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, default)

# Tests of other things neither depend on what lies in the user's cache nor fill it; test_cache.py has a folder of
# its own.
os.environ.setdefault("GANGLION_CACHE", "off")
