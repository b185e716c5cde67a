// Builds the contents of the npm package before `npm pack` and `npm publish`: src bundled to dist, and the dashboard. Node does
// not strip types below node_modules, so the package contains JavaScript. Few files also load faster than one file for each
// module (docs/decisions/packaging.md). All output is written to standard error.
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { buildDashboard } from './build-dashboard.js';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [src, dist] = ['src', 'dist'].map((name) => join(root, name));

/** The URLs of files relative to a module, such as `new URL('./worker.ts', import.meta.url)`. */
const FILE_URL = /new URL\('(\.[^']*)', import\.meta\.url\)/g;

const declarations = emitDeclarations();
await bundle();
writeFileSync(join(dist, 'index.d.ts'), declarations);
for (const file of readdirSync(src, { recursive: true })) {
  if (file.endsWith('.sql')) cpSync(join(src, file), join(dist, file));
}
await buildDashboard({ fresh: true });

/** Checks the types of src and returns the declarations of index.ts. The package exports only index.js. */
function emitDeclarations() {
  rmSync(dist, { recursive: true, force: true });
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const emitted = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], {
    stdio: ['ignore', 2, 2],
  });
  if (emitted.status !== 0) process.exit(1);
  const text = readFileSync(join(dist, 'index.d.ts'), 'utf8');
  if (text.includes(' from ')) {
    throw new Error(
      'src/index.ts exports types of other modules: keep their declarations in the package, or declare them in index.ts',
    );
  }
  return text;
}

/** Bundles the command, the embeddable API and the threads into files of one folder. Packages are not bundled. */
async function bundle() {
  const entries = [join(src, 'cli', 'main.ts'), join(src, 'index.ts'), ...listThreads()];
  const build = await rolldown({
    cwd: root,
    platform: 'node',
    input: Object.fromEntries(entries.map((path) => [getEntryName(path), path])),
    external: (id) => !id.startsWith('.') && !isAbsolute(id),
    plugins: [{ name: 'file-urls', transform: rewriteFileUrls }],
  });
  rmSync(dist, { recursive: true, force: true });
  await build.write({
    dir: dist,
    sourcemap: true,
    codeSplitting: {
      // Every command loads the first of these files, and every command that uses the embedded store loads both. An entry
      // runs when it is loaded, so it must not be in a file that other files import.
      groups: [
        { name: 'shared', test: /[\\/]src[\\/](model|printing|config|providers)[\\/]/, minShareCount: 2 },
        { name: 'store', test: (id) => isEmbeddedStore(id) && !entries.includes(id), minShareCount: 2 },
      ],
    },
  });
}

function isEmbeddedStore(path) {
  return /[\\/]src[\\/]store[\\/](sqlite|rules|search)[\\/]/.test(path);
}

/** Returns the paths of the modules that run in threads of their own. */
function listThreads() {
  return readdirSync(src, { recursive: true })
    .map((file) => join(src, file))
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(FILE_URL)].map(([, target]) => resolve(dirname(path), target)),
    )
    .filter((path) => path.endsWith('.ts'));
}

/** Returns the name of the bundled file of an entry: `store-sqlite-worker` for `src/store/sqlite/worker.ts`. */
function getEntryName(path) {
  return relative(src, path).slice(0, -'.ts'.length).replaceAll(/[\\/]/g, '-');
}

/** Changes the URLs of files of a module, because the bundled code of every module is in the folder dist itself. */
function rewriteFileUrls(code, path) {
  if (!path.startsWith(src)) return null;
  const rewritten = code.replaceAll(FILE_URL, (_url, target) => {
    const targetPath = resolve(dirname(path), target);
    const slash = target.endsWith('/') ? '/' : '';
    const file = target.endsWith('.ts') ? `${getEntryName(targetPath)}.js` : relative(src, targetPath) + slash;
    return `new URL('./${file}', import.meta.url)`;
  });
  // The lines do not change, so the source map remains correct.
  return rewritten === code ? null : { code: rewritten, map: null };
}
