"""Tests of pyengine.telemetry."""
