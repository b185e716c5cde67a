#!/usr/bin/env node
// The launcher: says in one line what an old Node lacks, else hands over to src/cli/main.ts. Plain JavaScript that old
// versions of Node parse too. It starts no second process: signals, exit codes and `kill -9` reach the service itself.
const major = Number(process.versions.node.split('.')[0]);
if (major < 24) {
  process.stderr.write(
    `postrider: needs Node 24 or later and this is ${process.version}; run it as \`npm start\` or \`npx postrider COMMAND\`, which use the Node that \`npm ci\` installed\n`,
  );
  process.exitCode = 1;
} else {
  // Node keeps what it compiled of each file, under a digest of it: half the processor time of every start
  // (docs/decisions/launcher.md). Threads read the variable. Where the folder cannot be written, it goes without.
  if (process.env.NODE_COMPILE_CACHE === undefined) {
    const { fileURLToPath } = process.getBuiltinModule('node:url');
    process.env.NODE_COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url));
  }
  process.getBuiltinModule('node:module').enableCompileCache();
  // Signatures fill libuv's pool: more threads than cores only take turns (docs/decisions/hot-path.md). The pool reads this when
  // it first works. Two at least, so that a look-up of a name that hangs does not stop signing.
  if (process.env.UV_THREADPOOL_SIZE === undefined) {
    const { availableParallelism } = process.getBuiltinModule('node:os');
    process.env.UV_THREADPOOL_SIZE = String(Math.max(2, availableParallelism()));
  }
  import('../src/cli/main.ts').then(
    (cli) => cli.main(process.argv.slice(2)),
    (error) => {
      process.stderr.write(`postrider: cannot be loaded (${error.message}); \`npm ci\` puts its parts in place\n`);
      process.exitCode = 1;
    },
  );
}
