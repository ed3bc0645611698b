package codec

// Field numbers of raftlog.proto, named field<Message><Field>; a test compares them with
// the generated descriptors. Numbers are never reused.

const (
	fieldLogEntryVersion     = 1
	fieldLogEntryLeaderEpoch = 2
	fieldLogEntryTime        = 3
	fieldLogEntryCommands    = 4
)

const (
	fieldCommandLead            = 1
	fieldCommandInvoke          = 2
	fieldCommandProgress        = 3
	fieldCommandFireTimers      = 4
	fieldCommandDeliver         = 5
	fieldCommandAcknowledge     = 6
	fieldCommandSignal          = 7
	fieldCommandKill            = 8
	fieldCommandPause           = 9
	fieldCommandResume          = 10
	fieldCommandPurge           = 11
	fieldCommandRestart         = 12
	fieldCommandSetRules        = 13
	fieldCommandPauseQueue      = 14
	fieldCommandDigest          = 15
	fieldCommandIngest          = 16
	fieldCommandPutPosition     = 17
	fieldCommandForgetStreams   = 18
	fieldCommandSetAside        = 19
	fieldCommandDropDeadLetters = 20
)

const (
	fieldStreamSubscription = 1
	fieldStreamIncarnation  = 2
	fieldStreamTopic        = 3
	fieldStreamTopicID      = 4
	fieldStreamPartition    = 5
)

const (
	fieldIngestStream     = 1
	fieldIngestPrev       = 2
	fieldIngestRecords    = 3
	fieldIngestGeneration = 4
)

const (
	fieldIngestRecordOffset = 1
	fieldIngestRecordInvoke = 2
)

const (
	fieldStreamPositionStream       = 1
	fieldStreamPositionNext         = 2
	fieldStreamPositionLeaderEpoch  = 3
	fieldStreamPositionRouting      = 4
	fieldStreamPositionSkipped      = 5
	fieldStreamPositionDeadLettered = 6
	fieldStreamPositionBlocked      = 7
	fieldStreamPositionAt           = 8
)

const (
	fieldBlockedRecordOffset  = 1
	fieldBlockedRecordReason  = 2
	fieldBlockedRecordMessage = 3
	fieldBlockedRecordSince   = 4
)

const (
	fieldPutPositionPosition = 1
)

const (
	fieldForgetStreamsSubscription = 1
	fieldForgetStreamsBefore       = 2
	fieldForgetStreamsPositions    = 3
)

const (
	fieldDeadLetterStream    = 1
	fieldDeadLetterOffset    = 2
	fieldDeadLetterTimestamp = 3
	fieldDeadLetterKey       = 4
	fieldDeadLetterNoKey     = 5
	fieldDeadLetterValue     = 6
	fieldDeadLetterNoValue   = 7
	fieldDeadLetterHeaders   = 8
	fieldDeadLetterReason    = 9
	fieldDeadLetterMessage   = 10
	fieldDeadLetterAt        = 11
)

const (
	fieldRecordHeaderName  = 1
	fieldRecordHeaderValue = 2
)

const (
	fieldDeadLettersRecords = 1
	fieldDeadLettersBytes   = 2
)

const (
	fieldSetAsidePosition = 1
	fieldSetAsideLetter   = 2
	fieldSetAsideMost     = 3
)

const (
	fieldDropDeadLettersSubscription = 1
	fieldDropDeadLettersLetters      = 2
)

const (
	fieldDeadLetterIDTopic     = 1
	fieldDeadLetterIDPartition = 2
	fieldDeadLetterIDOffset    = 3
)

const (
	fieldDigestScan   = 1
	fieldDigestAgreed = 2
)

const (
	fieldDigestScanRound = 1
	fieldDigestScanFrom  = 2
	fieldDigestScanRows  = 3
	fieldDigestScanBytes = 4
)

const (
	fieldDigestResultEpoch = 1
	fieldDigestResultRound = 2
	fieldDigestResultRows  = 3
	fieldDigestResultNext  = 4
	fieldDigestResultSum   = 5
)

