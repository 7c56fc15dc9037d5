"""The embedded brokers' files as data sources of a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyengine.errors import ConfigurationError
from pyengine.spark.pipeline import is_classic
from pyengine.spark.session import require_spark, running_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register_logs(spark: SparkSession) -> None:
    """Make the formats ``rocketmq_log`` and ``activemq_store`` known to a session, for ``read``, ``readStream``,
    ``write`` and ``writeStream``.

    Raises MissingExtraError without pyspark, ConfigurationError on pyspark 3.5 and 4.0.
    """
    require_spark()
    import pyspark

    try:
        from pyspark.sql.datasource import DataSourceStreamArrowWriter  # noqa: F401
    except ImportError:
        problem, hint = "has no data sources in Python that give and take Arrow", "use pyspark 4.1 or newer"
        raise ConfigurationError("register_logs", f"pyspark {pyspark.__version__}", problem, hint) from None
    from pyengine.spark.activemq_store import ActiveMQStore
    from pyengine.spark.rocketmq_log import RocketMQLog

    # Spark looks in the active session, not in this one, for whether a name is taken.
    active = running_session() if is_classic(spark) else spark
    _make_active(spark, active)
    try:
        spark.dataSource.register(RocketMQLog)
        spark.dataSource.register(ActiveMQStore)
    finally:
        _make_active(active, spark)


def _make_active(session: SparkSession | None, before: SparkSession | None) -> None:
    if session is not None and session is not before:
        session.createDataFrame([], "nothing int")
