"""Every setting: its meaning, unit, bounds and default. The reference in `docs/` is generated from here."""

import re
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from queue_depth.core.limits import QueueOverride, RateLimit
from queue_depth.core.pool import Pool
from queue_depth.log import LogFormat

DAY = 86_400
POSTGRES_IDENTIFIER_BYTES = 63

LogLevel = Literal["debug", "info", "warning", "error"]


class Listen(NamedTuple):
    """An address to listen on; `host` without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        """As it is written in the configuration."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


_ADDRESS = r"(?:\[(?P<v6>[0-9A-Fa-f:.]+(?:%[0-9A-Za-z]+)?)\]|(?P<host>[0-9A-Za-z_.-]+)):(?P<port>[0-9]{1,5})"


def _listen(value: object) -> Listen:
    if isinstance(value, Listen):
        return value
    parts = re.fullmatch(_ADDRESS, str(value))
    if parts is None or int(parts["port"]) > 65_535:  # noqa: PLR2004 - the highest TCP port
        raise ValueError("expected HOST:PORT, such as 0.0.0.0:8080 or [::]:8080")
    return Listen(parts["v6"] or parts["host"], int(parts["port"]))


def _number(value: object) -> object:
    """Refuse true and false, which Python takes for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("expected a number")  # noqa: TRY004 - pydantic collects ValueErrors
    return value


def _printable(value: str) -> str:
    if not value or not value.isprintable():
        raise ValueError("expected a name of printable characters, not empty")
    return value


def _identifier(value: str) -> str:
    if len(_printable(value).encode()) > POSTGRES_IDENTIFIER_BYTES:
        raise ValueError(f"expected an identifier of at most {POSTGRES_IDENTIFIER_BYTES} bytes")
    return value


def _readable(value: Path) -> Path:
    try:
        with value.open("rb"):
            return value
    except OSError as error:
        raise ValueError(f"expected a file that can be read ({error.strerror})") from None


def check_database_url(text: str) -> str:
    """Look at a connection URL as far as that is possible without connecting.

    Raises:
        ValueError: It cannot be one; the text says what was expected and repeats nothing of the URL.
    """
    form = "expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
    text = text.strip()
    # A driver's name, as in postgresql+psycopg://, is accepted as DBOS accepts it.
    if not re.match(r"(postgres|postgresql)(\+\w+)?://", text):
        raise ValueError(form)
    try:
        hosts = urlsplit(text).netloc.rpartition("@")[2]
    except ValueError:
        hosts = ":?"
    if not all(re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?", host) for host in hosts.split(",")):
        raise ValueError(f"{form}, with characters such as / ? # [ ] : @ in the password percent-encoded")
    return text


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _empty_if_null(value: object) -> object:
    return {} if value is None else value


_STEP = 0.01  # A database's timeouts count whole milliseconds, and 0 means "none" to it.
Seconds = Annotated[float, BeforeValidator(_number), Field(ge=_STEP, le=DAY, allow_inf_nan=False)]
StatementSeconds = Annotated[float, BeforeValidator(_number), Field(ge=_STEP, le=20, allow_inf_nan=False)]
LongSeconds = Annotated[float, BeforeValidator(_number), Field(ge=_STEP, le=366 * DAY, allow_inf_nan=False)]
Count = Annotated[int, BeforeValidator(_number), Field(gt=0, le=2**31 - 1)]
Name = Annotated[str, AfterValidator(_printable)]
ReadableFile = Annotated[Path, AfterValidator(_readable)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=True)


class RateLimitSettings(_Strict):
    """A rate limit, as DBOS's `limiter` has it."""

    limit: Count = Field(description="Starts allowed in one period.", examples=[100])
    period_seconds: LongSeconds = Field(description="Length of the period, in seconds.", examples=[60])

    def rate_limit(self) -> RateLimit:
        """The limit in the model's terms."""
        return RateLimit(self.limit, self.period_seconds)


