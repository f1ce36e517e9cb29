"""The split oracle: a check and the code it tests in two processes, with nothing but plain values between.

`run` is called in the trusted process and says whether the test passed; `serve` runs the program in the
untrusted one. What the two must be given by the guest:

- the untrusted process is made before the check is read, so its memory never held it; it is confined, and
  of descriptors it has only its end of a socket and the standard three (stdin is empty);
- the trusted process cannot be traced or signalled by it, and is the only one with the job's result pipe.

What cannot be tested this way: objects that are no plain values (see `values`), arguments changed in place
(they are passed by value), functions as arguments, and whether an iterator is lazy: it is exhausted, within
limits, before the call returns, so an endless one is refused.
"""

from .candidate import serve
from .tester import Stage, run

__all__ = ["Stage", "run", "serve"]