const (
	fieldLeadEpoch     = 1
	fieldLeadNode      = 2
	fieldLeadFlow      = 3
	fieldLeadRecovered = 4
)

const (
	fieldInvokeID              = 1
	fieldInvokeTarget          = 2
	fieldInvokeInput           = 3
	fieldInvokeSource          = 4
	fieldInvokeSink            = 5
	fieldInvokeIdempotencyKey  = 6
	fieldInvokeLimitKey        = 7
	fieldInvokeTrace           = 8
	fieldInvokeStartAt         = 9
	fieldInvokeRetention       = 10
	fieldInvokeServerVersion   = 11
	fieldInvokeRequest         = 12
	fieldInvokePriority        = 13
	fieldInvokeDelay           = 14
	fieldInvokeFresh           = 15
	fieldInvokeSinceLeadership = 16
	fieldInvokeSinceNumber     = 17
)

const (
	fieldProgressID      = 1
	fieldProgressAttempt = 2
	fieldProgressPin     = 3
	fieldProgressSteps   = 4
	fieldProgressErrors  = 5
	fieldProgressFailed  = 6
)

const (
	fieldFailedAttemptsTotal        = 1
	fieldFailedAttemptsCounted      = 2
	fieldFailedAttemptsSinceCommand = 3
)

const (
	fieldStepKind        = 1
	fieldStepType        = 2
	fieldStepPayload     = 3
	fieldStepCompletion  = 4
	fieldStepCallee      = 5
	fieldStepAwait       = 6
	fieldStepFailure     = 7
	fieldStepUnretryable = 8
	fieldStepAttempts    = 9
	fieldStepCause       = 10
)

const (
	fieldCalleeID        = 1
	fieldCalleeType      = 2
	fieldCalleeRetention = 3
)

const (
	fieldFireTimersTimers = 1
)

const (
	fieldTimerAt         = 1
	fieldTimerKind       = 2
	fieldTimerID         = 3
	fieldTimerCompletion = 4
	fieldTimerName       = 5
)

const (
	fieldDeliverFrom     = 1
	fieldDeliverFirstSeq = 2
	fieldDeliverMessages = 3
)

const (
	fieldAcknowledgeTo   = 1
	fieldAcknowledgeUpto = 2
)

const (
	fieldMessageInvoke   = 1
	fieldMessageComplete = 2
	fieldMessageSignal   = 3
	fieldMessageKill     = 4
	fieldMessageAttach   = 5
)

const (
	fieldCompleteSink   = 1
	fieldCompleteResult = 2
	fieldCompleteVoid   = 3
)

const (
	fieldSignalTarget  = 1
	fieldSignalIndex   = 2
	fieldSignalName    = 3
	fieldSignalResult  = 4
	fieldSignalRequest = 5
)

const (
	fieldKillTarget = 1
	fieldKillSink   = 2
)

const (
	fieldAttachTarget = 1
	fieldAttachSink   = 2
	fieldAttachLegacy = 3
	fieldAttachNamed  = 4
)

const (
	fieldPauseTarget  = 1
	fieldPauseFailure = 2
	fieldPauseBy      = 3
	fieldPauseReason  = 4
	fieldPauseRepin   = 5
)

const (
	fieldResumeTarget = 1
	fieldResumeRepin  = 2
)

const (
	fieldRepinDeployment = 1
	fieldRepinMin        = 2
	fieldRepinMax        = 3
)

const (
	fieldPurgeTarget  = 1
	fieldPurgeJournal = 2
)

const (
	fieldRestartTarget        = 1
	fieldRestartNew           = 2
	fieldRestartFrom          = 3
	fieldRestartKeep          = 4
	fieldRestartRepin         = 5
	fieldRestartServerVersion = 6
)

const (
	fieldSetRulesBook = 1
)

const (
	fieldPauseQueueID      = 1
	fieldPauseQueueScope   = 2
	fieldPauseQueueL1      = 3
	fieldPauseQueueL2      = 4
	fieldPauseQueueService = 5
	fieldPauseQueuePaused  = 6
	fieldPauseQueueBy      = 7
	fieldPauseQueueReason  = 8
)

