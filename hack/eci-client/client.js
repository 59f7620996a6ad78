// SPDX-License-Identifier: Apache-2.0
//
// Lets the vendor's own client of ECI talk to the emulator of the tests, and compares what it knows of requests with the emulator's table.
// Usage: node client.js provider.yaml fields.json. It writes a table to standard output and fails if a check does.

import {createRequire} from 'node:module';
import {readFileSync} from 'node:fs';
import {isDeepStrictEqual} from 'node:util';

const require = createRequire(import.meta.url);
const eci = require('@alicloud/eci20180808');
const {Config} = require('@alicloud/openapi-client');
const {RuntimeOptions} = require('@alicloud/tea-util');
const [settingsFile, fieldsFile] = process.argv.slice(2);
const settings = Object.fromEntries(readFileSync(settingsFile, 'utf8').split('\n').map((line) => line.match(/^(\w+): (.*)$/)).filter(Boolean).map((m) => [m[1], m[2]]));
const address = new URL(settings.endpoint);
const region = settings.region;

const client = (change = {}) => new eci.default(new Config({
  accessKeyId: settings.accessKeyID, accessKeySecret: settings.accessKeySecret, endpoint: address.host, protocol: 'https', regionId: region, ...change,
}));
const ours = client();

// ask sends one request, and never twice.
const ask = async (operation, fields, from = ours) => {
  const request = new eci[operation + 'Request']({regionId: region, ...fields});
  const method = operation[0].toLowerCase() + operation.slice(1) + 'WithOptions';
  return (await from[method](request, new RuntimeOptions({autoretry: false, maxAttempts: 1}))).body;
};

// describe is what a class of the client knows of its fields, in the form of fields.json.
const describe = (type) => {
  if (typeof type === 'string') return type;
  if (type.type === 'array') return [describe(type.itemType)];
  const names = type.names(), types = type.types(), out = {};
  for (const [property, name] of Object.entries(names)) {
    let into = out;
    const parts = name.split('.'); // a field of a struct may be written with its path
    for (const part of parts.slice(0, -1)) into = into[part] ??= {};
    const last = parts.at(-1), is = describe(types[property]);
    into[last] = typeof is === 'object' && !Array.isArray(is) && into[last] ? {...is, ...into[last]} : is;
  }
  return out;
};

const until = async (what, is) => {
  for (let n = 0; n < 150; n++) {
    const got = await is();
    if (got) return got;
    await new Promise((wake) => setTimeout(wake, 200));
  }
  throw new Error('waited too long: ' + what);
};
const equal = (what, got, want) => {
  if (!isDeepStrictEqual(got, want)) throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
};
const refused = async (code, asking) => {
  try {
    await asking();
  } catch (error) {
    equal('the code of the refusal', error.code, code);
    return;
  }
  throw new Error('it is let in');
};

const tags = [{key: 'vk-name', value: 'second'}];
const create = {
  containerGroupName: 'second-client', clientToken: 'token-1', securityGroupId: 'sg-emulated', vSwitchId: 'vsw-emulated', cpu: 0.25, memory: 0.5, restartPolicy: 'Never',
  tag: tags.map((t) => new eci.CreateContainerGroupRequestTag(t)),
  container: [new eci.CreateContainerGroupRequestContainer({
    name: 'main', image: 'demo', command: ['echo', 'a "b" +c~d*'], arg: ['ä'], environmentVar: [new eci.CreateContainerGroupRequestContainerEnvironmentVar({key: 'K', value: 'v & w'})],
    livenessProbe: new eci.CreateContainerGroupRequestContainerLivenessProbe({tcpSocket: new eci.CreateContainerGroupRequestContainerLivenessProbeTcpSocket({port: 80}), periodSeconds: 5}),
    volumeMount: [new eci.CreateContainerGroupRequestContainerVolumeMount({name: 'files', mountPath: '/files'})],
  })],
  volume: [new eci.CreateContainerGroupRequestVolume({
    name: 'files', type: 'ConfigFileVolume',
    configFileVolume: new eci.CreateContainerGroupRequestVolumeConfigFileVolume({
      configFileToPath: [new eci.CreateContainerGroupRequestVolumeConfigFileVolumeConfigFileToPath({path: 'a', content: Buffer.from('text').toString('base64'), mode: '0644'})],
    }),
  })],
};
const status = async (id) => (await ask('DescribeContainerGroupStatus', {tag: tags.map((t) => new eci.DescribeContainerGroupStatusRequestTag(t))})).data.find((g) => g.containerGroupId === id);

