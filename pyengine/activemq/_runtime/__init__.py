"""The compiled inner loop of the live ActiveMQ runtime. Import its names from ``pyengine.activemq``."""
