"""Finds every package below the three top folders; all else is said in pyproject.toml."""

from setuptools import find_packages, setup

ROOMS = ("core", "plugins", "effects")

setup(
    packages=[
        name
        for room in ROOMS
        for name in (f"fencepost.{room}", *(f"fencepost.{room}.{sub}" for sub in find_packages(room)))
    ]
)
