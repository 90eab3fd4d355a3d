"""Protobuf field numbers of the served kinds, for the request bodies of typed Go clients.

Each line is a message, `Message: number:field, …`; a field without `=type` is a string. After the
type: `[]` repeated, `{}` a map from strings, `+` merged into the parent, `*` a pointer in the Go
type (zero is a value), `?` left out of JSON when zero. A type with a dot names another package.
`|` marks the fields of a union: the message is shown as the field that is set.
Parity: api.md 3, "Protobuf request bodies".
"""

from collections.abc import Mapping

from app.domain.objects.protobuf.core import CORE_V1
from app.domain.objects.protobuf.stored import STORED
from app.domain.values.protobuf import Message, parse_table

_META_V1 = """
Condition: 1:type, 2:status, 3:observedGeneration=int64?, 4:lastTransitionTime=Time, 5:reason,
  6:message
DeleteOptions: 1:gracePeriodSeconds=int64*, 2:preconditions=Preconditions*,
  3:orphanDependents=bool*, 4:propagationPolicy*, 5:dryRun=string[],
  6:ignoreStoreReadErrorWithClusterBreakingPotential=bool*
FieldSelectorRequirement: 1:key, 2:operator, 3:values=string[]
LabelSelector: 1:matchLabels=string{}, 2:matchExpressions=LabelSelectorRequirement[]
LabelSelectorRequirement: 1:key, 2:operator, 3:values=string[]
ManagedFieldsEntry: 1:manager?, 2:operation?, 3:apiVersion?, 4:time=Time*, 6:fieldsType?,
  7:fieldsV1=FieldsV1*, 8:subresource?
ObjectMeta: 1:name?, 2:generateName?, 3:namespace?, 4:selfLink?, 5:uid?, 6:resourceVersion?,
  7:generation=int64?, 8:creationTimestamp=Time?, 9:deletionTimestamp=Time*,
  10:deletionGracePeriodSeconds=int64*, 11:labels=string{}, 12:annotations=string{},
  13:ownerReferences=OwnerReference[], 14:finalizers=string[],
  17:managedFields=ManagedFieldsEntry[]
OwnerReference: 1:kind, 3:name, 4:uid, 5:apiVersion, 6:controller=bool*,
  7:blockOwnerDeletion=bool*
Preconditions: 1:uid*, 2:resourceVersion*
"""

