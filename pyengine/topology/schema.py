"""What ActiveMQ's schema knows and pyengine leaves out: the reason, and whether it may change an answer."""

from __future__ import annotations

_OWN_STORE = ("pyengine keeps messages in its own store", False)
_IN_PROCESS = ("clients reach pyengine's broker inside their own process", False)
_ONE_BROKER = ("it would connect brokers; pyengine is one broker, and networks and bridges are not modelled", True)
_NO_LIMITS = ("producers would wait or fail at a limit of memory or disk; these limits are not modelled", True)
_MONITORING = ("monitoring and logging are not modelled", False)
_SECURITY = ("it would refuse users without a right; everybody may do everything here", True)
_USER_ID = ("each message would have its user in JMSXUserID; here it has what its producer gave it", True)
_CURSOR = ("pending messages are kept in the broker's own order whatever the cursor", False)
_ADVISORY = ("this advisory is not sent", False)
_START_STOP = ("how the process starts and stops is yours to say", False)
_AUDIT = ("the audit of duplicates has one size", True)
_TASKS = ("threads are the client side's own (docs/client.md)", False)
_TEMPORARY = ("temporary destinations live as long as their connection", False)
_KEY_STORES = ("Java key stores are not read: the uri of a connector names PEM files (docs/stomp.md)", False)

# The schemes of the connectors that pyengine listens on, and why it does not on others.
CONNECTORS = ("tcp", "nio", "ssl", "nio+ssl", "stomp", "stomp+nio", "stomp+ssl", "stomp+nio+ssl")
OTHER_CONNECTOR = ("clients of OpenWire, of STOMP and in its own process reach pyengine's broker, others do not", False)

NOT_MODELLED = ("not modelled", True)
FOREIGN = ("not part of the broker's configuration", False)
OTHER_BROKER = ("another broker of this file", False)
OWN_CLASS = ("a class of your own, which is not loaded", True)
OTHER_PLUGIN = ("a plugin that is not modelled", True)

BROKER: dict[str, tuple[str, bool]] = {
    "persistenceAdapter": _OWN_STORE,
    "persistenceFactory": _OWN_STORE,
    "tempDataStore": _OWN_STORE,
    "tmpDataDirectory": _OWN_STORE,
    "dataDirectoryFile": _OWN_STORE,
    "jobSchedulerStore": _OWN_STORE,
    "schedulerDirectory": _OWN_STORE,
    "schedulerDirectoryFile": _OWN_STORE,
    "storeOpenWireVersion": _OWN_STORE,
    "persistenceThreadPriority": _OWN_STORE,
    "persistenceTaskRunnerFactory": _OWN_STORE,
    "ioExceptionHandler": _OWN_STORE,
    "transportConnectorURIs": _IN_PROCESS,
    "vmConnectorURI": _IN_PROCESS,
    "sslContext": _KEY_STORES,
    "proxyConnectors": _ONE_BROKER,
    "networkConnectors": _ONE_BROKER,
    "networkConnectorURIs": _ONE_BROKER,
    "networkConnectorStartAsync": _ONE_BROKER,
    "jmsBridgeConnectors": _ONE_BROKER,
    "waitForSlave": _ONE_BROKER,
    "waitForSlaveTimeout": _ONE_BROKER,
    "shutdownOnMasterFailure": _ONE_BROKER,
    "shutdownOnSlaveFailure": _ONE_BROKER,
    "passiveSlave": _ONE_BROKER,
    "monitorConnectionSplits": _ONE_BROKER,
    "useVirtualDestSubs": _ONE_BROKER,
    "useVirtualDestSubsOnCreation": _ONE_BROKER,
    "systemUsage": _NO_LIMITS,
    "memoryManager": _NO_LIMITS,
    "consumerSystemUsage": _NO_LIMITS,
    "producerSystemUsage": _NO_LIMITS,
    "consumerSystemUsagePortion": _NO_LIMITS,
    "producerSystemUsagePortion": _NO_LIMITS,
    "splitSystemUsageForProducersConsumers": _NO_LIMITS,
    "adjustUsageLimits": _NO_LIMITS,
    "schedulePeriodForDiskUsageCheck": _NO_LIMITS,
    "diskUsageCheckRegrowThreshold": _NO_LIMITS,
    "maxInflatedDataSize": _NO_LIMITS,
    "useJmx": _MONITORING,
    "managementContext": _MONITORING,
    "adminView": _MONITORING,
    "brokerObjectName": _MONITORING,
    "enableStatistics": _MONITORING,
    "mbeanInvocationTimeout": _MONITORING,
    "populateUserNameInMBeans": _MONITORING,
    "useLoggingForShutdownErrors": _MONITORING,
    "advisorySupport": ("the advisories that a policy asks for are sent all the same, and no others", False),
    "anonymousProducerAdvisorySupport": _ADVISORY,
    "messageAuthorizationPolicy": _SECURITY,
    "populateJMSXUserID": _USER_ID,
    "useAuthenticatedPrincipalForJMSXUserID": _USER_ID,
    "start": _START_STOP,
    "startAsync": _START_STOP,
    "useShutdownHook": _START_STOP,
    "shutdownHooks": _START_STOP,
    "systemExitOnShutdown": _START_STOP,
    "systemExitOnShutdownExitCode": _START_STOP,
    "restartAllowed": _START_STOP,
    "services": _START_STOP,
    "brokerContext": _START_STOP,
    "brokerId": _START_STOP,
    "useLocalHostBrokerName": _START_STOP,
    "regionBroker": _START_STOP,
    "destinationFactory": _START_STOP,
    "taskRunnerFactory": _TASKS,
    "taskRunnerPriority": _TASKS,
    "dedicatedTaskRunner": _TASKS,
    "virtualThreadTaskRunner": _TASKS,
    "useMirroredQueues": ("each queue would be copied to a topic; queues are not mirrored", True),
    "useTempMirroredQueues": ("each queue would be copied to a topic; queues are not mirrored", True),
    "keepDurableSubsActive": ("durable subscriptions are kept active, the broker's default", True),
    "enableMessageExpirationOnActiveDurableSubs": ("messages expire as with the broker's default", True),
    "rejectDurableConsumers": ("durable consumers are accepted", True),
    "maxSchedulerRepeatAllowed": ("scheduled delivery is not modelled", True),
    "maxPurgedDestinationsPerSweep": ("every sweep removes all that are inactive long enough", False),
    "cacheTempDestinations": _TEMPORARY,
    "timeBeforePurgeTempDestinations": _TEMPORARY,
    "allowTempAutoCreationOnSend": _TEMPORARY,
    "rollbackOnlyOnAsyncException": ("transactions fail where they are used", False),
    "maxUncommittedCount": ("transactions have no size limit", True),
    "masterConnectorURI": _ONE_BROKER,
    "masterConnector": _ONE_BROKER,
    "supportFailOver": _ONE_BROKER,
}

