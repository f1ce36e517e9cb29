"""``python3 -s -P -B -m sandbox.guest``: the first process of a box."""

from .server import main

if __name__ == "__main__":
    main()