_RESOURCE_V1 = """
AllocatedDeviceStatus: 1:driver, 2:pool, 3:device, 4:conditions=meta.v1.Condition[],
  5:data=RawExtension*, 6:networkData=NetworkDeviceData*, 7:shareID*
AllocationResult: 1:devices=DeviceAllocationResult?, 3:nodeSelector=core.v1.NodeSelector*,
  5:allocationTimestamp=Time*
CELDeviceSelector: 1:expression
CapacityRequestPolicy: 1:default=Quantity*, 3:validValues=Quantity[],
  4:validRange=CapacityRequestPolicyRange*
CapacityRequestPolicyRange: 1:min=Quantity*, 2:max=Quantity*, 3:step=Quantity*
CapacityRequirements: 1:requests=Quantity{}
Counter: 1:value=Quantity
CounterSet: 1:name, 2:counters=Counter{}
Device: 1:name, 2:attributes=DeviceAttribute{}, 3:capacity=DeviceCapacity{},
  4:consumesCounters=DeviceCounterConsumption[], 5:nodeName*,
  6:nodeSelector=core.v1.NodeSelector*, 7:allNodes=bool*, 8:taints=DeviceTaint[],
  9:bindsToNode=bool*, 10:bindingConditions=string[], 11:bindingFailureConditions=string[],
  12:allowMultipleAllocations=bool*, 14:nodeAllocatableResources=NodeAllocatableResource{}
DeviceAllocationConfiguration: 1:source, 2:requests=string[],
  3:deviceConfiguration=DeviceConfiguration+
DeviceAllocationResult: 1:results=DeviceRequestAllocationResult[],
  2:config=DeviceAllocationConfiguration[]
DeviceAttribute: 2:int=int64*, 3:bool=bool*, 4:string*, 5:version*, 6:ints=int64[],
  7:bools=bool[], 8:strings=string[], 9:versions=string[]
DeviceCapacity: 1:value=Quantity, 2:requestPolicy=CapacityRequestPolicy*
DeviceClaim: 1:requests=DeviceRequest[], 2:constraints=DeviceConstraint[],
  3:config=DeviceClaimConfiguration[]
DeviceClaimConfiguration: 1:requests=string[], 2:deviceConfiguration=DeviceConfiguration+
DeviceClass: 1:metadata=meta.v1.ObjectMeta?, 2:spec=DeviceClassSpec
DeviceClassConfiguration: 1:deviceConfiguration=DeviceConfiguration+
DeviceClassSpec: 1:selectors=DeviceSelector[], 2:config=DeviceClassConfiguration[],
  4:extendedResourceName*
DeviceConfiguration: 1:opaque=OpaqueDeviceConfiguration*
DeviceConstraint: 1:requests=string[], 2:matchAttribute*, 3:distinctAttribute*
DeviceCounterConsumption: 1:counterSet, 2:counters=Counter{}
DeviceRequest: 1:name, 2:exactly=ExactDeviceRequest*, 3:firstAvailable=DeviceSubRequest[]
DeviceRequestAllocationResult: 1:request, 2:driver, 3:pool, 4:device, 5:adminAccess=bool*,
  6:tolerations=DeviceToleration[], 7:bindingConditions=string[],
  8:bindingFailureConditions=string[], 9:shareID*, 10:consumedCapacity=Quantity{},
  11:skipNodeOperations=string[]
DeviceSelector: 1:cel=CELDeviceSelector*
DeviceSubRequest: 1:name, 2:deviceClassName, 3:selectors=DeviceSelector[], 4:allocationMode?,
  5:count=int64?, 6:tolerations=DeviceToleration[], 7:capacity=CapacityRequirements*
DeviceTaint: 1:key, 2:value?, 3:effect, 4:timeAdded=Time*
DeviceTaintRule: 1:metadata=meta.v1.ObjectMeta?, 2:spec=DeviceTaintRuleSpec,
  3:status=DeviceTaintRuleStatus?
DeviceTaintRuleSpec: 1:deviceSelector=DeviceTaintSelector*, 2:taint=DeviceTaint?
DeviceTaintRuleStatus: 1:conditions=meta.v1.Condition[]
DeviceTaintSelector: 2:driver*, 3:pool*, 4:device*
DeviceToleration: 1:key?, 2:operator?, 3:value?, 4:effect?, 5:tolerationSeconds=int64*
ExactDeviceRequest: 1:deviceClassName, 2:selectors=DeviceSelector[], 3:allocationMode?,
  4:count=int64?, 5:adminAccess=bool*, 6:tolerations=DeviceToleration[],
  7:capacity=CapacityRequirements*
NetworkDeviceData: 1:interfaceName?, 2:ips=string[], 3:hardwareAddress?
NodeAllocatableMapping: 1:capacityKey*, 2:capacityMultiplier=Quantity*,
  3:deviceMultiplier=Quantity*
NodeAllocatableOverhead: 1:perPod=Quantity*, 2:perContainer=Quantity*
NodeAllocatableResource: 3:mapping=NodeAllocatableMapping*, 4:overhead=NodeAllocatableOverhead*
OpaqueDeviceConfiguration: 1:driver, 2:parameters=RawExtension
ResourceClaim: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ResourceClaimSpec,
  3:status=ResourceClaimStatus?
ResourceClaimConsumerReference: 1:apiGroup?, 3:resource, 4:name, 5:uid
ResourceClaimSpec: 1:devices=DeviceClaim
ResourceClaimStatus: 1:allocation=AllocationResult*,
  2:reservedFor=ResourceClaimConsumerReference[], 4:devices=AllocatedDeviceStatus[]
ResourceClaimTemplate: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ResourceClaimTemplateSpec
ResourceClaimTemplateSpec: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ResourceClaimSpec
ResourcePool: 1:name, 2:generation=int64, 3:resourceSliceCount=int64
ResourceSlice: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ResourceSliceSpec
ResourceSliceSpec: 1:driver, 2:pool=ResourcePool, 3:nodeName*,
  4:nodeSelector=core.v1.NodeSelector*, 5:allNodes=bool*, 6:devices=Device[],
  7:perDeviceNodeSelection=bool*, 8:sharedCounters=CounterSet[], 9:partitionTypeAttribute*,
  10:skipNodeOperations=string[]
"""

_RESOURCE_V1BETA1 = """
BasicDevice: 1:attributes=DeviceAttribute{}, 2:capacity=DeviceCapacity{},
  3:consumesCounters=DeviceCounterConsumption[], 4:nodeName*,
  5:nodeSelector=core.v1.NodeSelector*, 6:allNodes=bool*, 7:taints=DeviceTaint[],
  8:bindsToNode=bool*, 9:bindingConditions=string[], 10:bindingFailureConditions=string[],
  11:allowMultipleAllocations=bool*, 14:nodeAllocatableResources=NodeAllocatableResource{}
Device: 1:name, 2:basic=BasicDevice*
DeviceRequest: 1:name, 2:deviceClassName, 3:selectors=DeviceSelector[], 4:allocationMode?,
  5:count=int64?, 6:adminAccess=bool*, 7:firstAvailable=DeviceSubRequest[],
  8:tolerations=DeviceToleration[], 9:capacity=CapacityRequirements*
DeviceSubRequest: 1:name, 2:deviceClassName, 3:selectors=DeviceSelector[], 4:allocationMode?,
  5:count=int64?, 7:tolerations=DeviceToleration[], 8:capacity=CapacityRequirements*
ResourceSliceSpec: 1:driver, 2:pool=ResourcePool, 3:nodeName?,
  4:nodeSelector=core.v1.NodeSelector*, 5:allNodes=bool?, 6:devices=Device[],
  7:perDeviceNodeSelection=bool*, 8:sharedCounters=CounterSet[], 9:partitionTypeAttribute*,
  10:skipNodeOperations=string[]
"""

