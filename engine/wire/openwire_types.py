"""OpenWire's commands and what they hold, versions 9 to 12: the one table that both directions of the codec follow.

Names are ActiveMQ's (org.apache.activemq.command) in snake case; see structure_types for the form of a line.
"""

from __future__ import annotations

from pyengine._engine.wire.data_structure import DataStructure, structure_types

TYPES = structure_types("""
NoCommand 0 -
ActiveMQDestination - - | physical_name:string
ActiveMQTempDestination - ActiveMQDestination
BaseCommand - - | command_id:int response_required:boolean
Message - BaseCommand | producer_id:ProducerId* destination:ActiveMQDestination* transaction_id:TransactionId*
    original_destination:ActiveMQDestination* message_id:MessageId original_transaction_id:TransactionId*
    group_id:string group_sequence:int correlation_id:string persistent:boolean expiration:long priority:byte
    reply_to:ActiveMQDestination timestamp:long type:string content:bytes marshalled_properties:bytes
    data_structure:DataStructure target_consumer_id:ConsumerId* compressed:boolean redelivery_counter:int
    broker_path:BrokerId[] arrival:long user_id:string received_by_df_bridge:boolean droppable:boolean
    cluster:BrokerId[] broker_in_time:long broker_out_time:long group_first_for_consumer:boolean@10
TransactionId - -
WireFormatInfo 1 - | magic:bytes8 version:int marshalled_properties:bytes
BrokerInfo 2 BaseCommand | broker_id:BrokerId* broker_url:string peer_broker_infos:BrokerInfo[]
    broker_name:string slave_broker:boolean master_broker:boolean fault_tolerant_configuration:boolean
    duplex_connection:boolean network_connection:boolean connection_id:long broker_upload_url:string
    network_properties:string
ConnectionInfo 3 BaseCommand | connection_id:ConnectionId* client_id:string password:string user_name:string
    broker_path:BrokerId[] broker_master_connector:boolean manageable:boolean client_master:boolean
    fault_tolerant:boolean failover_reconnect:boolean client_ip:string
SessionInfo 4 BaseCommand | session_id:SessionId*
ConsumerInfo 5 BaseCommand | consumer_id:ConsumerId* browser:boolean destination:ActiveMQDestination*
    prefetch_size:int maximum_pending_message_limit:int dispatch_async:boolean selector:string
    client_id:string@10 subscription_name:string no_local:boolean exclusive:boolean retroactive:boolean
    priority:byte broker_path:BrokerId[] additional_predicate:BooleanExpression network_subscription:boolean
    optimized_acknowledge:boolean no_range_acks:boolean network_consumer_path:ConsumerId[]
ProducerInfo 6 BaseCommand | producer_id:ProducerId* destination:ActiveMQDestination* broker_path:BrokerId[]
    dispatch_async:boolean window_size:int
TransactionInfo 7 BaseCommand | connection_id:ConnectionId* transaction_id:TransactionId* type:byte
DestinationInfo 8 BaseCommand | connection_id:ConnectionId* destination:ActiveMQDestination* operation_type:byte
    timeout:long broker_path:BrokerId[]
RemoveSubscriptionInfo 9 BaseCommand | connection_id:ConnectionId* subscription_name:string client_id:string
KeepAliveInfo 10 BaseCommand
ShutdownInfo 11 BaseCommand
RemoveInfo 12 BaseCommand | object_id:DataStructure* last_delivered_sequence_id:long
ControlCommand 14 BaseCommand | command:string
FlushCommand 15 BaseCommand
ConnectionError 16 BaseCommand | exception:throwable connection_id:ConnectionId
ConsumerControl 17 BaseCommand | destination:ActiveMQDestination close:boolean consumer_id:ConsumerId
    prefetch:int flush:boolean start:boolean stop:boolean
ConnectionControl 18 BaseCommand | close:boolean exit:boolean fault_tolerant:boolean resume:boolean
    suspend:boolean connected_brokers:string reconnect_to:string rebalance_connection:boolean token:bytes
ProducerAck 19 BaseCommand | producer_id:ProducerId size:int
MessagePull 20 BaseCommand | consumer_id:ConsumerId* destination:ActiveMQDestination* timeout:long
    correlation_id:string message_id:MessageId
MessageDispatch 21 BaseCommand | consumer_id:ConsumerId* destination:ActiveMQDestination* message:Message
    redelivery_counter:int
MessageAck 22 BaseCommand | destination:ActiveMQDestination* transaction_id:TransactionId*
    consumer_id:ConsumerId* ack_type:byte first_message_id:MessageId last_message_id:MessageId message_count:int
    poison_cause:throwable
ActiveMQMessage 23 Message
ActiveMQBytesMessage 24 ActiveMQMessage
ActiveMQMapMessage 25 ActiveMQMessage
ActiveMQObjectMessage 26 ActiveMQMessage
ActiveMQStreamMessage 27 ActiveMQMessage
ActiveMQTextMessage 28 ActiveMQMessage
ActiveMQBlobMessage 29 ActiveMQMessage | remote_blob_url:string mime_type:string deleted_by_broker:boolean
Response 30 BaseCommand | correlation_id:int
ExceptionResponse 31 Response | exception:throwable
DataResponse 32 Response | data:DataStructure
DataArrayResponse 33 Response | data:DataStructure[]
IntegerResponse 34 Response | result:int
DiscoveryEvent 40 - | service_name:string broker_name:string
JournalTopicAck 50 - | destination:ActiveMQDestination message_id:MessageId message_sequence_id:long
    subscription_name:string client_id:string transaction_id:TransactionId
JournalQueueAck 52 - | destination:ActiveMQDestination message_ack:MessageAck
JournalTrace 53 - | message:string
JournalTransaction 54 - | transaction_id:TransactionId type:byte was_prepared:boolean
SubscriptionInfo 55 - | client_id:string destination:ActiveMQDestination* selector:string
    subscription_name:string subscribed_destination:ActiveMQDestination no_local:boolean@11
PartialCommand 60 - | command_id:int data:bytes
LastPartialCommand 61 PartialCommand
ReplayCommand 65 BaseCommand | first_nak_number:int last_nak_number:int
MessageDispatchNotification 90 BaseCommand | consumer_id:ConsumerId* destination:ActiveMQDestination*
    delivery_sequence_id:long message_id:MessageId
NetworkBridgeFilter 91 - | message_ttl:int@-9 network_broker_id:BrokerId* message_ttl:int@10 consumer_ttl:int@10
BrokerSubscriptionInfo 92@12 BaseCommand | broker_id:BrokerId broker_name:string
    subscription_infos:ConsumerInfo[]
ActiveMQQueue 100 ActiveMQDestination
ActiveMQTopic 101 ActiveMQDestination
ActiveMQTempQueue 102 ActiveMQTempDestination
ActiveMQTempTopic 103 ActiveMQTempDestination
MessageId 110 - | text_view:string@10 producer_id:ProducerId* producer_sequence_id:long broker_sequence_id:long
LocalTransactionId 111 TransactionId | value:long connection_id:ConnectionId*
XATransactionId 112 TransactionId | format_id:int global_transaction_id:bytes branch_qualifier:bytes
ConnectionId 120 - | value:string
SessionId 121 - | connection_id:string value:long
ConsumerId 122 - | connection_id:string session_id:long value:long
ProducerId 123 - | connection_id:string value:long session_id:long
BrokerId 124 - | value:string
""")
# What a frame that holds nothing but the type byte 0 is read as.
NO_COMMAND: DataStructure = TYPES["NoCommand"]()
