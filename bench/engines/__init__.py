"""Context engines: external programs that index a repository and answer a query with places.

An engine runs in a living box of the sandbox, on a tree without answers, and returns only places. The query's view then
reads the text for the model again, and cuts places that reach into hidden lines.

    recipe       spec -> the packages and the program of the box; reads the engine's file without running it
    schema       the keys of an engine's TOML file
    types        the protocol of an engine; its untrusted answer -> checked places
    box          samples -> the files of a box, limited to what all their views show; one living box or server
    boxes        living boxes by target file or by repository, their turns, and the ledger
    inside       the program in the box: it loads the engine and forwards questions
    conformance  the checks of `ctxbench engine check`
    adapters     engines that ship with ctxbench, each a file that runs in the box
"""
