"""Protobuf field numbers of kinds that are only stored; the notation is that of `fields`.

These are volumes, networks, autoscalers and certificates, which no controller here acts on.
"""

_NETWORKING_V1 = """
HTTPIngressPath: 1:path?, 2:backend=IngressBackend, 3:pathType*
HTTPIngressRuleValue: 1:paths=HTTPIngressPath[]
IPBlock: 1:cidr, 2:except=string[]
Ingress: 1:metadata=meta.v1.ObjectMeta?, 2:spec=IngressSpec?, 3:status=IngressStatus?
IngressBackend: 3:resource=core.v1.TypedLocalObjectReference*, 4:service=IngressServiceBackend*
IngressClass: 1:metadata=meta.v1.ObjectMeta?, 2:spec=IngressClassSpec?
IngressClassParametersReference: 1:apiGroup*, 2:kind, 3:name, 4:scope*, 5:namespace*
IngressClassSpec: 1:controller?, 2:parameters=IngressClassParametersReference*
IngressLoadBalancerIngress: 1:ip?, 2:hostname?, 4:ports=IngressPortStatus[]
IngressLoadBalancerStatus: 1:ingress=IngressLoadBalancerIngress[]
IngressPortStatus: 1:port=int32, 2:protocol, 3:error*
IngressRule: 1:host?, 2:ingressRuleValue=IngressRuleValue+
IngressRuleValue: 1:http=HTTPIngressRuleValue*
IngressServiceBackend: 1:name, 2:port=ServiceBackendPort?
IngressSpec: 1:defaultBackend=IngressBackend*, 2:tls=IngressTLS[], 3:rules=IngressRule[],
  4:ingressClassName*
IngressStatus: 1:loadBalancer=IngressLoadBalancerStatus?
IngressTLS: 1:hosts=string[], 2:secretName?
IPAddress: 1:metadata=meta.v1.ObjectMeta?, 2:spec=IPAddressSpec?
IPAddressSpec: 1:parentRef=ParentReference*
NetworkPolicy: 1:metadata=meta.v1.ObjectMeta?, 2:spec=NetworkPolicySpec?
NetworkPolicyEgressRule: 1:ports=NetworkPolicyPort[], 2:to=NetworkPolicyPeer[]
NetworkPolicyIngressRule: 1:ports=NetworkPolicyPort[], 2:from=NetworkPolicyPeer[]
NetworkPolicyPeer: 1:podSelector=meta.v1.LabelSelector*,
  2:namespaceSelector=meta.v1.LabelSelector*, 3:ipBlock=IPBlock*
NetworkPolicyPort: 1:protocol*, 2:port=IntOrString*, 3:endPort=int32*
NetworkPolicySpec: 1:podSelector=meta.v1.LabelSelector, 2:ingress=NetworkPolicyIngressRule[],
  3:egress=NetworkPolicyEgressRule[], 4:policyTypes=string[]
ParentReference: 1:group?, 2:resource?, 3:namespace?, 4:name?
ServiceBackendPort: 1:name?, 2:number=int32?
ServiceCIDR: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ServiceCIDRSpec?, 3:status=ServiceCIDRStatus?
ServiceCIDRSpec: 1:cidrs=string[]
ServiceCIDRStatus: 1:conditions=meta.v1.Condition[]
"""

