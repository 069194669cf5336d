"""The Points Issuing Service.

Each noun is a folder or a file here. The edges `api`, `console`, `cli` and the package `worker` call the nouns.
What is where: docs/map.md.
"""
