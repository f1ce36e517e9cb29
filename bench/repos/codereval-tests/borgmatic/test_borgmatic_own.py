# mypy: ignore-errors
"""Tests of our own for borgmatic 1.6.4, whose own do not look at what these return. Expectations: the docstrings."""

import shutil
import subprocess
from argparse import ArgumentParser

import pytest
from borgmatic.commands import arguments
from borgmatic.commands.completion import bash_completion, parser_flags


def test_flags_of_a_parser():
    parser = ArgumentParser(add_help=False)
    parser.add_argument("-a", "--all", action="store_true")
    parser.add_argument("place")
    parser.add_argument("--list")
    assert parser_flags(parser) == "-a --all --list"


def test_flags_of_a_parser_with_help_and_groups():
    parser = ArgumentParser()
    parser.add_argument_group("group").add_argument("-x")
    assert parser_flags(parser) == "-h --help -x"
    assert parser_flags(ArgumentParser(add_help=False)) == ""


def test_completion_knows_every_action_and_flag():
    script = bash_completion()
    top, subparsers = arguments.make_parsers()
    for action, parser in subparsers.choices.items():
        assert f'=~ " {action} " ]]' in script
        assert parser_flags(parser) in script
    assert parser_flags(top) in script
    assert script.rstrip().endswith("complete_borgmatic borgmatic")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash reads the script")
def test_completion_is_a_script_for_bash():
    done = subprocess.run(["bash", "-n"], input=bash_completion(), text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