const (
	fieldInvocationID                = 1
	fieldInvocationTarget            = 2
	fieldInvocationStatus            = 3
	fieldInvocationSource            = 4
	fieldInvocationIdempotencyKey    = 5
	fieldInvocationLimitKey          = 6
	fieldInvocationTrace             = 7
	fieldInvocationRetention         = 8
	fieldInvocationRestartedFrom     = 9
	fieldInvocationServerVersion     = 10
	fieldInvocationCreatedAt         = 11
	fieldInvocationModifiedAt        = 12
	fieldInvocationScheduledAt       = 13
	fieldInvocationInboxedAt         = 14
	fieldInvocationRunningAt         = 15
	fieldInvocationCompletedAt       = 16
	fieldInvocationStartAt           = 17
	fieldInvocationProgressAt        = 18
	fieldInvocationAttempt           = 19
	fieldInvocationPin               = 20
	fieldInvocationLength            = 21
	fieldInvocationCommands          = 22
	fieldInvocationOutput            = 23
	fieldInvocationSleeps            = 24
	fieldInvocationAwait             = 25
	fieldInvocationQueueSeq          = 26
	fieldInvocationHoldsLock         = 27
	fieldInvocationSinks             = 28
	fieldInvocationResult            = 29
	fieldInvocationKilled            = 30
	fieldInvocationFailure           = 31
	fieldInvocationExpiresAt         = 32
	fieldInvocationRequest           = 33
	fieldInvocationLife              = 34
	fieldInvocationSignalled         = 35
	fieldInvocationSeen              = 36
	fieldInvocationSeed              = 37
	fieldInvocationRequests          = 38
	fieldInvocationPriority          = 39
	fieldInvocationFlow              = 40
	fieldInvocationPausing           = 41
	fieldInvocationLastPause         = 42
	fieldInvocationCancelRequestedAt = 43
	fieldInvocationHistory           = 44
	fieldInvocationCauses            = 45
	fieldInvocationSignalBytes       = 46
	fieldInvocationAwaitReduced      = 47
	fieldInvocationResultInJournal   = 48
	fieldInvocationFailed            = 49
)

const (
	fieldCauseID    = 1
	fieldCauseSince = 2
)

const (
	fieldHistoryFirst = 1
	fieldHistoryNext  = 2
	fieldHistoryBytes = 3
)

const (
	fieldEventKind     = 1
	fieldEventAt       = 2
	fieldEventEntries  = 3
	fieldEventFailure  = 4
	fieldEventAttempts = 5
	fieldEventPause    = 6
)

const (
	fieldFlowStage       = 1
	fieldFlowStageAt     = 2
	fieldFlowRunnableAt  = 3
	fieldFlowStartedAt   = 4
	fieldFlowWaitsSince  = 5
	fieldFlowStarts      = 6
	fieldFlowSuspensions = 7
	fieldFlowPauses      = 8
	fieldFlowLock        = 9
	fieldFlowRules       = 10
	fieldFlowThrottling  = 11
	fieldFlowErrors      = 12
)

const (
	fieldWaitLatest = 1
	fieldWaitTotal  = 2
)

const (
	fieldRuleBookVersion = 1
	fieldRuleBookRules   = 2
)

const (
	fieldRuleScope       = 1
	fieldRuleL1          = 2
	fieldRuleL2          = 3
	fieldRuleConcurrency = 4
	fieldRuleRate        = 5
	fieldRuleQueueLimit  = 6
	fieldRuleDescription = 7
	fieldRuleDisabled    = 8
	fieldRuleVersion     = 9
	fieldRuleModifiedAt  = 10
)

const (
	fieldRateCount  = 1
	fieldRatePeriod = 2
)

const (
	fieldCounterRunning  = 1
	fieldCounterWaiting  = 2
	fieldCounterTurn     = 3
	fieldCounterRingHead = 4
	fieldCounterRingTail = 5
	fieldCounterBucket   = 6
	fieldCounterWakeAt   = 7
	fieldCounterPause    = 8
)

