"""Prices of answers: rates of models, built in and the user's own."""

from ctxbench.harness.prices.rates import FILE, Prices, Rate, builtin, load, of_home

__all__ = ["FILE", "Prices", "Rate", "builtin", "load", "of_home"]
