"""The embedded brokers' files as data sources of a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyengine.spark.session import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register_logs(spark: SparkSession) -> None:
    """Make the formats ``rocketmq_log`` and ``activemq_store`` known to a session, for ``read``, ``readStream``,
    ``write`` and ``writeStream``.

    Raises MissingExtraError without pyspark.
    """
    require_spark()
    from pyengine.spark.activemq_store import ActiveMQStore
    from pyengine.spark.rocketmq_log import RocketMQLog

    spark.dataSource.register(RocketMQLog)
    spark.dataSource.register(ActiveMQStore)
