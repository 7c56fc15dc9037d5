"""Selectors and dispatch on Spark: Column in, Column out; DataFrame in, DataFrame out.

pyspark is imported when something is used, and MissingExtraError says what to install. A session of the caller is never
configured, and everything here runs on Spark Classic and on Spark Connect.
"""

from pyengine.spark.functions import matches
from pyengine.spark.pipeline import Progress, RunResult, run
from pyengine.spark.sweep import sweep
from pyengine.spark.transforms import dispatch, match

__all__ = ["Progress", "RunResult", "dispatch", "match", "matches", "run", "sweep"]
