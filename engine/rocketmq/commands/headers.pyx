"""headers: the custom headers of RocketMQ's commands, as release 5.3.3 declares them.

One table of classes, from which both directions follow. A value is a dict of field -> str, int, bool or None; on the
wire a header is the command's extFields, in which each value is a string.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from pyengine._engine.java.hashing import set_order
from pyengine._engine.java.numbers import parsed_long
from pyengine._engine.wire.beans import paragraphs

from pyengine.errors import ProtocolError

cdef extern from "Python.h":
    PyObject* PyDict_GetItem(object mapping, object key)

# A class a paragraph: name, request code (- for the header of an answer), fields in the order in which the real class
# lists them. Types: none String, I Integer, L Long, B Boolean; i, l, b the primitives, which cannot be null; T a
# BoundaryType. = a default.
cdef str TABLE = """
AckMessageRequestHeader 200051 consumerGroup extraInfo ns bname oway:B topic offset:L lo:B queueId:I nsd:B
AddBrokerRequestHeader 902 configPath
AddWritePermOfBrokerRequestHeader 327 brokerName
AddWritePermOfBrokerResponseHeader - addTopicCount:I
AlterSyncStateSetRequestHeader 1001 masterBrokerId:L invokeTime:l masterEpoch:I brokerName
AlterSyncStateSetResponseHeader - newSyncStateSetEpoch:i
ApplyBrokerIdRequestHeader 1013 clusterName registerCheckCode appliedBrokerId:L brokerName
ApplyBrokerIdResponseHeader - clusterName brokerName
BrokerHeartbeatRequestHeader 904 epoch:I maxOffset:L brokerAddr brokerName brokerId:L clusterName confirmOffset:L
    heartbeatTimeoutMills:L electionPriority:I
ChangeInvisibleTimeRequestHeader 200053 offset:L queueId:I ns bname invisibleTime:L oway:B extraInfo consumerGroup
    topic lo:B nsd:B
ChangeInvisibleTimeResponseHeader - invisibleTime:l popTime:l reviveQid:i
CheckRocksdbCqWriteProgressRequestHeader 354 topic checkStoreTime:l
CheckTransactionStateRequestHeader 39 tranStateTableOffset:L offsetMsgId topic msgId transactionId ns bname oway:B
    commitLogOffset:L nsd:B
CheckTransactionStateResponseHeader - commitLogOffset:L producerGroup tranStateTableOffset:L commitOrRollback:I
CleanControllerBrokerDataRequestHeader 1011 invokeTime:l clusterName isCleanLivingBroker:b
    brokerControllerIdsToClean brokerName
CloneGroupOffsetRequestHeader 314 topic ns bname oway:B destGroup srcGroup offline:b nsd:B
ConsumeMessageDirectlyResultRequestHeader 309 msgId topic consumerGroup ns bname topicSysFlag:I oway:B brokerName
    clientId groupSysFlag:I lo:B nsd:B
ConsumerSendMsgBackRequestHeader 36 maxReconsumeTimes:I ns bname originTopic oway:B delayLevel:I offset:L
    originMsgId group unitMode:b nsd:B
CreateAclRequestHeader 3006 subject
CreateTopicListRequestHeader 18 ns bname oway:B nsd:B
CreateTopicRequestHeader 17 ns topicFilterType writeQueueNums:I attributes force:B=false topic order:B=false lo:B
    readQueueNums:I bname oway:B perm:I topicSysFlag:I defaultTopic nsd:B
CreateUserRequestHeader 3001 username
DeleteAclRequestHeader 3008 resource policyType subject
DeleteKVConfigRequestHeader 102 namespace key
DeleteSubscriptionGroupRequestHeader 207 groupName ns bname cleanOffset:b oway:B nsd:B
DeleteTopicFromNamesrvRequestHeader 216 topic ns bname oway:B clusterName lo:B nsd:B
DeleteTopicRequestHeader 215 topic ns bname oway:B lo:B nsd:B
DeleteUserRequestHeader 3003 username
ElectMasterRequestHeader 1002 brokerName= designateElect:B=false invokeTime:L clusterName= brokerId:L=-1
ElectMasterResponseHeader - masterEpoch:I syncStateSetEpoch:I masterBrokerId:L masterAddress
EndTransactionRequestHeader 37 transactionId fromTransactionCheck:B=false ns bname topic msgId oway:B
    tranStateTableOffset:L commitOrRollback:I commitLogOffset:L producerGroup nsd:B
