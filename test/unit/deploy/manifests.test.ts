import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { validate } from 'dockerfile-utils';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { loadSettings } from '../../../src/config/load.ts';
import { ROOT } from '../../house/source.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';

const FOLDER = join(ROOT, 'deploy', 'kubernetes');

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  metadata: { readonly name: string; readonly labels?: Record<string, string>; namespace?: string };
  readonly spec?: Record<string, unknown>;
  readonly data?: Record<string, string>;
}

interface Kustomization {
  readonly namespace: string;
  readonly resources: readonly string[];
  readonly images: readonly { readonly name: string; readonly newName: string; readonly newTag: string }[];
}

interface Container {
  image: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly ports: readonly { readonly name: string }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

type Labels = Readonly<Record<string, string>>;

interface PodSelector {
  readonly matchLabels: Labels;
}

interface PodSpec {
  readonly containers: readonly Container[];
  readonly enableServiceLinks: boolean;
  readonly terminationGracePeriodSeconds: number;
}

/** The modules that declare the Kubernetes kinds, by API version. The name of an interface is `I` followed by the name of the kind. */
const DECLARING_MODULES: Readonly<Record<string, string>> = {
  v1: 'kubernetes-models/v1',
  'apps/v1': 'kubernetes-models/apps/v1',
  'policy/v1': 'kubernetes-models/policy/v1',
  'networking.k8s.io/v1': 'kubernetes-models/networking.k8s.io/v1',
  'monitoring.coreos.com/v1': '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1',
};

/**
 * Compiles each manifest as an object literal whose type is the interface of its kind, and returns the errors of the
 * compiler, which also reports each member that the interface does not declare.
 */
function compileManifests(manifests: readonly Manifest[]): readonly string[] {
  const folder = createTemporaryFolder();
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const files = manifests.map((manifest, index) => {
    const type = `import('${DECLARING_MODULES[manifest.apiVersion]}').I${manifest.kind}`;
    const file = `${index}.ts`;
    writeFileSync(join(folder, file), `export const manifest: ${type} = ${JSON.stringify(manifest, null, 2)};\n`);
    return file;
  });
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2024',
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], { encoding: 'utf8' });
  return stdout.split('\n').filter((line) => line.includes('error TS'));
}

const kustomization = parse(readFileSync(join(FOLDER, 'kustomization.yaml'), 'utf8')) as Kustomization;

/**
 * Applies the transformations that this kustomization uses: resources, namespace, images. The manifests are parsed as
 * YAML 1.1, as in Kubernetes. In YAML 1.1, 0440 is an octal number.
 */
function renderManifests(): readonly Manifest[] {
  const manifests = kustomization.resources.flatMap((name) =>
    parseAllDocuments(readFileSync(join(FOLDER, name), 'utf8'), { version: '1.1' }).map((document) => {
      expect(document.errors, name).toEqual([]);
      return document.toJS() as Manifest;
    }),
  );
  for (const manifest of manifests) {
    if (manifest.kind !== 'Namespace') manifest.metadata.namespace = kustomization.namespace;
    for (const container of manifest.kind === 'Deployment' ? getPod(manifest).containers : []) {
      const image = kustomization.images.find(({ name }) => name === container.image);
      if (image !== undefined) container.image = `${image.newName}:${image.newTag}`;
    }
  }
  return manifests;
}

function getPod({ spec }: Manifest): PodSpec {
  return (spec as { template: { spec: PodSpec } }).template.spec;
}

const renderedManifests = renderManifests();
const findManifest = (kind: string, name: string) =>
  renderedManifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
const deployments = renderedManifests.filter(({ kind }) => kind === 'Deployment');

