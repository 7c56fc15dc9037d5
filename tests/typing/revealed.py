"""What a type checker sees of the public names; ``test_typing`` compares the revealed types with the comments."""

from __future__ import annotations

from typing import reveal_type

import pyengine

message = pyengine.Message({"price": 2.5, "color": None}, priority=7, group_id="g")
reveal_type(message)  # pyengine._engine.message.message.Message
reveal_type(message.priority)  # int
reveal_type(message.group_id)  # str | None
reveal_type(message.delivery_mode)  # str
reveal_type(message.broker_path)  # tuple[str, ...] | None
reveal_type(message.body)  # str | bytes | pyengine._engine.message.body.Body | None
reveal_type(message.get_int_property("x"))  # int
reveal_type(message.get_double_property("x"))  # float
reveal_type(message.get_string_property("x"))  # str | None
reveal_type(message.property_names)  # tuple[str, ...]
reveal_type(message.property_types())  # dict[str, str]
reveal_type(message.copy())  # pyengine._engine.message.message.Message
reveal_type(pyengine.Message.from_mapping({"a": 1}))  # pyengine._engine.message.message.Message
reveal_type(pyengine.Char("x"))  # pyengine._engine.java.value.Char

selector = pyengine.Selector("price > 1")
reveal_type(selector)  # pyengine._engine.matching.selector.Selector
reveal_type(selector.matches({"price": 2}))  # bool
reveal_type(selector.matches(message))  # bool
reveal_type(selector.evaluate(message))  # bool | None

packed = pyengine.PackedMessages([message, {"price": 1}])
reveal_type(packed)  # pyengine._engine.message.packed_messages.PackedMessages
reveal_type(packed.names)  # tuple[str, ...]
reveal_type(packed.nbytes)  # int
reveal_type(len(packed))  # int