class QueueSettings(_Strict):
    """What workers do with a queue, where DBOS's `queues` table does not say it.

    Queues that are declared in code only have no row there. A limit given here wins over the row; null means
    that there is no such limit; what is left out is taken from the row.
    """

    concurrency: Count | None = Field(
        default=None,
        description="Workflows of the queue that may run at once, over all processes (DBOS: `concurrency`).",
        examples=[100],
    )
    worker_concurrency: Count | None = Field(
        default=None,
        description=(
            "Workflows of the queue that may run at once in one process (DBOS: `worker_concurrency`). "
            "Without it one pod takes everything, and more pods cannot help."
        ),
        examples=[4],
    )
    rate_limit: RateLimitSettings | None = Field(
        default=None,
        description="Starts allowed in a period, over all processes (DBOS: `limiter`).",
        examples=[{"limit": 100, "period_seconds": 60}],
    )
    partitioned: bool | None = Field(
        default=None,
        description=(
            "Whether workers visit the queue partition by partition; settles `partition_queue` rows that "
            "SDKs read differently."
        ),
        examples=[True],
    )
    partition_concurrency: Count | None = Field(
        default=None, description="Workflows of one partition that may run at once, over all processes.", examples=[1]
    )
    partition_worker_concurrency: Count | None = Field(
        default=None, description="Workflows of one partition that may run at once in one process.", examples=[1]
    )
    partition_rate_limit: RateLimitSettings | None = Field(
        default=None,
        description="Starts allowed in a period for each partition, over all processes.",
        examples=[{"limit": 10, "period_seconds": 60}],
    )

    @model_validator(mode="after")
    def _no_partition_limits_without_partitions(self) -> Self:
        limits = ("partition_concurrency", "partition_worker_concurrency", "partition_rate_limit")
        contradicting = [name for name in limits if getattr(self, name) is not None]
        if self.partitioned is False and contradicting:
            raise ValueError(f"expected no {contradicting[0]} beside partitioned: false")
        return self

    def override(self) -> QueueOverride:
        """What was given, in the model's terms."""
        return QueueOverride(
            given=frozenset(self.model_fields_set),
            concurrency=self.concurrency,
            worker_concurrency=self.worker_concurrency,
            rate_limit=self.rate_limit.rate_limit() if self.rate_limit else None,
            partitioned=self.partitioned,
            partition_concurrency=self.partition_concurrency,
            partition_worker_concurrency=self.partition_worker_concurrency,
            partition_rate_limit=self.partition_rate_limit.rate_limit() if self.partition_rate_limit else None,
        )


class PoolSettings(_Strict):
    """The pods of one Deployment, said as the work they take. Without any entry: every queue, any executor."""

    queues: frozenset[Name] | None = Field(
        default=None,
        min_length=1,
        description="Queues that the pods listen to (`DBOS.listen_queues`). Left out: every queue of the application.",
        examples=[["orders", "invoices"]],
    )
    application: Name | None = Field(
        default=None,
        description="Application name of the pods; rows of other applications are not theirs. Left out: any.",
        examples=["shop"],
    )
    version: Name | None = Field(
        default=None,
        description=(
            "The one application version that the pods run, for a Deployment per version. "
            "Left out: whatever runs, and the latest."
        ),
        examples=["v42"],
    )
    executors: tuple[Name, ...] = Field(
        default=(),
        description=(
            "Patterns of the pods' executor ids (`*`, `?`, `[…]`), so that work of other pods of the application, "
            "such as an API's, does not hold up this pool. Left out: any executor."
        ),
        examples=[["shop-worker-*"]],
    )
    hpa_tolerance: Annotated[float, BeforeValidator(_number), Field(ge=0, lt=1, allow_inf_nan=False)] = Field(
        default=0.0,
        description=(
            "Difference that the pool's HPA ignores, where its `tolerance` cannot be set to 0 (before Kubernetes "
            "1.35): 0.1 unless the cluster was told otherwise. `wanted_replicas` is then raised beyond it."
        ),
        examples=[0.1],
    )

    def pool(self, name: str) -> Pool:
        """The pool in the model's terms."""
        return Pool(
            name=name,
            queues=self.queues,
            application=self.application,
            version=self.version,
            executors=self.executors,
            hpa_tolerance=self.hpa_tolerance,
        )


