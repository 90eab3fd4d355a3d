"""Valid objects that fuzzers start from: one or more per family of kinds, in every version."""

import copy
from dataclasses import dataclass

import yaml

_TEXT = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: x, labels: {a: b}, annotations: {n: m}}
spec:
  devices:
    requests:
    - name: one
      exactly:
        deviceClassName: gpu.example.com
        allocationMode: ExactCount
        count: 2
        adminAccess: false
        selectors: [{cel: {expression: "device.driver == 'd.example.com'"}}]
        tolerations: [{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
        capacity: {requests: {memory: 10Gi}}
    - name: two
      firstAvailable:
      - {name: big, deviceClassName: big.example.com, count: 1}
      - {name: small, deviceClassName: small.example.com, allocationMode: All}
    constraints:
    - {requests: [one], matchAttribute: d.example.com/numa}
    config:
    - requests: [one]
      opaque: {driver: d.example.com, parameters: {apiVersion: v1, kind: P, deep: {a: [1, {b: c}]}}}
status:
  reservedFor: [{resource: pods, name: p, uid: u}]
  allocation:
    devices:
      results: [{request: one, driver: d.example.com, pool: n, device: d1}]
    nodeSelector:
      nodeSelectorTerms:
      - matchFields: [{key: metadata.name, operator: In, values: [n]}]
  devices:
  - {driver: d.example.com, pool: n, device: d1, data: {x: 1}, conditions: [{type: Ready,
     status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}],
     networkData: {interfaceName: eth0, ips: [10.0.0.1/24], hardwareAddress: "ea:9f:cb:40:b1:7b"}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: x}
spec:
  devices:
    requests:
    - {name: one, deviceClassName: gpu.example.com, count: 1, selectors: [{cel: {expression:
       "device.attributes['d.example.com'].model == 'a'"}}]}
    - {name: two, firstAvailable: [{name: s, deviceClassName: gpu.example.com}]}
---
apiVersion: resource.k8s.io/v1beta2
kind: ResourceClaim
metadata: {name: x}
spec: {devices: {requests: [{name: one, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: x}
spec:
  metadata: {labels: {a: b}}
  spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {name: x}
spec: {spec: {devices: {requests: [{name: r, deviceClassName: gpu.example.com}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: x}
spec:
  driver: d.example.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
  sharedCounters: []
  devices:
  - name: d1
    attributes: {model: {string: a}, numa: {int: 1}, ok: {bool: true}, v: {version: 1.2.3},
      d.example.com/l: {ints: [1, 2]}}
    capacity: {memory: {value: 80Gi, requestPolicy: {default: 1Gi, validRange: {min: 1Gi,
      max: 80Gi, step: 1Gi}}}}
    allowMultipleAllocations: true
    taints: [{key: k, value: v, effect: NoSchedule}]
  - {name: d2, bindingConditions: [Ready], bindingFailureConditions: [Failed], bindsToNode: true}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: x}
spec:
  driver: d.example.com
  allNodes: true
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  sharedCounters: [{name: set, counters: {memory: {value: 80Gi}}}]
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: x}
spec:
  driver: d.example.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
  devices: [{name: d1, basic: {attributes: {model: {string: a}}, capacity: {memory: {value: 1Gi}},
    consumesCounters: [{counterSet: s, counters: {memory: {value: 1Gi}}}]}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: x}
spec:
  selectors: [{cel: {expression: "device.driver == 'd' && device.capacity['d'].m.isGreaterThan(
    quantity('1Gi'))"}}]
  config: [{opaque: {driver: d.example.com, parameters: {a: 1}}}]
  extendedResourceName: example.com/gpu
---
apiVersion: resource.k8s.io/v1beta2
kind: DeviceClass
metadata: {name: x}
spec: {selectors: [{cel: {expression: "has(device.attributes['d'].model)"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: x}
spec:
  deviceSelector: {driver: d.example.com, pool: n, device: d1}
  taint: {key: k, value: v, effect: NoExecute, timeAdded: "2026-01-01T00:00:00Z"}
status: {conditions: [{type: EvictionInProgress, status: "False", reason: R, message: m,
  lastTransitionTime: "2026-01-01T00:00:00Z"}]}
---
apiVersion: resource.k8s.io/v1alpha3
kind: DeviceTaintRule
metadata: {name: x}
spec: {deviceSelector: {driver: d.example.com}, taint: {key: k, effect: NoSchedule}}
---
apiVersion: resource.k8s.io/v1alpha3
kind: ResourcePoolStatusRequest
metadata: {name: x}
spec: {driver: d.example.com, poolName: n, limit: 5}
---
apiVersion: v1
kind: Pod
metadata: {name: x, labels: {app: a}}
spec:
  schedulerName: nobody
  nodeSelector: {a: b}
  containers:
  - name: c
    image: i
    env: [{name: A, value: B}]
    ports: [{containerPort: 80, protocol: TCP}]
    resources: {requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: 1}, claims: [{name: r}]}
    readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 3}
    volumeMounts: [{name: v, mountPath: /v}]
  volumes: [{name: v, emptyDir: {}}]
  tolerations: [{key: k, operator: Equal, value: v, effect: NoExecute, tolerationSeconds: 60}]
  resourceClaims: [{name: r, resourceClaimTemplateName: t}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:
    [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]
  schedulingGates: [{name: g}]
status: {phase: Running, conditions: [{type: Ready, status: "True"}],
  containerStatuses: [{name: c, ready: true, restartCount: 1, image: i, imageID: "",
  state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}]}
---
apiVersion: v1
kind: Node
metadata: {name: x}
spec: {taints: [{key: k, effect: NoSchedule}], unschedulable: true, podCIDR: 10.0.0.0/24}
status: {capacity: {cpu: 8, pods: 110}, allocatable: {cpu: 8, pods: 110},
  conditions: [{type: Ready, status: "True"}], addresses: [{type: InternalIP, address: 10.0.0.1}],
  nodeInfo: {kubeletVersion: v1.37.0}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: x}, spec: {finalizers: [kubernetes]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}, binaryData: {c: Yg==},
 immutable: false}
---
{apiVersion: v1, kind: Secret, metadata: {name: x}, data: {a: Yg==}, stringData: {s: t},
 type: Opaque}
---
{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {selector: {a: b}, type: ClusterIP,
 ports: [{port: 80, targetPort: http, protocol: TCP}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}, imagePullSecrets: [{name: s}]}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: x}, spec: {hard: {pods: 5, cpu: 1}}}
---
{apiVersion: v1, kind: Event, metadata: {name: x}, involvedObject: {apiVersion: v1, kind: Pod,
 name: p, namespace: default}, reason: R, message: m, type: Normal, count: 3,
 firstTimestamp: "2026-01-01T00:00:00Z", source: {component: c}}
---
{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: x}, regarding: {kind: Pod, name: p},
 reason: R, note: m, type: Warning, eventTime: "2026-01-01T00:00:00.000001Z", action: A,
 reportingController: c, reportingInstance: i, series: {count: 2,
 lastObservedTime: "2026-01-01T00:00:00.000001Z"}}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x}, spec: {holderIdentity: h,
 leaseDurationSeconds: 15, renewTime: "2026-01-01T00:00:00.000001Z", leaseTransitions: 1}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x}, spec: {minAvailable: 50%,
 selector: {matchLabels: {app: a}}}, status: {disruptionsAllowed: 1, currentHealthy: 2}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
spec:
  replicas: 2
  selector: {matchLabels: {app: a}, matchExpressions: [{key: b, operator: DoesNotExist}]}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}
status: {replicas: 1, conditions: [{type: Available, status: "True"}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: x}
spec:
  serviceName: s
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}
  volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce],
    resources: {requests: {storage: 1Gi}}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: x}
spec: {completions: 2, parallelism: 1, template: {spec: {restartPolicy: Never,
  containers: [{name: c, image: i}]}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: x}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}, {nonResourceURLs: [/x], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: x}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{kind: User, name: u, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, shortNames: [th]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: A, type: string, jsonPath: .spec.a}]
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      a: {type: string, default: x, maxLength: 5}, n: {type: integer, minimum: 0},
      l: {type: array, items: {type: string}}}}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: x}
