#!/usr/bin/env node
// The launcher, which runs the command, or prints one line if Node is too old. The launcher is plain JavaScript that
// old versions of Node can parse. It starts no second process, so that signals, exit codes and `kill -9` reach the
// service itself.
const MIN_NODE_VERSION = [24, 21];
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < MIN_NODE_VERSION[0] || (major === MIN_NODE_VERSION[0] && minor < MIN_NODE_VERSION[1])) {
  process.stderr.write(
    `postrider: needs Node ${MIN_NODE_VERSION.join('.')} or later, and this is ${process.version}; install a later Node, or in a checkout run \`./postrider\` or \`npm start\`, which use the Node that \`npm ci\` installed\n`,
  );
  process.exitCode = 1;
} else {
  const { existsSync } = process.getBuiltinModule('node:fs');
  const { fileURLToPath } = process.getBuiltinModule('node:url');
  const resolvePath = (relative) => fileURLToPath(new URL(relative, import.meta.url));
  // A checkout runs TypeScript. The package contains only compiled JavaScript.
  const isCheckout = existsSync(resolvePath('../src/cli/main.ts'));
  // Node caches the compiled code of each file by its digest, which halves the processor time of a start
  // (docs/decisions/launcher.md). The variable also applies to worker threads. If Node cannot write to the folder, it
  // uses no cache.
  if (process.env.NODE_COMPILE_CACHE === undefined) {
    const folder = isCheckout ? resolvePath('../node_modules/.cache/compiled') : getUserCacheFolder();
    if (folder !== null) process.env.NODE_COMPILE_CACHE = folder;
  }
  const { enableCompileCache, registerHooks } = process.getBuiltinModule('node:module');
  if (process.env.NODE_COMPILE_CACHE !== undefined) enableCompileCache();
  // In a checkout, each relative import names a file of src with its extension. This function needs no file system,
  // while Node looks for a `package.json` beside each file, which takes a quarter of the processor time of a command.
  const resolve = (specifier, context, resolveByNode) =>
    specifier.startsWith('.') && specifier.endsWith('.ts')
      ? { url: new URL(specifier, context.parentURL).href, format: 'module-typescript', shortCircuit: true }
      : resolveByNode(specifier, context);
  if (isCheckout) registerHooks({ resolve });
  // Signatures are computed in the thread pool of libuv. More threads than cores do not make this pool faster
  // (docs/decisions/hot-path.md). The pool reads this variable at its first use. It has at least two threads, so that a
  // slow DNS lookup does not block signing.
  if (process.env.UV_THREADPOOL_SIZE === undefined) {
    const { availableParallelism } = process.getBuiltinModule('node:os');
    process.env.UV_THREADPOOL_SIZE = String(Math.max(2, availableParallelism()));
  }
  import(isCheckout ? '../src/cli/main.ts' : '../dist/cli-main.js').then(
    (cli) => cli.main(process.argv.slice(2)),
    (error) => {
      process.stderr.write(`postrider: cannot be loaded (${error.message}); install it again\n`);
      process.exitCode = 1;
    },
  );
}

// Returns the cache folder of an installed package: the folder of the systemd unit, or a folder of the user. The folder
// is outside the package, because a user usually cannot write to a globally installed package. Other users must not be
// able to write to the folder, because Node runs the code in the cache.
function getUserCacheFolder() {
  const { join } = process.getBuiltinModule('node:path');
  const { CACHE_DIRECTORY, XDG_CACHE_HOME, HOME, LOCALAPPDATA } = process.env;
  if (CACHE_DIRECTORY) return join(CACHE_DIRECTORY.split(':')[0], 'compiled');
  const base = XDG_CACHE_HOME || LOCALAPPDATA || (HOME ? join(HOME, '.cache') : '');
  return base === '' ? null : join(base, 'postrider', 'compiled');
}
