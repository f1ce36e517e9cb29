"""Test records in the format of CoderEval's official files."""

import json
from pathlib import Path
from typing import Any


def python_task(id_: str, *passed: bool, level: str = "class_runnable", **changes: Any) -> dict[str, Any]:
    """Return a task of the official Python output with one result per given outcome."""
    code = [f"def f(x):\n    return x + {number}\n" for number in range(len(passed))]
    results = [
        {"generate_code": text, "is_pass": right, "return_code": int(not right)}
        for text, right in zip(code, passed, strict=True)
    ]
    return {
        "_id": id_,
        "file_path": "shop/tax.py",
        "project": "owner/shop",
        "name": "f",
        "docstring": "Add.",
        "level": level,
        "code": code,
        "generate_results": results,
        **changes,
    }


def java_task(id_: str, *passed: bool, level: str = "file_runnable", **changes: Any) -> dict[str, Any]:
    """Return a task of the official Java output with one result per given outcome."""
    codes = [f"int f(int x) {{ return x + {number}; }}" for number in range(len(passed))]
    results = [
        {
            "generate_code": text,
            "is_pass": right,
            "errormessage": "" if right else "compile error",
            "error_detail_message": "null",
        }
        for text, right in zip(codes, passed, strict=True)
    ]
    return {
        "_id": id_,
        "project_name": "shop-master",
        "method_name": "f",
        "docstring": "/** Add. */",
        "code_level": level,
        "codes": codes,
        "generate_results": results,
        **changes,
    }


def write(path: Path, records: list[Any]) -> Path:
    """Write records as JSON Lines. Texts are written unchanged."""
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records))
    return path
