"""The published examples as answers to hold a trigger against."""

import json
from collections.abc import Iterator

from queue_depth.contract import published
from queue_depth.contract.reading import Answer, Reading


def from_examples(reading: Reading) -> Iterator[Answer]:
    """Every valid answer that the contract publishes for the route that a trigger reads.

    A list with a query by name is special: no example can know the name, so each example of a single answer takes its
    turn in a list under that name.
    """
    schema = reading.route.schema
    if reading.selected is None:
        for example in published.examples(schema):
            yield Answer(f"the example {schema}/{example.name}", example.text)
        return
    others = [
        item
        for example in published.examples(schema)
        for item in json.loads(example.text)[schema]
        if item["name"] != reading.selected
    ]
    for example in published.examples("queue-depth"):
        item = {**json.loads(example.text), "name": reading.selected}
        body = json.dumps({schema: [*others, item], "next": ""}, ensure_ascii=False)
        yield Answer(f"a list with the example {example.name}", body)