# The value of a broker's flag with which pyengine already agrees.
AS_HERE = {
    "keepDurableSubsActive": True,
    "monitorConnectionSplits": False,
    "passiveSlave": False,
    "populateJMSXUserID": False,
    "rejectDurableConsumers": False,
    "supportFailOver": False,
    "useAuthenticatedPrincipalForJMSXUserID": False,
    "useJmx": False,
    "useMirroredQueues": False,
    "useTempMirroredQueues": False,
    "useVirtualDestSubs": False,
    "useVirtualDestSubsOnCreation": False,
    "waitForSlave": False,
}

POLICY_ENTRY: dict[str, tuple[str, bool]] = {
    "memoryLimit": _NO_LIMITS,
    "producerFlowControl": _NO_LIMITS,
    "sendFailIfNoSpace": _NO_LIMITS,
    "sendFailIfNoSpaceAfterTimeout": _NO_LIMITS,
    "blockedProducerWarningInterval": _NO_LIMITS,
    "cursorMemoryHighWaterMark": _NO_LIMITS,
    "storeUsageHighWaterMark": _NO_LIMITS,
    "pendingSubscriberPolicy": _CURSOR,
    "pendingDurableSubscriberPolicy": _CURSOR,
    "useCache": _CURSOR,
    "reduceMemoryFootprint": _CURSOR,
    "doOptimzeMessageStorage": _CURSOR,
    "optimizeMessageStoreInFlightLimit": _CURSOR,
    "maxQueueAuditDepth": _AUDIT,
    "advisoryWhenFull": _ADVISORY,
    "advisoryForDispatched": _ADVISORY,
    "advisoryForFastProducers": ("no producer is held back, so none is too fast", False),
    "advisdoryForFastProducers": ("no producer is held back, so none is too fast", False),
    "optimizedDispatch": ("a queue hands out before the send returns, as with true", False),
    "includeBodyForAdvisory": _ADVISORY,
    "sendDuplicateFromStoreToDLQ": ("the store gives no duplicates", False),
    "networkBridgeFilterFactory": _ONE_BROKER,
    "gcWithNetworkConsumers": _ONE_BROKER,
    "maxDestinations": ("the number of destinations has no limit", True),
    "useTopicSubscriptionInflightStats": ("a topic always knows which messages its consumers hold", True),
    "advancedNetworkStatisticsEnabled": _MONITORING,
    "advancedMessageStatisticsEnabled": _MONITORING,
    "messageInterceptorStrategy": ("messages are not changed on their way in", True),
    "allowTempDestinationStealing": _TEMPORARY,
    "queryDispatchPolicy": NOT_MODELLED,
}