_RESOURCE_V1ALPHA3 = """
PartitionTypeStatus: 1:type?, 2:total=int32*, 3:allocatable=int32*, 4:attribute?
PoolStatus: 1:driver?, 2:poolName?, 3:nodeName*, 4:totalDevices=int32*, 5:allocatedDevices=int32*,
  6:availableDevices=int32*, 7:unavailableDevices=int32*, 8:resourceSliceCount=int32*,
  9:generation=int64, 10:validationError*, 11:partitionSummary=PartitionTypeStatus[],
  13:shareableSummary=ShareableSummaryStatus*
ResourcePoolStatusRequest: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ResourcePoolStatusRequestSpec,
  3:status=ResourcePoolStatusRequestStatus*
ResourcePoolStatusRequestSpec: 1:driver, 2:poolName*, 3:limit=int32*,
  4:defaultPartitionTypeAttribute*
ResourcePoolStatusRequestStatus: 2:pools=PoolStatus[], 3:conditions=meta.v1.Condition[],
  6:poolCount=int32*
ShareableCapacityStatus: 1:name?, 2:total=Quantity*, 3:consumed=Quantity*, 4:available=Quantity*
ShareableSummaryStatus: 1:fullyAvailableDevices=int32*, 2:partiallyAvailableDevices=int32*,
  3:capacity=ShareableCapacityStatus[]
"""

_APPS_V1 = """
ControllerRevision: 1:metadata=meta.v1.ObjectMeta?, 2:data=RawExtension, 3:revision=int64
DaemonSet: 1:metadata=meta.v1.ObjectMeta?, 2:spec=DaemonSetSpec?, 3:status=DaemonSetStatus?
DaemonSetCondition: 1:type, 2:status, 3:lastTransitionTime=Time?, 4:reason?, 5:message?
DaemonSetSpec: 1:selector=meta.v1.LabelSelector*, 2:template=core.v1.PodTemplateSpec,
  3:updateStrategy=DaemonSetUpdateStrategy?, 4:minReadySeconds=int32?,
  6:revisionHistoryLimit=int32*
DaemonSetStatus: 1:currentNumberScheduled=int32, 2:numberMisscheduled=int32,
  3:desiredNumberScheduled=int32, 4:numberReady=int32, 5:observedGeneration=int64?,
  6:updatedNumberScheduled=int32?, 7:numberAvailable=int32?, 8:numberUnavailable=int32?,
  9:collisionCount=int32*, 10:conditions=DaemonSetCondition[]
DaemonSetUpdateStrategy: 1:type?, 2:rollingUpdate=RollingUpdateDaemonSet*
Deployment: 1:metadata=meta.v1.ObjectMeta?, 2:spec=DeploymentSpec?, 3:status=DeploymentStatus?
DeploymentCondition: 1:type, 2:status, 4:reason?, 5:message?, 6:lastUpdateTime=Time?,
  7:lastTransitionTime=Time?
DeploymentSpec: 1:replicas=int32*, 2:selector=meta.v1.LabelSelector*,
  3:template=core.v1.PodTemplateSpec, 4:strategy=DeploymentStrategy?, 5:minReadySeconds=int32?,
  6:revisionHistoryLimit=int32*, 7:paused=bool?, 9:progressDeadlineSeconds=int32*
DeploymentStatus: 1:observedGeneration=int64?, 2:replicas=int32?, 3:updatedReplicas=int32?,
  4:availableReplicas=int32?, 5:unavailableReplicas=int32?, 6:conditions=DeploymentCondition[],
  7:readyReplicas=int32?, 8:collisionCount=int32*, 9:terminatingReplicas=int32*
DeploymentStrategy: 1:type?, 2:rollingUpdate=RollingUpdateDeployment*
ReplicaSet: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ReplicaSetSpec?, 3:status=ReplicaSetStatus?
ReplicaSetCondition: 1:type, 2:status, 3:lastTransitionTime=Time?, 4:reason?, 5:message?
ReplicaSetSpec: 1:replicas=int32*, 2:selector=meta.v1.LabelSelector*,
  3:template=core.v1.PodTemplateSpec?, 4:minReadySeconds=int32?
ReplicaSetStatus: 1:replicas=int32, 2:fullyLabeledReplicas=int32?, 3:observedGeneration=int64?,
  4:readyReplicas=int32?, 5:availableReplicas=int32?, 6:conditions=ReplicaSetCondition[],
  7:terminatingReplicas=int32*
RollingUpdateDaemonSet: 1:maxUnavailable=IntOrString*, 2:maxSurge=IntOrString*
RollingUpdateDeployment: 1:maxUnavailable=IntOrString*, 2:maxSurge=IntOrString*
RollingUpdateStatefulSetStrategy: 1:partition=int32*, 2:maxUnavailable=IntOrString*
StatefulSet: 1:metadata=meta.v1.ObjectMeta?, 2:spec=StatefulSetSpec?, 3:status=StatefulSetStatus?
StatefulSetCondition: 1:type, 2:status, 3:lastTransitionTime=Time?, 4:reason?, 5:message?
StatefulSetOrdinals: 1:start=int32
StatefulSetPersistentVolumeClaimRetentionPolicy: 1:whenDeleted?, 2:whenScaled?
StatefulSetSpec: 1:replicas=int32*, 2:selector=meta.v1.LabelSelector*,
  3:template=core.v1.PodTemplateSpec, 4:volumeClaimTemplates=core.v1.PersistentVolumeClaim[],
  5:serviceName, 6:podManagementPolicy?, 7:updateStrategy=StatefulSetUpdateStrategy?,
  8:revisionHistoryLimit=int32*, 9:minReadySeconds=int32?,
  10:persistentVolumeClaimRetentionPolicy=StatefulSetPersistentVolumeClaimRetentionPolicy*,
  11:ordinals=StatefulSetOrdinals*
StatefulSetStatus: 1:observedGeneration=int64?, 2:replicas=int32, 3:readyReplicas=int32?,
  4:currentReplicas=int32?, 5:updatedReplicas=int32?, 6:currentRevision?, 7:updateRevision?,
  9:collisionCount=int32*, 10:conditions=StatefulSetCondition[], 11:availableReplicas=int32
StatefulSetUpdateStrategy: 1:type?, 2:rollingUpdate=RollingUpdateStatefulSetStrategy*
"""

