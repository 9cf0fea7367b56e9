"""Writes memories into the one shared index, finds them there, and deletes them."""

from collections.abc import Collection, Iterable
from typing import Any

from elasticsearch import BadRequestError, Elasticsearch, NotFoundError
from elasticsearch.helpers import streaming_bulk

from mesa_pipeline.config import Bm25Settings, ElasticsearchSettings
from mesa_pipeline.errors import ArtifactError, WorkFailed
from mesa_pipeline.stores import Place, TextIndex
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.stores.elasticsearch.connection import RETRIED_STATUS, Connection
from mesa_pipeline.stores.elasticsearch.documents import (
    FORMAT,
    MAPPINGS,
    META,
    Address,
    Query,
    can_be_ranked,
    memory_document,
    others_in_scope,
    place_of,
    scope_of,
    window_actions,
)
from mesa_pipeline.stores.elasticsearch.ranking import ElasticsearchIndex, Memory
from mesa_pipeline.stores.tokenizers import open_tokenizer

CHUNK_DOCUMENTS = 200
CHUNK_BYTES = 8 * 1024 * 1024
"""A server takes 100 MB; less of its memory is held by smaller requests."""
DELETED_AT_ONCE = 5_000
"""Documents of one request, so that it ends in time."""
NAMED_AT_ONCE = 10_000
"""Places of one query; a server allows 65,536."""
SHOWN_FAILURES = 3