STRATEGIES: dict[str, tuple[str, bool]] = {
    "queryBasedSubscriptionRecoveryPolicy": ("its query is a class of yours; give the policy in Python", True),
    "retainedMessageSubscriptionRecoveryPolicy": ("retained messages are always on, whatever the policy", False),
}
STRATEGY_PROPERTIES: dict[str, tuple[str, bool]] = {
    "name": _MONITORING,
    "broker": _START_STOP,
    "brokerService": _START_STOP,
    "buffer": _START_STOP,
    "useSharedBuffer": ("each topic has a list of its own, as in the broker", False),
    "expiryCheckEnabled": ("expired messages are looked for, the broker's default", True),
}
DISPATCH_PROPERTIES: dict[str, tuple[str, bool]] = {
    "ptpClientId": ("the property is PTP_CLIENTID, the broker's default", True),
    "ptpSuffix": ("the suffix is .PTP, the broker's default", True),
}
REDELIVERY: dict[str, tuple[str, bool]] = {
    "preDispatchCheck": ("this is for the client; it looks before dispatch, the default", False),
}
DISCARDING: dict[str, tuple[str, bool]] = {"reportInterval": _MONITORING}
VIRTUAL: dict[str, tuple[str, bool]] = {
    "concurrentSend": ("copies are made one after the other, in order", False),
    "transactedSend": ("all copies of a message are one change of the broker, as with true", False),
    "dropOnResourceLimit": _NO_LIMITS,
    "copyMessage": ("each destination gets a copy of its own, as in the broker", False),
}
INTERCEPTORS: dict[str, tuple[str, bool]] = {
    "mirroredQueue": ("each queue would be copied to a topic; queues are not mirrored", True)
}
AUTHENTICATION = dict.fromkeys(("anonymousUser", "anonymousGroup", "userGroups", "userPasswords"), _SECURITY)
AUTHORIZATION = dict.fromkeys(("groupClass", "tempQueue", "tempTopic"), _SECURITY)

PLUGINS: dict[str, tuple[str, bool]] = {
    **dict.fromkeys(
        ("jaasAuthenticationPlugin", "jaasCertificateAuthenticationPlugin",
         "jaasDualAuthenticationPlugin", "authorizationPlugin", "simpleAuthorizationPlugin"), _SECURITY,
    ),
    **dict.fromkeys(
        ("loggingBrokerPlugin", "udpTraceBrokerPlugin", "multicastTraceBrokerPlugin",
         "traceBrokerPathPlugin", "connectionDotFilePlugin", "destinationDotFilePlugin", "camelRoutesBrokerPlugin",
         "runtimeConfigurationPlugin", "destinationsPlugin"), _MONITORING,
    ),
    "destinationPathSeparatorPlugin": (
        "it would part the elements of names by another character; the separator is the dot", True,
    ),
    "virtualSelectorCacheBrokerPlugin": ("it would remember selectors of consumers that left", True),
    "virtualSelectorCacheBroker": ("it would remember selectors of consumers that left", True),
}  # fmt: skip
# Attributes that take sizes such as "64 kb"; the others that take whole numbers take digits only.
SIZES = frozenset({"memoryLimit"})
# Attributes of Java type long; the others are int.
_LONGS = frozenset(
    {"checkPeriod", "expiration", "expireMessagesPeriod", "inactiveTimeoutBeforeGC", "inactiveTimoutBeforeGC",
     "initialRedeliveryDelay", "maxSlowCount", "maxSlowDuration", "maxTimeSinceLastAck", "maximumRedeliveryDelay",
     "minimumMessageSize", "offlineDurableSubscriberTaskSchedule", "offlineDurableSubscriberTimeout", "recoverDuration",
     "redeliveryDelay"}
)  # fmt: skip
# A smaller value has no meaning and is refused.
_MINIMUMS = {
    "consumersBeforeDispatchStarts": 0,
    "timeBeforeDispatchStarts": 0,
    "maxPageSize": 1,
    "maxBrowsePageSize": 1,
    "maxExpirePageSize": 1,
}
_JAVA = {
    "persist_jms_redelivered": "persistJMSRedelivered",
    "inactive_timeout_before_gc": "inactiveTimeoutBeforeGC",
    "evict_expired_messages_high_watermark": "evictExpiredMessagesHighWatermark",
}


def java_name(key: str) -> str:
    """The broker's spelling of a snake_case key."""
    if key in _JAVA:
        return _JAVA[key]
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)


def largest(name: str) -> int:
    """The largest number that the broker's own property of this name holds: a long, an int, a byte (of a priority)."""
    return (1 << (63 if name in _LONGS else 7 if name == "priority" else 31)) - 1


def smallest(name: str) -> int:
    """The smallest number with a meaning, if smaller ones are refused everywhere; otherwise the range of the
    property."""
    return _MINIMUMS.get(name, -largest(name) - 1)