_AUTHENTICATION_V1 = """
AttestationValue: 1:items=string[]
BoundObjectReference: 1:kind?, 2:apiVersion?, 3:name?, 4:uid?
SelfSubjectReview: 1:metadata=meta.v1.ObjectMeta?, 2:status=SelfSubjectReviewStatus?
SelfSubjectReviewStatus: 1:userInfo=UserInfo?
TokenRequest: 1:metadata=meta.v1.ObjectMeta?, 2:spec=TokenRequestSpec,
  3:status=TokenRequestStatus?
TokenRequestSpec: 1:audiences=string[], 3:boundObjectRef=BoundObjectReference*,
  4:expirationSeconds=int64*, 5:attestations=AttestationValue{}
TokenRequestStatus: 1:token, 2:expirationTimestamp=Time
TokenReview: 1:metadata=meta.v1.ObjectMeta?, 2:spec=TokenReviewSpec, 3:status=TokenReviewStatus?
TokenReviewSpec: 1:token?, 2:audiences=string[]
TokenReviewStatus: 1:authenticated=bool?, 2:user=UserInfo?, 3:error?, 4:audiences=string[]
UserInfo: 1:username?, 2:uid?, 3:groups=string[], 4:extra=ExtraValue{}
"""

_AUTHORIZATION_V1 = """
FieldSelectorAttributes: 1:rawSelector?, 2:requirements=meta.v1.FieldSelectorRequirement[]
LabelSelectorAttributes: 1:rawSelector?, 2:requirements=meta.v1.LabelSelectorRequirement[]
LocalSubjectAccessReview: 1:metadata=meta.v1.ObjectMeta?, 2:spec=SubjectAccessReviewSpec,
  3:status=SubjectAccessReviewStatus?
NonResourceAttributes: 1:path?, 2:verb?
NonResourceRule: 1:verbs=string[], 2:nonResourceURLs=string[]
ResourceAttributes: 1:namespace?, 2:verb?, 3:group?, 4:version?, 5:resource?, 6:subresource?,
  7:name?, 8:fieldSelector=FieldSelectorAttributes*, 9:labelSelector=LabelSelectorAttributes*
ResourceRule: 1:verbs=string[], 2:apiGroups=string[], 3:resources=string[],
  4:resourceNames=string[]
SelfSubjectAccessReview: 1:metadata=meta.v1.ObjectMeta?, 2:spec=SelfSubjectAccessReviewSpec,
  3:status=SubjectAccessReviewStatus?
SelfSubjectAccessReviewSpec: 1:resourceAttributes=ResourceAttributes*,
  2:nonResourceAttributes=NonResourceAttributes*
SelfSubjectRulesReview: 1:metadata=meta.v1.ObjectMeta?, 2:spec=SelfSubjectRulesReviewSpec,
  3:status=SubjectRulesReviewStatus?
SelfSubjectRulesReviewSpec: 1:namespace?
SubjectAccessReview: 1:metadata=meta.v1.ObjectMeta?, 2:spec=SubjectAccessReviewSpec,
  3:status=SubjectAccessReviewStatus?
SubjectAccessReviewSpec: 1:resourceAttributes=ResourceAttributes*,
  2:nonResourceAttributes=NonResourceAttributes*, 3:user?, 4:groups=string[],
  5:extra=ExtraValue{}, 6:uid?
SubjectAccessReviewStatus: 1:allowed=bool, 2:reason?, 3:evaluationError?, 4:denied=bool?
SubjectRulesReviewStatus: 1:resourceRules=ResourceRule[], 2:nonResourceRules=NonResourceRule[],
  3:incomplete=bool, 4:evaluationError?
"""

