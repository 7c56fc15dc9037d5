"""bodies: the objects that RocketMQ's commands carry as JSON, as release 5.3.3 declares them.

One table of classes, from which both directions follow; its form is that of wire.beans. Times are ms.
"""

from pyengine._engine.wire.beans cimport Beans

cdef str ENUMS = """
CMResult CR_SUCCESS CR_LATER CR_ROLLBACK CR_COMMIT CR_THROW_EXCEPTION CR_RETURN_NULL
ConsumeFromWhere CONSUME_FROM_LAST_OFFSET CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST
    CONSUME_FROM_MIN_OFFSET CONSUME_FROM_MAX_OFFSET CONSUME_FROM_FIRST_OFFSET CONSUME_FROM_TIMESTAMP
ConsumeType CONSUME_ACTIVELY CONSUME_PASSIVELY CONSUME_POP
GroupRetryPolicyType EXPONENTIAL CUSTOMIZED
LanguageCode JAVA CPP DOTNET PYTHON DELPHI ERLANG RUBY OTHER HTTP GO PHP OMS RUST NODE_JS
MessageModel BROADCASTING CLUSTERING
MessageRequestMode PULL POP
TopicFilterType SINGLE_TAG MULTI_TAG
"""

cdef str CLASSES = """
BatchAck b:bytes c it:long pt:long q:int r rq:int so:long t
BatchAckMessageRequestBody acks:List<BatchAck> brokerName
BrokerData brokerAddrs:Map<Long,String> brokerName cluster enableActingMaster:boolean zoneName
BrokerMemberGroup brokerAddrs:Map<Long,String>={} brokerName cluster
BrokerReplicasInfo replicasInfoTable:Map<String,ReplicasInfo>={}
BrokerStatsData statsDay:BrokerStatsItem statsHour:BrokerStatsItem statsMinute:BrokerStatsItem
BrokerStatsItem avgpt:double sum:long tps:double
BrokerSyncInfo masterAddress masterFlushOffset:long masterHaAddress
CheckClientRequestBody clientId group namespace subscriptionData:SubscriptionData
ClusterInfo brokerAddrTable:Map<String,BrokerData> clusterAddrTable:Map<String,Set<String>>
Connection clientAddr clientId language:LanguageCode version:int
ConsumeByWho consumedGroup:Set<String>=[] notConsumedGroup:Set<String>=[] offset:long queueId:int topic
ConsumeMessageDirectlyResult autoCommit:boolean=true consumeResult:CMResult order:boolean remark spentTimeMills:long
ConsumeQueueData bitMap eval:boolean extendDataJson msg physicOffset:long physicSize:int tagsCode:long
ConsumeStats consumeTps:double offsetTable:Map<MessageQueue,OffsetWrapper>={}
ConsumeStatsList brokerAddr consumeStatsList:List<Map<String,List<ConsumeStats>>>=[] totalDiff:long
    totalInflightDiff:long
ConsumeStatus consumeFailedMsgs:long consumeFailedTPS:double consumeOKTPS:double consumeRT:double pullRT:double
    pullTPS:double
ConsumerConnection connectionSet:Set<Connection>=[] consumeFromWhere:ConsumeFromWhere consumeType:ConsumeType
    messageModel:MessageModel subscriptionTable:Map<String,SubscriptionData>={}
ConsumerData consumeFromWhere:ConsumeFromWhere consumeType:ConsumeType groupName messageModel:MessageModel
    subscriptionDataSet:Set<SubscriptionData>=[] unitMode:boolean
ConsumerOffsetSerializeWrapper dataVersion:DataVersion offsetTable:Map<String,Map<Integer,Long>>={}
ConsumerRunningInfo jstack mqPopTable:Map<MessageQueue,PopProcessQueueInfo>={}
    mqTable:Map<MessageQueue,ProcessQueueInfo>={} properties:Map<String,String>={}
    statusTable:Map<String,ConsumeStatus>={} subscriptionSet:Set<SubscriptionData>=[]
    userConsumerInfo:Map<String,String>={}
CreateTopicListRequestBody topicConfigList:List<TopicConfig>
CustomizedRetryPolicy
    next:List<long>=[1000,5000,10000,30000,60000,120000,180000,240000,300000,360000,420000,480000,540000,600000,\
1200000,1800000,3600000,7200000]
DataVersion counter:long stateVersion:long timestamp:long
ElectMasterResponseBody brokerMemberGroup:BrokerMemberGroup syncStateSet:Set<Long>=[]
EpochEntry endOffset:long epoch:int startOffset:long
EpochEntryCache brokerId:long brokerName clusterName epochList:List<EpochEntry> maxOffset:long
ExponentialRetryPolicy initial:long=5000 max:long=7200000 multiplier:long=2
GetBrokerMemberGroupResponseBody brokerMemberGroup:BrokerMemberGroup
GetConsumerListByGroupResponseBody consumerIdList:List<String>
GetConsumerStatusBody consumerTable:Map<String,Map<MessageQueue,Long>>={}
    messageQueueTable:Map<MessageQueue,Long>={}
GroupForbidden group readable:Boolean topic
GroupList groupList:Set<String>=[]
GroupRetryPolicy customizedRetryPolicy:CustomizedRetryPolicy exponentialRetryPolicy:ExponentialRetryPolicy
    type:GroupRetryPolicyType=CUSTOMIZED
HAClientRuntimeInfo lastReadTimestamp:long lastWriteTimestamp:long masterAddr masterFlushOffset:long maxOffset:long
    transferredByteInSecond:long
HAConnectionRuntimeInfo addr diff:long inSync:boolean slaveAckOffset:long transferFromWhere:long
    transferredByteInSecond:long
HARuntimeInfo haClientRuntimeInfo:HAClientRuntimeInfo=new haConnectionInfo:List<HAConnectionRuntimeInfo>=[]
    inSyncSlaveNums:int master:boolean masterCommitLogMaxOffset:long
HeartbeatData clientID consumerDataSet:Set<ConsumerData>=[] heartbeatFingerprint:int
    producerDataSet:Set<ProducerData>=[] withoutSub:boolean
KVTable table:Map<String,String>={}
LockBatchRequestBody clientId consumerGroup mqSet:Set<MessageQueue>=[] onlyThisBroker:boolean
LockBatchResponseBody lockOKMQSet:Set<MessageQueue>=[]
LogicQueueMappingItem bname endOffset:long=-1 gen:int logicOffset:long queueId:int startOffset:long
    timeOfEnd:long=-1 timeOfStart:long=-1
MessageQueue brokerName queueId:int topic
MessageQueueAssignment attachments:Map<String,String> messageQueue:MessageQueue mode:MessageRequestMode=PULL
MessageQueueForC brokerName offset:long queueId:int topic
MessageRequestModeSerializeWrapper messageRequestModeMap:Map<String,Map<String,SetMessageRequestModeRequestBody>>={}
OffsetMovedEvent consumerGroup messageQueue:MessageQueue offsetNew:long offsetRequest:long
OffsetWrapper brokerOffset:long consumerOffset:long lastTimestamp:long pullOffset:long
PopProcessQueueInfo droped:boolean lastPopTimestamp:long waitAckCount:int
ProcessQueueInfo cachedMsgCount:int cachedMsgMaxOffset:long cachedMsgMinOffset:long cachedMsgSizeInMiB:int
    commitOffset:long droped:boolean lastConsumeTimestamp:long lastLockTimestamp:long lastPullTimestamp:long
    locked:boolean transactionMsgCount:int transactionMsgMaxOffset:long transactionMsgMinOffset:long
    tryUnlockTimes:long
ProducerConnection connectionSet:Set<Connection>=[]
ProducerData groupName
ProducerInfo clientId language:LanguageCode lastUpdateTimestamp:long remoteIP version:int
ProducerTableInfo data:Map<String,List<ProducerInfo>>
QueryAssignmentRequestBody clientId consumerGroup messageModel:MessageModel strategyName topic
QueryAssignmentResponseBody messageQueueAssignments:Set<MessageQueueAssignment>
QueryConsumeQueueResponseBody filterData maxQueueIndex:long minQueueIndex:long queueData:List<ConsumeQueueData>
    subscriptionData:SubscriptionData
QueryConsumeTimeSpanBody consumeTimeSpanSet:List<QueueTimeSpan>=[]
QueryCorrectionOffsetBody correctionOffsets:Map<Integer,Long>={}
QuerySubscriptionResponseBody group subscriptionData:SubscriptionData topic
QueueData brokerName perm:int readQueueNums:int topicSysFlag:int writeQueueNums:int
QueueTimeSpan consumeTimeStamp:long >consumeTimeStampStr delayTime:long maxTimeStamp:long >maxTimeStampStr
    messageQueue:MessageQueue minTimeStamp:long >minTimeStampStr
RegisterBrokerBody filterServerList:List<String>=[]
    topicConfigSerializeWrapper:TopicConfigAndMappingSerializeWrapper=new
ReplicaIdentity alive:Boolean brokerAddress brokerId:Long brokerName
ReplicasInfo inSyncReplicas:List<ReplicaIdentity> masterAddress masterBrokerId:Long masterEpoch:int
    notInSyncReplicas:List<ReplicaIdentity> syncStateSetEpoch:int
ResetOffsetBody offsetTable:Map<MessageQueue,Long>={}
ResetOffsetBodyForC offsetTable:List<MessageQueueForC>
SetMessageRequestModeRequestBody consumerGroup mode:MessageRequestMode=PULL popShareQueueNum:int topic
SimpleSubscriptionData expression expressionType topic version:long
SubscriptionData classFilterMode:boolean codeSet:Set<Integer>=[] expressionType=TAG <filterClassSource subString
    subVersion:long tagsSet:Set<String>=[] topic
SubscriptionGroupConfig attributes:Map<String,String>={} brokerId:long consumeBroadcastEnable:boolean=true
    consumeEnable:boolean=true consumeFromMinEnable:boolean=true consumeMessageOrderly:boolean
    consumeTimeoutMinute:int=15 groupName groupRetryPolicy:GroupRetryPolicy=new groupSysFlag:int
    notifyConsumerIdsChangedEnable:boolean=true retryMaxTimes:int=16 retryQueueNums:int=1
    subscriptionDataSet:Set<SimpleSubscriptionData> whichBrokerWhenConsumeSlowly:long=1
SubscriptionGroupList groupConfigList:List<SubscriptionGroupConfig>
SubscriptionGroupWrapper dataVersion:DataVersion=new subscriptionGroupTable:Map<String,SubscriptionGroupConfig>={}
SyncStateSet syncStateSet:Set<Long> syncStateSetEpoch:int
TopicConfig attributes:Map<String,String>={} order:boolean perm:int=6 readQueueNums:int=16
    topicFilterType:TopicFilterType=SINGLE_TAG topicName topicSysFlag:int writeQueueNums:int=16
TopicConfigAndMappingSerializeWrapper dataVersion:DataVersion=new mappingDataVersion:DataVersion=new
    topicConfigTable:Map<String,TopicConfig>={} topicQueueMappingDetailMap:Map<String,TopicQueueMappingDetail>={}
    topicQueueMappingInfoMap:Map<String,TopicQueueMappingInfo>={}
TopicConfigAndQueueMapping attributes:Map<String,String>={} mappingDetail:TopicQueueMappingDetail order:boolean
    perm:int=6 readQueueNums:int=16 topicFilterType:TopicFilterType=SINGLE_TAG topicName topicSysFlag:int
    writeQueueNums:int=16
TopicConfigSerializeWrapper dataVersion:DataVersion=new topicConfigTable:Map<String,TopicConfig>={}
TopicList brokerAddr topicList:Set<String>=[]
TopicOffset lastUpdateTimestamp:long maxOffset:long minOffset:long
TopicQueueMappingDetail bname currIdMap:Map<Integer,Integer>={} dirty:boolean epoch:long
    hostedQueues:Map<Integer,List<LogicQueueMappingItem>>={} scope=__global__ topic totalQueues:int
TopicQueueMappingInfo bname currIdMap:Map<Integer,Integer>={} dirty:boolean epoch:long scope=__global__ topic
    totalQueues:int
TopicQueueMappingOne bname globalId:Integer items:List<LogicQueueMappingItem> mappingDetail:TopicQueueMappingDetail
    topic
TopicQueueMappingSerializeWrapper dataVersion:DataVersion=new
    topicQueueMappingInfoMap:Map<String,TopicQueueMappingDetail>
TopicRemappingDetailWrapper brokerConfigMap:Map<String,TopicConfigAndQueueMapping>={} brokerToMapIn:Set<String>=[]
    brokerToMapOut:Set<String>=[] epoch:long topic type
TopicRouteData brokerDatas:List<BrokerData>=[] filterServerTable:Map<String,List<String>>={} orderTopicConf
    queueDatas:List<QueueData>=[] topicQueueMappingByBroker:Map<String,TopicQueueMappingInfo>
TopicStatsTable offsetTable:Map<MessageQueue,TopicOffset>={} topicPutTps:double
UnlockBatchRequestBody clientId consumerGroup mqSet:Set<MessageQueue>=[] onlyThisBroker:boolean
"""

cdef Beans classes = Beans(CLASSES, ENUMS)
CLASS_NAMES = tuple(classes.names())


def write_body(str name not None, dict value not None):
    """The bytes of an object of the class. value: property -> value; one that is absent has its default, None is not
    written. Raises KeyError for an unknown class, TypeError for a value that a property cannot have.
    """
    return classes.write(name, value)


def read_body(str name not None, bytes data not None):
    """The object in these bytes: property -> value, absent ones with their defaults; None for no object at all.

    Raises KeyError for an unknown class, ProtocolError for bytes that are not such an object.
    """
    return classes.read(name, data)
