// What an operator in JavaScript does with @kubernetes/client-node: informer, create, each patch,
// server-side apply, watch, delete. Prints what it saw as JSON. Run by test_client_node.py.
import * as k8s from '@kubernetes/client-node';

const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
const namespace = process.argv[3];
const core = config.makeApiClient(k8s.CoreV1Api);
const path = `/api/v1/namespaces/${namespace}/configmaps`;
const said = { informer: [], patches: [], watch: [], claim: null, conflict: null };

const waiting = [];
function note(kind, object) {
  said.informer.push([kind, object.metadata.name, object.data ?? {}]);
  for (const { seen, resolve } of waiting) if (seen()) resolve();
}
function until(seen) {
  return new Promise((resolve) => (seen() ? resolve() : waiting.push({ seen, resolve })));
}
const has = (kind, name) => said.informer.some(([k, n]) => k === kind && n === name);

const informer = k8s.makeInformer(config, path, () => core.listNamespacedConfigMap({ namespace }));
informer.on('add', (object) => note('add', object));
informer.on('update', (object) => note('update', object));
informer.on('delete', (object) => note('delete', object));
await informer.start();

const body = { metadata: { name: 'a' }, data: { step: 'made' } };
await core.createNamespacedConfigMap({ namespace, body });
await until(() => has('add', 'a'));
const patches = [
  [k8s.PatchStrategy.MergePatch, { data: { step: 'merged' } }],
  [k8s.PatchStrategy.JsonPatch, [{ op: 'replace', path: '/data/step', value: 'replaced' }]],
  [k8s.PatchStrategy.StrategicMergePatch, { data: { step: 'strategic' } }],
];
for (const [strategy, patch] of patches) {
  const options = k8s.setHeaderOptions('Content-Type', strategy);
  const patched = await core.patchNamespacedConfigMap({ name: 'a', namespace, body: patch }, options);
  said.patches.push(patched.data.step);
}
const version = (await core.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
await core.deleteNamespacedConfigMap({ name: 'a', namespace });
await until(() => has('delete', 'a'));

const watched = await new Promise((resolve, reject) => {
  const watch = new k8s.Watch(config);
  watch
    .watch(
      path,
      { resourceVersion: version },
      (type, object) => type === 'DELETED' && resolve([type, object.metadata.name]),
      (error) => reject(error ?? new Error('the watch ended')),
    )
    .catch(reject);
});
said.watch.push(watched);

const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const claim = {
  apiVersion: 'resource.k8s.io/v1',
  kind: 'ResourceClaim',
  metadata: { name: 'c', namespace },
  spec: { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'c' } }] } },
};
const applied = await objects.patch(
  claim, undefined, undefined, 'node', true, k8s.PatchStrategy.ServerSideApply,
);
said.claim = [applied.metadata.name, applied.metadata.managedFields[0].operation];
try {
  await objects.create(claim);
} catch (error) {
  said.conflict = [error.code, JSON.parse(error.body).reason];
}
console.log(JSON.stringify(said));
process.exit(0);