_COORDINATION_V1 = """
Lease: 1:metadata=meta.v1.ObjectMeta?, 2:spec=LeaseSpec?
LeaseSpec: 1:holderIdentity*, 2:leaseDurationSeconds=int32*, 3:acquireTime=MicroTime*,
  4:renewTime=MicroTime*, 5:leaseTransitions=int32*, 6:strategy*, 7:preferredHolder*
"""

_EVENTS_V1 = """
Event: 1:metadata=meta.v1.ObjectMeta, 2:eventTime=MicroTime, 3:series=EventSeries*,
  4:reportingController?, 5:reportingInstance?, 6:action?, 7:reason?,
  8:regarding=core.v1.ObjectReference?, 9:related=core.v1.ObjectReference*, 10:note?, 11:type?,
  12:deprecatedSource=core.v1.EventSource?, 13:deprecatedFirstTimestamp=Time?,
  14:deprecatedLastTimestamp=Time?, 15:deprecatedCount=int32?
EventSeries: 1:count=int32, 2:lastObservedTime=MicroTime
"""

_POLICY_V1 = """
Eviction: 1:metadata=meta.v1.ObjectMeta?, 2:deleteOptions=meta.v1.DeleteOptions*
PodDisruptionBudget: 1:metadata=meta.v1.ObjectMeta?, 2:spec=PodDisruptionBudgetSpec?,
  3:status=PodDisruptionBudgetStatus?
PodDisruptionBudgetSpec: 1:minAvailable=IntOrString*, 2:selector=meta.v1.LabelSelector*,
  3:maxUnavailable=IntOrString*, 4:unhealthyPodEvictionPolicy*
PodDisruptionBudgetStatus: 1:observedGeneration=int64?, 2:disruptedPods=Time{},
  3:disruptionsAllowed=int32, 4:currentHealthy=int32, 5:desiredHealthy=int32,
  6:expectedPods=int32, 7:conditions=meta.v1.Condition[]
"""

_AUTOSCALING_V1 = """
CrossVersionObjectReference: 1:kind, 2:name, 3:apiVersion?
HorizontalPodAutoscaler: 1:metadata=meta.v1.ObjectMeta?, 2:spec=HorizontalPodAutoscalerSpec?,
  3:status=HorizontalPodAutoscalerStatus?
HorizontalPodAutoscalerSpec: 1:scaleTargetRef=CrossVersionObjectReference, 2:minReplicas=int32*,
  3:maxReplicas=int32, 4:targetCPUUtilizationPercentage=int32*
HorizontalPodAutoscalerStatus: 1:observedGeneration=int64*, 2:lastScaleTime=Time*,
  3:currentReplicas=int32, 4:desiredReplicas=int32, 5:currentCPUUtilizationPercentage=int32*
Scale: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ScaleSpec?, 3:status=ScaleStatus?
ScaleSpec: 1:replicas=int32?
ScaleStatus: 1:replicas=int32, 2:selector?
"""

