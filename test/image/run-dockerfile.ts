/**
 * Executes the steps of the Dockerfile without a container engine: each stage is a folder, and each RUN instruction
 * runs in a `chroot`. Then starts the command of the last stage as the user of the image, with a read-only root and a
 * writable /data, and requests `/healthz`.
 *
 * Usage: `sudo node test/image/run-dockerfile.ts ROOT`. ROOT is the folder of a root file system with Node and npm, for
 * example one that `mmdebstrap` creates. The temporary folder must have space for the copies of ROOT, one for each
 * stage. The exit code is 1 if a step fails.
 */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { DockerfileParser, type Instruction } from 'dockerfile-ast';
import { describeExit } from '../rig/exit.ts';
import { findFreePort } from '../rig/free-port.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const MAX_START_MS = 60_000;

interface Stage {
  readonly root: string;
  readonly environment: Record<string, string>;
  directory: string;
  user: string;
  command: readonly string[];
}

/** Runs a program with its output on standard error. @throws Error if the program fails */
function runProgram(file: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): void {
  const { status, signal, error } = spawnSync(file, [...args], { stdio: ['ignore', 2, 2], env });
  if (error !== undefined) throw new Error(`${file} cannot be started: ${error.message}`);
  if (status !== 0) throw new Error(`${file} ${args.join(' ')} ${describeExit(status ?? signal)}`);
}

/** Copies a file or the content of a folder, with owners and links. */
function copyTree(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  runProgram('cp', ['--archive', '--no-target-directory', from, to]);
}

/** Returns the words of an instruction in its exec form, such as `["serve", "--no-key"]`. */
function parseExecForm(instruction: Instruction): readonly string[] {
  return JSON.parse(instruction.getArgumentsContent() ?? '[]') as readonly string[];
}

/** Copies the files of the checkout that .dockerignore includes. */
function copyContext(to: string): void {
  for (const line of readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n')) {
    if (!line.startsWith('!')) continue;
    const path = line.slice(1);
    cpSync(join(ROOT, path), join(to, path), {
      recursive: true,
      filter: (file) => !/\/dashboard\/dist(?:\.|$|\/)/.test(file),
    });
  }
}

/** Executes one instruction in the folder of its stage. */
function executeInstruction(stage: Stage, instruction: Instruction, stages: ReadonlyMap<string, Stage>): void {
  const text = instruction.getArgumentsContent() ?? '';
  process.stderr.write(`\n${instruction.getKeyword()} ${text}\n`);
  const resolveInStage = (path: string) => join(stage.root, path.startsWith('/') ? path : join(stage.directory, path));
  switch (instruction.getKeyword().toUpperCase()) {
    case 'WORKDIR':
      stage.directory = text;
      mkdirSync(resolveInStage(text), { recursive: true });
      return;
    case 'ENV':
      for (const argument of instruction.getArguments()) {
        const [name = '', ...value] = argument.getValue().split('=');
        stage.environment[name] = value.join('=');
      }
      return;
    case 'USER':
      stage.user = text;
      return;
    case 'RUN': {
      const script = `cd '${stage.directory}' && ${text.replaceAll('\\\n', ' ')}`;
      // The command receives the environment of this process, so that npm in the stage uses the configured registry.
      const containerScript = 'mount -t proc proc "$0/proc" && exec chroot "$0" /bin/sh -ec "$1"';
      const unshareArguments = ['--mount', '--pid', '--fork', '/bin/sh', '-ec', containerScript, stage.root, script];
      runProgram('unshare', unshareArguments, { ...process.env, ...stage.environment, HOME: '/root' });
      return;
    }
    case 'COPY': {
      const words = instruction.getArguments().map((argument) => argument.getValue());
      const from = /--from=(\S+)/.exec(instruction.getTextContent())?.[1];
      const paths = words.filter((word) => !word.startsWith('--'));
      const target = paths.at(-1) ?? '';
      if (from !== undefined) copyTree(join(stages.get(from)?.root ?? '', paths[0] ?? ''), resolveInStage(target));
      else if (paths[0] === '.') copyContext(resolveInStage('.'));
      else
        for (const path of paths.slice(0, -1)) cpSync(join(ROOT, path), join(resolveInStage(target), basename(path)));
      return;
    }
    case 'ENTRYPOINT':
    case 'CMD':
      stage.command = [...stage.command, ...parseExecForm(instruction)];
      return;
    default:
      return;
  }
}

/** Starts the service of the last stage and waits until it is healthy. @throws Error if it does not become healthy */
async function checkHealth(stage: Stage): Promise<void> {
  const address = `127.0.0.1:${await findFreePort()}`;
  const [user = '', group = ''] = stage.user.split(':');
  // In a private mount namespace the root is read-only and /data is writable.
  const script = `mount --bind "$0" "$0" && mount --bind "$0/data" "$0/data" && mount -o remount,bind,ro "$0" && mount -t proc proc "$0/proc" && exec chroot --userspec=${user}:${group} "$0" /bin/sh -c 'cd /data && exec ${stage.command.join(' ')}'`;
  const args = ['--mount', '--propagation', 'private', '/bin/sh', '-ec', script, stage.root];
  const listenSettings = { POSTRIDER_LISTEN: address, POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0' };
  const service = spawn('unshare', args, {
    stdio: ['ignore', 2, 2],
    env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', ...stage.environment, ...listenSettings },
  });
  const exitPromise = new Promise<number | string>((resolve) => {
    service.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  try {
    const deadline = Date.now() + MAX_START_MS;
    for (;;) {
      const answer = await fetch(`http://${address}/healthz`).catch(() => null);
      if (answer?.ok) break;
      if (Date.now() > deadline || service.exitCode !== null) throw new Error('the service did not become healthy');
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  } finally {
    service.kill('SIGTERM');
  }
  const code = await exitPromise;
  if (code !== 0) throw new Error(`the service ${describeExit(code)} after SIGTERM`);
}

async function runDockerfile(base: string | undefined): Promise<void> {
  if (base === undefined || !existsSync(join(base, 'usr'))) {
    throw new Error('ROOT is not the folder of a root file system; give a folder with Node and npm');
  }
  const folder = mkdtempSync(join(tmpdir(), 'postrider-image-'));
  try {
    const stages = new Map<string, Stage>();
    let stage: Stage | null = null;
    for (const instruction of DockerfileParser.parse(
      readFileSync(join(ROOT, 'Dockerfile'), 'utf8'),
    ).getInstructions()) {
      if (instruction.getKeyword().toUpperCase() === 'FROM') {
        const name = / AS (\S+)/i.exec(instruction.getTextContent())?.[1] ?? 'final';
        stage = { root: join(folder, name), environment: {}, directory: '/', user: '0:0', command: [] };
        stages.set(name, stage);
        copyTree(base, stage.root);
      } else if (stage !== null) executeInstruction(stage, instruction, stages);
    }
    if (stage === null) throw new Error('the Dockerfile has no stage');
    await checkHealth(stage);
    process.stdout.write('every step of the Dockerfile succeeded, and the service was healthy with a read-only root\n');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

runDockerfile(process.argv[2]).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