class Settings(_Strict):
    """All settings of the exporter. Made by `queue_depth.settings.load.load`."""

    database_url: SecretStr | None = Field(
        default=None,
        description=(
            "Connection URL of the database that holds DBOS's system tables. Secret: there is no flag for it, "
            "as arguments are visible to every user of the machine. Without it and `database_url_file`, "
            "libpq's variables (`PGHOST`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`, …) are used."
        ),
        examples=["postgresql://queue_depth:PASSWORD@db.example:5432/app_dbos_sys?sslmode=verify-full"],
    )
    database_url_file: ReadableFile | None = Field(
        default=None,
        description=(
            "File that holds the connection URL, such as a mounted Secret. Read again at every new connection, "
            "so that a rotated password is taken without a restart."
        ),
        examples=["/etc/queue-depth/database-url"],
    )
    dbos_schema: Annotated[str, AfterValidator(_identifier)] = Field(
        default="dbos",
        alias="schema",
        description="PostgreSQL schema of DBOS's system tables, spelled as in the catalogue, unquoted.",
        examples=["dbos"],
    )
    refresh_seconds: Seconds = Field(
        default=5,
        description=(
            "Seconds from the beginning of one read of the table to the beginning of the next. All answers come "
            "from the last read, so this is the load on the database, however many ScaledObjects poll."
        ),
        examples=[5],
    )
    max_age_seconds: Seconds = Field(
        default=30,
        description=(
            "Age in seconds, replication lag included, beyond which numbers are not served any more: answers "
            "become 503, and KEDA holds. At least twice `refresh_seconds`, so that one failed read is no outage."
        ),
        examples=[30],
    )
    statement_timeout_seconds: StatementSeconds = Field(
        default=5,
        description=(
            "Seconds after which a connection attempt or a statement is given up, so that a slow database is not made "
            "slower. At most 20, as `/livez` takes a longer read for a hang; and less than `max_age_seconds`, as a "
            "later result would be too old to serve."
        ),
        examples=[5],
    )
    in_flight_window_seconds: LongSeconds = Field(
        default=1800,
        description=(
            "Seconds for which a started workflow counts as running where nobody knows whether its process "
            "still lives. Longer than the longest workflow; a dead process's rows are counted as long as this."
        ),
        examples=[1800],
    )
    listen: Annotated[Listen, PlainValidator(_listen)] = Field(
        default=Listen("0.0.0.0", 8080),  # noqa: S104 - probes and KEDA come from other hosts
        description="Address to listen on, HOST:PORT; an IPv6 host stands in brackets.",
        examples=["0.0.0.0:8080", "[::]:8080"],
    )
    tokens_file: ReadableFile | None = Field(
        default=None,
        description=(
            "File with the bearer tokens that open the numbers and the metrics, one a line, `#` begins a comment. "
            "Read again when it changes; list the old and the new token while you rotate. "
            "Left out: everyone who reaches the port may read."
        ),
        examples=["/etc/queue-depth/tokens"],
    )
    log_format: LogFormat = Field(
        default="json",
        description="How log lines are written: `json`, one object a line, or `text`, for people.",
        examples=["text"],
    )
    log_level: Annotated[LogLevel, BeforeValidator(_lower)] = Field(
        default="info",
        description="Least level that is logged: `debug`, `info`, `warning` or `error`.",
        examples=["info"],
    )
    metrics_label_limit: Count = Field(
        default=200,
        description=(
            "Distinct values of one label in `/metrics`; what exceeds it is counted under `_other`, so that a "
            "queue per customer does not overload Prometheus. The JSON answers have no such limit."
        ),
        examples=[200],
    )
    queues: dict[Name, Annotated[QueueSettings, BeforeValidator(_empty_if_null)]] = Field(
        default={},
        description=(
            "Queues by name: what the `queues` table does not say of them. A queue named here is known, and "
            "answered with zeros while it is empty. In the environment: JSON."
        ),
        examples=[{"orders": {"worker_concurrency": 4, "rate_limit": {"limit": 100, "period_seconds": 60}}}],
    )
    pools: dict[Name, Annotated[PoolSettings, BeforeValidator(_empty_if_null)]] = Field(
        default={},
        description=(
            "Pools by name: which pods serve which queues, for Deployments that serve several. Every queue is "
            "also a pool of its own, without being named here. In the environment: JSON."
        ),
        examples=[{"workers": {"queues": ["orders", "invoices"], "executors": ["shop-worker-*"]}}],
    )

    # Checks between settings stand on single fields: a check of the whole model would only run, and be
    # reported, once every field is right.

    @field_validator("database_url", mode="after")
    @classmethod
    def _is_database_url(cls, value: SecretStr | None) -> SecretStr | None:
        return None if value is None else SecretStr(check_database_url(value.get_secret_value()))

    @field_validator("database_url_file", mode="after")
    @classmethod
    def _holds_database_url(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is None:
            return None
        if info.data.get("database_url") is not None:
            raise ValueError("expected only one of database_url and database_url_file")
        try:
            read_database_url(value)
        except ValueError as error:
            raise ValueError(f"what the file holds is wrong: {error}") from None
        return value

    @field_validator("max_age_seconds", mode="after")
    @classmethod
    def _outlives_one_failure(cls, value: float, info: ValidationInfo) -> float:
        refresh = info.data.get("refresh_seconds", 0)
        if value < 2 * refresh:
            raise ValueError(f"expected at least twice refresh_seconds, that is {2 * refresh:g}")
        return value

    @field_validator("statement_timeout_seconds", mode="after")
    @classmethod
    def _ends_while_it_matters(cls, value: float, info: ValidationInfo) -> float:
        max_age = info.data.get("max_age_seconds", DAY)
        if value >= max_age:
            raise ValueError(f"expected less than max_age_seconds, which is {max_age:g}")
        return value


def read_database_url(path: Path) -> str:
    """The connection URL that a file holds now.

    Raises:
        OSError: The file cannot be read.
        ValueError: It holds no connection URL; the text repeats nothing of what it holds.
    """
    try:
        return check_database_url(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError("expected text in UTF-8") from None


def settings_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of one of the models here, under the names that users write."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


NESTED: dict[str, type[BaseModel]] = {
    "queues": QueueSettings,
    "pools": PoolSettings,
    "rate_limit": RateLimitSettings,
    "partition_rate_limit": RateLimitSettings,
}
"""Settings that are mappings of settings, by their key."""

SECRET = frozenset({"database_url"})
"""Settings whose values are shown to nobody."""