_BATCH_V1 = """
CronJob: 1:metadata=meta.v1.ObjectMeta?, 2:spec=CronJobSpec?, 3:status=CronJobStatus?
CronJobSpec: 1:schedule, 2:startingDeadlineSeconds=int64*, 3:concurrencyPolicy?, 4:suspend=bool*,
  5:jobTemplate=JobTemplateSpec, 6:successfulJobsHistoryLimit=int32*,
  7:failedJobsHistoryLimit=int32*, 8:timeZone*
CronJobStatus: 1:active=core.v1.ObjectReference[], 4:lastScheduleTime=Time*,
  5:lastSuccessfulTime=Time*
Job: 1:metadata=meta.v1.ObjectMeta?, 2:spec=JobSpec?, 3:status=JobStatus?
JobCondition: 1:type, 2:status, 3:lastProbeTime=Time?, 4:lastTransitionTime=Time?, 5:reason?,
  6:message?
JobSpec: 1:parallelism=int32*, 2:completions=int32*, 3:activeDeadlineSeconds=int64*,
  4:selector=meta.v1.LabelSelector*, 5:manualSelector=bool*, 6:template=core.v1.PodTemplateSpec,
  7:backoffLimit=int32*, 8:ttlSecondsAfterFinished=int32*, 9:completionMode*, 10:suspend=bool*,
  11:podFailurePolicy=PodFailurePolicy*, 12:backoffLimitPerIndex=int32*,
  13:maxFailedIndexes=int32*, 14:podReplacementPolicy*, 15:managedBy*,
  16:successPolicy=SuccessPolicy*
JobStatus: 1:conditions=JobCondition[], 2:startTime=Time*, 3:completionTime=Time*, 4:active=int32?,
  5:succeeded=int32?, 6:failed=int32?, 7:completedIndexes?,
  8:uncountedTerminatedPods=UncountedTerminatedPods*, 9:ready=int32*, 10:failedIndexes*,
  11:terminating=int32*
JobTemplateSpec: 1:metadata=meta.v1.ObjectMeta?, 2:spec=JobSpec?
PodFailurePolicy: 1:rules=PodFailurePolicyRule[]
PodFailurePolicyOnExitCodesRequirement: 1:containerName*, 2:operator, 3:values=int32[]
PodFailurePolicyOnPodConditionsPattern: 1:type, 2:status
PodFailurePolicyRule: 1:action, 2:onExitCodes=PodFailurePolicyOnExitCodesRequirement*,
  3:onPodConditions=PodFailurePolicyOnPodConditionsPattern[]
SuccessPolicy: 1:rules=SuccessPolicyRule[]
SuccessPolicyRule: 1:succeededIndexes*, 2:succeededCount=int32*
UncountedTerminatedPods: 1:succeeded=string[], 2:failed=string[]
"""

_RBAC_V1 = """
AggregationRule: 1:clusterRoleSelectors=meta.v1.LabelSelector[]
ClusterRole: 1:metadata=meta.v1.ObjectMeta?, 2:rules=PolicyRule[],
  3:aggregationRule=AggregationRule*
ClusterRoleBinding: 1:metadata=meta.v1.ObjectMeta?, 2:subjects=Subject[], 3:roleRef=RoleRef
PolicyRule: 1:verbs=string[], 2:apiGroups=string[], 3:resources=string[], 4:resourceNames=string[],
  5:nonResourceURLs=string[]
Role: 1:metadata=meta.v1.ObjectMeta?, 2:rules=PolicyRule[]
RoleBinding: 1:metadata=meta.v1.ObjectMeta?, 2:subjects=Subject[], 3:roleRef=RoleRef
RoleRef: 1:apiGroup, 2:kind, 3:name
Subject: 1:kind, 2:apiGroup?, 3:name, 4:namespace?
"""

_SCHEDULING_V1 = """
PriorityClass: 1:metadata=meta.v1.ObjectMeta?, 2:value=int32, 3:globalDefault=bool?, 4:description?,
  5:preemptionPolicy*
"""

