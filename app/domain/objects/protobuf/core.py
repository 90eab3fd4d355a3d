"""Protobuf field numbers of the core kinds and of the pod templates that others embed.

The notation is that of `app/domain/objects/protobuf/fields.py`, which is the only reader.
"""

CORE_V1 = """
AWSElasticBlockStoreVolumeSource: 1:volumeID, 2:fsType?, 3:partition=int32?, 4:readOnly=bool?
Affinity: 1:nodeAffinity=NodeAffinity*, 2:podAffinity=PodAffinity*,
  3:podAntiAffinity=PodAntiAffinity*
AppArmorProfile: 1:type, 2:localhostProfile*
AttachedVolume: 1:name, 2:devicePath
AzureDiskVolumeSource: 1:diskName, 2:diskURI, 3:cachingMode*, 4:fsType*, 5:readOnly=bool*, 6:kind*
AzureFilePersistentVolumeSource: 1:secretName, 2:shareName, 3:readOnly=bool?, 4:secretNamespace*
AzureFileVolumeSource: 1:secretName, 2:shareName, 3:readOnly=bool?
Binding: 1:metadata=meta.v1.ObjectMeta?, 2:target=ObjectReference
CSIPersistentVolumeSource: 1:driver, 2:volumeHandle, 3:readOnly=bool?, 4:fsType?,
  5:volumeAttributes=string{}, 6:controllerPublishSecretRef=SecretReference*,
  7:nodeStageSecretRef=SecretReference*, 8:nodePublishSecretRef=SecretReference*,
  9:controllerExpandSecretRef=SecretReference*, 10:nodeExpandSecretRef=SecretReference*
CSIVolumeSource: 1:driver, 2:readOnly=bool*, 3:fsType*, 4:volumeAttributes=string{},
  5:nodePublishSecretRef=LocalObjectReference*
Capabilities: 1:add=string[], 2:drop=string[]
CephFSPersistentVolumeSource: 1:monitors=string[], 2:path?, 3:user?, 4:secretFile?,
  5:secretRef=SecretReference*, 6:readOnly=bool?
CephFSVolumeSource: 1:monitors=string[], 2:path?, 3:user?, 4:secretFile?,
  5:secretRef=LocalObjectReference*, 6:readOnly=bool?
CinderPersistentVolumeSource: 1:volumeID, 2:fsType?, 3:readOnly=bool?,
  4:secretRef=SecretReference*
CinderVolumeSource: 1:volumeID, 2:fsType?, 3:readOnly=bool?, 4:secretRef=LocalObjectReference*
ClientIPConfig: 1:timeoutSeconds=int32*
ClusterTrustBundleProjection: 1:name*, 2:signerName*, 3:labelSelector=meta.v1.LabelSelector*,
  4:path, 5:optional=bool*, 6:user=int64*
ConfigMap: 1:metadata=meta.v1.ObjectMeta?, 2:data=string{}, 3:binaryData=bytes{},
  4:immutable=bool*
ConfigMapEnvSource: 1:localObjectReference=LocalObjectReference+, 2:optional=bool*
ConfigMapKeySelector: 1:localObjectReference=LocalObjectReference+, 2:key, 3:optional=bool*
ConfigMapNodeConfigSource: 1:namespace, 2:name, 3:uid?, 4:resourceVersion?, 5:kubeletConfigKey
ConfigMapProjection: 1:localObjectReference=LocalObjectReference+, 2:items=KeyToPath[],
  4:optional=bool*
ConfigMapVolumeSource: 1:localObjectReference=LocalObjectReference+, 2:items=KeyToPath[],
  3:defaultMode=int32*, 4:optional=bool*, 5:defaultUser=int64*
Container: 1:name, 2:image?, 3:command=string[], 4:args=string[], 5:workingDir?,
  6:ports=ContainerPort[], 7:env=EnvVar[], 8:resources=ResourceRequirements?,
  9:volumeMounts=VolumeMount[], 10:livenessProbe=Probe*, 11:readinessProbe=Probe*,
  12:lifecycle=Lifecycle*, 13:terminationMessagePath?, 14:imagePullPolicy?,
  15:securityContext=SecurityContext*, 16:stdin=bool?, 17:stdinOnce=bool?, 18:tty=bool?,
  19:envFrom=EnvFromSource[], 20:terminationMessagePolicy?, 21:volumeDevices=VolumeDevice[],
  22:startupProbe=Probe*, 23:resizePolicy=ContainerResizePolicy[], 24:restartPolicy*,
  25:restartPolicyRules=ContainerRestartRule[]
ContainerExtendedResourceRequest: 1:containerName, 2:resourceName, 3:requestName
ContainerImage: 1:names=string[], 2:sizeBytes=int64?
ContainerPort: 1:name?, 2:hostPort=int32?, 3:containerPort=int32, 4:protocol?, 5:hostIP?
ContainerResizePolicy: 1:resourceName, 2:restartPolicy
ContainerRestartRule: 1:action?, 2:exitCodes=ContainerRestartRuleOnExitCodes*
ContainerRestartRuleOnExitCodes: 1:operator?, 2:values=int32[]
ContainerState: 1:waiting=ContainerStateWaiting*, 2:running=ContainerStateRunning*,
  3:terminated=ContainerStateTerminated*
ContainerStateRunning: 1:startedAt=Time?
ContainerStateTerminated: 1:exitCode=int32, 2:signal=int32?, 3:reason?, 4:message?,
  5:startedAt=Time?, 6:finishedAt=Time?, 7:containerID?
ContainerStateWaiting: 1:reason?, 2:message?
ContainerStatus: 1:name, 2:state=ContainerState?, 3:lastState=ContainerState?, 4:ready=bool,
  5:restartCount=int32, 6:image, 7:imageID, 8:containerID?, 9:started=bool*,
  10:allocatedResources=Quantity{}, 11:resources=ResourceRequirements*,
  12:volumeMounts=VolumeMountStatus[], 13:user=ContainerUser*,
  14:allocatedResourcesStatus=ResourceStatus[], 15:stopSignal*
ContainerUser: 1:linux=LinuxContainerUser*
DaemonEndpoint: 1:Port=int32
DownwardAPIProjection: 1:items=DownwardAPIVolumeFile[]
DownwardAPIVolumeFile: 1:path, 2:fieldRef=ObjectFieldSelector*,
  3:resourceFieldRef=ResourceFieldSelector*, 4:mode=int32*, 5:user=int64*
DownwardAPIVolumeSource: 1:items=DownwardAPIVolumeFile[], 2:defaultMode=int32*,
  3:defaultUser=int64*
EmptyDirVolumeSource: 1:medium?, 2:sizeLimit=Quantity*, 3:mode=int32*
EndpointAddress: 1:ip, 2:targetRef=ObjectReference*, 3:hostname?, 4:nodeName*
EndpointPort: 1:name?, 2:port=int32, 3:protocol?, 4:appProtocol*
EndpointSubset: 1:addresses=EndpointAddress[], 2:notReadyAddresses=EndpointAddress[],
  3:ports=EndpointPort[]
Endpoints: 1:metadata=meta.v1.ObjectMeta?, 2:subsets=EndpointSubset[]
EnvFromSource: 1:prefix?, 2:configMapRef=ConfigMapEnvSource*, 3:secretRef=SecretEnvSource*
EnvVar: 1:name, 2:value?, 3:valueFrom=EnvVarSource*
EnvVarSource: 1:fieldRef=ObjectFieldSelector*, 2:resourceFieldRef=ResourceFieldSelector*,
  3:configMapKeyRef=ConfigMapKeySelector*, 4:secretKeyRef=SecretKeySelector*,
  5:fileKeyRef=FileKeySelector*
EphemeralContainer: 1:ephemeralContainerCommon=EphemeralContainerCommon+, 2:targetContainerName?
EphemeralContainerCommon: 1:name, 2:image?, 3:command=string[], 4:args=string[], 5:workingDir?,
  6:ports=ContainerPort[], 7:env=EnvVar[], 8:resources=ResourceRequirements?,
  9:volumeMounts=VolumeMount[], 10:livenessProbe=Probe*, 11:readinessProbe=Probe*,
  12:lifecycle=Lifecycle*, 13:terminationMessagePath?, 14:imagePullPolicy?,
  15:securityContext=SecurityContext*, 16:stdin=bool?, 17:stdinOnce=bool?, 18:tty=bool?,
  19:envFrom=EnvFromSource[], 20:terminationMessagePolicy?, 21:volumeDevices=VolumeDevice[],
  22:startupProbe=Probe*, 23:resizePolicy=ContainerResizePolicy[], 24:restartPolicy*,
  25:restartPolicyRules=ContainerRestartRule[]
EphemeralVolumeSource: 1:volumeClaimTemplate=PersistentVolumeClaimTemplate*
Event: 1:metadata=meta.v1.ObjectMeta, 2:involvedObject=ObjectReference, 3:reason?, 4:message?,
  5:source=EventSource?, 6:firstTimestamp=Time?, 7:lastTimestamp=Time?, 8:count=int32?, 9:type?,
  10:eventTime=MicroTime?, 11:series=EventSeries*, 12:action?, 13:related=ObjectReference*,
  14:reportingComponent, 15:reportingInstance
EventSeries: 1:count=int32?, 2:lastObservedTime=MicroTime?
EventSource: 1:component?, 2:host?
EvictionResponder: 1:name, 2:priority=int32*
ExecAction: 1:command=string[]
FCVolumeSource: 1:targetWWNs=string[], 2:lun=int32*, 3:fsType?, 4:readOnly=bool?, 5:wwids=string[]
FileKeySelector: 1:volumeName, 2:path, 3:key, 4:optional=bool*
FlexPersistentVolumeSource: 1:driver, 2:fsType?, 3:secretRef=SecretReference*, 4:readOnly=bool?,
  5:options=string{}
FlexVolumeSource: 1:driver, 2:fsType?, 3:secretRef=LocalObjectReference*, 4:readOnly=bool?,
  5:options=string{}
FlockerVolumeSource: 1:datasetName?, 2:datasetUUID?
GCEPersistentDiskVolumeSource: 1:pdName, 2:fsType?, 3:partition=int32?, 4:readOnly=bool?
GRPCAction: 1:port=int32, 2:service*, 3:mode*
GitRepoVolumeSource: 1:repository, 2:revision?, 3:directory?
GlusterfsPersistentVolumeSource: 1:endpoints, 2:path, 3:readOnly=bool?, 4:endpointsNamespace*
GlusterfsVolumeSource: 1:endpoints, 2:path, 3:readOnly=bool?
HTTPGetAction: 1:path?, 2:port=IntOrString, 3:host?, 4:scheme?, 5:httpHeaders=HTTPHeader[],
  6:protocol*
HTTPHeader: 1:name, 2:value
HostAlias: 1:ip, 2:hostnames=string[]
HostIP: 1:ip
HostPathVolumeSource: 1:path, 2:type*
ISCSIPersistentVolumeSource: 1:targetPortal, 2:iqn, 3:lun=int32, 4:iscsiInterface?, 5:fsType?,
  6:readOnly=bool?, 7:portals=string[], 8:chapAuthDiscovery=bool?, 10:secretRef=SecretReference*,
  11:chapAuthSession=bool?, 12:initiatorName*
ISCSIVolumeSource: 1:targetPortal, 2:iqn, 3:lun=int32, 4:iscsiInterface?, 5:fsType?,
  6:readOnly=bool?, 7:portals=string[], 8:chapAuthDiscovery=bool?,
  10:secretRef=LocalObjectReference*, 11:chapAuthSession=bool?, 12:initiatorName*
ImageVolumeSource: 1:reference?, 2:pullPolicy?
ImageVolumeStatus: 1:imageRef?
KeyToPath: 1:key, 2:path, 3:mode=int32*, 4:user=int64*
Lifecycle: 1:postStart=LifecycleHandler*, 2:preStop=LifecycleHandler*, 3:stopSignal*
LifecycleHandler: 1:exec=ExecAction*, 2:httpGet=HTTPGetAction*, 3:tcpSocket=TCPSocketAction*,
  4:sleep=SleepAction*
LimitRange: 1:metadata=meta.v1.ObjectMeta?, 2:spec=LimitRangeSpec?
LimitRangeItem: 1:type, 2:max=Quantity{}, 3:min=Quantity{}, 4:default=Quantity{},
  5:defaultRequest=Quantity{}, 6:maxLimitRequestRatio=Quantity{}
LimitRangeSpec: 1:limits=LimitRangeItem[]
LinuxContainerUser: 1:uid=int64, 2:gid=int64, 3:supplementalGroups=int64[]
LoadBalancerIngress: 1:ip?, 2:hostname?, 3:ipMode*, 4:ports=PortStatus[]
LoadBalancerStatus: 1:ingress=LoadBalancerIngress[]
LocalObjectReference: 1:name?
LocalVolumeSource: 1:path, 2:fsType*
ModifyVolumeStatus: 1:targetVolumeAttributesClassName?, 2:status
NFSVolumeSource: 1:server, 2:path, 3:readOnly=bool?
Namespace: 1:metadata=meta.v1.ObjectMeta?, 2:spec=NamespaceSpec?, 3:status=NamespaceStatus?
NamespaceCondition: 1:type, 2:status, 4:lastTransitionTime=Time?, 5:reason?, 6:message?
NamespaceSpec: 1:finalizers=string[]
NamespaceStatus: 1:phase?, 2:conditions=NamespaceCondition[]
Node: 1:metadata=meta.v1.ObjectMeta?, 2:spec=NodeSpec?, 3:status=NodeStatus?
NodeAddress: 1:type, 2:address
NodeAffinity: 1:requiredDuringSchedulingIgnoredDuringExecution=NodeSelector*,
  2:preferredDuringSchedulingIgnoredDuringExecution=PreferredSchedulingTerm[]
NodeAllocatableMappedResources: 1:name, 2:quantity=Quantity*
NodeAllocatableOverheadResources: 1:name, 2:perPod=Quantity*, 3:perContainer=Quantity*
NodeAllocatableResourceClaimStatus: 1:resourceClaimName, 2:containers=string[],
  4:mapping=NodeAllocatableMappedResources[], 5:overhead=NodeAllocatableOverheadResources[]
NodeCondition: 1:type, 2:status, 3:lastHeartbeatTime=Time?, 4:lastTransitionTime=Time?, 5:reason?,
  6:message?
NodeConfigSource: 2:configMap=ConfigMapNodeConfigSource*
NodeConfigStatus: 1:assigned=NodeConfigSource*, 2:active=NodeConfigSource*,
  3:lastKnownGood=NodeConfigSource*, 4:error?
NodeDaemonEndpoints: 1:kubeletEndpoint=DaemonEndpoint?
NodeFeatures: 1:supplementalGroupsPolicy=bool*
NodePodPreemptionPolicy: 1:disableResizePreemption=string[]
NodeRuntimeHandler: 1:name, 2:features=NodeRuntimeHandlerFeatures*
NodeRuntimeHandlerFeatures: 1:recursiveReadOnlyMounts=bool*, 2:userNamespaces=bool*
NodeSelector: 1:nodeSelectorTerms=NodeSelectorTerm[]
NodeSelectorRequirement: 1:key, 2:operator, 3:values=string[]
NodeSelectorTerm: 1:matchExpressions=NodeSelectorRequirement[],
  2:matchFields=NodeSelectorRequirement[]
NodeSpec: 1:podCIDR?, 2:externalID?, 3:providerID?, 4:unschedulable=bool?, 5:taints=Taint[],
  6:configSource=NodeConfigSource*, 7:podCIDRs=string[],
  8:podPreemptionPolicy=NodePodPreemptionPolicy*
NodeStatus: 1:capacity=Quantity{}, 2:allocatable=Quantity{}, 3:phase?,
  4:conditions=NodeCondition[], 5:addresses=NodeAddress[], 6:daemonEndpoints=NodeDaemonEndpoints?,
  7:nodeInfo=NodeSystemInfo?, 8:images=ContainerImage[], 9:volumesInUse=string[],
  10:volumesAttached=AttachedVolume[], 11:config=NodeConfigStatus*,
  12:runtimeHandlers=NodeRuntimeHandler[], 13:features=NodeFeatures*, 14:declaredFeatures=string[]
NodeSwapStatus: 1:capacity=int64*
NodeSystemInfo: 1:machineID, 2:systemUUID, 3:bootID, 4:kernelVersion, 5:osImage,
  6:containerRuntimeVersion, 7:kubeletVersion, 8:kubeProxyVersion, 9:operatingSystem,
  10:architecture, 11:swap=NodeSwapStatus*
ObjectFieldSelector: 1:apiVersion?, 2:fieldPath
ObjectReference: 1:kind?, 2:namespace?, 3:name?, 4:uid?, 5:apiVersion?, 6:resourceVersion?,
  7:fieldPath?
PersistentVolume: 1:metadata=meta.v1.ObjectMeta?, 2:spec=PersistentVolumeSpec?,
  3:status=PersistentVolumeStatus?
PersistentVolumeClaim: 1:metadata=meta.v1.ObjectMeta?, 2:spec=PersistentVolumeClaimSpec?,
  3:status=PersistentVolumeClaimStatus?
PersistentVolumeClaimCondition: 1:type, 2:status, 3:lastProbeTime=Time?,
  4:lastTransitionTime=Time?, 5:reason?, 6:message?
PersistentVolumeClaimSpec: 1:accessModes=string[], 2:resources=VolumeResourceRequirements?,
  3:volumeName?, 4:selector=meta.v1.LabelSelector*, 5:storageClassName*, 6:volumeMode*,
  7:dataSource=TypedLocalObjectReference*, 8:dataSourceRef=TypedObjectReference*,
  9:volumeAttributesClassName*
PersistentVolumeClaimStatus: 1:phase?, 2:accessModes=string[], 3:capacity=Quantity{},
  4:conditions=PersistentVolumeClaimCondition[], 5:allocatedResources=Quantity{},
  7:allocatedResourceStatuses=string{}, 8:currentVolumeAttributesClassName*,
  9:modifyVolumeStatus=ModifyVolumeStatus*, 10:healthStatus=VolumeHealthStatus*
PersistentVolumeClaimTemplate: 1:metadata=meta.v1.ObjectMeta?, 2:spec=PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: 1:claimName, 2:readOnly=bool?
PersistentVolumeSource: 1:gcePersistentDisk=GCEPersistentDiskVolumeSource*,
  2:awsElasticBlockStore=AWSElasticBlockStoreVolumeSource*, 3:hostPath=HostPathVolumeSource*,
  4:glusterfs=GlusterfsPersistentVolumeSource*, 5:nfs=NFSVolumeSource*,
  6:rbd=RBDPersistentVolumeSource*, 7:iscsi=ISCSIPersistentVolumeSource*,
  8:cinder=CinderPersistentVolumeSource*, 9:cephfs=CephFSPersistentVolumeSource*,
  10:fc=FCVolumeSource*, 11:flocker=FlockerVolumeSource*,
  12:flexVolume=FlexPersistentVolumeSource*, 13:azureFile=AzureFilePersistentVolumeSource*,
  14:vsphereVolume=VsphereVirtualDiskVolumeSource*, 15:quobyte=QuobyteVolumeSource*,
  16:azureDisk=AzureDiskVolumeSource*, 17:photonPersistentDisk=PhotonPersistentDiskVolumeSource*,
  18:portworxVolume=PortworxVolumeSource*, 19:scaleIO=ScaleIOPersistentVolumeSource*,
  20:local=LocalVolumeSource*, 21:storageos=StorageOSPersistentVolumeSource*,
  22:csi=CSIPersistentVolumeSource*
PersistentVolumeSpec: 1:capacity=Quantity{}, 2:persistentVolumeSource=PersistentVolumeSource+,
  3:accessModes=string[], 4:claimRef=ObjectReference*, 5:persistentVolumeReclaimPolicy?,
  6:storageClassName?, 7:mountOptions=string[], 8:volumeMode*, 9:nodeAffinity=VolumeNodeAffinity*,
  10:volumeAttributesClassName*
PersistentVolumeStatus: 1:phase?, 2:message?, 3:reason?, 4:lastPhaseTransitionTime=Time*
PhotonPersistentDiskVolumeSource: 1:pdID, 2:fsType?
Pod: 1:metadata=meta.v1.ObjectMeta?, 2:spec=PodSpec?, 3:status=PodStatus?
PodAffinity: 1:requiredDuringSchedulingIgnoredDuringExecution=PodAffinityTerm[],
  2:preferredDuringSchedulingIgnoredDuringExecution=WeightedPodAffinityTerm[]
PodAffinityTerm: 1:labelSelector=meta.v1.LabelSelector*, 2:namespaces=string[], 3:topologyKey,
  4:namespaceSelector=meta.v1.LabelSelector*, 5:matchLabelKeys=string[],
  6:mismatchLabelKeys=string[]
PodAntiAffinity: 1:requiredDuringSchedulingIgnoredDuringExecution=PodAffinityTerm[],
  2:preferredDuringSchedulingIgnoredDuringExecution=WeightedPodAffinityTerm[]
PodCertificateProjection: 1:signerName?, 2:keyType?, 3:maxExpirationSeconds=int32*,
  4:credentialBundlePath?, 5:keyPath?, 6:certificateChainPath?, 7:userAnnotations=string{},
  8:user=int64*
PodCondition: 1:type, 2:status, 3:lastProbeTime=Time?, 4:lastTransitionTime=Time?, 5:reason?,
  6:message?, 7:observedGeneration=int64?
PodDNSConfig: 1:nameservers=string[], 2:searches=string[], 3:options=PodDNSConfigOption[]
PodDNSConfigOption: 1:name?, 2:value*
PodExtendedResourceClaimStatus: 1:requestMappings=ContainerExtendedResourceRequest[],
  2:resourceClaimName
PodIP: 1:ip
PodOS: 1:name
PodReadinessGate: 1:conditionType
PodResourceClaim: 1:name, 3:resourceClaimName*, 4:resourceClaimTemplateName*
PodResourceClaimStatus: 1:name, 2:resourceClaimName*
PodSchedulingGate: 1:name
PodSchedulingGroup: 1:podGroupName*
PodSecurityContext: 1:seLinuxOptions=SELinuxOptions*, 2:runAsUser=int64*, 3:runAsNonRoot=bool*,
  4:supplementalGroups=int64[], 5:fsGroup=int64*, 6:runAsGroup=int64*, 7:sysctls=Sysctl[],
  8:windowsOptions=WindowsSecurityContextOptions*, 9:fsGroupChangePolicy*,
  10:seccompProfile=SeccompProfile*, 11:appArmorProfile=AppArmorProfile*,
  12:supplementalGroupsPolicy*, 13:seLinuxChangePolicy*
PodSpec: 1:volumes=Volume[], 2:containers=Container[], 3:restartPolicy?,
  4:terminationGracePeriodSeconds=int64*, 5:activeDeadlineSeconds=int64*, 6:dnsPolicy?,
  7:nodeSelector=string{}, 8:serviceAccountName?, 9:serviceAccount?, 10:nodeName?,
  11:hostNetwork=bool?, 12:hostPID=bool?, 13:hostIPC=bool?,
  14:securityContext=PodSecurityContext*, 15:imagePullSecrets=LocalObjectReference[],
  16:hostname?, 17:subdomain?, 18:affinity=Affinity*, 19:schedulerName?,
  20:initContainers=Container[], 21:automountServiceAccountToken=bool*,
  22:tolerations=Toleration[], 23:hostAliases=HostAlias[], 24:priorityClassName?,
  25:priority=int32*, 26:dnsConfig=PodDNSConfig*, 27:shareProcessNamespace=bool*,
  28:readinessGates=PodReadinessGate[], 29:runtimeClassName*, 30:enableServiceLinks=bool*,
  31:preemptionPolicy*, 32:overhead=Quantity{},
  33:topologySpreadConstraints=TopologySpreadConstraint[],
  34:ephemeralContainers=EphemeralContainer[], 35:setHostnameAsFQDN=bool*, 36:os=PodOS*,
  37:hostUsers=bool*, 38:schedulingGates=PodSchedulingGate[],
  39:resourceClaims=PodResourceClaim[], 40:resources=ResourceRequirements*, 41:hostnameOverride*,
  43:schedulingGroup=PodSchedulingGroup*, 44:evictionResponders=EvictionResponder[]
PodStatus: 1:phase?, 2:conditions=PodCondition[], 3:message?, 4:reason?, 5:hostIP?, 6:podIP?,
  7:startTime=Time*, 8:containerStatuses=ContainerStatus[], 9:qosClass?,
  10:initContainerStatuses=ContainerStatus[], 11:nominatedNodeName?, 12:podIPs=PodIP[],
  13:ephemeralContainerStatuses=ContainerStatus[], 14:resize?,
  15:resourceClaimStatuses=PodResourceClaimStatus[], 16:hostIPs=HostIP[],
  17:observedGeneration=int64?, 18:extendedResourceClaimStatus=PodExtendedResourceClaimStatus*,
  19:allocatedResources=Quantity{}, 20:resources=ResourceRequirements*,
  21:nodeAllocatableResourceClaimStatuses=NodeAllocatableResourceClaimStatus[],
  22:volumeHealth=PodVolumeHealth[]
PodTemplate: 1:metadata=meta.v1.ObjectMeta?, 2:template=PodTemplateSpec?
PodTemplateSpec: 1:metadata=meta.v1.ObjectMeta?, 2:spec=PodSpec?
PodVolumeHealth: 1:name, 2:healthConditions=VolumeHealthCondition[], 3:lastTransitionTime=Time?
PortStatus: 1:port=int32, 2:protocol, 3:error*
PortworxVolumeSource: 1:volumeID, 2:fsType?, 3:readOnly=bool?
PreferredSchedulingTerm: 1:weight=int32, 2:preference=NodeSelectorTerm
Probe: 1:handler=ProbeHandler+, 2:initialDelaySeconds=int32?, 3:timeoutSeconds=int32?,
  4:periodSeconds=int32?, 5:successThreshold=int32?, 6:failureThreshold=int32?,
  7:terminationGracePeriodSeconds=int64*
ProbeHandler: 1:exec=ExecAction*, 2:httpGet=HTTPGetAction*, 3:tcpSocket=TCPSocketAction*,
  4:grpc=GRPCAction*
ProjectedVolumeSource: 1:sources=VolumeProjection[], 2:defaultMode=int32*, 3:defaultUser=int64*
QuobyteVolumeSource: 1:registry, 2:volume, 3:readOnly=bool?, 4:user?, 5:group?, 6:tenant?
RBDPersistentVolumeSource: 1:monitors=string[], 2:image, 3:fsType?, 4:pool?, 5:user?, 6:keyring?,
  7:secretRef=SecretReference*, 8:readOnly=bool?
RBDVolumeSource: 1:monitors=string[], 2:image, 3:fsType?, 4:pool?, 5:user?, 6:keyring?,
  7:secretRef=LocalObjectReference*, 8:readOnly=bool?
ReplicationController: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ReplicationControllerSpec?,
  3:status=ReplicationControllerStatus?
ReplicationControllerCondition: 1:type, 2:status, 3:lastTransitionTime=Time?, 4:reason?,
  5:message?
ReplicationControllerSpec: 1:replicas=int32*, 2:selector=string{}, 3:template=PodTemplateSpec*,
  4:minReadySeconds=int32?
ReplicationControllerStatus: 1:replicas=int32, 2:fullyLabeledReplicas=int32?,
  3:observedGeneration=int64?, 4:readyReplicas=int32?, 5:availableReplicas=int32?,
  6:conditions=ReplicationControllerCondition[]
ResourceClaim: 1:name, 2:request?
ResourceFieldSelector: 1:containerName?, 2:resource, 3:divisor=Quantity?
ResourceHealth: 1:resourceID, 2:health?, 6:message*
ResourceQuota: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ResourceQuotaSpec?,
  3:status=ResourceQuotaStatus?
ResourceQuotaSpec: 1:hard=Quantity{}, 2:scopes=string[], 3:scopeSelector=ScopeSelector*
ResourceQuotaStatus: 1:hard=Quantity{}, 2:used=Quantity{}
ResourceRequirements: 1:limits=Quantity{}, 2:requests=Quantity{}, 3:claims=ResourceClaim[]
ResourceStatus: 1:name, 2:resources=ResourceHealth[]
SELinuxOptions: 1:user?, 2:role?, 3:type?, 4:level?
ScaleIOPersistentVolumeSource: 1:gateway, 2:system, 3:secretRef=SecretReference*,
  4:sslEnabled=bool?, 5:protectionDomain?, 6:storagePool?, 7:storageMode?, 8:volumeName?,
  9:fsType?, 10:readOnly=bool?
ScaleIOVolumeSource: 1:gateway, 2:system, 3:secretRef=LocalObjectReference*, 4:sslEnabled=bool?,
  5:protectionDomain?, 6:storagePool?, 7:storageMode?, 8:volumeName?, 9:fsType?, 10:readOnly=bool?
ScopeSelector: 1:matchExpressions=ScopedResourceSelectorRequirement[]
ScopedResourceSelectorRequirement: 1:scopeName, 2:operator, 3:values=string[]
SeccompProfile: 1:type, 2:localhostProfile*
Secret: 1:metadata=meta.v1.ObjectMeta?, 2:data=bytes{}, 3:type?, 4:stringData=string{},
  5:immutable=bool*
SecretEnvSource: 1:localObjectReference=LocalObjectReference+, 2:optional=bool*
SecretKeySelector: 1:localObjectReference=LocalObjectReference+, 2:key, 3:optional=bool*
SecretProjection: 1:localObjectReference=LocalObjectReference+, 2:items=KeyToPath[],
  4:optional=bool*
SecretReference: 1:name?, 2:namespace?
SecretVolumeSource: 1:secretName?, 2:items=KeyToPath[], 3:defaultMode=int32*, 4:optional=bool*,
  5:defaultUser=int64*
SecurityContext: 1:capabilities=Capabilities*, 2:privileged=bool*,
  3:seLinuxOptions=SELinuxOptions*, 4:runAsUser=int64*, 5:runAsNonRoot=bool*,
  6:readOnlyRootFilesystem=bool*, 7:allowPrivilegeEscalation=bool*, 8:runAsGroup=int64*,
  9:procMount*, 10:windowsOptions=WindowsSecurityContextOptions*,
  11:seccompProfile=SeccompProfile*, 12:appArmorProfile=AppArmorProfile*
Service: 1:metadata=meta.v1.ObjectMeta?, 2:spec=ServiceSpec?, 3:status=ServiceStatus?
ServiceAccount: 1:metadata=meta.v1.ObjectMeta?, 2:secrets=ObjectReference[],
  3:imagePullSecrets=LocalObjectReference[], 4:automountServiceAccountToken=bool*
ServiceAccountTokenProjection: 1:audience?, 2:expirationSeconds=int64*, 3:path, 4:user=int64*
ServicePort: 1:name?, 2:protocol?, 3:port=int32, 4:targetPort=IntOrString?, 5:nodePort=int32?,
  6:appProtocol*
ServiceSpec: 1:ports=ServicePort[], 2:selector=string{}, 3:clusterIP?, 4:type?,
  5:externalIPs=string[], 7:sessionAffinity?, 8:loadBalancerIP?,
  9:loadBalancerSourceRanges=string[], 10:externalName?, 11:externalTrafficPolicy?,
  12:healthCheckNodePort=int32?, 13:publishNotReadyAddresses=bool?,
  14:sessionAffinityConfig=SessionAffinityConfig*, 17:ipFamilyPolicy*, 18:clusterIPs=string[],
  19:ipFamilies=string[], 20:allocateLoadBalancerNodePorts=bool*, 21:loadBalancerClass*,
  22:internalTrafficPolicy*, 23:trafficDistribution*
ServiceStatus: 1:loadBalancer=LoadBalancerStatus?, 2:conditions=meta.v1.Condition[]
SessionAffinityConfig: 1:clientIP=ClientIPConfig*
SleepAction: 1:seconds=int64
StorageOSPersistentVolumeSource: 1:volumeName?, 2:volumeNamespace?, 3:fsType?, 4:readOnly=bool?,
  5:secretRef=ObjectReference*
StorageOSVolumeSource: 1:volumeName?, 2:volumeNamespace?, 3:fsType?, 4:readOnly=bool?,
  5:secretRef=LocalObjectReference*
Sysctl: 1:name, 2:value
TCPSocketAction: 1:port=IntOrString, 2:host?
Taint: 1:key, 2:value?, 3:effect, 4:timeAdded=Time*
Toleration: 1:key?, 2:operator?, 3:value?, 4:effect?, 5:tolerationSeconds=int64*
TopologySelectorLabelRequirement: 1:key, 2:values=string[]
TopologySelectorTerm: 1:matchLabelExpressions=TopologySelectorLabelRequirement[]
TopologySpreadConstraint: 1:maxSkew=int32, 2:topologyKey, 3:whenUnsatisfiable,
  4:labelSelector=meta.v1.LabelSelector*, 5:minDomains=int32*, 6:nodeAffinityPolicy*,
  7:nodeTaintsPolicy*, 8:matchLabelKeys=string[]
TypedLocalObjectReference: 1:apiGroup*, 2:kind, 3:name
TypedObjectReference: 1:apiGroup*, 2:kind, 3:name, 4:namespace*
Volume: 1:name, 2:volumeSource=VolumeSource+
VolumeDevice: 1:name, 2:devicePath
VolumeHealthCondition: 1:status, 2:reason, 3:message?
VolumeHealthStatus: 1:healthConditions=VolumeHealthCondition[], 2:lastTransitionTime=Time?
VolumeMount: 1:name, 2:readOnly=bool?, 3:mountPath, 4:subPath?, 5:mountPropagation*,
  6:subPathExpr?, 7:recursiveReadOnly*, 8:bindMountOptions=string[]
VolumeMountStatus: 1:name, 2:mountPath, 3:readOnly=bool?, 4:recursiveReadOnly*,
  5:volumeStatus=VolumeStatus*
VolumeNodeAffinity: 1:required=NodeSelector*
VolumeProjection: 1:secret=SecretProjection*, 2:downwardAPI=DownwardAPIProjection*,
  3:configMap=ConfigMapProjection*, 4:serviceAccountToken=ServiceAccountTokenProjection*,
  5:clusterTrustBundle=ClusterTrustBundleProjection*, 6:podCertificate=PodCertificateProjection*
VolumeResourceRequirements: 1:limits=Quantity{}, 2:requests=Quantity{}
VolumeSource: 1:hostPath=HostPathVolumeSource*, 2:emptyDir=EmptyDirVolumeSource*,
  3:gcePersistentDisk=GCEPersistentDiskVolumeSource*,
  4:awsElasticBlockStore=AWSElasticBlockStoreVolumeSource*, 5:gitRepo=GitRepoVolumeSource*,
  6:secret=SecretVolumeSource*, 7:nfs=NFSVolumeSource*, 8:iscsi=ISCSIVolumeSource*,
  9:glusterfs=GlusterfsVolumeSource*, 10:persistentVolumeClaim=PersistentVolumeClaimVolumeSource*,
  11:rbd=RBDVolumeSource*, 12:flexVolume=FlexVolumeSource*, 13:cinder=CinderVolumeSource*,
  14:cephfs=CephFSVolumeSource*, 15:flocker=FlockerVolumeSource*,
  16:downwardAPI=DownwardAPIVolumeSource*, 17:fc=FCVolumeSource*,
  18:azureFile=AzureFileVolumeSource*, 19:configMap=ConfigMapVolumeSource*,
  20:vsphereVolume=VsphereVirtualDiskVolumeSource*, 21:quobyte=QuobyteVolumeSource*,
  22:azureDisk=AzureDiskVolumeSource*, 23:photonPersistentDisk=PhotonPersistentDiskVolumeSource*,
  24:portworxVolume=PortworxVolumeSource*, 25:scaleIO=ScaleIOVolumeSource*,
  26:projected=ProjectedVolumeSource*, 27:storageos=StorageOSVolumeSource*,
  28:csi=CSIVolumeSource*, 29:ephemeral=EphemeralVolumeSource*, 30:image=ImageVolumeSource*
VolumeStatus: 1:image=ImageVolumeStatus*
VsphereVirtualDiskVolumeSource: 1:volumePath, 2:fsType?, 3:storagePolicyName?, 4:storagePolicyID?
WeightedPodAffinityTerm: 1:weight=int32, 2:podAffinityTerm=PodAffinityTerm
WindowsSecurityContextOptions: 1:gmsaCredentialSpecName*, 2:gmsaCredentialSpec*, 3:runAsUserName*,
  4:hostProcess=bool*
"""
