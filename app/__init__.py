"""The Points Issuing Service.

The nouns are files in this folder. `api`, `cli` and the package `worker` call them, and never each other.
What is where: *I want to change* in README.md.
"""