_AUTOSCALING_V2 = """
ContainerResourceMetricSource: 1:name, 2:target=MetricTarget, 3:container
ContainerResourceMetricStatus: 1:name, 2:current=MetricValueStatus, 3:container
CrossVersionObjectReference: 1:kind, 2:name, 3:apiVersion?
ExternalMetricSource: 1:metric=MetricIdentifier, 2:target=MetricTarget
ExternalMetricStatus: 1:metric=MetricIdentifier, 2:current=MetricValueStatus
HPAScalingPolicy: 1:type, 2:value=int32, 3:periodSeconds=int32
HPAScalingRules: 1:selectPolicy*, 2:policies=HPAScalingPolicy[],
  3:stabilizationWindowSeconds=int32*, 4:tolerance=Quantity*
HorizontalPodAutoscaler: 1:metadata=meta.v1.ObjectMeta?, 2:spec=HorizontalPodAutoscalerSpec?,
  3:status=HorizontalPodAutoscalerStatus?
HorizontalPodAutoscalerBehavior: 1:scaleUp=HPAScalingRules*, 2:scaleDown=HPAScalingRules*
HorizontalPodAutoscalerCondition: 1:type, 2:status, 3:lastTransitionTime=Time?, 4:reason?,
  5:message?
HorizontalPodAutoscalerSpec: 1:scaleTargetRef=CrossVersionObjectReference, 2:minReplicas=int32*,
  3:maxReplicas=int32, 4:metrics=MetricSpec[], 5:behavior=HorizontalPodAutoscalerBehavior*
HorizontalPodAutoscalerStatus: 1:observedGeneration=int64*, 2:lastScaleTime=Time*,
  3:currentReplicas=int32?, 4:desiredReplicas=int32, 5:currentMetrics=MetricStatus[],
  6:conditions=HorizontalPodAutoscalerCondition[]
MetricIdentifier: 1:name, 2:selector=meta.v1.LabelSelector*
MetricSpec: 1:type, 2:object=ObjectMetricSource*, 3:pods=PodsMetricSource*,
  4:resource=ResourceMetricSource*, 5:external=ExternalMetricSource*,
  7:containerResource=ContainerResourceMetricSource*
MetricStatus: 1:type, 2:object=ObjectMetricStatus*, 3:pods=PodsMetricStatus*,
  4:resource=ResourceMetricStatus*, 5:external=ExternalMetricStatus*,
  7:containerResource=ContainerResourceMetricStatus*
MetricTarget: 1:type, 2:value=Quantity*, 3:averageValue=Quantity*, 4:averageUtilization=int32*
MetricValueStatus: 1:value=Quantity*, 2:averageValue=Quantity*, 3:averageUtilization=int32*
ObjectMetricSource: 1:describedObject=CrossVersionObjectReference, 2:target=MetricTarget,
  3:metric=MetricIdentifier
ObjectMetricStatus: 1:metric=MetricIdentifier, 2:current=MetricValueStatus,
  3:describedObject=CrossVersionObjectReference
PodsMetricSource: 1:metric=MetricIdentifier, 2:target=MetricTarget
PodsMetricStatus: 1:metric=MetricIdentifier, 2:current=MetricValueStatus
ResourceMetricSource: 1:name, 2:target=MetricTarget
ResourceMetricStatus: 1:name, 2:current=MetricValueStatus
"""

_STORAGE_V1 = """
CSIDriver: 1:metadata=meta.v1.ObjectMeta?, 2:spec=CSIDriverSpec
CSIDriverSpec: 1:attachRequired=bool*, 2:podInfoOnMount=bool*, 3:volumeLifecycleModes=string[],
  4:storageCapacity=bool*, 5:fsGroupPolicy*, 6:tokenRequests=TokenRequest[],
  7:requiresRepublish=bool*, 8:seLinuxMount=bool*, 9:nodeAllocatableUpdatePeriodSeconds=int64*,
  10:serviceAccountTokenInSecrets=bool*
CSINode: 1:metadata=meta.v1.ObjectMeta?, 2:spec=CSINodeSpec
CSINodeDriver: 1:name, 2:nodeID, 3:topologyKeys=string[], 4:allocatable=VolumeNodeResources*
CSINodeSpec: 1:drivers=CSINodeDriver[]
CSIStorageCapacity: 1:metadata=meta.v1.ObjectMeta?, 2:nodeTopology=meta.v1.LabelSelector*,
  3:storageClassName, 4:capacity=Quantity*, 5:maximumVolumeSize=Quantity*
StorageClass: 1:metadata=meta.v1.ObjectMeta?, 2:provisioner, 3:parameters=string{},
  4:reclaimPolicy*, 5:mountOptions=string[], 6:allowVolumeExpansion=bool*, 7:volumeBindingMode*,
  8:allowedTopologies=core.v1.TopologySelectorTerm[]
TokenRequest: 1:audience, 2:expirationSeconds=int64*
VolumeAttachment: 1:metadata=meta.v1.ObjectMeta?, 2:spec=VolumeAttachmentSpec,
  3:status=VolumeAttachmentStatus?
VolumeAttachmentSource: 1:persistentVolumeName*, 2:inlineVolumeSpec=core.v1.PersistentVolumeSpec*
VolumeAttachmentSpec: 1:attacher, 2:source=VolumeAttachmentSource, 3:nodeName
VolumeAttachmentStatus: 1:attached=bool, 2:attachmentMetadata=string{}, 3:attachError=VolumeError*,
  4:detachError=VolumeError*
VolumeAttributesClass: 1:metadata=meta.v1.ObjectMeta?, 2:driverName, 3:parameters=string{}
VolumeError: 1:time=Time?, 2:message?, 3:errorCode=int32*
VolumeNodeResources: 1:count=int32*
"""

