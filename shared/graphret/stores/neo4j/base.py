"""What the synchronous and the asynchronous store share: how they are made, and what they know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

from graphret.contracts import restriction_of
from graphret.errors import InvalidInput
from graphret.schema import GraphSchema
from graphret.stores.following import Follower, require_whole
from graphret.stores.neo4j.connection import Options, direct, driver_options
from graphret.stores.neo4j.failures import require_driver, sending, translated
from graphret.stores.neo4j.following import InDatabase
from graphret.stores.neo4j.layout import Layout
from graphret.stores.neo4j.preparing import Writer
from graphret.where import Where, WhereLike, both

#: Nodes or edges in one block of `nodes` and `edges`.
BLOCK = 5_000


class Connected(ABC):
    """A store in a Neo4j database.

    Weights are doubles, and one that is an integer is read as a float. Integers of properties have 64 bits, a
    larger one is refused, and tuples come back as lists.

    Parameters
    ----------
    uri
        ``neo4j://`` or ``bolt://``, with ``+s`` for TLS with a certificate that the system trusts (the authorities in
        the file SSL_CERT_FILE, where that is set), ``+ssc`` for TLS with any certificate.
    auth
        User and password, or what the driver takes: bearer tokens, an auth manager.
    database
        Its name, by default the user's own.
    layout
        ``graphret`` (what a store writes itself), ``llama-index`` (what ``Neo4jPropertyGraphStore`` wrote), ``foreign``
        (anything: element ids are the ids), a `Layout`, or ``auto``: seen from the database.
    id_property, name_property, text_property, label
        Of a graph that something else wrote: the property that is the id (otherwise element ids are), the properties
        that are the name and the text, the first that a node has, and the label of the nodes to read (all nodes). Give
        `label` and an index on it and the id where there is an id, or each lookup reads every node. Writing takes both:
        a node that is written gets the label, which is shown on nodes, in the schema and to filters as their other
        labels are. An id that several nodes have, as 5 and "5" do, is refused by every call that is given it, and by
        each that returns several of the nodes, but for `edges`; other ids are not affected. No constraint or index is
        made on a label of others: a uniqueness constraint on label and id is quick, and keeps several writers from
        making one node twice. A property that is called as one of these is read with the others. A name or a text is
        written to the property that the node there has it in, else to the first; where that property is itself given
        another value, to the first too, and the node is refused where that is the same one, as it is where its property
        says another id.
    hidden
        Properties of nodes that are never read, such as embeddings under a name of one's own (``embedding`` is always,
        in a graph that something else wrote). A property that is written under such a name, as the embeddings of a
        `SageGraph` are, is stored behind ``properties.``, and what is hidden stays as it is.
    nested
        What happens to values that Neo4j cannot hold, maps and lists of lists or of several types: ``refuse``, or
        ``json``: stored as JSON text, read back as they were.
    writers
        Functions that are given the nodes of a batch and return more properties for them, by id, which are written in
        the same transaction. Their names begin with ``graphret_``; they are not read back as properties. A node that
        another store writes again loses them.
    timeout
        Seconds after which the server gives up on a call.
    impersonated_user
        As whom everything runs; Community Edition refuses that.
    pool_size, connect_timeout, retry_time, user_agent
        Connections to a server at most; seconds for one to be made; seconds in which transient errors are tried again;
        what the store calls itself.
    options
        Further settings of the driver, which stand above these; ``connection_acquisition_timeout`` is for how many
        seconds a call waits for a connection, the server's first answer on it included. Where an authority that the
        system does not know signed the server's certificate:
        ``{"encrypted": True, "trusted_certificates": neo4j.TrustCustomCAs("ca.pem")}``, with ``neo4j://`` or
        ``bolt://``.

    Raises
    ------
    InvalidInput
        When an option is malformed.
    StoreUnavailable, AccessDenied, StoreMismatch
        From any call: the server cannot be reached, refuses the user, or is too old or has no such database.
    """

    dialect = "neo4j"
    driver: Any
    _unrouted: tuple[str, dict[str, Any]] | None = None

    def __init__(
        self,
        uri: str,
        *,
        auth: Any = None,
        database: str | None = None,
        layout: str | Layout = "auto",
        id_property: str | None = None,
        name_property: str | Sequence[str] | None = None,
        text_property: str | Sequence[str] | None = None,
        label: str | None = None,
        hidden: Iterable[str] = (),
        nested: str = "refuse",
        writers: Iterable[Writer] = (),
        timeout: float | None = None,
        impersonated_user: str | None = None,
        pool_size: int | None = None,
        connect_timeout: float = 10.0,
        retry_time: float = 10.0,
        user_agent: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        require_driver()
        self.options = Options.of(
            uri,
            layout=layout,
            id_property=id_property,
            name_property=name_property,
            text_property=text_property,
            label=label,
            hidden=hidden,
            nested=nested,
            writers=writers,
            timeout=timeout,
            database=database,
            impersonated_user=impersonated_user,
        )
        with translated(uri), sending():
            settings = driver_options(
                uri,
                auth,
                pool_size=pool_size,
                connect_timeout=connect_timeout,
                retry_time=retry_time,
                user_agent=user_agent,
                driver_options=options,
            )
            self.driver = self._connect(uri, settings)
        self._own_driver = True
        if self.driver.encrypted and direct(uri) != uri:
            self._unrouted = direct(uri), settings
        self._begin(None)

    @classmethod
    def from_driver(cls, driver: Any, **options: Any) -> Self:
        """Make a store on a driver that stays its maker's to close; takes the options that are not the driver's."""
        require_driver()
        store = cls.__new__(cls)
        store.options = Options.of("the database", **options)
        store.driver = driver
        store._own_driver = False
        store._begin(None)
        return store

    def _begin(self, scope: Where | None) -> None:
        self._scope = scope
        self._schema: GraphSchema | None = None

    @staticmethod
    @abstractmethod
    def _connect(uri: str, settings: dict[str, Any]) -> Any:
        """Make a driver."""

    def attach(self, index: Any) -> None:
        """Keep an index in step with what this store writes, in the same transaction; see `Following.attach`.

        A `Neo4jTextIndex` lives in the database, any other in this process. What others write does not reach it. One
        that was made with another store must be of the same database, whatever the address: the first write finds out,
        and writes are refused with an `InvalidInput` while one of another database is attached.

        Raises
        ------
        InvalidInput
            When it cannot be changed in two steps, as an index of `graphret.search` can, when what it keeps beside the
            nodes would overwrite what an attached one keeps there, and where one of both is a view: attach the index to
            the store, and take a view of the index.
        """
        self.require_attachable(index)
        if not any(known is index for known in self.options.followers):
            if isinstance(index, Follower):
                index.bind(self)
            elif index.store.options is not self.options:
                self.options.strangers.append(index)
            self.options.followers.append(index)

    def require_attachable(self, index: Any) -> None:
        """Raise an `InvalidInput` if `attach` would."""
        require_whole(self.is_view or restriction_of(index) is not None)
        if not isinstance(index, (InDatabase, Follower)):
            raise InvalidInput(f"index: one of graphret.search is expected, which {type(index).__name__} is not")
        if not isinstance(index, InDatabase):
            return
        if not all(index.keeps_as(known) for known in self.options.followers if isinstance(known, InDatabase)):
            raise InvalidInput(
                "index: the store is followed by an index of other text or another encoder, and each would overwrite "
                "the documents of the other; detach that one first"
            )

    @property
    def is_view(self) -> bool:
        """Whether it shows a part of the graph, as `view` makes it."""
        return self._scope is not None

    @property
    def restriction(self) -> Where | None:
        """The condition of the view that this is; `None` where it is none."""
        return self._scope

    def detach(self, index: Any) -> None:
        """Let an index go; one that is not attached is ignored."""
        for known in (self.options.followers, self.options.strangers):
            known[:] = [one for one in known if one is not index]

    def view(self, where: WhereLike) -> Self:
        """Return the store as far as nodes satisfy `where`; it cannot be written to, and answers no Cypher."""
        view = type(self).__new__(type(self))
        view.options, view.driver, view._own_driver = self.options, self.driver, False
        view._unrouted = self._unrouted
        view._begin(both(self._scope, Where.parse(where)))
        return view