EndTransactionResponseHeader -
ExchangeHAInfoRequestHeader 906 masterHaAddress masterFlushOffset:L masterAddress
ExchangeHAInfoResponseHeader - masterHaAddress masterFlushOffset:L masterAddress
ExportRocksDBConfigToJsonRequestHeader 355 configType
GetAclRequestHeader 3009 subject
GetAllProducerInfoRequestHeader 328
GetAllTopicConfigResponseHeader 21
GetBrokerConfigResponseHeader - version
GetBrokerMemberGroupRequestHeader 901 brokerName clusterName
GetConsumeStatsInBrokerHeader 317 isOrder:b
GetConsumeStatsRequestHeader 208 ns bname oway:B topicList consumerGroup topic lo:B nsd:B
GetConsumerConnectionListRequestHeader 203 ns bname oway:B consumerGroup nsd:B
GetConsumerListByGroupRequestHeader 38 consumerGroup ns bname oway:B nsd:B
GetConsumerListByGroupResponseHeader -
GetConsumerRunningInfoRequestHeader 307 jstackEnable:b ns bname consumerGroup oway:B clientId nsd:B
GetConsumerStatusRequestHeader 223 ns bname oway:B clientAddr group topic lo:B nsd:B
GetEarliestMsgStoretimeRequestHeader 32 queueId:I ns bname oway:B topic lo:B nsd:B
GetEarliestMsgStoretimeResponseHeader - timestamp:L
GetKVConfigRequestHeader 101 namespace key
GetKVConfigResponseHeader - value
GetKVListByNamespaceRequestHeader 219 namespace
GetMaxOffsetRequestHeader 30 committed:b=true queueId:I ns bname oway:B topic lo:B nsd:B
GetMaxOffsetResponseHeader - offset:L
GetMetaDataResponseHeader - peers group controllerLeaderId controllerLeaderAddress isLeader:b
GetMinOffsetRequestHeader 31 topic ns bname oway:B queueId:I lo:B nsd:B
GetMinOffsetResponseHeader - offset:L
GetNextBrokerIdRequestHeader 1012 clusterName brokerName
GetNextBrokerIdResponseHeader - clusterName nextBrokerId:L brokerName
GetProducerConnectionListRequestHeader 204 ns bname oway:B producerGroup nsd:B
GetReplicaInfoRequestHeader 1004 brokerName
GetReplicaInfoResponseHeader - masterEpoch:I masterBrokerId:L masterAddress
GetRouteInfoRequestHeader 105 topic ns bname oway:B acceptStandardJsonOnly:B lo:B nsd:B
GetSubscriptionGroupConfigRequestHeader 352 ns bname oway:B group nsd:B
GetTopicConfigRequestHeader 351 topic ns bname oway:B lo:B nsd:B
GetTopicStatsInfoRequestHeader 202 topic ns bname oway:B lo:B nsd:B
GetTopicsByClusterRequestHeader 224 cluster
GetUserRequestHeader 3004 username
HeartbeatRequestHeader 34 ns bname oway:B nsd:B
InitConsumerOffsetRequestHeader - ns bname oway:B topic initMode:i lo:B nsd:B
ListAclsRequestHeader 3010 resourceFilter subjectFilter
ListUsersRequestHeader 3005 filter
LockBatchMqRequestHeader 41 ns bname oway:B nsd:B
NotificationRequestHeader 200054 consumerGroup order:B=false attemptId ns bname topic oway:B pollTime:l queueId:i
    lo:B bornTime:l nsd:B
NotificationResponseHeader - hasMsg:b pollingFull:b
NotifyBrokerRoleChangedRequestHeader 1008 syncStateSetEpoch:I masterEpoch:I masterAddress masterBrokerId:L
NotifyConsumerIdsChangedRequestHeader 40 consumerGroup ns bname oway:B nsd:B
NotifyMinBrokerIdChangeRequestHeader 905 offlineBrokerAddr brokerName minBrokerAddr minBrokerId:L haBrokerAddr
PeekMessageRequestHeader 200052 consumerGroup ns bname oway:B topic maxMsgNums:i lo:B queueId:i nsd:B
PollingInfoRequestHeader 200055 consumerGroup topic ns bname oway:B queueId:i lo:B nsd:B
PollingInfoResponseHeader - pollingNum:i
PopMessageRequestHeader 200050 pollTime:l bornTime:l ns topic expType exp consumerGroup lo:B order:B=false attemptId
    invisibleTime:l queueId:i maxMsgNums:i bname oway:B initMode:i nsd:B
