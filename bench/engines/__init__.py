"""Context engines: programs of others that index a repository and answer a query with places.

An engine runs in a living box of the sandbox, with a tree that holds no answer, and answers with places only: what a
model is shown of them is read again from the query's view, which cuts what reaches into what is hidden.

    recipe     spec -> what is installed and run in the box; reads the engine's file, runs nothing of it
    types      what an engine does; what came from its box -> places, nothing trusted
    box        samples -> the files that a box holds, of what all their views show; one living box, or server
    boxes      living boxes by target file or by repository, their turns, and the ledger
    inside     what runs in the box: it loads the engine and passes questions on
    adapters   engines that come with ctxbench, each a file that runs in the box
"""
