"""Many threads that ask for one thing at once."""

import threading
from collections.abc import Callable


def together(count: int, work: Callable[[], object]) -> None:
    """Do the same in so many threads at once; wait for all."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