spec:
  failurePolicy: Ignore
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"],
    resources: [configmaps, pods/*], scope: Namespaced}], objectSelector: {matchLabels: {a: b}}}
  matchConditions: [{name: c, expression: "has(object.metadata.labels)"}]
  variables: [{name: v, expression: "size(object.metadata.name)"}]
  validations: [{expression: "variables.v < 60 && request.operation != 'CONNECT'",
    reason: Forbidden, messageExpression: "'name of ' + string(variables.v)"}]
  auditAnnotations: [{key: k, valueExpression: "'x'"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: x}
spec: {policyName: x, validationActions: [Warn, Audit], paramRef: {selector: {matchLabels: {a: b}},
  parameterNotFoundAction: Allow}, matchResources: {namespaceSelector: {}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: x}
spec: {reinvocationPolicy: Never, matchConstraints: {resourceRules: [{apiGroups: [apps],
  apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}, mutations: [{patchType:
  JSONPatch, jsonPatch: {expression: "[]"}}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: x}
webhooks: [{name: a.b.c, admissionReviewVersions: [v1], sideEffects: None, timeoutSeconds: 3,
  clientConfig: {service: {namespace: n, name: s, path: /p, port: 443}, caBundle: eA==},
  rules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}],
  matchConditions: [{name: c, expression: "request.name != 'x'"}]}]
---
{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, spec: {resourceAttributes:
 {verb: get, resource: pods, namespace: default}}}
---
{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, spec: {user: u, groups: [g],
 nonResourceAttributes: {path: /x, verb: get}}}
---
{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectRulesReview, spec: {namespace: default}}
---
{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: t, audiences: [a]}}
---
{apiVersion: authentication.k8s.io/v1, kind: SelfSubjectReview}
"""

_CLUSTER_WIDE = frozenset({
    "ResourceSlice", "DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "Node",
    "Namespace", "ClusterRole", "CustomResourceDefinition", "SelfSubjectAccessReview",
    "SubjectAccessReview", "SelfSubjectRulesReview", "TokenReview", "SelfSubjectReview",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy",
    "ValidatingWebhookConfiguration",
})  # fmt: skip
_SUBRESOURCES = {
    "ResourceClaim": ["status"],
    "DeviceTaintRule": ["status"],
    "ResourcePoolStatusRequest": ["status"],
    "Pod": ["status", "eviction", "binding", "log", "ephemeralcontainers", "resize"],
    "Node": ["status"],
    "Namespace": ["status", "finalize"],
    "PodDisruptionBudget": ["status"],
    "Deployment": ["status", "scale"],
    "StatefulSet": ["status", "scale"],
    "Job": ["status"],
    "CustomResourceDefinition": ["status"],
}
SUBRESOURCE_BODIES = {
    "eviction": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "x"},
                 "deleteOptions": {"gracePeriodSeconds": 0}},
    "binding": {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "x"},
                "target": {"kind": "Node", "name": "n"}},
    "scale": {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"},
              "spec": {"replicas": 3}},
}  # fmt: skip
DELETE_OPTIONS = {
    "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
    "propagationPolicy": "Background", "preconditions": {"uid": "u", "resourceVersion": "1"},
    "dryRun": ["All"], "orphanDependents": False,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A valid object and its paths."""

    tree: dict
    collection: str
    subresources: tuple

    @property
    def api_version(self):
        return self.tree["apiVersion"]

    @property
    def kind(self):
        return self.tree["kind"]

    @property
    def is_review(self):
        return self.kind.endswith("Review")

    def copy(self):
        """A copy of the object's tree."""
        return copy.deepcopy(self.tree)


def all_seeds():
    """All seeds with their paths."""
    return [_seed(tree) for tree in yaml.safe_load_all(_TEXT)]


def _seed(tree):
    version, kind = tree["apiVersion"], tree["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    place = root if kind in _CLUSTER_WIDE else f"{root}/namespaces/default"
    tree.setdefault("metadata", {})
    return Seed(
        tree=tree,
        collection=f"{place}/{plural}",
        subresources=tuple(_SUBRESOURCES.get(kind, ())),
    )