_DISCOVERY_V1 = """
Endpoint: 1:addresses=string[], 2:conditions=EndpointConditions?, 3:hostname*,
  4:targetRef=core.v1.ObjectReference*, 5:deprecatedTopology=string{}, 6:nodeName*, 7:zone*,
  8:hints=EndpointHints*
EndpointConditions: 1:ready=bool*, 2:serving=bool*, 3:terminating=bool*
EndpointHints: 1:forZones=ForZone[], 2:forNodes=ForNode[]
EndpointPort: 1:name*, 2:protocol*, 3:port=int32*, 4:appProtocol*
EndpointSlice: 1:metadata=meta.v1.ObjectMeta?, 2:endpoints=Endpoint[], 3:ports=EndpointPort[],
  4:addressType
ForNode: 1:name
ForZone: 1:name
"""

_NODE_V1 = """
Overhead: 1:podFixed=Quantity{}
RuntimeClass: 1:metadata=meta.v1.ObjectMeta?, 2:handler, 3:overhead=Overhead*,
  4:scheduling=Scheduling*
Scheduling: 1:nodeSelector=string{}, 2:tolerations=core.v1.Toleration[]
"""

_CERTIFICATES_V1 = """
CertificateSigningRequest: 1:metadata=meta.v1.ObjectMeta?, 2:spec=CertificateSigningRequestSpec,
  3:status=CertificateSigningRequestStatus?
CertificateSigningRequestCondition: 1:type, 2:reason?, 3:message?, 4:lastUpdateTime=Time?,
  5:lastTransitionTime=Time?, 6:status
CertificateSigningRequestSpec: 1:request=bytes, 2:username?, 3:uid?, 4:groups=string[],
  5:usages=string[], 6:extra=ExtraValue{}, 7:signerName, 8:expirationSeconds=int32*
CertificateSigningRequestStatus: 1:conditions=CertificateSigningRequestCondition[],
  2:certificate=bytes?
"""

_APIREGISTRATION_V1 = """
APIService: 1:metadata=meta.v1.ObjectMeta?, 2:spec=APIServiceSpec?, 3:status=APIServiceStatus?
APIServiceCondition: 1:type, 2:status, 3:lastTransitionTime=Time?, 4:reason?, 5:message?
APIServiceSpec: 1:service=ServiceReference*, 2:group?, 3:version?, 4:insecureSkipTLSVerify=bool?,
  5:caBundle=bytes?, 7:groupPriorityMinimum=int32, 8:versionPriority=int32
APIServiceStatus: 1:conditions=APIServiceCondition[]
ServiceReference: 1:namespace?, 2:name?, 3:port=int32*
"""

STORED = (
    ("apiregistration.v1", _APIREGISTRATION_V1),
    ("networking.v1", _NETWORKING_V1),
    ("autoscaling.v2", _AUTOSCALING_V2),
    ("storage.v1", _STORAGE_V1),
    ("discovery.v1", _DISCOVERY_V1),
    ("node.v1", _NODE_V1),
    ("certificates.v1", _CERTIFICATES_V1),
)
"""Packages and their tables."""
