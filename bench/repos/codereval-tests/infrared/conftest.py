# mypy: ignore-errors
"""Puts in place what infrared imports and Python 3 has under another name, or a box has not.

The release is of Python 2's time: ``import helper`` is a neighbour there, and ``ConfigParser`` a module. Its
command-line parser, profiles and plugins need an Ansible of 2016; none of the functions that are judged uses them.
"""

import configparser
import sys
from types import ModuleType

from infrared.core.inspector import helper


def unused(name, **names):
    """Put an empty module in the place of one that cannot be imported."""
    made = ModuleType(name)
    vars(made).update(names)
    sys.modules.setdefault(name, made)


sys.modules.setdefault("helper", helper)
sys.modules.setdefault("ConfigParser", configparser)
unused("infrared.core.cli.cli", CliParser=None, COMPLEX_TYPES={})
unused("infrared.core.services.profiles")
unused("infrared.core.services.plugins")
