#!/usr/bin/env node
// The launcher: prints one line if Node is too old, else calls src/cli/main.ts. It is plain JavaScript that old versions of Node
// can parse. It starts no second process, so that signals, exit codes and `kill -9` reach the service itself.
const major = Number(process.versions.node.split('.')[0]);
if (major < 24) {
  process.stderr.write(
    `postrider: needs Node 24 or later, and this is ${process.version}; run \`npm start\` or \`npx postrider COMMAND\`, which use the Node that \`npm ci\` installed\n`,
  );
  process.exitCode = 1;
} else {
  // Node caches the compiled code of each file by its digest, which halves the processor time of a start
  // (docs/decisions/launcher.md). Threads read the variable. If the folder cannot be written, Node uses no cache.
  if (process.env.NODE_COMPILE_CACHE === undefined) {
    const { fileURLToPath } = process.getBuiltinModule('node:url');
    process.env.NODE_COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url));
  }
  process.getBuiltinModule('node:module').enableCompileCache();
  // Signatures occupy libuv's pool; more threads than cores do not make it faster (docs/decisions/hot-path.md). The pool reads
  // this variable at its first use. At least two threads, so that a DNS lookup that hangs does not stop signing.
  if (process.env.UV_THREADPOOL_SIZE === undefined) {
    const { availableParallelism } = process.getBuiltinModule('node:os');
    process.env.UV_THREADPOOL_SIZE = String(Math.max(2, availableParallelism()));
  }
  import('../src/cli/main.ts').then(
    (cli) => cli.main(process.argv.slice(2)),
    (error) => {
      process.stderr.write(`postrider: cannot be loaded (${error.message}); run \`npm ci\` to install its packages\n`);
      process.exitCode = 1;
    },
  );
}