_ADMISSIONREGISTRATION_V1 = """
ApplyConfiguration: 1:expression?
AuditAnnotation: 1:key, 2:valueExpression
ExpressionWarning: 2:fieldRef, 3:warning
JSONPatch: 1:expression?
MatchCondition: 1:name, 2:expression
MatchResources: 1:namespaceSelector=meta.v1.LabelSelector*,
  2:objectSelector=meta.v1.LabelSelector*, 3:resourceRules=NamedRuleWithOperations[],
  4:excludeResourceRules=NamedRuleWithOperations[], 7:matchPolicy*
MutatingAdmissionPolicy: 1:metadata=meta.v1.ObjectMeta?, 2:spec=MutatingAdmissionPolicySpec?
MutatingAdmissionPolicyBinding: 1:metadata=meta.v1.ObjectMeta?,
  2:spec=MutatingAdmissionPolicyBindingSpec?
MutatingAdmissionPolicyBindingSpec: 1:policyName?, 2:paramRef=ParamRef*,
  3:matchResources=MatchResources*
MutatingAdmissionPolicySpec: 1:paramKind=ParamKind*, 2:matchConstraints=MatchResources*,
  3:variables=Variable[], 4:mutations=Mutation[], 5:failurePolicy*,
  6:matchConditions=MatchCondition[], 7:reinvocationPolicy?
MutatingWebhook: 1:name, 2:clientConfig=WebhookClientConfig, 3:rules=RuleWithOperations[],
  4:failurePolicy*, 5:namespaceSelector=meta.v1.LabelSelector*, 6:sideEffects*,
  7:timeoutSeconds=int32*, 8:admissionReviewVersions=string[], 9:matchPolicy*,
  10:reinvocationPolicy*, 11:objectSelector=meta.v1.LabelSelector*,
  12:matchConditions=MatchCondition[]
MutatingWebhookConfiguration: 1:metadata=meta.v1.ObjectMeta?, 2:webhooks=MutatingWebhook[]
Mutation: 2:patchType, 3:applyConfiguration=ApplyConfiguration*, 4:jsonPatch=JSONPatch*
NamedRuleWithOperations: 1:resourceNames=string[], 2:ruleWithOperations=RuleWithOperations+
ParamKind: 1:apiVersion?, 2:kind?
ParamRef: 1:name?, 2:namespace?, 3:selector=meta.v1.LabelSelector*, 4:parameterNotFoundAction*
Rule: 1:apiGroups=string[], 2:apiVersions=string[], 3:resources=string[], 4:scope*
RuleWithOperations: 1:operations=string[], 2:rule=Rule+
ServiceReference: 1:namespace, 2:name, 3:path*, 4:port=int32*
TypeChecking: 1:expressionWarnings=ExpressionWarning[]
ValidatingAdmissionPolicy: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ValidatingAdmissionPolicySpec?,
  3:status=ValidatingAdmissionPolicyStatus?
ValidatingAdmissionPolicyBinding: 1:metadata=meta.v1.ObjectMeta?,
  2:spec=ValidatingAdmissionPolicyBindingSpec?
ValidatingAdmissionPolicyBindingSpec: 1:policyName?, 2:paramRef=ParamRef*,
  3:matchResources=MatchResources*, 4:validationActions=string[]
ValidatingAdmissionPolicySpec: 1:paramKind=ParamKind*, 2:matchConstraints=MatchResources*,
  3:validations=Validation[], 4:failurePolicy*, 5:auditAnnotations=AuditAnnotation[],
  6:matchConditions=MatchCondition[], 7:variables=Variable[]
ValidatingAdmissionPolicyStatus: 1:observedGeneration=int64?, 2:typeChecking=TypeChecking*,
  3:conditions=meta.v1.Condition[]
ValidatingWebhook: 1:name, 2:clientConfig=WebhookClientConfig, 3:rules=RuleWithOperations[],
  4:failurePolicy*, 5:namespaceSelector=meta.v1.LabelSelector*, 6:sideEffects*,
  7:timeoutSeconds=int32*, 8:admissionReviewVersions=string[], 9:matchPolicy*,
  10:objectSelector=meta.v1.LabelSelector*, 11:matchConditions=MatchCondition[]
ValidatingWebhookConfiguration: 1:metadata=meta.v1.ObjectMeta?, 2:webhooks=ValidatingWebhook[]
Validation: 1:expression, 2:message?, 3:reason*, 4:messageExpression?
Variable: 1:name, 2:expression
WebhookClientConfig: 1:service=ServiceReference*, 2:caBundle=bytes?, 3:url*
"""

