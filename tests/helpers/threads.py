"""Many threads that request the same thing at once."""

import threading
from collections.abc import Callable


def together(count: int, work: Callable[[], object]) -> None:
    """Call `work` in `count` threads at once; wait for all of them."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
