"""commit_log_record: how a broker's log holds a message: a frame with a checksum around RocketMQ's own stored form.

A frame is, big endian: int32 size of the payload, uint32 CRC-32 of kind and payload, int8 kind, payload.
  MESSAGE    payload: the message as RocketMQ stores it (rocketmq.commands.stored_message)
  DELIVERED  payload: int32 delay level, int64 offset among the delayed messages, then a message as above: it left there
  DELETED    payload: int32 queue id, int64 smallest offset that is left, topic in UTF-8
A frame that ends behind the file, or whose checksum differs, is torn.
"""