PopMessageResponseHeader - restNum:l popTime:l orderCountInfo reviveQid:i msgOffsetInfo invisibleTime:l
    startOffsetInfo
PullMessageRequestHeader 11 maxMsgBytes:I queueId:I ns commitOffset:L maxMsgNums:I sysFlag:I subscription
    requestSource:I proxyFrowardClientId lo:B bname oway:B suspendTimeoutMillis:L queueOffset:L expressionType topic
    consumerGroup subVersion:L nsd:B
PullMessageResponseHeader - maxOffset:L offsetDelta:L topicSysFlag:I minOffset:L groupSysFlag:I
    suggestWhichBrokerId:L nextBeginOffset:L forbiddenType:I
PutKVConfigRequestHeader 100 namespace key value
QueryConsumeQueueRequestHeader 321 consumerGroup ns bname oway:B count:i topic index:l lo:B queueId:i nsd:B
QueryConsumeTimeSpanRequestHeader 303 topic group ns bname oway:B lo:B nsd:B
QueryConsumerOffsetRequestHeader 14 topic setZeroIfNotFound:B ns bname oway:B consumerGroup queueId:I lo:B nsd:B
QueryConsumerOffsetResponseHeader - offset:L
QueryCorrectionOffsetHeader 308 topic compareGroup ns bname oway:B filterGroups lo:B nsd:B
QueryDataVersionRequestHeader 322 brokerId:L clusterName brokerAddr brokerName
QueryDataVersionResponseHeader - changed:B
QueryMessageRequestHeader 12 endTimestamp:L maxNum:I key topic ns bname oway:B beginTimestamp:L lo:B nsd:B
QueryMessageResponseHeader - indexLastUpdateTimestamp:L indexLastUpdatePhyoffset:L
QuerySubscriptionByConsumerRequestHeader 345 topic ns bname group oway:B lo:B nsd:B
QueryTopicConsumeByWhoRequestHeader 300 ns bname oway:B topic lo:B nsd:B
QueryTopicsByConsumerRequestHeader 343 ns bname oway:B group nsd:B
RecallMessageRequestHeader 370 producerGroup ns bname oway:B recallHandle topic lo:B nsd:B
RecallMessageResponseHeader - msgId
RegisterBrokerRequestHeader 103 enableActingMaster:B brokerAddr haServerAddr compressed:b brokerName
    heartbeatTimeoutMillis:L brokerId:L bodyCrc32:I=0 clusterName
RegisterBrokerResponseHeader - masterAddr haServerAddr
RegisterBrokerToControllerRequestHeader 1003 brokerName brokerAddress brokerId:L invokeTime:l clusterName
RegisterBrokerToControllerResponseHeader - masterBrokerId:L masterAddress clusterName masterEpoch:I
    syncStateSetEpoch:I brokerName
RegisterOrderTopicRequestHeader - topic orderTopicString
RegisterTopicRequestHeader 217 topic ns bname oway:B lo:B nsd:B
RemoveBrokerRequestHeader 903 brokerId:L brokerClusterName brokerName
ReplyMessageRequestHeader 326 topic ns bornTimestamp:L storeHost properties producerGroup lo:B unitMode:b bname
    oway:B defaultTopic bornHost defaultTopicQueueNums:I queueId:I flag:I sysFlag:I reconsumeTimes:I
    storeTimestamp:l nsd:B
ResetMasterFlushOffsetHeader 908 masterFlushOffset:L
ResetOffsetRequestHeader 222 isForce:b topic ns bname group timestamp:l oway:B queueId:i=-1 offset:L lo:B nsd:B
ResumeCheckHalfMessageRequestHeader 323 topic msgId
SearchOffsetRequestHeader 29 timestamp:L boundaryType:T ns bname oway:B topic lo:B queueId:I nsd:B
SearchOffsetResponseHeader - offset:L
SendMessageRequestHeader 10 maxReconsumeTimes:I producerGroup ns topic bornTimestamp:L lo:B properties queueId:I
    flag:I bname sysFlag:I reconsumeTimes:I oway:B batch:B unitMode:B defaultTopicQueueNums:I defaultTopic nsd:B
