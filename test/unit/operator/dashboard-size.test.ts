import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Fastify from 'fastify';
import { beforeAll, expect, test } from 'vitest';
import { addDashboard } from '../../../src/operator/dashboard.ts';
import { ROOT } from '../../house/source.ts';

const DIST_FOLDER = join(ROOT, 'dashboard/dist');
const MAX_KB = 200;

interface ManifestEntry {
  readonly file: string;
  readonly imports?: readonly string[];
  readonly dynamicImports?: readonly string[];
  readonly css?: readonly string[];
}

let manifestEntries: ReadonlyMap<string, ManifestEntry>;
let compressedBytes: ReadonlyMap<string, number>;

beforeAll(async () => {
  const manifest = readFileSync(join(DIST_FOLDER, '.vite/manifest.json'), 'utf8');
  manifestEntries = new Map(Object.entries(JSON.parse(manifest) as Record<string, ManifestEntry>));
  const files = new Set([...manifestEntries.values()].flatMap(({ file, css = [] }) => [file, ...css]));
  const app = Fastify();
  addDashboard(app, DIST_FOLDER);
  const sizes = [...files].map(async (file) => {
    const response = await app.inject({ url: `/${file}`, headers: { 'Accept-Encoding': 'br' } });
    expect([file, response.statusCode]).toEqual([file, 200]);
    return [file, response.rawPayload.length] as const;
  });
  compressedBytes = new Map(await Promise.all(sizes));
});

function listFiles(name: string, visited = new Set<string>()): readonly string[] {
  const entry = manifestEntries.get(name);
  if (entry === undefined || visited.has(name)) return [];
  visited.add(name);
  return [
    entry.file,
    ...(entry.css ?? []),
    ...(entry.imports ?? []).flatMap((imported) => listFiles(imported, visited)),
  ];
}

test(`the scripts that a browser loads before it shows a page are smaller than ${MAX_KB} kB, for each page`, () => {
  const pages = manifestEntries.get('index.html')?.dynamicImports ?? [];
  expect(pages.length).toBeGreaterThan(5);
  const pageSizes = pages
    .map((page) => {
      const files = [...new Set([...listFiles('index.html'), ...listFiles(page)])];
      return { page, script: sumKb(files, '.js'), style: sumKb(files, '.css') };
    })
    .toSorted((left, right) => right.script - left.script);
  const summary = pageSizes.map(({ page, script, style }) => `${page}: ${script} kB of script, ${style} kB of style`);
  expect(pageSizes[0]?.script, summary.join('\n')).toBeLessThan(MAX_KB);
});

function sumKb(files: readonly string[], extension: string): number {
  const sizes = files.filter((file) => file.endsWith(extension)).map((file) => compressedBytes.get(file) ?? Number.NaN);
  return Math.round(sizes.reduce((sum, bytes) => sum + bytes, 0) / 100) / 10;
}