const (
	fieldVQueuePaused         = 1
	fieldVQueueTurn           = 2
	fieldVQueueWaiting        = 3
	fieldVQueueLanes          = 4
	fieldVQueueStages         = 5
	fieldVQueueCreatedAt      = 6
	fieldVQueueLastEnqueuedAt = 7
	fieldVQueueLastStartAt    = 8
	fieldVQueueLastAttemptAt  = 9
	fieldVQueueLastFinishAt   = 10
	fieldVQueueAvgQueue       = 11
	fieldVQueueAvgInbox       = 12
	fieldVQueueAvgRun         = 13
	fieldVQueueAvgSuspension  = 14
	fieldVQueueAvgEndToEnd    = 15
	fieldVQueueAvgRules       = 16
	fieldVQueueAvgThrottling  = 17
	fieldVQueueAvgLock        = 18
	fieldVQueuePause          = 19
)

const (
	fieldQueuePauseBy     = 1
	fieldQueuePauseReason = 2
	fieldQueuePauseAt     = 3
)

const (
	fieldLanePriority = 1
	fieldLaneHead     = 2
	fieldLaneTail     = 3
)

const (
	fieldQueuedID = 1
	fieldQueuedAt = 2
)

const (
	fieldChildName  = 1
	fieldChildQueue = 2
)

const (
	fieldPromiseResult  = 1
	fieldPromiseWaiting = 2
)

const (
	fieldJournalEntryType       = 1
	fieldJournalEntryAppendedAt = 2
	fieldJournalEntryPayload    = 3
)

const (
	fieldPauseRecordCause     = 1
	fieldPauseRecordBy        = 2
	fieldPauseRecordAt        = 3
	fieldPauseRecordResumedAt = 4
	fieldPauseRecordReason    = 5
	fieldPauseRecordAttempts  = 6
)

const (
	fieldLockHolder = 1
	fieldLockHead   = 2
	fieldLockTail   = 3
)

const (
	fieldMetaEpoch        = 1
	fieldMetaClock        = 2
	fieldMetaAttempt      = 3
	fieldMetaAppliedIndex = 4
	fieldMetaAppliedTerm  = 5
	fieldMetaRules        = 6
	fieldMetaFlow         = 7
	fieldMetaLevel        = 8
	fieldMetaReevaluation = 9
)

const (
	fieldTargetScope   = 1
	fieldTargetService = 2
	fieldTargetKey     = 3
	fieldTargetHandler = 4
	fieldTargetType    = 5
)

const (
	fieldSourceKind         = 1
	fieldSourceCaller       = 2
	fieldSourceCallerTarget = 3
	fieldSourceSubscription = 4
)

const (
	fieldSinkCaller     = 1
	fieldSinkCompletion = 2
	fieldSinkType       = 3
	fieldSinkLife       = 4
)

const (
	fieldPinDeployment = 1
	fieldPinProtocol   = 2
)

const (
	fieldRetentionCompletion = 1
	fieldRetentionJournal    = 2
)

const (
	fieldTraceParent  = 1
	fieldTraceState   = 2
	fieldTraceBaggage = 3
)

const (
	fieldFutureCompletions = 1
	fieldFutureSignals     = 2
	fieldFutureNames       = 3
	fieldFutureNested      = 4
	fieldFutureCombinator  = 5
)

const (
	fieldResultValue   = 1
	fieldResultFailure = 2
)

const (
	fieldFailureCode     = 1
	fieldFailureMessage  = 2
	fieldFailureMetadata = 3
)

const (
	fieldMetadataKey   = 1
	fieldMetadataValue = 2
)

const (
	fieldAttemptFailureCode           = 1
	fieldAttemptFailureErrorCode      = 2
	fieldAttemptFailureMessage        = 3
	fieldAttemptFailureStacktrace     = 4
	fieldAttemptFailureRelatedIndex   = 5
	fieldAttemptFailureRelatedName    = 6
	fieldAttemptFailureRelatedCommand = 7
)
