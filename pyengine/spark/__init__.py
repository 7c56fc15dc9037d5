"""Selectors and dispatch on Spark: Column in, Column out; DataFrame in, DataFrame out.

pyspark is imported when something is used, and MissingExtraError says what to install. A session of the caller is never
configured, and everything here runs on Spark Classic and on Spark Connect.
"""

from pyengine.spark.functions import matches, where
from pyengine.spark.logs import register_logs
from pyengine.spark.native import NotNativeError
from pyengine.spark.observed import OBSERVED
from pyengine.spark.pipeline import Progress, RunResult, run
from pyengine.spark.shards import assign_shards, dispatch_shards, write_shards
from pyengine.spark.sql import register
from pyengine.spark.streaming import dispatch_stream, held
from pyengine.spark.sweep import sweep
from pyengine.spark.transforms import dispatch, match

__all__ = [
    "OBSERVED",
    "NotNativeError",
    "Progress",
    "RunResult",
    "assign_shards",
    "dispatch",
    "dispatch_shards",
    "dispatch_stream",
    "held",
    "match",
    "matches",
    "register",
    "register_logs",
    "run",
    "sweep",
    "where",
    "write_shards",
]
