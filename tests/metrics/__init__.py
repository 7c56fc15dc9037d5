"""Tests of pyengine.metrics."""