class ElasticsearchStore:
    """Texts in Elasticsearch; a ``TextStore``.

    A memory is written window by window under ids of its own, and counts as there once a last document says so and all its
    windows are found. Versions are told apart by the memory and by how windows are ranked.

    Args:
        settings: Where the server is, which index, and how patient to be.
        bm25: How windows are ranked.
        namespace: Keeps the memories of this workspace apart from others in the same index.
        key: API key; ``None`` where the server wants none, or the address holds user and password.
    """

    name = "elasticsearch"

    def __init__(self, settings: ElasticsearchSettings, bm25: Bm25Settings, namespace: str, key: str | None) -> None:
        self._settings = settings
        self._bm25 = bm25
        self._namespace = namespace
        self._connection = Connection(settings, key)

    def describe(self) -> str:
        """Version and address of the server, and whether the index is there and ours.

        Raises:
            MissingDependency: The server cannot be reached.
            ArtifactError: The index holds something else.
        """
        with self._connection.client() as client:
            version, there = client.info()["version"]["number"], self._is_made(client)
        state = "there" if there else "made by the first build"
        return f"{version} at {self._connection.url}; index {self._settings.index} is {state}"

    def holds(self, place: Place) -> bool:
        """Whether that version is there, whole, for these settings of ranking."""
        return self._find(Address.of(self._namespace, place, self._bm25)) is not None

    def put(self, place: Place, index: Bm25Index) -> None:
        """Store the windows of a memory; see ``TextStore``.

        Raises:
            MissingDependency: The server cannot be reached.
            ArtifactError: The server's index holds something else.
            WorkFailed: The server refused some of the windows; lists them.
        """
        address = Address.of(self._namespace, place, index.settings)
        if self._find(address) is not None:
            return
        windows, ranked = len(index.postings.lengths), can_be_ranked(index)
        with self._connection.client() as client:
            self._make_index(client)
            self._write(client, window_actions(address, index, ranked))
            client.indices.refresh(index=self._settings.index)
            document = memory_document(address, windows, ranked)
            client.index(index=self._settings.index, id=address.place, document=document)
            self._delete(client, [address.other_versions])

    def open(self, place: Place) -> TextIndex:
        """The index of a place.

        Raises:
            ArtifactError: That version is not there, or not whole.
            MissingDependency: The server cannot be reached.
        """
        memory = self._find(Address.of(self._namespace, place, self._bm25))
        if memory is None:
            raise ArtifactError(
                f"{place.structure} of episode {place.episode!r} of {place.dataset} is not in {self._settings.index} at "
                f"{self._connection.url}, as it is now; put it there with `mesa build`"
            )
        return ElasticsearchIndex(self._connection, self._settings.index, memory, open_tokenizer(self._bm25.tokenizer))

    def keep_only(self, dataset: str, structure: str, episodes: Collection[str]) -> None:
        """Delete what is there of any other episode of the structure, also what a put that was cut left behind."""
        kept = [place_of(self._namespace, dataset, structure, episode) for episode in episodes]
        scope = scope_of(self._namespace, dataset, structure)
        with self._connection.client() as client:
            try:
                client.indices.refresh(index=self._settings.index)
                self._delete(client, others_in_scope(scope, kept, NAMED_AT_ONCE))
            except NotFoundError:
                return

    def _find(self, address: Address) -> Memory | None:
        """What the memory's own document says, if all its windows are there."""
        with self._connection.client() as client:
            try:
                document = client.get(index=self._settings.index, id=address.place)["_source"]
                if document.get("version") != address.version:
                    return None
                found = client.count(index=self._settings.index, query=address.windows)["count"]
            except NotFoundError:
                return None
        return Memory(address, found, not document["unranked"]) if found == document["windows"] else None

    def _make_index(self, client: Elasticsearch) -> None:
        if self._is_made(client):
            return
        try:
            client.indices.create(index=self._settings.index, mappings=MAPPINGS)
        except BadRequestError as error:
            if error.error != "resource_already_exists_exception":
                raise
            self._is_made(client)

    def _is_made(self, client: Elasticsearch) -> bool:
        """Whether the index is there.

        Raises:
            ArtifactError: Something else is there under its name.
        """
        try:
            found = next(iter(client.indices.get_mapping(index=self._settings.index).body.values()))
        except NotFoundError:
            return False
        meta = found["mappings"].get("_meta", {})
        if meta == META:
            return True
        name = f"the index {self._settings.index} at {self._connection.url}"
        if meta.get("made_by") != META["made_by"]:
            raise ArtifactError(f"{name} holds something else; choose another name with stores.elasticsearch.index")
        raise ArtifactError(
            f"{name} has format {meta.get('format')}, and this version of mesa-pipeline reads and writes {FORMAT}; choose "
            "another name with stores.elasticsearch.index, or delete that index and run `mesa build` again"
        )

    def _write(self, client: Elasticsearch, actions: Iterable[dict[str, Any]]) -> None:
        settings = self._settings
        results = streaming_bulk(
            client.options(retry_on_status=()),  # the function waits and tries again itself, for single documents too
            actions,
            index=settings.index,
            chunk_size=CHUNK_DOCUMENTS,
            max_chunk_bytes=CHUNK_BYTES,
            raise_on_error=False,
            max_retries=settings.max_attempts - 1,
            initial_backoff=settings.backoff_seconds,
            max_backoff=settings.max_backoff_seconds,
            retry_on_status=tuple(RETRIED_STATUS),
            yield_ok=False,
        )
        failed = [_reason(result) for _, result in results]
        if failed:
            shown = [self._connection.redact(reason) for reason in failed[:SHOWN_FAILURES]]
            more = f", and {len(failed) - len(shown)} more" if len(failed) > len(shown) else ""
            raise WorkFailed(f"Elasticsearch at {self._connection.url} refused windows: {'; '.join(shown)}{more}")

    def _delete(self, client: Elasticsearch, queries: Iterable[Query]) -> None:
        """Delete what queries find; a document that another process deletes or replaces meanwhile is left to that one."""
        for query in queries:
            more = True
            while more:
                reply = client.delete_by_query(
                    index=self._settings.index, query=query, max_docs=DELETED_AT_ONCE, conflicts="proceed", refresh=True
                )
                if reply["failures"]:
                    said = self._connection.redact(str(reply["failures"][0]))
                    raise WorkFailed(f"Elasticsearch at {self._connection.url} did not delete {len(reply['failures'])}: {said}")
                more = reply["deleted"] == DELETED_AT_ONCE


def _reason(result: dict[str, Any]) -> str:
    """Which document was refused, and why."""
    (item,) = result.values()
    error = item.get("error")
    said = f"{error.get('type')}: {error.get('reason')}" if isinstance(error, dict) else str(error)
    return f"{item.get('_id')} (HTTP {item.get('status')}: {said})"
