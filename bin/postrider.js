#!/usr/bin/env node
// The launcher: prints one line if Node is too old, else runs the command. It is plain JavaScript that old versions of Node can
// parse. It starts no second process, so that signals, exit codes and `kill -9` reach the service itself.
const LEAST = [24, 21];
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < LEAST[0] || (major === LEAST[0] && minor < LEAST[1])) {
  process.stderr.write(
    `postrider: needs Node ${LEAST.join('.')} or later, and this is ${process.version}; install a later Node, or in a checkout run \`./postrider\` or \`npm start\`, which use the Node that \`npm ci\` installed\n`,
  );
  process.exitCode = 1;
} else {
  const { existsSync } = process.getBuiltinModule('node:fs');
  const { fileURLToPath } = process.getBuiltinModule('node:url');
  const pathOf = (relative) => fileURLToPath(new URL(relative, import.meta.url));
  // A checkout runs its TypeScript; the package contains compiled JavaScript alone.
  const isCheckout = existsSync(pathOf('../src/cli/main.ts'));
  // Node caches the compiled code of each file by its digest, which halves the processor time of a start
  // (docs/decisions/launcher.md). Threads read the variable. If the folder cannot be written, Node uses no cache.
  if (process.env.NODE_COMPILE_CACHE === undefined) {
    const folder = isCheckout ? pathOf('../node_modules/.cache/compiled') : userCache();
    if (folder !== null) process.env.NODE_COMPILE_CACHE = folder;
  }
  if (process.env.NODE_COMPILE_CACHE !== undefined) process.getBuiltinModule('node:module').enableCompileCache();
  // Signatures occupy libuv's pool; more threads than cores do not make it faster (docs/decisions/hot-path.md). The pool reads
  // this variable at its first use. At least two threads, so that a DNS lookup that hangs does not stop signing.
  if (process.env.UV_THREADPOOL_SIZE === undefined) {
    const { availableParallelism } = process.getBuiltinModule('node:os');
    process.env.UV_THREADPOOL_SIZE = String(Math.max(2, availableParallelism()));
  }
  import(isCheckout ? '../src/cli/main.ts' : '../dist/cli/main.js').then(
    (cli) => cli.main(process.argv.slice(2)),
    (error) => {
      process.stderr.write(`postrider: cannot be loaded (${error.message}); install it again\n`);
      process.exitCode = 1;
    },
  );
}

// The cache folder of an installed package: systemd's, else the user's own. Never the package, which a global installation makes
// read-only, and never a folder that other users can write to, because Node runs the code that it finds in the cache.
function userCache() {
  const { join } = process.getBuiltinModule('node:path');
  const { CACHE_DIRECTORY, XDG_CACHE_HOME, HOME, LOCALAPPDATA } = process.env;
  if (CACHE_DIRECTORY) return join(CACHE_DIRECTORY.split(':')[0], 'compiled');
  const base = XDG_CACHE_HOME || LOCALAPPDATA || (HOME ? join(HOME, '.cache') : '');
  return base === '' ? null : join(base, 'postrider', 'compiled');
}
