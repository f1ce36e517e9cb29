"""A call that runs untrusted source in its own process, as a test runner does. Part of the library."""


def run(arguments):
    """Execute the source; return what it left in `result`."""
    names = {"__name__": "attack", "arguments": arguments}
    exec(compile(arguments["code"], "attack", "exec"), names)
    return names.get("result")
