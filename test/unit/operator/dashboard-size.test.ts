/** The script that a browser loads before it shows a page is small: the built pages, as they are served. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Fastify from 'fastify';
import { beforeAll, expect, test } from 'vitest';
import { addDashboard } from '../../../src/operator/dashboard.ts';
import { ROOT } from '../../house/source.ts';

const DIST = join(ROOT, 'dashboard/dist');
const MAX_KB = 200;

/** Of Vite's manifest, by source file. */
interface Part {
  readonly file: string;
  readonly imports?: readonly string[];
  readonly dynamicImports?: readonly string[];
  readonly css?: readonly string[];
}

let parts: ReadonlyMap<string, Part>;
let served: ReadonlyMap<string, number>;

beforeAll(async () => {
  const manifest = readFileSync(join(DIST, '.vite/manifest.json'), 'utf8');
  parts = new Map(Object.entries(JSON.parse(manifest) as Record<string, Part>));
  const files = new Set([...parts.values()].flatMap(({ file, css = [] }) => [file, ...css]));
  const app = Fastify();
  addDashboard(app, DIST);
  const sizes = [...files].map(async (file) => {
    const answer = await app.inject({ url: `/${file}`, headers: { 'Accept-Encoding': 'br' } });
    expect([file, answer.statusCode]).toEqual([file, 200]);
    return [file, answer.rawPayload.length] as const;
  });
  served = new Map(await Promise.all(sizes));
});

/** The files of a part and of all that it needs at once. */
function filesOf(name: string, seen = new Set<string>()): readonly string[] {
  const part = parts.get(name);
  if (part === undefined || seen.has(name)) return [];
  seen.add(name);
  return [part.file, ...(part.css ?? []), ...(part.imports ?? []).flatMap((other) => filesOf(other, seen))];
}

test(`the script of the first load of any page is under ${MAX_KB} kB`, () => {
  const pages = parts.get('index.html')?.dynamicImports ?? [];
  expect(pages.length).toBeGreaterThan(5);
  const loads = pages
    .map((page) => {
      const files = [...new Set([...filesOf('index.html'), ...filesOf(page)])];
      return { page, script: kBOf(files, '.js'), style: kBOf(files, '.css') };
    })
    .toSorted((one, other) => other.script - one.script);
  const told = loads.map(({ page, script, style }) => `${page}: ${script} kB of script, ${style} kB of style`);
  expect(loads[0]?.script, told.join('\n')).toBeLessThan(MAX_KB);
});

function kBOf(files: readonly string[], type: string): number {
  const sizes = files.filter((file) => file.endsWith(type)).map((file) => served.get(file) ?? Number.NaN);
  return Math.round(sizes.reduce((sum, bytes) => sum + bytes, 0) / 100) / 10;
}
