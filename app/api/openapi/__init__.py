"""`GET /openapi.json`: the interface in OpenAPI 3.1, made of what each call declares by `@call` (`app/api/calls.py`).

The fields of a body are said in its table, those of an answer in its noun or in the model beside its view.
`tests/contract/described.py` holds every answer against its description.
"""