describe('the manifests for Kubernetes', () => {
  test('the kustomization names every file of the folder', () => {
    const files = readdirSync(FOLDER).filter((name) => name !== 'kustomization.yaml');
    expect([...kustomization.resources].sort()).toEqual(files.sort());
  });

  test('every manifest has the type that its API declares', () => {
    expect(compileManifests(renderedManifests)).toEqual([]);
  });

  test('each role has a Deployment, and each Deployment with more than one pod has a PodDisruptionBudget', () => {
    const roles = deployments.map((one) =>
      getPod(one).containers[0]?.env.find(({ name }) => name === 'POSTRIDER_ROLES'),
    );
    expect(roles.map((role) => role?.value)).toEqual([
      'api,operator',
      'deliver,operator',
      'feedback,operator',
      'operator',
    ]);
    const replicatedDeployments = deployments.filter(({ spec }) => Number(spec?.replicas) > 1);
    for (const { metadata } of replicatedDeployments)
      expect(findManifest('PodDisruptionBudget', metadata.name)).toBeDefined();
  });

  test('every pod has settings that the service accepts, no injected variables, and enough time to drain', () => {
    const sharedSettings = findManifest('ConfigMap', 'postrider-settings')?.data ?? {};
    for (const deployment of deployments) {
      const pod = getPod(deployment);
      expect(pod.enableServiceLinks).toBe(false);
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(30);
      const [container] = pod.containers;
      const ownSettings = Object.fromEntries(container?.env.map(({ name, value }) => [name, value]) ?? []);
      const files: Record<string, string> = {
        '/run/secrets/postrider/database': 'postgres://postrider:p@db/postrider',
        '/run/secrets/postrider/secret': '0f'.repeat(32),
        '/run/secrets/postrider/transport': 'smtps://u:p@relay.example.com:465',
        '/run/secrets/postrider/operator-password': 'a password of the operator',
      };
      const settings = loadSettings({ ...sharedSettings, ...ownSettings }, null, (path) => files[path] ?? '');
      expect(settings.database.kind).toBe('postgres');
      expect(container?.args).toEqual(['serve', '--no-key']);
      expect(container?.image).toBe('registry.example.com/postrider:0.2.0');
    }
  });

  test('every port of a Service or NetworkPolicy is a port of the pods that this Service or NetworkPolicy selects', () => {
    const listPorts = (labels: Labels) =>
      deployments
        .filter(({ metadata }) => Object.entries(labels).every(([name, value]) => metadata.labels?.[name] === value))
        .map((one) => getPod(one).containers[0]?.ports.map(({ name }) => name) ?? []);
    for (const { kind, spec = {}, metadata } of renderedManifests) {
      if (kind !== 'Service' && kind !== 'NetworkPolicy') continue;
      const selector = kind === 'Service' ? (spec.selector as Labels) : (spec.podSelector as PodSelector).matchLabels;
      const ports =
        kind === 'Service'
          ? (spec.ports as { targetPort: string }[]).map(({ targetPort }) => targetPort)
          : (spec.ingress as { ports: { port: string }[] }[]).flatMap((rule) => rule.ports.map(({ port }) => port));
      const selectedPorts = listPorts(selector);
      expect(selectedPorts.length, metadata.name).toBeGreaterThan(0);
      for (const podPorts of selectedPorts) expect(podPorts, metadata.name).toEqual(expect.arrayContaining(ports));
    }
  });
});

describe('the Dockerfile', () => {
  const text = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');

  test('passes the linter without an error', () => {
    expect(validate(text).map(({ message, range }) => `${range.start.line + 1}: ${message}`)).toEqual([]);
    expect(validate('FROM scratch\nCOPPY . .\n')).not.toEqual([]);
  });

  test('names no digest and no registry, runs as a numeric user, and copies only files that exist', () => {
    expect(text).not.toMatch(/sha256:|[a-z0-9-]+\.(io|com)\//);
    expect(text).toMatch(/^USER [1-9]\d*:\d+$/m);
    const includedPaths = readFileSync(join(ROOT, '.dockerignore'), 'utf8').matchAll(/^!(.+)$/gm);
    for (const [, path] of includedPaths) expect(existsSync(join(ROOT, path ?? '')), path).toBe(true);
  });
});

describe.each(['compose.yaml', 'compose.postgres.yaml'])('%s', (name) => {
  interface ComposeFile {
    readonly services: Record<
      string,
      { environment?: Record<string, string>; secrets?: string[]; read_only?: boolean }
    >;
    readonly secrets: Record<string, { readonly file: string }>;
  }
  const compose = parse(readFileSync(join(ROOT, name), 'utf8'), { merge: true }) as ComposeFile;

  test('every service of Postrider has a read-only root file system and settings that the service accepts', () => {
    const ownServices = Object.entries(compose.services).filter(([service]) => service !== 'postgres');
    expect(ownServices.length).toBeGreaterThan(0);
    for (const [service, { environment = {}, secrets = [], read_only: readOnly }] of ownServices) {
      expect(readOnly, service).toBe(true);
      for (const secret of secrets) expect(compose.secrets[secret], secret).toBeDefined();
      const secretValues: Record<string, string> = {
        database: 'postgres://postrider:p@postgres/postrider',
        secret: '0f'.repeat(32),
        'operator-password': 'a password of the operator',
      };
      const settings = { ...environment, POSTRIDER_TRANSPORT: 'capture:' };
      const read = (path: string) => secretValues[secrets.find((one) => path === `/run/secrets/${one}`) ?? ''] ?? '';
      expect(loadSettings(settings, null, read).operatorPassword).toBe('a password of the operator');
    }
  });
});
