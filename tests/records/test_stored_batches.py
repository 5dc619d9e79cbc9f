"""Which batch holds which request, as the store keeps it."""

from __future__ import annotations

from labmates.records.shared_calls import StoredBatches
from labmates.records.store import Store


async def test_a_batch_is_found_by_each_of_its_requests_until_it_is_forgotten(store_url: str) -> None:
    keys = [f"key-{number}" for number in range(1_200)]
    with Store(store_url) as store:
        book = StoredBatches(store.database)
        await book.plan("t" * 32, keys)
        assert {(token, batch, size) for token, batch, size, _ in (await book.find(keys)).values()} == {
            ("t" * 32, None, 1_200)
        }
        await book.name("t" * 32, "batch_1")
        await book.forget(keys[:1_000])
    with Store(store_url) as store:
        found = await StoredBatches(store.database).find([*keys, "another"])
    assert sorted(found) == sorted(keys[1_000:])
    assert {batch for _, batch, _, _ in found.values()} == {"batch_1"}


async def test_what_another_process_has_submitted_stays(store_url: str) -> None:
    with Store(store_url) as store:
        book = StoredBatches(store.database)
        await book.plan("a" * 32, ["one", "two"])
        await book.plan("b" * 32, ["two", "three"])
        found = await book.find(["one", "two", "three"])
    assert {key: parts[0][0] for key, parts in found.items()} == {"one": "a", "two": "a", "three": "b"}