SendMessageRequestHeaderV2 310 n l:I m:B j:I ns k:B h:I i f:I g:L d:I e:I b c lo:B a bname oway:B nsd:B
SendMessageResponseHeader - msgId recallHandle queueOffset:L batchUniqId transactionId queueId:I
StatisticsMessagesRequestHeader - queueId:i ns bname oway:B consumerGroup toTime:l topic fromTime:l lo:B nsd:B
UnRegisterBrokerRequestHeader 104 brokerAddr brokerName brokerId:L clusterName
UnlockBatchMqRequestHeader 42 ns bname oway:B nsd:B
UnregisterClientRequestHeader 35 ns bname oway:B producerGroup clientID consumerGroup nsd:B
UnregisterClientResponseHeader -
UpdateAclRequestHeader 3007 subject
UpdateConsumerOffsetRequestHeader 15 queueId:I ns bname oway:B commitOffset:L topic consumerGroup lo:B nsd:B
UpdateConsumerOffsetResponseHeader -
UpdateGroupForbiddenRequestHeader 353 ns bname oway:B readable:B group lo:B topic nsd:B
UpdateUserRequestHeader 3002 username
ViewBrokerStatsDataRequestHeader 315 statsKey statsName
ViewMessageRequestHeader 33 offset:L topic
ViewMessageResponseHeader -
WipeWritePermOfBrokerRequestHeader 205 brokerName
WipeWritePermOfBrokerResponseHeader - wipeTopicCount:I
"""

# Classes that write themselves in the binary form (FastCodesHeader), and in which order.
cdef str FAST = """
PullMessageRequestHeader consumerGroup topic queueId queueOffset maxMsgNums sysFlag commitOffset suspendTimeoutMillis
    subscription subVersion expressionType maxMsgBytes requestSource proxyFrowardClientId lo ns nsd bname oway
PullMessageResponseHeader suggestWhichBrokerId nextBeginOffset minOffset maxOffset offsetDelta topicSysFlag
    groupSysFlag forbiddenType
