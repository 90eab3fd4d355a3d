"""Protobuf field numbers of webhook configurations and admission policies.

The notation is that of `fields`.
"""

ADMISSIONREGISTRATION_V1 = """
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