let id;
const checks = [
  ['the fields of all requests are those of the table', () => {
    const table = JSON.parse(readFileSync(fieldsFile, 'utf8')).operations;
    for (const operation of Object.keys(table)) equal(operation, describe(eci[operation + 'Request']), table[operation]);
  }],
  ['a create', async () => { id = (await ask('CreateContainerGroup', create)).containerGroupId; equal('an ID', typeof id, 'string'); }],
  ['the same create again is the same group', async () => equal('the ID', (await ask('CreateContainerGroup', create)).containerGroupId, id)],
  ['its token with another request is refused', () => refused('IdempotentParameterMismatch', () => ask('CreateContainerGroup', {...create, memory: 1}))],
  ['the state in lists of states, by a tag', async () => {
    const g = await until('it runs', async () => { const g = await status(id); return g?.status === 'Running' && g; });
    equal('the container', [g.podStatus.containerStatuses[0].name, g.podStatus.containerStatuses[0].ready], ['main', true]);
  }],
  ['only what changed', async () => {
    await new Promise((wake) => setTimeout(wake, 2500));
    equal('groups that changed within a second', (await ask('DescribeContainerGroupStatus', {sinceSecond: 1})).data.length, 0);
  }],
  ['the group by its ID', async () => {
    const [g] = (await ask('DescribeContainerGroups', {containerGroupIds: JSON.stringify([id])})).containerGroups;
    equal('name and tags', [g.containerGroupName, g.tags.map((t) => [t.key, t.value])], ['second-client', [['vk-name', 'second']]]);
  }],
  ['a log', async () => equal('the name', (await ask('DescribeContainerLog', {containerGroupId: id, containerName: 'main', tail: 10})).containerName, 'main')],
  ['the address of a session', async () => {
    const got = await ask('ExecContainerCommand', {containerGroupId: id, containerName: 'main', command: '["ls"]'});
    equal('the address', new URL(got.webSocketUri).protocol, 'wss:');
  }],
  ['a wrong secret is refused', () => refused('SignatureDoesNotMatch', () => ask('DescribeContainerGroups', {}, client({accessKeySecret: 'wrong'})))],
  ['an unknown key is refused', () => refused('InvalidAccessKeyId.NotFound', () => ask('DescribeContainerGroups', {}, client({accessKeyId: 'LTAIunknown'})))],
  ['another region is refused', () => refused('InvalidRegionId.NotFound', () => ask('DescribeContainerGroups', {regionId: 'cn-nowhere'}))],
  ['a create without a name is refused', () => refused('MissingParameter', () => ask('CreateContainerGroup', {...create, containerGroupName: undefined}))],
  ['a delete', async () => {
    await ask('DeleteContainerGroup', {containerGroupId: id});
    await until('it is gone', async () => !(await status(id)));
  }],
  ['what is gone is not there', () => refused('ContainerGroup.NotFound', () => ask('DescribeContainerLog', {containerGroupId: id, containerName: 'main'}))],
];

console.log('| What | |\n|---|---|');
for (const [name, check] of checks) {
  try {
    await check();
    console.log(`| ${name} | ok |`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`| ${name} | **${String(error.message).replaceAll('\n', ' ')}** |`);
  }
}