SendMessageRequestHeaderV2 a b c d e f g h i j k l m n
SendMessageResponseHeader msgId queueId queueOffset transactionId batchUniqId recallHandle
"""

cdef dict RANGES = {"commitOrRollback": {"EndTransactionRequestHeader": (0, 8, 12),
                                         "CheckTransactionStateResponseHeader": (8, 12)}}
cdef int MOST_ORDERS = 1000           # of a class that are kept

cdef enum Kind:
    TEXT
    NUMBER
    BOOLEAN
    BOUNDARY


cdef class Field:
    cdef str name
    cdef Kind kind
    cdef bint nullable
    cdef int64_t most                 # of a number; the least is one below its negative
    cdef object default


cdef class Header:
    """A class: its fields in the order in which the real one lists them."""
    cdef list fields
    cdef dict orders                  # a bit for each field that is there -> their places as a HashMap walks them
    cdef tuple fast                   # places in the binary form, None: as in the other


cdef dict classes = {}                # name -> Header
cdef dict fast_fields = {}
CODES = {}


cdef Field field_of(str word):
    cdef Field field = Field.__new__(Field)
    spelled, equals, default = word.partition("=")
    field.name, _, kind = spelled.partition(":")
    field.kind = {"": TEXT, "T": BOUNDARY}.get(kind, BOOLEAN if kind in ("B", "b") else NUMBER)
    field.most = 0x7FFFFFFF if kind in ("I", "i") else 0x7FFFFFFFFFFFFFFF
    field.nullable = kind not in ("i", "l", "b")
    if not field.nullable or equals:
        if field.kind == BOOLEAN:
            field.default = default == "true"
        else:
            field.default = int(default or 0) if field.kind == NUMBER else default
    return field


def _fill():
    cdef Header header
    for words in paragraphs(TABLE):
        header = Header.__new__(Header)
        header.fields, header.orders, header.fast = [field_of(word) for word in words[2:]], {}, None
        classes[words[0]] = header
        if words[1] != "-":
            CODES[words[0]] = int(words[1])
    for words in paragraphs(FAST):
        header = classes[words[0]]
        names = [(<Field>each).name for each in header.fields]
        header.fast = tuple([names.index(name) for name in words[1:]])
        fast_fields[words[0]] = frozenset(words[1:])


_fill()
CLASS_NAMES = tuple(classes)


cdef str text_of(str name, Field field, value):
    if field.kind == TEXT:
        if isinstance(value, str):
            return value
    elif field.kind == NUMBER:
        if isinstance(value, int) and -field.most - 1 <= <object>value <= field.most:
            return str(value) if type(value) is int else str(int(value))
    elif field.kind == BOOLEAN:
        if isinstance(value, bool):
            return "true" if value else "false"
    elif value in ("LOWER", "UPPER"):
        return value
    raise TypeError(f"{name}.{field.name} cannot be {str(value)[:60]!r}")


def write_header(str name not None, dict values not None, bint binary=False):
    """The extFields of a header, in the order of the wire; a field that is absent has its default, None is left out.

    binary: for the ROCKETMQ form, in which four classes have an order, and fields, of their own. Raises KeyError for an
    unknown class, TypeError for an unknown field and a value that a field cannot have.
    """
    cdef Header header = classes[name]
    cdef dict written = {}
    cdef list texts = []
    cdef Field field
    cdef tuple order
    cdef Py_ssize_t known = 0, place
    cdef uint64_t there = 0
    cdef PyObject* found
    for field in header.fields:
        found = PyDict_GetItem(values, field.name)
        if found is NULL:
            value = field.default
        else:
            value = <object>found
            known += 1
        if value is not None:
            there |= <uint64_t>1 << len(texts)
            value = text_of(name, field, value)
        elif not field.nullable:
            raise TypeError(f"{name}.{field.name} cannot be None")
        texts.append(value)
    if known < len(values):
        unknown = values.keys() - {(<Field>each).name for each in header.fields}
        raise TypeError(f"{name} has no field {min(unknown)}")
    order = header.fast if binary and header.fast is not None else header_order(header, there)
    for place in order:
        if there >> place & 1:
            written[(<Field>header.fields[place]).name] = texts[place]
    return written


cdef tuple header_order(Header header, uint64_t there):
    """The places of the fields that are there, as a HashMap walks them."""
    cdef tuple order = header.orders.get(there)
    if order is None:
        places = {(<Field>field).name: place for place, field in enumerate(header.fields) if there >> place & 1}
        order = tuple([places[name] for name in set_order(tuple(places))])
        if len(header.orders) < MOST_ORDERS:
            header.orders[there] = order
    return order


def read_header(str name not None, ext_fields):
    """The header in a command's extFields (decodeCommandCustomHeader): every field, those that are absent with their
    defaults. ext_fields: name -> text, or None. Other names are ignored.

    As in the real one a number that cannot be read counts as absent; of PullMessage's and SendMessage's headers, which
    read themselves, it is refused. Raises ProtocolError for that and for values out of their range, KeyError for an
    unknown class.
    """
    cdef dict values = {}
    cdef frozenset own = fast_fields.get(name)
    cdef Field field
    for field in (<Header>classes[name]).fields:
        text = None if ext_fields is None or own is not None and field.name not in own else ext_fields.get(field.name)
        if text is None:
            values[field.name] = field.default
        elif field.kind == TEXT:
            values[field.name] = text
        elif field.kind == BOOLEAN:
            values[field.name] = text.lower() == "true"
        elif field.kind == BOUNDARY:
            values[field.name] = "UPPER" if text.lower() == "upper" else "LOWER"
        elif len(text) < 10 and text.isascii() and text.isdecimal():
            values[field.name] = int(text)
        else:
            try:
                number = parsed_long(field.name, text)
                if not -field.most - 1 <= <object>number <= field.most:
                    raise ValueError
                values[field.name] = number
            except ValueError:
                if own is not None:
                    raise ProtocolError(f"{name}.{field.name}: {text[:60]!r} is not a number") from None
                values[field.name] = field.default
    if ext_fields is not None:
        check(name, values)
    return values


cdef int check(str name, dict values) except -1:
    """CommandCustomHeader.checkFields."""
    if name == "EndTransactionRequestHeader" or name == "CheckTransactionStateResponseHeader":
        if values["commitOrRollback"] not in RANGES["commitOrRollback"][name]:
            raise ProtocolError("commitOrRollback field wrong")
    elif name == "CreateTopicRequestHeader":
        if values["topicFilterType"] not in ("SINGLE_TAG", "MULTI_TAG"):
            raise ProtocolError(f"topicFilterType = [{values['topicFilterType']}] value invalid")
    return 0
