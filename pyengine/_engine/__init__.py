"""The compiled core. Import its names from ``pyengine``, ``pyengine.activemq`` or ``pyengine.rocketmq``."""