_APIEXTENSIONS_V1 = """
CustomResourceColumnDefinition: 1:name, 2:type, 3:format?, 4:description?, 5:priority=int32?,
  6:jsonPath
CustomResourceConversion: 1:strategy, 2:webhook=WebhookConversion*
CustomResourceDefinition: 1:metadata=meta.v1.ObjectMeta?, 2:spec=CustomResourceDefinitionSpec,
  3:status=CustomResourceDefinitionStatus?
CustomResourceDefinitionCondition: 1:type, 2:status, 3:lastTransitionTime=Time?, 4:reason?,
  5:message?, 6:observedGeneration=int64?
CustomResourceDefinitionNames: 1:plural, 2:singular?, 3:shortNames=string[], 4:kind, 5:listKind?,
  6:categories=string[]
CustomResourceDefinitionSpec: 1:group, 3:names=CustomResourceDefinitionNames, 4:scope,
  7:versions=CustomResourceDefinitionVersion[], 9:conversion=CustomResourceConversion*,
  10:preserveUnknownFields=bool?
CustomResourceDefinitionStatus: 1:conditions=CustomResourceDefinitionCondition[],
  2:acceptedNames=CustomResourceDefinitionNames, 3:storedVersions=string[],
  4:observedGeneration=int64?
CustomResourceDefinitionVersion: 1:name, 2:served=bool, 3:storage=bool,
  4:schema=CustomResourceValidation*, 5:subresources=CustomResourceSubresources*,
  6:additionalPrinterColumns=CustomResourceColumnDefinition[], 7:deprecated=bool?,
  8:deprecationWarning*, 9:selectableFields=SelectableField[]
CustomResourceSubresourceScale: 1:specReplicasPath, 2:statusReplicasPath, 3:labelSelectorPath*
CustomResourceSubresourceStatus: 1:unused
CustomResourceSubresources: 1:status=CustomResourceSubresourceStatus*,
  2:scale=CustomResourceSubresourceScale*
CustomResourceValidation: 1:openAPIV3Schema=JSONSchemaProps*
ExternalDocumentation: 1:description?, 2:url?
JSONSchemaProps: 1:id?, 2:$schema?, 3:$ref*, 4:description?, 5:type?, 6:format?, 7:title?,
  8:default=JSON*, 9:maximum=double*, 10:exclusiveMaximum=bool?, 11:minimum=double*,
  12:exclusiveMinimum=bool?, 13:maxLength=int64*, 14:minLength=int64*, 15:pattern?,
  16:maxItems=int64*, 17:minItems=int64*, 18:uniqueItems=bool?, 19:multipleOf=double*,
  20:enum=JSON[], 21:maxProperties=int64*, 22:minProperties=int64*, 23:required=string[],
  24:items=JSONSchemaPropsOrArray*, 25:allOf=JSONSchemaProps[], 26:oneOf=JSONSchemaProps[],
  27:anyOf=JSONSchemaProps[], 28:not=JSONSchemaProps*, 29:properties=JSONSchemaProps{},
  30:additionalProperties=JSONSchemaPropsOrBool*, 31:patternProperties=JSONSchemaProps{},
  32:dependencies=JSONSchemaPropsOrStringArray{}, 33:additionalItems=JSONSchemaPropsOrBool*,
  34:definitions=JSONSchemaProps{}, 35:externalDocs=ExternalDocumentation*, 36:example=JSON*,
  37:nullable=bool?, 38:x-kubernetes-preserve-unknown-fields=bool*,
  39:x-kubernetes-embedded-resource=bool?, 40:x-kubernetes-int-or-string=bool?,
  41:x-kubernetes-list-map-keys=string[], 42:x-kubernetes-list-type*,
  43:x-kubernetes-map-type*, 44:x-kubernetes-validations=ValidationRule[]
JSONSchemaPropsOrArray: 1:schema=JSONSchemaProps|, 2:schemas=JSONSchemaProps[]
JSONSchemaPropsOrBool: 1:allows=bool|, 2:schema=JSONSchemaProps|
JSONSchemaPropsOrStringArray: 1:schema=JSONSchemaProps|, 2:names=string[]
SelectableField: 1:jsonPath
ServiceReference: 1:namespace, 2:name, 3:path*, 4:port=int32*
ValidationRule: 1:rule, 2:message?, 3:messageExpression?, 4:reason*, 5:fieldPath?,
  6:optionalOldSelf=bool*
WebhookClientConfig: 1:service=ServiceReference*, 2:caBundle=bytes, 3:url*
WebhookConversion: 2:clientConfig=WebhookClientConfig*, 3:conversionReviewVersions=string[]
"""


def _messages() -> dict[str, Message]:
    """All messages by package and name, such as `resource.v1.ResourceClaim`.

    v1beta2 has the messages of v1, v1beta1 all but five of them; v1alpha3 has the rules and the
    pool reports.
    """
    resource_v1 = parse_table("resource.v1", _RESOURCE_V1)
    messages = parse_table("core.v1", CORE_V1) | parse_table("meta.v1", _META_V1) | resource_v1
    for package, text in (
        ("admissionregistration.v1", _ADMISSIONREGISTRATION_V1),
        ("apiextensions.v1", _APIEXTENSIONS_V1),
        ("apps.v1", _APPS_V1),
        ("authentication.v1", _AUTHENTICATION_V1),
        ("authorization.v1", _AUTHORIZATION_V1),
        ("autoscaling.v1", _AUTOSCALING_V1),
        ("batch.v1", _BATCH_V1),
        ("coordination.v1", _COORDINATION_V1),
        ("events.v1", _EVENTS_V1),
        ("policy.v1", _POLICY_V1),
        ("rbac.v1", _RBAC_V1),
        ("scheduling.v1", _SCHEDULING_V1),
        *STORED,
    ):
        messages |= parse_table(package, text)
    for version, own in (
        ("v1beta2", ""),
        ("v1beta1", _RESOURCE_V1BETA1),
        ("v1alpha3", _RESOURCE_V1ALPHA3),
    ):
        package = f"resource.{version}"
        messages |= parse_table(package, _RESOURCE_V1) | parse_table(package, own)
    return messages


MESSAGES: Mapping[str, Message] = _messages()


def message_name(group: str, version: str, kind: str) -> str | None:
    """The message of a served kind; None if its bodies cannot be read as protobuf."""
    if kind == "DeleteOptions":
        return "meta.v1.DeleteOptions"
    package = group.partition(".")[0] or "core"
    name = f"{package}.{version}.{kind}"
    return name if name in MESSAGES else None
