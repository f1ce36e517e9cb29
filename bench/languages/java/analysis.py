"""The facts of one Java file."""

from __future__ import annotations

from ctxbench.bench.languages.java.facts import LABEL, VALUE, JavaFile, JavaLoad, JavaType
from ctxbench.bench.languages.java.reader import JavaReader
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Language


def analyse(path: str, text: str) -> JavaFile:
    """Read one file.

    Args:
        path: POSIX path inside the repository.
        text: the whole file.
    """
    source = Source(text, Language.JAVA)
    reader = JavaReader(source)
    loads = _loads(reader)
    needed = {load.line for load in loads}
    return JavaFile(
        path=path,
        broken=source.root.has_error,
        tokens=source.tokens(needed),
        barred={line: reason for line, reason in sorted(reader.barred.items()) if line in needed},
        package=reader.package,
        imports=tuple(reader.imports),
        types=tuple(
            JavaType(
                name=java_type.name, members=dict(sorted(java_type.members.items())), static=frozenset(java_type.static)
            )
            for java_type in reader.types
        ),
        loads=loads,
    )


def _loads(reader: JavaReader) -> tuple[JavaLoad, ...]:
    """Keep the loads that an import may supply and that nothing in the file declares."""
    named = {item.name.rpartition(".")[2] for item in reader.imports if not item.wildcard}
    wildcards = any(item.wildcard for item in reader.imports)
    loads = []
    static = {item.name.rpartition(".")[2] for item in reader.imports if item.static and not item.wildcard}
    labels = [load for load in reader.labels if load.name in static]
    for scope, name, role, chain, near, node in [*reader.loads, *labels]:
        if (name not in named and not wildcards) or scope.declares(name, VALUE if role == LABEL else role):
            continue
        row, byte = node.start_point
        load = JavaLoad(name=name, role=role, chain=chain, near=near, line=row, column=reader.source.column(row, byte))
        loads.append(load)
    return tuple(sorted(loads, key=lambda load: (load.line, load.column)))
